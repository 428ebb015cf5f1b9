//! What happens when a graph runs.

mod beside;
mod channels;
mod conservation;
mod extremes;
mod failures;
mod lanes;
mod life;
mod loops;
mod observe;
mod outside;
mod overlap;
mod pools;
mod published;
mod replay;
mod speed;
mod stage;
mod stopping;
mod time;
mod timeouts;
mod trace;
mod triggers;
