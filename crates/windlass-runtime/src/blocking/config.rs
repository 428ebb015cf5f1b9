//! What a blocking pool is made from.

use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) max_threads: usize,
    /// Threads that give turns to tasks at the same time.
    pub(crate) max_turns: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) stack_size: usize,
    pub(crate) name: String,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_threads: 512,
            max_turns: std::thread::available_parallelism().map_or(64, |cores| cores.get().max(64)),
            keep_alive: Duration::from_secs(10),
            stack_size: 0,
            name: "windlass-blocking".into(),
        }
    }
}
