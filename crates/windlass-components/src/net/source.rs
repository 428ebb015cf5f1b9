//! What all sources that listen to a socket have in common: a task that brings messages, and its
//! configuration.

use std::future::Future;

use windlass_graph::component::{
    Component, Descriptor, Failure, Invocation, Output, Outside, Setup,
};
use windlass_graph::model::Config;
use windlass_sync::CancellationToken;
use windlass_value::Payload;

use super::{Addresses, queue_of};
use crate::file::records_of;
use crate::inlet::{Feed, Inlet};
use crate::settings::{Settings, fixed};

/// What the task of a source does.
pub(crate) trait SourceTask: Sized + Send + 'static {
    /// What the type says about itself, `queue` and `records` included.
    fn describe() -> Descriptor;

    /// Reads its configuration; `addresses` hears where it listens.
    fn read(setup: &Setup<'_>, addresses: &Addresses) -> Result<Self, Failure>;

    /// Hands over what comes.
    fn run(
        self,
        feed: Feed<Payload>,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static;
}

/// Publishes what its task brings.
#[derive(Debug)]
pub(crate) struct Source<W> {
    addresses: Addresses,
    start: Option<Start<W>>,
    inlet: Option<Inlet<Payload>>,
    output: Output<Payload>,
}

/// What is needed to begin.
#[derive(Debug)]
struct Start<W> {
    outside: Outside,
    queue: usize,
    records: usize,
    work: W,
}

impl<W: SourceTask> Source<W> {
    pub(crate) fn new(addresses: &Addresses) -> Source<W> {
        Source {
            addresses: addresses.clone(),
            start: None,
            inlet: None,
            output: Output::default(),
        }
    }
}

impl<W: SourceTask> Component for Source<W> {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let work = W::read(setup, &self.addresses)?;
        let settings = Settings(setup.config());
        let (queue, records) = (queue_of(settings)?, records_of(settings)?);
        self.output = setup.output("out")?;
        self.start = Some(Start {
            outside: setup.outside(),
            queue,
            records,
            work,
        });
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        if let Some(start) = self.start.take() {
            let inlet = Inlet::start(start.outside, start.queue, start.records, |feed, stop| {
                start.work.run(feed, stop)
            });
            self.inlet = Some(inlet);
        }
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        match &mut self.inlet {
            Some(inlet) => inlet.publish(invocation, self.output),
            None => Ok(()),
        }
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.inlet = None;
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}
