//! Processes: actor-like state machines with a PID and a mailbox, on the Windlass runtime.
//!
//! | word | meaning |
//! |---|---|
//! | process | a state machine with a PID and a mailbox; it shares nothing and is sent messages |
//! | host | where processes live: routing, names, groups, limits, commands |
//! | yield, command, completer | what a step machine asks for, and the one-shot that answers it |
//! | link | a bond of two processes: the abnormal end of one ends the other |
//! | monitor | one process is notified of another's end |
//! | supervisor | a process that starts, restarts and stops others |
//! | relay | what routes a message to a PID on another node |
//!
//! There are two ways to write one, on the same machinery: async ([`spawn`], [`Actor`]), and step
//! by step ([`Process`]) for guest languages and hand-written machines. What order, delivery and
//! the end of a process mean is written down in `docs/processes.md`.
//!
//! ```
//! use windlass_actor::{Context, Reply};
//!
//! enum Stock { Add(u32), Count(Reply<u32>) }
//!
//! let runtime = windlass_runtime::Runtime::new()?;
//! let count = runtime.block_on(async {
//!     let stock = windlass_actor::spawn(|mut ctx: Context<Stock>| async move {
//!         let mut count = 0;
//!         while let Some(message) = ctx.recv().await {
//!             match message {
//!                 Stock::Add(number) => count += number,
//!                 Stock::Count(reply) => reply.send(count),
//!             }
//!         }
//!     })?;
//!     stock.send(Stock::Add(3)).await?;
//!     let count = stock.ask(Stock::Count).await?;
//!     stock.cancel("the shop closes");
//!     assert!(stock.join().await.reason.is_normal());
//!     Ok::<_, Box<dyn std::error::Error>>(count)
//! })?;
//! assert_eq!(count, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod actor;
mod address;
mod bonds;
pub mod command;
mod destination;
mod error;
mod exit;
mod groups;
mod host;
mod mail;
mod message;
mod methods;
mod pub_sub;
mod relay;
mod shell;
mod spawn;
mod step;
pub mod supervisor;
mod weigh;

pub use actor::{
    Actor, Context, Event as ActorEvent, MOST_TIMERS, SubscriptionId, Timer, TooManyTimers,
};
pub use address::{ASK_TIMEOUT, Address, Ended, Reply};
pub use destination::Destination;
pub use error::{
    AskError, BuildError, NoHost, RegisterError, SendError, SendErrorKind, SignalError, SpawnError,
};
pub use exit::{ActorError, Bond, Exit, ExitReason, Exited, MonitorRef, Outcome};
pub use groups::{GroupChange, Missed, Subscription};
pub use host::{Host, HostBuilder, Killed, ProcessInfo, ProcessState, StopReport, Stuck};
pub use mail::MailboxPolicy;
pub use message::{Message, Pattern, Topic};
#[doc(hidden)]
pub use methods::Results;
pub use methods::{CallError, Methods};
pub use pub_sub::{PubSub, PubSubCounts, Published, SubscriberCounts, WhenFull};
pub use relay::{Relay, RemoteSignal};
pub use shell::carry;
pub use spawn::{ProcessHandle, Spawn, spawn};
pub use step::{Event, Events, Output, Process, ProcessContext, Status, Upgrade};
pub use weigh::Weigh;
pub use windlass_value::{ParsePidError, Pid};
