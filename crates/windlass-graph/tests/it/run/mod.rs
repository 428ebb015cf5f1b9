//! What happens when a graph runs.

mod beside;
mod channels;
mod conservation;
mod extremes;
mod failures;
mod life;
mod loops;
mod outside;
mod pools;
mod published;
mod speed;
mod stage;
mod time;
mod trace;
mod triggers;
