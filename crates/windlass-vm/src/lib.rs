//! Guest VMs on the Windlass runtime: code of other languages that is preempted, waits, and can be
//! replayed.
//!
//! | word | meaning |
//! |---|---|
//! | guest | code of some language, driven in steps by the runtime; a process like any other |
//! | task | a guest that was started |
//! | slice | how long a guest may run while others are ready |
//! | suspension | a guest waits: for a task, time, a lock, permits, a channel, a message, blocking work, a command |
//! | reactor | the control loop that makes every decision about guests, one after the other |
//! | placement | who decides: the reactor (recorded and replayed), or each worker of the pool for itself (faster) |
//!
//! The author of a VM implements [`Guest`]; `docs/guests.md` explains how, on a small VM.
#![forbid(unsafe_code)]

mod budget;
mod effects;
mod error;
mod exception;
mod guest;
mod guest_process;
mod guest_shared;
mod guest_table;
mod limits;
mod object;
mod placement;
mod pool;
mod reactor;
mod reason;
mod record;
mod slot;
mod spawn;
mod stuck;
mod task;
mod uncaught;
mod vm;

pub use budget::Budget;
pub use error::{BuildError, SpawnError};
pub use exception::Exception;
pub use guest::{Answer, Ending, Guest, NativeResult, Resume, Step};
pub use limits::Limits;
pub use object::{Channel, Mutex, Semaphore};
pub use placement::Placement;
pub use reason::{Custom, Reason, ReasonKind, Work};
pub use slot::Bell;
pub use spawn::SpawnOptions;
pub use task::Task;
pub use uncaught::Uncaught;
pub use vm::{Builder, Paused, ReplayPosition, Vm, VmSnapshot};
