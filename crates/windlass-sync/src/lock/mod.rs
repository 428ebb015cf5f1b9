//! Locks and meeting points for tasks and plain threads.
//!
//! | type | for |
//! |---|---|
//! | [`Mutex`], [`RwLock`] | one value, held across awaits if need be |
//! | [`Semaphore`] | a number of permits |
//! | [`Notify`] | a wake-up without a value |
//! | [`Barrier`] | a number of tasks that wait for each other |
//! | [`OnceCell`] | a value that is made once |
//! | [`SetOnce`] | a value that is set once, and waited for |
//!
//! All of them serve waiters in the order in which they came, wake exactly those that they serve,
//! and allocate nothing per wait. A future that is dropped leaves its queue and passes on what it
//! was given. Plain threads use the `blocking_` methods. Nothing is poisoned: a panic releases what
//! it held.
//!
//! The channels are in [`crate::channel`].

mod barrier;
mod guard;
mod mutex;
mod notify;
mod once_cell;
mod rwlock;
mod semaphore;
mod set_once;

pub use barrier::{Barrier, BarrierWait, BarrierWaitResult};
pub use mutex::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError,
};
pub use notify::{Notified, Notify, OwnedNotified};
pub use once_cell::{OnceCell, SetError};
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{
    AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
};
pub use set_once::{SetOnce, SetOnceError};
