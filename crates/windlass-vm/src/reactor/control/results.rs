//! Step 1: what the workers post.

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_actor::ExitReason;
use windlass_core::sync::atomic::Ordering;
use windlass_value::Payload;

use super::event_queues::WorkerEvent;
use super::{Control, number};
use crate::effects::Op;
use crate::guest_process::begin;
use crate::guest_shared::GuestShared;
use crate::reactor::end;
use crate::reactor::event::{StepOutcome, StepResult};
use crate::reason::Reason;
use crate::record::{AnswerLog, Line, RecordedPayload};

impl Control {
    pub(super) fn handle(
        &mut self,
        event: WorkerEvent,
        channels: &mut VecDeque<(Arc<GuestShared>, Op)>,
        suspended: &mut Vec<Arc<GuestShared>>,
    ) {
        match event {
            WorkerEvent::Op { guest, op } => {
                self.log(|| Line::Op {
                    task: number(&guest),
                    name: op.description(),
                });
                self.apply(guest, op, channels);
            }
            WorkerEvent::Result(result) => self.result(result, channels, suspended),
        }
    }

    fn apply(
        &mut self,
        guest: Arc<GuestShared>,
        op: Op,
        channels: &mut VecDeque<(Arc<GuestShared>, Op)>,
    ) {
        match op {
            Op::Spawned(child) => self.admit(&child),
            // After the channels' own: what it takes back may be one of them.
            Op::Withdraw { .. } | Op::Close(_) => channels.push_back((guest, op)),
            Op::Begin {
                reason: Reason::ChannelSend(..) | Reason::ChannelReceive(_),
                ..
            } => channels.push_back((guest, op)),
            op => self.vm.perform(&guest, op),
        }
    }

    fn result(
        &mut self,
        result: StepResult,
        channels: &mut VecDeque<(Arc<GuestShared>, Op)>,
        suspended: &mut Vec<Arc<GuestShared>>,
    ) {
        let StepResult {
            guest,
            slot,
            outcome,
            spent,
            answers,
        } = result;
        self.used[slot] = None;
        if let StepOutcome::Rejected(resume) = outcome {
            // The slot is free again, and the guest still wants to go on.
            self.unused.insert(number(&guest), resume);
            self.reactor().ready.lock().push_front(guest);
            return;
        }
        self.log(|| {
            let step = match &answers {
                AnswerLog::Reading { short: true, .. } => "asked for more than then".to_owned(),
                _ => outcome.description(),
            };
            let (answers, did) = match answers {
                AnswerLog::Writing { answers, did } => (answers, did),
                AnswerLog::Reading { given, did, .. } => (given, did),
                AnswerLog::Live => Default::default(),
            };
            Line::Result {
                task: number(&guest),
                step,
                spent,
                answers: answers.into_iter().map(RecordedPayload).collect(),
                did,
            }
        });
        if guest.is_over() {
            // It was ended meanwhile.
            return end(&guest);
        }
        match outcome {
            StepOutcome::Yield => self.reactor().make_ready(&guest),
            StepOutcome::Suspend(reason) => {
                self.apply(guest.clone(), begin(reason), channels);
                suspended.push(guest);
            }
            StepOutcome::Over(result) => self.finish(&guest, result),
            StepOutcome::Rejected(_) => {}
        }
    }

    fn finish(&mut self, guest: &Arc<GuestShared>, result: Result<Payload, ExitReason>) {
        self.guests.remove(&number(guest));
        guest.finish(result);
        guest.request_step();
    }

    /// A guest that is new.
    pub(super) fn admit(&mut self, guest: &Arc<GuestShared>) {
        self.last += 1;
        guest.number.store(self.last, Ordering::Relaxed);
        // Its process may have ended already.
        if !guest.is_over() {
            self.guests.insert(self.last, guest.clone());
            self.reactor().make_ready(guest);
        }
    }
}
