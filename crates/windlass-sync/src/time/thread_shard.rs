//! The timer shard of a thread.
//!
//! A worker has a shard of its own, found here without a count or a look at the pool. Any other
//! thread asks the fallback, which the runtime installs before `main`: it gives the shared shard of
//! the runtime that the thread has entered, or of the program's default runtime.
//!
//! Rejected: that this crate starts the default runtime. It would have to know the driver, and with
//! it the kernel.

use std::cell::RefCell;
use std::sync::OnceLock;

use windlass_core::sync::Arc;

use super::timers::Shard;

#[cfg(not(any(windlass_loom, windlass_shuttle)))]
std::thread_local! {
    static SHARD: RefCell<Option<Arc<Shard>>> = const { RefCell::new(None) };
}
#[cfg(any(windlass_loom, windlass_shuttle))]
windlass_core::sync::thread_local! {
    static SHARD: RefCell<Option<Arc<Shard>>> = RefCell::new(None);
}

/// The shards of threads that have none of their own.
#[derive(Debug, Clone, Copy)]
pub struct Fallback {
    /// Returns the shard of the runtime that this thread has entered, or of the default one.
    pub current: fn() -> Arc<Shard>,
    /// Returns the shard of the program's default runtime, which does not end.
    pub default: fn() -> Arc<Shard>,
}

static FALLBACK: OnceLock<Fallback> = OnceLock::new();

/// Installs the fallback. The first call counts.
pub fn set_fallback(fallback: Fallback) {
    let _ = FALLBACK.set(fallback);
}

fn fallback() -> &'static Fallback {
    FALLBACK.get().expect(
        "a timer needs a runtime, and this program has none: link the crate `windlass-runtime`",
    )
}

/// Lets this thread use `shard` from now on; returns the one before.
pub fn set_shard(shard: Option<Arc<Shard>>) -> Option<Arc<Shard>> {
    // A thread that ends has none, and makes no more timers.
    SHARD.try_with(|own| own.replace(shard)).unwrap_or_default()
}

/// Calls `f` with the shard that this thread's timers go to.
#[inline]
pub(super) fn with_shard<R>(f: impl FnOnce(&Arc<Shard>) -> R) -> R {
    let mut f = Some(f);
    let own = SHARD.try_with(|own| {
        let own = own.borrow();
        let shard = own.as_ref()?;
        Some(f.take()?(shard))
    });
    match (own, f) {
        (Ok(Some(result)), _) => result,
        (_, Some(f)) => f(&(fallback().current)()),
        (_, None) => unreachable!("`f` was called, and gave a result"),
    }
}

/// Returns the shard of the program's default runtime, which does not end.
pub(super) fn default_shard() -> Arc<Shard> {
    (fallback().default)()
}
