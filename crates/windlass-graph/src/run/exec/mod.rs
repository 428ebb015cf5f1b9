//! How components are invoked: in the task of the run, on threads, ahead, beside the epochs.

pub(crate) mod async_loop;
pub(crate) mod flight;
pub(crate) mod invoke;
pub(crate) mod overlap;
pub(crate) mod threads;
pub(crate) mod under_way;
pub(crate) mod watch;
