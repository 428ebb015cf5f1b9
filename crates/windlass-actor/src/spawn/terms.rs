//! The options of one spawn, and how it is carried out.

use std::any::Any;
use std::sync::Arc;

use windlass_core::task::{Options, SpawnRequest};
use windlass_runtime::dispatch::Dispatcher;
use windlass_value::Pid;

use super::ProcessHandle;
use crate::address::Address;
use crate::error::SpawnError;
use crate::exit::ExitReason;
use crate::host::Host;
use crate::mail::{Mail, MailboxPolicy};
use crate::shell::{Core, Resident, SHUTDOWN, Signal, conclude};
use crate::weigh::Scales;

#[derive(Clone)]
pub(super) struct Terms {
    pub(super) options: Options,
    /// None: the workers of the host's runtime.
    pub(super) dispatcher: Option<Dispatcher>,
    pub(super) name: Option<Arc<str>>,
    pub(super) mailbox: Option<MailboxPolicy>,
    pub(super) mailbox_bytes: Option<usize>,
    /// A `Weigher` of the type of its messages.
    pub(super) weigher: Option<Arc<dyn Any + Send + Sync>>,
    pub(super) link: Option<Pid>,
    pub(super) monitor: Option<Pid>,
    pub(super) supervised: bool,
}

impl Terms {
    /// Makes room for a process, with its PID and its name. It takes the host over: all processes
    /// count on one line that they are there.
    pub(super) fn settle<M: Send + 'static>(&self, host: Host) -> Result<Arc<Core<M>>, SpawnError> {
        let policy = self.mailbox.unwrap_or(host.0.mailbox);
        if !policy.is_possible() {
            return Err(SpawnError::NoRoom);
        }
        host.0.reserve()?;
        let bytes = self.mailbox_bytes.unwrap_or(host.0.mailbox_bytes);
        let scales = Scales::new(bytes, self.weigher.as_deref());
        let core = Arc::new(Core::new(
            host.0.new_pid(),
            host.0,
            Mail::new(policy, scales),
        ));
        let host = &core.shell.host;
        if self.supervised {
            core.shell.set_supervised();
        }
        let process: Arc<dyn Resident> = core.clone();
        host.enter_routing(process.clone());
        if host.is_closed() && !self.supervised {
            // The shutdown may have missed it. A supervisor sees to its own.
            core.shell.signal(Signal::Cancel(SHUTDOWN.into()));
        }
        if let Some(name) = &self.name
            && let Err(error) = host.names.register(name.clone(), &process)
        {
            conclude(&*core, None, Err(ExitReason::Killed), || {});
            return Err(match error {
                crate::error::RegisterError::Taken { owner } => SpawnError::NameTaken {
                    name: name.clone(),
                    owner,
                },
                crate::error::RegisterError::NoProcess => SpawnError::Stopping,
            });
        }
        Ok(core)
    }

    /// Ties the process to others and lets it run.
    pub(super) fn start<M, B>(
        self,
        core: Arc<Core<M>>,
        body: B,
    ) -> Result<ProcessHandle<M>, SpawnError>
    where
        M: Send + 'static,
        B: windlass_core::task::Body<Output = ()> + Send + 'static,
    {
        let host = &core.shell.host;
        let mut monitor = None;
        if self.link.is_some() || self.monitor.is_some() {
            let process: Arc<dyn Resident> = core.clone();
            if let Some(parent) = self.link {
                // The body ends the process where it is dropped.
                if host.is_gone(parent) {
                    return Err(SpawnError::NoParent(parent));
                }
                host.link(&process, parent);
            }
            if let Some(parent) = self.monitor {
                let parent = host.find(parent).ok_or(SpawnError::NoParent(parent))?;
                monitor = Some(host.monitor(&parent, core.shell.pid));
            }
        }
        let request = SpawnRequest::new(body, self.options)
            .before_first_poll(|entry| core.shell.set_task(entry.task()));
        match &self.dispatcher {
            None => drop(host.runtime.spawn_request(request)),
            Some(there) => drop(there.spawn_request(request)),
        }
        Ok(ProcessHandle {
            address: Address::new(core),
            monitor,
        })
    }
}
