//! The doors of a run: components with something outside, taps, steps and new configurations.

pub(crate) mod config;
pub(crate) mod control;
pub(crate) mod doors;
pub(crate) mod taps;
