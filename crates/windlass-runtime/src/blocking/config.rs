//! What a blocking pool is made from.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a thread calls at its begin or its end.
pub(crate) type ThreadHook = Arc<dyn Fn() + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) max_threads: usize,
    /// Threads that give turns to tasks at the same time.
    pub(crate) max_turns: usize,
    pub(crate) keep_alive: Duration,
    pub(crate) stack_size: usize,
    pub(crate) name: String,
    pub(crate) on_start: Option<ThreadHook>,
    pub(crate) on_stop: Option<ThreadHook>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            max_threads: 512,
            max_turns: std::thread::available_parallelism().map_or(64, |cores| cores.get().max(64)),
            keep_alive: Duration::from_secs(10),
            stack_size: 0,
            name: "windlass-blocking".into(),
            on_start: None,
            on_stop: None,
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("max_threads", &self.max_threads)
            .field("max_turns", &self.max_turns)
            .field("keep_alive", &self.keep_alive)
            .field("stack_size", &self.stack_size)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
