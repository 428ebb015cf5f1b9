//! What happens when a graph runs.

mod channels;
mod conservation;
mod failures;
mod life;
mod loops;
mod pools;
mod published;
mod speed;
mod stage;
mod time;
mod trace;
mod triggers;
