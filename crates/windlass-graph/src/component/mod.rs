//! Components: what users write.
//!
//! ```
//! use windlass_graph::component::{Component, Descriptor, Failure, Input, Invocation, Output, Setup};
//!
//! /// Publishes the sum of what it has received.
//! #[derive(Default)]
//! struct Sum { total: i64, input: Input<i64>, output: Output<i64> }
//!
//! impl Component for Sum {
//!     fn describe() -> Descriptor {
//!         Descriptor::new().input_of::<i64>("in").output_of::<i64>("out")
//!     }
//!     fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
//!         self.input = setup.input("in")?;
//!         self.output = setup.output("out")?;
//!         Ok(())
//!     }
//!     fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
//!         if let Some(number) = invocation.get(self.input)? {
//!             self.total += number;
//!             invocation.publish(self.output, self.total);
//!         }
//!         Ok(())
//!     }
//! }
//! ```

pub mod built_in;
mod failure;
mod interrupt;
mod invocation;
mod outside;
mod registry;
mod setup;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use windlass_plan::model::Config;

pub use failure::Failure;
pub use interrupt::Interrupt;
pub(crate) use invocation::{
    Call, Env, LoopReport, Origin, Outbox, PackedId, Route, Staged, refuses_early,
};
pub use invocation::{Invocation, MessageId, Received};
pub(crate) use outside::Door;
pub use outside::{Outside, WeakOutside};
pub use registry::{Maker, Registry};
pub use setup::{Input, Output, Setup};
pub use windlass_plan::catalog::{
    Catalog, ConfigError, ConfigField, ConfigKind, Descriptor, Port, PortsError,
};

/// What runs at a node of a graph.
///
/// The calls come in this order: `configure`, `activate`, `restore` and `reset` if the run asks for
/// them, `execute` as often as the trigger says, `snapshot` if asked for, `drain`, `deactivate`.
/// Components are started in the order of `depends_on` and stopped in the opposite one. Nothing is
/// called twice at once.
pub trait Component: Send {
    /// Says what the type is like.
    fn describe() -> Descriptor
    where
        Self: Sized,
    {
        Descriptor::new().open_ports().open_config()
    }

    /// What is wrong with a configuration beyond what the descriptor says, as far as that can be
    /// told without a run: an expression that cannot be parsed, two fields that exclude each other.
    /// Called when a file is checked, on a component that is not started; `id` is that of the
    /// component in the file.
    fn check_config(&self, _id: &str, _config: &Config) -> Vec<ConfigError> {
        Vec::new()
    }

    /// Reads its configuration and finds its ports.
    fn configure(&mut self, _setup: &mut Setup<'_>) -> Result<(), Failure> {
        Ok(())
    }

    /// Gets ready to run.
    fn activate(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Goes on where a snapshot was taken.
    fn restore(&mut self, _snapshot: &Value) -> Result<(), Failure> {
        Ok(())
    }

    /// Forgets what it has seen.
    fn reset(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Does its work once.
    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure>;

    /// What `restore` needs; none if there is nothing to keep.
    fn snapshot(&mut self) -> Result<Option<Value>, Failure> {
        Ok(None)
    }

    /// What has to end before it is deactivated when a run comes to its end, such as a task that
    /// still writes. The run waits for it as long as `RunOptions::drain` says.
    fn drain(&mut self) -> Option<Drain> {
        None
    }

    /// Lets go of what it holds.
    fn deactivate(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether it could work with another configuration; nothing changes yet.
    fn validate_config(&self, _config: &Config) -> Result<(), Failure> {
        Ok(())
    }

    /// Works with another configuration from now on. Called again with the old one if another
    /// component of the same transaction fails.
    fn reconfigure(&mut self, _config: &Config) -> Result<(), Failure> {
        Ok(())
    }

    /// What may run several times at once instead of `execute`, if the graph says `reentrant:
    /// true`. Asked for after `activate`. None: one invocation at a time.
    fn reentrant(&mut self) -> Option<Arc<dyn Reentrant>> {
        None
    }

    /// What ends a call of the component from outside: an invocation, when the graph's `timeout_ms`
    /// is over; any call, when the run has to stop and it does not return. Asked for after
    /// `configure`, of types that say so ([`Descriptor::preemptible`]). None: it cannot be
    /// preempted.
    fn interrupt(&mut self) -> Option<Arc<dyn Interrupt>> {
        None
    }
}

/// What a component waits for before it is deactivated.
pub type Drain = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// The work of a component that may run several times at once.
pub trait Reentrant: Send + Sync {
    /// Does its work once.
    fn execute(&self, invocation: &mut Invocation<'_>) -> Result<(), Failure>;
}

impl<F> Reentrant for F
where
    F: Fn(&mut Invocation<'_>) -> Result<(), Failure> + Send + Sync,
{
    fn execute(&self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        self(invocation)
    }
}
