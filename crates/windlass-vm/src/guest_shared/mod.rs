//! The shared half of a guest: what others touch of it.

mod completion;
mod mail;
mod resources;
mod wait;

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use windlass_actor::{Pid, ProcessContext};
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use windlass_sync::park::Park;

use self::completion::Completion;
pub(crate) use self::mail::{GuestMail, Receive};
pub(crate) use self::resources::Resources;
pub(crate) use self::wait::{Undo, WaitQueue, WaitTimer};
use crate::guest::{Ending, Guest};
use crate::limits::Limits;
use crate::vm::VmShared;

/// The shared half of a guest.
pub(crate) struct GuestShared {
    pub(crate) vm: Arc<VmShared>,
    /// Its number in the VM's table of guests.
    entry: u64,
    /// Set when its process is made.
    context: OnceLock<ProcessContext>,
    /// Another PID, as a recording knows it.
    pub(crate) recorded_pid: OnceLock<Pid>,
    /// Its number in a recording, from 1; 0 before it has one.
    pub(crate) number: AtomicU64,
    /// What its guest is called.
    name: Option<Arc<str>>,
    /// Who spawned it.
    parent: Option<Weak<GuestShared>>,
    /// Its own tasks that have not ended.
    pub(crate) tasks: AtomicUsize,
    pub(crate) limits: Limits,
    park: Park<Ending, Undo>,
    resources: Mutex<Resources>,
    pub(crate) mail: Mutex<GuestMail>,
    /// False: no wait is in `mail`. A hint, changed under its lock.
    wants_mail: AtomicBool,
    /// The reason of a cancel that came while no wait was there: the next wait ends with it.
    cancelled: Mutex<Option<Arc<str>>>,
    pub(crate) stop_asked: AtomicBool,
    /// Nanoseconds on a processor.
    pub(crate) cpu: AtomicU64,
    completion: Mutex<Completion>,
    handles: AtomicUsize,
    /// The guest itself between two steps; only on the reactor.
    pub(crate) stored: Mutex<Option<Box<dyn Guest>>>,
}

impl Drop for GuestShared {
    fn drop(&mut self) {
        self.vm.guests.remove(self.entry);
    }
}

impl GuestShared {
    pub(crate) fn new(
        vm: &Arc<VmShared>,
        stored: Option<Box<dyn Guest>>,
        name: Option<Arc<str>>,
        limits: Limits,
        parent: Option<&Arc<GuestShared>>,
    ) -> Arc<GuestShared> {
        let entry = vm.guests.next_number();
        let guest = Arc::new(GuestShared {
            vm: vm.clone(),
            entry,
            context: OnceLock::new(),
            recorded_pid: OnceLock::new(),
            number: AtomicU64::new(0),
            name,
            parent: parent.map(Arc::downgrade),
            tasks: AtomicUsize::new(0),
            limits,
            park: Park::new(),
            resources: Mutex::default(),
            mail: Mutex::default(),
            wants_mail: AtomicBool::new(false),
            cancelled: Mutex::default(),
            stop_asked: AtomicBool::new(false),
            cpu: AtomicU64::new(0),
            completion: Mutex::default(),
            handles: AtomicUsize::new(0),
            stored: Mutex::new(stored),
        });
        vm.guests.add(entry, &guest);
        guest
    }

    /// The name that its guest gave.
    pub(crate) fn name(&self) -> Option<&Arc<str>> {
        self.name.as_ref()
    }

    /// The PID of the guest that spawned it, if that is still there.
    pub(crate) fn parent_pid(&self) -> Option<Pid> {
        let parent = self.parent.as_ref()?.upgrade()?;
        parent.context.get().map(ProcessContext::pid)
    }

    pub(crate) fn set_context(&self, context: ProcessContext) {
        let _ = self.context.set(context);
    }

    /// Its process; None before that is made.
    pub(crate) fn context(&self) -> Option<&ProcessContext> {
        self.context.get()
    }

    /// Its PID, as guests see it.
    pub(crate) fn pid(&self) -> Pid {
        let own = || self.context.get().map(ProcessContext::pid);
        let recorded = self.recorded_pid.get().copied();
        recorded
            .or_else(own)
            .expect("its process is made before it is known")
    }

    /// How people know it: its name, if it has one, and its PID.
    pub(crate) fn shown(&self) -> String {
        let pid = self.context.get().map(ProcessContext::pid);
        match (&self.name, pid) {
            (Some(name), Some(pid)) => format!("{name} {pid}"),
            (Some(name), None) => name.to_string(),
            (None, Some(pid)) => pid.to_string(),
            (None, None) => "that has no process yet".to_owned(),
        }
    }

    /// Asks for a step of its process.
    pub(crate) fn request_step(&self) {
        if let Some(context) = self.context.get() {
            context.request_step();
        }
    }

    // ---- waits ----

    // ---- the end ----
}

impl fmt::Debug for GuestShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GuestShared({:?})", self.context.get())
    }
}
