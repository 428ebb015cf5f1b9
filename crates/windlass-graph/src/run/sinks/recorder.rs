//! The recorder of a run: the lines it writes, and what a recording that is replayed decides for it.
//! See [`crate::record`].

use std::sync::Arc;

use crate::component::Outbox;
use crate::record::{
    CallLine, DoorSeen, End, EpochLine, Header, LaneTurn, Line, LoopLine, Names, Output, Report,
    RunDifference, Stored, Tape, TapeKind, create,
};
use crate::run::exec::invoke::Finished;
use crate::run::machine::Machine;
use crate::run::options::{RunOptions, Snapshot};
use crate::run::result::{ErrorCode, StopReason};
use windlass_value::Payload;

impl Machine {
    /// Takes a line. If it cannot be written, the recording ends, and the run goes on.
    pub(crate) fn write_down(&mut self, line: Line) {
        let Some(tape) = &mut self.sinks.tape else {
            return;
        };
        if let Err(message) = tape.push(line) {
            self.sinks.tape = None;
            self.recording_failed(message);
        }
    }

    fn recording_failed(&mut self, message: String) {
        let message = format!("the recording is not complete: {message}");
        let code = ErrorCode::ObserverFailure;
        self.add_error("record", code, None, message, false);
    }

    /// Begins a recording, if one is asked for. The components have been started.
    pub(crate) fn begin_recording(
        &mut self,
        options: &RunOptions,
        is_boundary: impl Fn(usize) -> bool,
    ) -> Result<(), String> {
        let Some(record) = &options.record else {
            return Ok(());
        };
        let graph = &self.plan.graph;
        let id = |&component: &usize| graph.components[component].id.clone();
        let has_no_input = |component: usize| self.plan.nodes[component].inputs.is_empty();
        let played_back = |&component: &usize| {
            is_boundary(component) || has_no_input(component) || self.members[component].has_door
        };
        let components = 0..graph.components.len();
        let header = Header {
            graph: graph.name.clone(),
            played_back: components.filter(played_back).map(|c| id(&c)).collect(),
            doors: self.doors.iter().map(id).collect(),
            reentrant: (0..graph.components.len())
                .filter(|&c| self.members[c].reentrant.is_some())
                .map(|c| id(&c))
                .collect(),
            on_clock: self.clock.is_real,
            restored: options.restore.clone(),
            reset: options.reset,
        };
        let text = record.graph_text.as_deref();
        let writer = create(&record.folder, &header, text, record.limit)?;
        let names = Arc::new(Names::of(graph));
        self.sinks.tape = Some(Tape::new(TapeKind::Record(Box::new(writer)), names));
        Ok(())
    }

    /// An epoch has seen what it will see of the world outside.
    pub(crate) fn record_epoch(&mut self) {
        let Some(tape) = &self.sinks.tape else {
            return;
        };
        let names = tape.names().clone();
        let door = |&component: &usize| DoorSeen {
            component: names.components[component].clone(),
            woken: self.members[component].woken,
            held: self.members[component].held,
        };
        let turn = |(name, lane): (&Arc<str>, &crate::run::state::lane::LaneState)| LaneTurn {
            lane: name.clone(),
            now: lane.now,
            is_due: lane.is_due,
        };
        let line = EpochLine {
            epoch: self.env.epoch,
            lanes: match self.clock.has_turns {
                true => names.lanes.iter().zip(&self.lanes).map(turn).collect(),
                false => Vec::new(),
            },
            doors: self.doors.iter().map(door).collect(),
            config: std::mem::take(&mut self.recording.reconfigured),
            joined: std::mem::take(&mut self.recording.joined),
        };
        self.write_down(Line::Epoch(line));
    }

    /// The next epoch of a recording; false after the last.
    pub(crate) fn play_epoch(&mut self) -> bool {
        let Some(playback) = self.sinks.tape.as_mut().and_then(Tape::playback) else {
            return false;
        };
        let Some(epoch) = playback.next_epoch() else {
            return false;
        };
        // The recording was fitted to this graph: it has its lanes, in its order.
        for (lane, turn) in self.lanes.iter_mut().zip(&epoch.lanes) {
            (lane.now, lane.is_due) = (turn.now, turn.is_due);
        }
        for seen in &epoch.doors {
            if let Some((component, _)) = self.plan.graph.component(&seen.component) {
                let member = &mut self.members[component];
                (member.woken, member.held) = (seen.woken, seen.held);
            }
        }
        if self.clock.is_real {
            self.recording.joins = Some(epoch.joined);
        }
        for changes in epoch.config {
            self.inbox.add_transaction(changes);
        }
        true
    }

