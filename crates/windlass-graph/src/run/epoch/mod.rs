//! An epoch: its start, and how what was published becomes visible.

pub(crate) mod commit;
pub(crate) mod start;
