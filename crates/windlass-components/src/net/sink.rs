//! What all sinks that send to a socket have in common: a task that sends, and messages as bytes.

use std::future::Future;

use windlass_graph::component::{
    Component, Descriptor, Drain, Failure, Invocation, Outside, Setup,
};
use windlass_graph::model::Config;
use windlass_value::Payload;

use super::{Addresses, queue_of};
use crate::format::{Format, encode_all};
use crate::outlet::{Orders, Outlet};
use crate::settings::{Settings, fixed};

/// What the task of a sink does.
pub(crate) trait SinkTask: Sized + Send + 'static {
    /// What the type says about itself, `queue` included.
    fn describe() -> Descriptor;

    /// Reads its configuration, and how messages are written; `addresses` hears where it listens.
    fn read(setup: &Setup<'_>, addresses: &Addresses) -> Result<(Self, Format), Failure>;

    /// Appends a message as it is sent.
    fn encode(format: Format, payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure>;

    /// Sends what is asked for.
    fn run(self, orders: Orders<Vec<u8>>) -> impl Future<Output = ()> + Send + 'static;
}

/// Hands messages to its task.
#[derive(Debug)]
pub(crate) struct Sink<W> {
    id: String,
    addresses: Addresses,
    start: Option<(Outside, usize, W)>,
    format: Format,
    outlet: Option<Outlet<Vec<u8>>>,
}

impl<W: SinkTask> Sink<W> {
    pub(crate) fn new(addresses: &Addresses) -> Sink<W> {
        Sink {
            id: String::new(),
            addresses: addresses.clone(),
            start: None,
            format: Format::default(),
            outlet: None,
        }
    }
}

impl<W: SinkTask> Component for Sink<W> {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let (work, format) = W::read(setup, &self.addresses)?;
        self.format = format;
        self.id = setup.id().to_owned();
        let queue = queue_of(Settings(setup.config()))?;
        self.start = Some((setup.outside(), queue, work));
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        if let Some((outside, queue, work)) = self.start.take() {
            let door = outside.downgrade();
            let outlet = Outlet::start(&self.id, &door, queue, |orders, _| work.run(orders));
            self.outlet = Some(outlet);
        }
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(outlet) = &self.outlet else {
            return Ok(());
        };
        let (messages, encoded) = encode_all(invocation, |payload, bytes| {
            W::encode(self.format, payload, bytes)
        });
        outlet.put(messages).and(encoded)
    }

    fn drain(&mut self) -> Option<Drain> {
        self.outlet.as_mut()?.drain()
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.outlet = None;
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}