    /// Why the recorded run ended; one without its end is over when there is no more of it.
    pub(crate) fn recorded_reason(&mut self) -> StopReason {
        let playback = self.sinks.tape.as_mut().and_then(Tape::playback);
        let reason = playback.and_then(|playback| playback.reason);
        // One that ended with an error then, and without one now, was just over.
        let reason = reason.filter(|reason| *reason != StopReason::Error);
        reason.unwrap_or(StopReason::TickBound)
    }

    /// An invocation has ended.
    #[cold]
    #[inline(never)]
    pub(crate) fn record_call(&mut self, component: usize, finished: &Finished, out: &Outbox) {
        let Some(tape) = &self.sinks.tape else {
            return;
        };
        let names = tape.names();
        let edge = |edge: u32| names.edges[edge as usize].clone();
        let output = |staged: &crate::component::Staged| Output {
            edge: edge(staged.edge),
            publish: staged.publish,
            value: staged.payload.clone(),
            event_time: staged.event_time.get(),
        };
        let state = out.state.iter();
        let report = out.report.as_ref();
        let line = CallLine {
            component: names.components[component].clone(),
            transaction: finished.call.transaction,
            outputs: out.staged.iter().map(output).collect(),
            state: state
                .map(|(key, value)| Stored {
                    key: key.to_string(),
                    value: value.clone(),
                })
                .collect(),
            report: report.map(|report| Report {
                converged: report.converged,
                residual: report.residual.map_or(Payload::Nil, Payload::from),
                reason: report.reason.clone(),
            }),
            refused: out.refused.iter().map(|&refused| edge(refused)).collect(),
            failed: finished.failed.clone(),
            finished: out.finished,
            held: self.members[component].held,
            cancelled_after: out.cancelled_after,
            timed_out: out.timed_out,
        };
        self.write_down(Line::Call(line));
    }

    /// In a replay: when the call that is being made was asked to cancel.
    #[cold]
    #[inline(never)]
    pub(crate) fn played_cancel(&self) -> Option<u32> {
        self.recording
            .script
            .as_ref()?
            .cancelled_after(self.totals.transaction)
    }

    /// A loop was stopped by the clock or by somebody.
    pub(crate) fn record_loop(&mut self, composite: usize, pass: u64, budget: bool) {
        if self.sinks.tape.is_none() {
            return;
        }
        let line = LoopLine {
            composite: self.plan.graph.loops[composite].id.clone(),
            run: self.loops[composite].runs,
            pass,
            budget,
        };
        self.write_down(Line::Loop(line));
    }

    /// In a replay: whether a loop was stopped after this pass, and whether by its budget.
    pub(crate) fn played_loop_stop(&self, composite: usize, pass: u64) -> Option<bool> {
        let id = &self.plan.graph.loops[composite].id;
        let run = self.loops[composite].runs;
        self.recording.script.as_ref()?.stopped(id, run, pass)
    }

    /// The run is over.
    pub(crate) fn end_recording(&mut self, reason: StopReason) -> Option<RecordingEnd> {
        let (kind, mut digest) = self.sinks.tape.take()?.open();
        digest.bytes(self.sinks.trace.digest.text().as_bytes());
        digest.bytes(reason.name().as_bytes());
        let hash = digest.text();
        match kind {
            TapeKind::Record(writer) => {
                let epochs = self.env.epoch;
                let end = End {
                    reason,
                    epochs,
                    hash,
                };
                match writer.finish(&end) {
                    Ok(true) => {}
                    Ok(false) => self.recording_failed("it is as large as it may be".to_owned()),
                    Err(error) => self.recording_failed(error.to_string()),
                }
                None
            }
            TapeKind::Replay(mut playback) => {
                playback.finish();
                Some(RecordingEnd {
                    difference: playback.difference,
                    hash,
                })
            }
            TapeKind::Keep(_) => None,
        }
    }
}

/// What a replay found.
#[derive(Debug, Clone)]
pub(crate) struct RecordingEnd {
    pub(crate) difference: Option<RunDifference>,
    pub(crate) hash: String,
}

/// What a replay begins with, besides what the recording says.
pub(crate) fn replay_options(
    options: RunOptions,
    restored: Option<Snapshot>,
    reset: bool,
) -> RunOptions {
    RunOptions {
        steps: Some(u64::MAX),
        duration: None,
        until_idle: false,
        restore: restored,
        reset,
        record: None,
        ..options
    }
}
