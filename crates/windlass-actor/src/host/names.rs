//! The names of processes.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_value::Pid;

use crate::error::RegisterError;
use crate::shell::Resident;

/// Names and the processes that have them. A process has any number of names.
#[derive(Default)]
pub(crate) struct Names(Mutex<BTreeMap<Arc<str>, Arc<dyn Resident>>>);

impl Names {
    /// Returns the process with this name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Resident>> {
        self.0.lock().get(name).cloned()
    }

    /// Returns the number of names.
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Gives a process a name. Does nothing if the process has it already.
    pub(crate) fn register(
        &self,
        name: Arc<str>,
        process: &Arc<dyn Resident>,
    ) -> Result<(), RegisterError> {
        let mut names = self.0.lock();
        if let Some(owner) = names.get(&name) {
            let owner = owner.shell().pid;
            if owner == process.shell().pid {
                return Ok(());
            }
            return Err(RegisterError::Taken { owner });
        }
        // Under the lock of the names: the process releases what it has noted when it ends.
        if !process.shell().note_name(&name) {
            return Err(RegisterError::NoProcess);
        }
        names.insert(name, process.clone());
        Ok(())
    }

    /// Takes a name away. Returns the PID of the process that had it.
    pub(super) fn unregister(&self, name: &str) -> Option<Pid> {
        let process = self.0.lock().remove(name)?;
        process.shell().forget_name(name);
        Some(process.shell().pid)
    }

    /// Removes these names as far as the process `pid` has them.
    pub(crate) fn release(&self, pid: Pid, names: &[Arc<str>]) {
        if names.is_empty() {
            return;
        }
        let mut there = self.0.lock();
        for name in names {
            if there
                .get(name)
                .is_some_and(|owner| owner.shell().pid == pid)
            {
                there.remove(name);
            }
        }
    }
}
