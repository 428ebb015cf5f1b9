//! The recorder of a run: where its lines go, and how a recording begins and ends. See
//! [`crate::record`].

use std::sync::Arc;

use crate::record::{
    CallLine, EndLine, EpochLine, GraphFormat, Header, Line, LoopLine, Names, OutputLine, Playback,
    ReportLine, RunDifference, StoreWrite, create,
};
use crate::run::options::{RunOptions, Snapshot};
use crate::run::result::{ErrorCode, StopReason};
use crate::run::sinks::Sinks;
use crate::run::sinks::sink::{
    CallEnd, ConfigBegin, EpochInputs, LoopInterruption, LoopReturn, Sink,
};
use crate::run::state::members::Members;
use windlass_plan::model::Config;
use windlass_record::{Digest, Writer};
use windlass_value::Payload;

/// What a run writes down about itself.
#[derive(Debug)]
pub(crate) struct Recorder {
    target: RecorderTarget,
    names: Arc<Names>,
    /// The loops that came back in this epoch.
    joined: Vec<String>,
    /// New configurations of this epoch.
    reconfigured: Vec<Vec<(String, Config)>>,
    /// Why a line could not be written; no more are then.
    failure: Option<String>,
}

/// Where lines go.
#[derive(Debug)]
pub(crate) enum RecorderTarget {
    /// To a file.
    Record(Box<Writer<GraphFormat>>),
    /// Compared with a recording.
    Replay(Box<Playback>),
    /// Kept until a part of the run comes back.
    Keep(Vec<Line>),
}

impl Recorder {
    pub(crate) fn new(target: RecorderTarget, names: Arc<Names>) -> Recorder {
        Recorder {
            target,
            names,
            joined: Vec::new(),
            reconfigured: Vec::new(),
            failure: None,
        }
    }

    /// Makes a recorder for a part of the run, which keeps its lines.
    pub(crate) fn of_part(&self) -> Recorder {
        Recorder::new(RecorderTarget::Keep(Vec::new()), self.names.clone())
    }

    /// Takes a line, unless an earlier one could not be written.
    fn push(&mut self, line: Line) {
        if self.failure.is_some() {
            return;
        }
        match &mut self.target {
            RecorderTarget::Record(writer) => {
                self.failure = writer.line(&line).err().map(|error| error.to_string());
            }
            RecorderTarget::Replay(playback) => playback.compare(&line),
            RecorderTarget::Keep(lines) => lines.push(line),
        }
    }

    /// Returns why a line could not be written, if one could not.
    fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Takes the lines of a part of the run that has come back.
    pub(crate) fn merge(&mut self, part: Recorder) {
        if let RecorderTarget::Keep(lines) = part.target {
            lines.into_iter().for_each(|line| self.push(line));
        }
    }

    /// Returns what is played back, if something is.
    pub(crate) fn playback(&mut self) -> Option<&mut Playback> {
        match &mut self.target {
            RecorderTarget::Replay(playback) => Some(playback),
            _ => None,
        }
    }

    /// Returns where the lines went, and the hash of all that went there.
    pub(crate) fn open(self) -> (RecorderTarget, Digest) {
        let digest = match &self.target {
            RecorderTarget::Record(writer) => writer.digest(),
            RecorderTarget::Replay(playback) => playback.digest(),
            RecorderTarget::Keep(_) => Digest::default(),
        };
        (self.target, digest)
    }
}

impl Sink for Recorder {
    fn epoch_inputs(&mut self, event: &EpochInputs<'_>) {
        let line = EpochLine {
            epoch: event.epoch,
            lanes: event.lanes.turns(&self.names),
            doors: event.members.doors_seen(&self.names),
            config: std::mem::take(&mut self.reconfigured),
            joined: std::mem::take(&mut self.joined),
        };
        self.push(Line::Epoch(line));
    }

