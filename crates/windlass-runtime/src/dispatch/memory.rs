//! Keeping the memory of the process from being paged out, as long as a runtime wants that.

use std::io;

use windlass_core::sync::Mutex;

use crate::os;

/// Keeps the memory of the process locked until this is dropped.
#[derive(Debug)]
#[must_use = "the memory may be paged out again when this is dropped"]
pub struct MemoryLock(());

/// How many do.
static WANTED: Mutex<usize> = Mutex::new(0);

/// Keeps all memory that the process has and will have from being paged out (`mlockall`).
///
/// # Errors
/// If the process has no right to it (CAP_IPC_LOCK, RLIMIT_MEMLOCK), or the system does not know
/// it.
pub fn lock_memory() -> io::Result<MemoryLock> {
    let mut wanted = WANTED.lock();
    if *wanted == 0 {
        os::lock_memory()?;
    }
    *wanted += 1;
    Ok(MemoryLock(()))
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        let mut wanted = WANTED.lock();
        *wanted -= 1;
        if *wanted == 0 {
            os::unlock_memory();
        }
    }
}
