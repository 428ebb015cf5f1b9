//! `windlass.exec`: a component in any language.
//!
//! A command runs beside the graph. It gets messages as JSON lines at its input, and says what to
//! publish as JSON lines at its output. It is started again when it dies, but not too often.

mod life;
mod plan;
mod protocol;
mod supervise;
mod tail;

use windlass_core::sync::Arc;
use windlass_graph::component::{
    Component, ConfigField, ConfigKind, Descriptor, Drain, Failure, Invocation, Output, Outside,
    Setup, WeakOutside,
};
use windlass_graph::model::Config;
use windlass_value::Payload;

use self::plan::{Plan, Reply};
use self::protocol::Publication;
use self::supervise::supervise;
use crate::emit::emit;
use crate::file::{line_bytes, records};
use crate::inlet::Inlet;
use crate::outlet::Outlet;
use crate::settings::fixed;

/// Hands messages to a command, and publishes what it says.
#[derive(Debug, Default)]
pub(crate) struct Exec {
    start: Option<(Outside, Plan)>,
    /// By the numbers that publications carry.
    outputs: Vec<Output<Payload>>,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    inlet: Inlet<Publication>,
    outlet: Outlet<Order>,
    door: WeakOutside,
    reply: Reply,
    /// The number of the last message.
    seq: u64,
}

/// A message on its way to the command.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    seq: u64,
    line: Arc<Vec<u8>>,
    /// Keeps the run from ending while there is no answer.
    _open: Option<Arc<Outside>>,
}

/// How many messages may wait to be published.
const QUEUE: usize = 64;

impl Component for Exec {
    fn describe() -> Descriptor {
        let field = ConfigField::new;
        let count = |name| field(name, ConfigKind::Integer);
        Descriptor::new()
            .declared_ports()
            .field(field("command", ConfigKind::List).required())
            .field(field("env", ConfigKind::Map))
            .field(field("dir", ConfigKind::String))
            .field(field("restart", ConfigKind::Map))
            .field(count("max_pending").within(1.0, plan::MOST_PENDING as f64))
            .field(field("reply", ConfigKind::String).one_of(plan::REPLIES.map(|reply| reply.0)))
            .field(count("stop_ms").within(1.0, crate::settings::MOST_MS as f64))
            .field(line_bytes())
            .field(records())
            .about("Hands messages to a command as JSON lines, and publishes what it says.")
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let plan = Plan::read(setup)?;
        let outputs = plan.outputs.iter().map(|name| setup.output(name));
        self.outputs = outputs.collect::<Result<_, _>>()?;
        self.start = Some((setup.outside(), plan));
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        let Some((outside, plan)) = self.start.take() else {
            return Ok(());
        };
        let (reply, records, door) = (plan.reply, plan.records, outside.downgrade());
        // What comes without having been asked for may come at any time.
        let open = (reply == Reply::Free).then_some(outside);
        let (inlet, feed) = Inlet::channel(door.clone(), open, QUEUE, records);
        let id = plan.id.clone();
        let outlet = Outlet::start(&id, &door, plan.max_pending, |orders, _| {
            supervise(plan, orders, feed)
        });
        self.running = Some(Running {
            inlet,
            outlet,
            door,
            reply,
            seq: 0,
        });
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(running) = &mut self.running else {
            return Ok(());
        };
        if let Err(failure) = running.hand_over(invocation) {
            // An invocation that fails publishes nothing: what is there is for another.
            running.door.wake();
            return Err(failure);
        }
        let outputs = &self.outputs;
        running.inlet.run(invocation, |invocation, said| {
            emit(
                invocation,
                outputs[said.port],
                said.payload.clone(),
                said.event_time,
            )
        })
    }

    fn drain(&mut self) -> Option<Drain> {
        self.running.as_mut()?.outlet.drain()
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.running = None;
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

impl Running {
    fn hand_over(&mut self, invocation: &Invocation<'_>) -> Result<(), Failure> {
        let mut orders = Vec::with_capacity(invocation.inputs().len());
        let mut encoded = Ok(());
        for message in invocation.inputs() {
            self.seq += 1;
            match protocol::message(invocation, message, self.seq) {
                Ok(line) => orders.push(Order {
                    seq: self.seq,
                    line: Arc::new(line),
                    _open: (self.reply == Reply::PerMessage).then(|| Arc::new(self.door.upgrade())),
                }),
                Err(failure) => encoded = encoded.and(Err(failure)),
            }
        }
        self.outlet.put(orders).and(encoded)
    }
}
