//! Where a new task lives.

use crate::task::state::Home;

/// What the executor of a task says about it, beside the [`Options`](super::Options) of its spawn.
///
/// Rejected: setting these in the options. A spawn then writes single bytes into a structure that
/// it moves right afterwards, and the processor cannot forward such stores to the wider loads of
/// the move.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Residence {
    pub(crate) home: Home,
    /// What `home` points to, or null.
    pub(crate) pointer: *const (),
    /// The task always waits its turn in the pool's shared queue; see `Config::in_order`.
    pub(crate) in_order: bool,
    /// Each task gets a number of its own, even without a name or class.
    pub(crate) numbered: bool,
}

impl Residence {
    /// A home whose tasks go into any queue and need no numbers.
    #[inline]
    pub(crate) fn new(home: Home, pointer: *const ()) -> Residence {
        Residence {
            home,
            pointer,
            in_order: false,
            numbered: false,
        }
    }
}
