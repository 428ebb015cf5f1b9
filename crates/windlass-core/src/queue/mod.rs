//! The queues: a ring, a slot and a deque per worker, an injector and three class queues per pool,
//! and the mailboxes of processes.
//!
//! Those of the scheduler hold raw pointers and know nothing of tasks beyond a link, so that the
//! models check them alone.

mod batch;
mod class;
mod deque;
mod injector;
mod mailbox;
mod ring;
mod slot;

pub use batch::{Batch, Linked};
pub use class::Classes;
pub use deque::{Deque, JobRef, RunJob, Taker};
pub use injector::{Closed, Injector};
pub use mailbox::{Inbox, Letter, Mailbox, PushOutcome};
pub use ring::Ring;
pub use slot::Slot;
