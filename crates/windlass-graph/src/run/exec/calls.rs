//! The invocations of a run: how many there were, their numbers, their times, and their buffers.

use windlass_core::sync::{CoarseClock, clock};

use crate::component::{Outbox, Received};
use crate::record::BESIDE_SHIFT;

/// Numbers invocations, and keeps their buffers.
pub(crate) struct Calls {
    /// Invocations so far.
    ticks: u64,
    /// Invocations of sources that did nothing, because an edge had no room.
    held_ticks: u64,
    /// Invocations of sources that come to an end in which they published something.
    source_publishes: u64,
    /// The number of the latest invocation.
    transaction: u64,
    /// The last reading of the clock: the end of one invocation is the start of the next.
    latest: u64,
    /// The look at the clock at the start of this epoch.
    coarse: CoarseClock,
    /// Buffers of an invocation, to be used again. A buffer is not here while it is in use.
    outbox: Option<Box<Outbox>>,
    inputs: Vec<Received>,
}

impl Calls {
    pub(crate) fn new() -> Calls {
        Calls {
            ticks: 0,
            held_ticks: 0,
            source_publishes: 0,
            transaction: 0,
            latest: 0,
            coarse: CoarseClock::default(),
            outbox: None,
            inputs: Vec::new(),
        }
    }

    /// Returns the calls of a part of the run that runs beside it, the `nth` of those. Its numbers
    /// have a range of their own: they must not depend on which part is faster.
    pub(crate) fn beside(&self, nth: u64) -> Calls {
        Calls {
            transaction: (nth << BESIDE_SHIFT) | self.transaction,
            latest: clock::now(),
            coarse: CoarseClock::look(),
            ..Calls::new()
        }
    }

    /// Takes in how many calls such a part has made.
    pub(crate) fn merge(&mut self, beside: &Calls) {
        self.ticks += beside.ticks;
    }

    /// Returns how many invocations there were.
    pub(crate) fn ticks(&self) -> u64 {
        self.ticks
    }

    /// Returns how many invocations did something: those of sources that found no room did not.
    pub(crate) fn ticks_not_held(&self) -> u64 {
        self.ticks - self.held_ticks
    }

    /// Returns how often sources that come to an end have published something.
    pub(crate) fn source_publishes(&self) -> u64 {
        self.source_publishes
    }

    /// Counts an invocation.
    #[inline]
    pub(crate) fn count(&mut self) {
        self.ticks += 1;
    }

    /// Counts what an invocation of a source that comes to an end did.
    #[inline]
    pub(crate) fn count_source(&mut self, published: bool, was_held: bool) {
        self.source_publishes += u64::from(published);
        self.held_ticks += u64::from(was_held);
    }

    /// Returns the number of the next invocation.
    #[inline]
    pub(crate) fn next_number(&mut self) -> u64 {
        self.transaction += 1;
        self.transaction
    }

    // Their times.

    /// Looks at the clock at the start of an epoch; returns the time.
    pub(crate) fn begin_epoch(&mut self) -> u64 {
        self.coarse = CoarseClock::look();
        self.latest = self.coarse.at();
        self.latest
    }

    /// Returns when the next invocation begins. `exact`: to be read from the clock.
    #[inline]
    pub(crate) fn start(&self, exact: bool) -> u64 {
        match exact {
            true => clock::now(),
            false => self.latest,
        }
    }

    /// Returns when an invocation that began then ends; the next begins there.
    #[inline]
    pub(crate) fn end(&mut self, start: u64, exact: bool) -> u64 {
        let end = match exact {
            true => clock::now(),
            false => self.coarse.now(),
        };
        self.latest = end.max(start);
        self.latest
    }

    /// Reads the clock: time has passed elsewhere.
    pub(crate) fn catch_up(&mut self) -> u64 {
        self.latest = clock::now();
        self.latest
    }

    // Their buffers.

    /// Takes the buffer of what an invocation asks for.
    #[inline]
    pub(crate) fn take_outbox(&mut self) -> Box<Outbox> {
        let mut out = self.outbox.take().unwrap_or_default();
        out.clear();
        out
    }

    #[inline]
    pub(crate) fn return_outbox(&mut self, out: Box<Outbox>) {
        self.outbox = Some(out);
    }

    /// Takes the buffer of what an invocation gets.
    #[inline]
    pub(crate) fn take_inputs(&mut self) -> Vec<Received> {
        std::mem::take(&mut self.inputs)
    }

    #[inline]
    pub(crate) fn return_inputs(&mut self, inputs: Vec<Received>) {
        self.inputs = inputs;
    }
}
