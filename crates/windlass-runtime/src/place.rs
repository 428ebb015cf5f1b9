//! Which runtime's timers this thread uses.
//!
//! A worker has a shard of its own, found here without a count or a look at the pool. Any other
//! thread uses the shared shard of the runtime it has entered, or of the program's default.

use std::cell::RefCell;

use windlass_core::sync::Arc;

use crate::handle::Handle;
use crate::time::timers::Shard;

thread_local! {
    static SHARD: RefCell<Option<Arc<Shard>>> = const { RefCell::new(None) };
}

/// This thread uses `shard` from now on; gives the one before.
pub(crate) fn set_shard(shard: Option<Arc<Shard>>) -> Option<Arc<Shard>> {
    // A thread that ends has none, and makes no more timers.
    SHARD
        .try_with(|place| place.replace(shard))
        .unwrap_or_default()
}

/// Calls `f` with the shard that this thread's timers go to.
#[inline]
pub(crate) fn with_shard<R>(f: impl FnOnce(&Arc<Shard>) -> R) -> R {
    let mut f = Some(f);
    let own = SHARD.try_with(|place| {
        let own = place.borrow();
        let shard = own.as_ref()?;
        Some(f.take()?(shard))
    });
    match (own, f) {
        (Ok(Some(result)), _) => result,
        (_, Some(f)) => f(Handle::current_or_default().shared().timers().outside()),
        (_, None) => unreachable!("it was called, and gave a result"),
    }
}

/// The shard of the program's default runtime, which does not end.
pub(crate) fn default_shard() -> Arc<Shard> {
    Handle::process_wide().shared().timers().outside().clone()
}