    #[cold]
    #[inline(never)]
    fn call_end(&mut self, event: &CallEnd<'_>) {
        let (finished, out) = (event.finished, event.out);
        let names = &self.names;
        let edge = |edge: u32| names.edges[edge as usize].clone();
        let output = |staged: &crate::component::Staged| OutputLine {
            edge: edge(staged.edge),
            publish: staged.publish,
            value: staged.payload.clone(),
            event_time: staged.event_time.get(),
        };
        let state = out.state.iter();
        let report = out.report.as_ref();
        let line = CallLine {
            component: names.components[event.component].clone(),
            transaction: finished.call.transaction,
            outputs: out.staged.iter().map(output).collect(),
            state: state
                .map(|(key, value)| StoreWrite {
                    key: key.to_string(),
                    value: value.clone(),
                })
                .collect(),
            report: report.map(|report| ReportLine {
                converged: report.converged,
                residual: report.residual.map_or(Payload::Nil, Payload::from),
                reason: report.reason.clone(),
            }),
            refused: out.refused.iter().map(|&refused| edge(refused)).collect(),
            failed: finished.failed.as_deref().map(str::to_owned),
            finished: out.finished,
            held: event.held,
            cancelled_after: out.cancelled_after,
            timed_out: out.timed_out,
        };
        self.push(Line::Call(line));
    }

    fn config_begin(&mut self, event: &ConfigBegin<'_>) {
        self.reconfigured.push(event.changes.to_vec());
    }

    fn loop_return(&mut self, event: &LoopReturn<'_>) {
        self.joined.push(event.region.to_owned());
    }

    fn loop_interruption(&mut self, event: &LoopInterruption) {
        let line = LoopLine {
            composite: self.names.loops[event.composite].to_string(),
            run: event.run,
            pass: event.pass,
            budget: event.budget,
        };
        self.push(Line::Loop(line));
    }
}

impl Sinks {
    /// Drops the recorder if a line could not be written. The run goes on without it.
    pub(crate) fn check_recorder(&mut self) {
        let failure = self.recorder.as_mut().and_then(Recorder::take_failure);
        if let Some(message) = failure {
            self.recorder = None;
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
        members: &Members,
        is_real: bool,
        is_boundary: impl Fn(usize) -> bool,
    ) -> Result<(), String> {
        let Some(record) = &options.record else {
            return Ok(());
        };
        let plan = &self.plan;
        let graph = &plan.graph;
        let id = |component: usize| graph.components[component].id.clone();
        let is_played_back = |&component: &usize| {
            let has_no_input = plan.nodes[component].inputs.is_empty();
            is_boundary(component) || has_no_input || members.has_door(component)
        };
        let is_reentrant = |&component: &usize| members.reentrant(component).is_some();
        let components = 0..graph.components.len();
        let header = Header {
            graph: graph.name.clone(),
            played_back: components.clone().filter(is_played_back).map(id).collect(),
            doors: members.doors().iter().map(|&door| id(door)).collect(),
            reentrant: components.filter(is_reentrant).map(id).collect(),
            on_clock: is_real,
            restored: options.restore.clone(),
            reset: options.reset,
        };
        let text = record.graph_text.as_deref();
        let writer = create(&record.folder, &header, text, record.limit)?;
        let names = Arc::new(Names::of(graph));
        self.recorder = Some(Recorder::new(
            RecorderTarget::Record(Box::new(writer)),
            names,
        ));
        Ok(())
    }

    /// Returns the recording that is played back, if one is.
    pub(crate) fn playback(&mut self) -> Option<&mut Playback> {
        self.recorder.as_mut().and_then(Recorder::playback)
    }

    /// Returns why the recorded run ended; one without its end is over when there is no more of it.
    pub(crate) fn recorded_reason(&mut self) -> StopReason {
        let reason = self.playback().and_then(|playback| playback.reason);
        // One that ended with an error then, and without one now, was just over.
        let reason = reason.filter(|reason| *reason != StopReason::Error);
        reason.unwrap_or(StopReason::TickBound)
    }

    /// Ends the recording or the replay.
    pub(crate) fn end_recording(
        &mut self,
        reason: StopReason,
        epochs: u64,
    ) -> Option<RecordingEnd> {
        self.check_recorder();
        let (target, mut digest) = self.recorder.take()?.open();
        digest.bytes(self.trace.digest().text().as_bytes());
        digest.bytes(reason.name().as_bytes());
        let hash = digest.text();
        match target {
            RecorderTarget::Record(writer) => {
                let end = EndLine {
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
            RecorderTarget::Replay(mut playback) => {
                playback.finish();
                Some(RecordingEnd {
                    difference: playback.difference,
                    hash,
                })
            }
            RecorderTarget::Keep(_) => None,
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
