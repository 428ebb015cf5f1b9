//! The turns of a replay.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use windlass_sync::park::Generation;

use super::event_queues::{OutsideEvent, WorkerEvent};
use super::{Control, number};
use crate::guest_shared::GuestShared;
use crate::object::Waiter;
use crate::reactor::event::Event;
use crate::record::{Line, Source};
use crate::vm::GuestScheduler;

/// Events of a replay that are not due yet.
#[derive(Default)]
pub(super) struct Replay {
    /// What guests do, by guest.
    guests: HashMap<u64, VecDeque<WorkerEvent>>,
    /// Guests that were started.
    pub(super) injected: VecDeque<Arc<GuestShared>>,
}

impl Control {
    /// In a replay only guests, and those who start them, are listened to.
    pub(super) fn sort_for_replay(&mut self, event: Event) {
        match event {
            Event::Op { guest, op } => {
                let queue = self.replay.guests.entry(number(&guest)).or_default();
                queue.push_back(WorkerEvent::Op { guest, op });
            }
            Event::Result(result) => {
                let queue = self.replay.guests.entry(number(&result.guest)).or_default();
                queue.push_back(WorkerEvent::Result(result));
            }
            Event::Inject { guest } => self.replay.injected.push_back(guest),
            Event::Stop => self.stopping = true,
            _ => {}
        }
    }

    /// Puts the events of the next recorded turn into the queues. Returns the line after that turn;
    /// `None` if an event of it has not arrived yet.
    pub(super) fn gather(&mut self) -> Option<usize> {
        let vm = self.vm.clone();
        let GuestScheduler::Reactor(reactor) = &vm.scheduler else {
            return None;
        };
        let Some(lines) = reactor.log.next_turn() else {
            if !reactor.log.is_over() {
                reactor.log.end_of_replay();
            }
            self.end_all();
            return None;
        };
        let begins = reactor
            .replay_position()
            .map_or(0, |position| position.line);
        let ends = begins + lines.len() + 1;
        if let Some(line) = lines.iter().find(|line| !self.has_come(line, &lines)) {
            // No guest runs: the event will not come.
            let runs = self
                .used
                .iter()
                .flatten()
                .any(|guest| !self.has_ended_its_step(guest));
            if !runs && !matches!(line.source(), Source::Outside) {
                reactor.log.diverged(line, "nothing".to_owned());
                self.end_all();
            }
            return None;
        }
        for line in lines {
            self.gather_line(line);
        }
        Some(ends)
    }

    /// Returns whether the result of its step has arrived, and is not due.
    fn has_ended_its_step(&self, guest: &GuestShared) -> bool {
        let done = self.replay.guests.get(&number(guest));
        done.is_some_and(|done| {
            done.iter()
                .any(|event| matches!(event, WorkerEvent::Result(_)))
        })
    }

    /// Whether everything of this line's source that the turn has is there.
    fn has_come(&self, line: &Line, turn: &[Line]) -> bool {
        let source = line.source();
        let wanted = turn.iter().filter(|line| line.source() == source).count();
        match source {
            Source::Guest(task) => {
                let queue = self.replay.guests.get(&task);
                queue.map_or(0, VecDeque::len) >= wanted
            }
            Source::Outside => self.replay.injected.len() >= wanted,
            Source::File | Source::Decision => true,
        }
    }

    fn gather_line(&mut self, line: Line) {
        let guest = |task: u64| self.guests.get(&task).cloned();
        let queues = &mut self.queues;
        match line {
            Line::Op { task, .. } | Line::Result { task, .. } => {
                let queue = self.replay.guests.get_mut(&task);
                queues.results.extend(queue.and_then(VecDeque::pop_front));
            }
            Line::Inject { pid, .. } => {
                let guest = self.replay.injected.pop_front();
                queues.outside.extend(guest.map(|guest| {
                    let _ = guest.recorded_pid.set(pid);
                    OutsideEvent::Inject(guest)
                }));
            }
            Line::Io { task, wait, ending } => {
                queues.completions.extend(guest(task).map(|guest| {
                    let generation = Generation(wait);
                    (Waiter { guest, generation }, ending)
                }));
            }
            Line::Timer { task, wait } => queues.timers.push_back((task, wait)),
            Line::Input { task, wait, ending } => {
                let input = |guest| OutsideEvent::Input(guest, Generation(wait), ending);
                queues.outside.extend(guest(task).map(input));
            }
            Line::Cancel { task, reason } => {
                let cancel = |guest| OutsideEvent::Cancel(guest, reason.into());
                queues.outside.extend(guest(task).map(cancel));
            }
            Line::Kill { task } => queues.outside.extend(guest(task).map(OutsideEvent::Kill)),
            Line::Pause { on } => queues.outside.push_back(OutsideEvent::Pause(on)),
            Line::Dispatch { .. } | Line::Turn {} => {}
        }
    }
}
