//! An epoch: when it begins, its start, its regions, and how what was published becomes visible.

pub(crate) mod begin;
pub(crate) mod commit;
pub(crate) mod regions;
pub(crate) mod wait;

/// What time it is in a run: the number of the epoch, and the clocks of the lanes. The age of a
/// message counts on its reader's clock.
#[derive(Clone, Copy)]
pub(crate) struct EpochTime<'a> {
    pub(crate) epoch: u64,
    pub(crate) lane_times: &'a [u64],
}
