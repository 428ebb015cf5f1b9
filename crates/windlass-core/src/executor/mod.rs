//! Executors beside the pool: local sets, executors of others, and a plain thread that waits.

pub mod block_in_place;
pub mod block_on;
#[cfg(not(any(windlass_loom, windlass_shuttle)))]
pub mod external;
pub mod local_set;
