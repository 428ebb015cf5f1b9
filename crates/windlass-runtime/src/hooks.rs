//! What the crates below ask of a runtime, as function pointers that are installed before `main`.
//!
//! A program may sleep or drop a channel before it has a runtime: the default one starts then. The
//! crates below cannot name it, so they call what is installed here. [`crate::os`] has the entry of
//! the loader's list of initialisers; making a runtime installs the hooks too, for a platform whose
//! loader has no such list.

use windlass_core::sync::Arc;
use windlass_sync::time::{Fallback, Shard};

use crate::coroutine::on_fresh_stack;
use crate::handle::Handle;

/// Installs the hooks. Safe before `main`: it stores function pointers and starts nothing.
pub(crate) fn install() {
    windlass_core::deep::set_grow(on_fresh_stack);
    windlass_sync::time::set_fallback(Fallback {
        current: current_shard,
        default: default_shard,
    });
}

fn current_shard() -> Arc<Shard> {
    let handle = Handle::current_or_default();
    handle.shared().timers().outside().clone()
}

fn default_shard() -> Arc<Shard> {
    Handle::process_wide().shared().timers().outside().clone()
}
