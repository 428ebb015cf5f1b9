//! Step machines: processes that are driven event by event, for guest languages and hand-written
//! machines.

mod body;
mod context;
mod event;
mod events;
mod output;
mod process;
mod status;
mod upgrade;

pub(crate) use self::body::StepBody;
pub use self::context::ProcessContext;
pub use self::event::Event;
pub use self::events::Events;
pub use self::output::Output;
pub use self::process::Process;
pub use self::status::Status;
pub use self::upgrade::Upgrade;
