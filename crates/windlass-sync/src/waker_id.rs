//! Which waker is kept, to compare without the lock that it is behind.

use std::task::Waker;

/// Tells wakers apart. Equal ids mean the same waker only while one of the two is kept: its data
/// could be freed and given to another otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakerId(usize, usize);

impl WakerId {
    /// No waker's id.
    pub(crate) const NOBODY: WakerId = WakerId(0, 0);

    pub(crate) fn of(waker: &Waker) -> WakerId {
        let vtable: *const _ = waker.vtable();
        WakerId(waker.data().addr(), vtable.addr())
    }
}
