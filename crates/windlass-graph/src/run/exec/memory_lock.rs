//! The memory lock of a run: lanes with `mlock` keep the pages of the process in memory.

use windlass_runtime::dispatch::{MemoryLock, lock_memory};

use windlass_plan::model::{Graph, OsPolicy};

/// Whether the memory of the process is kept where it is, for a run that asks for it.
#[derive(Debug, Default)]
pub(crate) struct RunMemory {
    _lock: Option<MemoryLock>,
    refused: Option<String>,
}

impl RunMemory {
    /// Keeps it if a lane asks for that.
    ///
    /// # Errors
    /// If it is refused, and the lane is strict.
    pub(crate) fn for_run(graph: &Graph) -> Result<RunMemory, String> {
        let mut asking = graph.lanes.iter().filter(|lane| lane.mlock);
        if asking.clone().next().is_none() || windlass_core::sync::with_world(|w| w.is_some()) {
            return Ok(RunMemory::default());
        }
        match lock_memory() {
            Ok(lock) => Ok(RunMemory {
                _lock: Some(lock),
                refused: None,
            }),
            Err(error) => match asking.find(|lane| lane.os_policy == OsPolicy::Strict) {
                Some(lane) => Err(format!(
                    "lane {} demands that the memory is locked ({error}): give the process the right to it (CAP_IPC_LOCK, RLIMIT_MEMLOCK), or use `os_policy: warn`",
                    lane.id
                )),
                None => Ok(RunMemory {
                    _lock: None,
                    refused: Some(error.to_string()),
                }),
            },
        }
    }
    /// Returns why the lock was refused, if it was.
    pub(crate) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }
}
