//! Channels and locks for tasks.

pub use windlass_sync::channel::{broadcast, mpsc, oneshot, watch};
pub use windlass_sync::lock::{
    AcquireError, Barrier, BarrierWaitResult, MappedMutexGuard, Mutex, MutexGuard, Notify,
    OnceCell, OwnedMappedMutexGuard, OwnedMutexGuard, OwnedRwLockMappedWriteGuard,
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit,
    SetError, SetOnce, SetOnceError, TryAcquireError, TryLockError,
};

/// Futures that a caller may want to name.
pub mod futures {
    pub use windlass_sync::lock::{Notified, OwnedNotified};
}
