//! What the reactor writes down, and what it reads.

use std::pin::pin;

use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, Ordering};
use windlass_sync::lock::Notify;

use crate::record::{AnswerLog, End, Line, RecordingReader, Writer};
use crate::vm::ReplayPosition;
use windlass_record::{Difference, RecordingError};

pub(super) struct Log {
    state: Mutex<State>,
    /// Lines are wanted.
    on: AtomicBool,
    replays: bool,
    changed: Notify,
}

struct State {
    writer: Option<Writer>,
    reading: Option<RecordingReader>,
    /// Whether a line has been written in this turn.
    dirty: bool,
    /// What went wrong with the writing.
    error: Option<RecordingError>,
    /// How the replay ended.
    replayed: Option<Result<(), RecordingError>>,
}

impl Log {
    pub(super) fn new(writer: Option<Writer>, reading: Option<RecordingReader>) -> Log {
        Log {
            on: AtomicBool::new(writer.is_some() || reading.is_some()),
            replays: reading.is_some(),
            state: Mutex::new(State {
                writer,
                reading,
                dirty: false,
                error: None,
                replayed: None,
            }),
            changed: Notify::new(),
        }
    }

    pub(super) fn is_replaying(&self) -> bool {
        self.replays
    }

    pub(super) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Something has happened.
    pub(super) fn line(&self, line: impl FnOnce() -> Line) {
        if !self.is_on() {
            return;
        }
        let line = line();
        let mut state = self.state.lock();
        state.dirty = true;
        let checked = match &mut state.reading {
            Some(reading) => reading.check(&line),
            None => Ok(()),
        };
        if let Err(error) = checked {
            drop(state);
            return self.end_replay(Err(error));
        }
        if let Some(writer) = &mut state.writer
            && let Err(error) = writer.line(&line)
        {
            state.error = Some(error);
            state.writer = None;
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// A turn has ended.
    pub(super) fn turn(&self) {
        if !self.is_on() || !std::mem::take(&mut self.state.lock().dirty) {
            return;
        }
        self.line(|| Line::Turn {});
        let mut state = self.state.lock();
        state.dirty = false;
        if let Some(writer) = &mut state.writer
            && let Err(error) = writer.flush()
        {
            state.error = Some(error);
            state.writer = None;
        }
    }

    /// What a guest will be answered in the step that begins now.
    pub(super) fn answers(&self, task: u64) -> AnswerLog {
        if !self.is_on() {
            return AnswerLog::Live;
        }
        match &mut self.state.lock().reading {
            Some(reading) => AnswerLog::Reading {
                answers: reading.answers(task),
                given: Vec::new(),
                did: Vec::new(),
                short: false,
            },
            None => AnswerLog::Writing {
                answers: Vec::new(),
                did: Vec::new(),
            },
        }
    }

    /// The lines of the next turn of the recording; None if there is none any more.
    pub(super) fn next_turn(&self) -> Option<Vec<Line>> {
        let state = self.state.lock();
        if state.replayed.is_some() {
            return None;
        }
        state.reading.as_ref()?.turn().map(<[Line]>::to_vec)
    }

    /// The recording has no turn any more.
    pub(super) fn end_of_replay(&self) {
        let mut state = self.state.lock();
        let end = state.reading.as_ref().map_or(Ok(()), RecordingReader::end);
        if end.is_ok()
            && let Some(writer) = state.writer.take()
        {
            state.error = writer.finish(&End {}).err();
        }
        drop(state);
        self.end_replay(end);
    }

    pub(super) fn is_over(&self) -> bool {
        self.state.lock().replayed.is_some()
    }

    /// The reactor ends, and with it a replay that is not over yet.
    pub(super) fn stop(&self) {
        self.end_recording();
        let line = self.position().map_or(0, |position| position.line);
        self.end_replay(Err(RecordingError::Stopped { line }));
    }

    pub(super) fn end_replay(&self, end: Result<(), RecordingError>) {
        let mut state = self.state.lock();
        if self.replays && state.replayed.is_none() {
            state.replayed = Some(end);
            state.writer = None;
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Nothing more is written.
    pub(super) fn end_recording(&self) {
        let mut state = self.state.lock();
        if !self.replays
            && let Some(writer) = state.writer.take()
        {
            state.error = writer.finish(&End {}).err();
            self.on.store(false, Ordering::Relaxed);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    pub(super) fn error(&self) -> Option<RecordingError> {
        self.state.lock().error.clone()
    }

    pub(super) fn position(&self) -> Option<ReplayPosition> {
        let state = self.state.lock();
        state.reading.as_ref().map(|reading| ReplayPosition {
            line: reading.line(),
            lines: reading.lines(),
        })
    }

    /// A turn was made: if not everything of it has happened again, this is another program.
    pub(super) fn must_be_at(&self, line: usize) {
        if self
            .position()
            .is_some_and(|position| position.line != line)
            && let Some(first) = self.next_turn().as_ref().and_then(|lines| lines.first())
        {
            self.diverged(first, "nothing".to_owned());
        }
    }

    pub(super) fn diverged(&self, recorded: &Line, happened: String) {
        let line = self.position().map_or(0, |position| position.line);
        let recorded = serde_json::to_string(recorded).unwrap_or_default();
        let difference = Difference::new(line, recorded, happened);
        self.end_replay(Err(RecordingError::Diverged(difference)));
    }

    /// Waits for the end of the replay.
    pub(super) async fn replayed(&self) -> Result<(), RecordingError> {
        if !self.replays {
            return Ok(());
        }
        self.until(|state| state.replayed.clone()).await
    }

    /// Waits for the end of the recording.
    pub(super) async fn ended(&self) -> Result<(), RecordingError> {
        self.until(|state| match (&state.error, &state.writer) {
            (Some(error), _) => Some(Err(error.clone())),
            (None, None) => Some(Ok(())),
            (None, Some(_)) => None,
        })
        .await
    }

    async fn until<T>(&self, done: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(value) = done(&self.state.lock()) {
                return value;
            }
            changed.await;
        }
    }
}
