//! Options of a host.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync::atomic::AtomicU64;
use windlass_core::sync::{Mutex, Padded};
use windlass_runtime::Handle;
use windlass_runtime::frontend::RuntimeStopping;
use windlass_sync::lock::Notify;
use windlass_value::NodeId;

use super::names::Names;
use super::residents::Residents;
use super::{Host, HostShared};
use crate::command::{Commands, Handler};
use crate::error::BuildError;
use crate::groups::Groups;
use crate::mail::MailboxPolicy;
use crate::relay::Relay;
use crate::weigh::MAILBOX_BYTES;

/// Options of a [`Host`].
pub struct HostBuilder {
    name: String,
    node: Option<String>,
    limit: usize,
    mailbox: MailboxPolicy,
    mailbox_bytes: usize,
    relay: Option<Arc<dyn Relay>>,
    commands: Commands,
    twice: Option<&'static str>,
    pub(super) is_default: bool,
}

impl HostBuilder {
    /// What its PIDs say before the bar; `local` otherwise.
    pub fn name(mut self, name: impl Into<String>) -> HostBuilder {
        self.name = name.into();
        self
    }

    /// The name of this program among others, for PIDs that leave it.
    pub fn node(mut self, node: impl Into<String>) -> HostBuilder {
        self.node = Some(node.into());
        self
    }

    /// The most processes at a time; a million otherwise.
    pub fn max_processes(mut self, most: usize) -> HostBuilder {
        self.limit = most;
        self
    }

    /// The mailboxes of processes that do not say otherwise; 1024 messages otherwise.
    pub fn mailbox(mut self, policy: MailboxPolicy) -> HostBuilder {
        self.mailbox = policy;
        self
    }

    /// The bytes that mailboxes hold of processes that do not say otherwise, in messages of more
    /// than a kilobyte; 64 MiB otherwise.
    pub fn mailbox_bytes(mut self, bytes: usize) -> HostBuilder {
        self.mailbox_bytes = bytes;
        self
    }

    /// The way to other nodes.
    pub fn relay(mut self, relay: Arc<dyn Relay>) -> HostBuilder {
        self.relay = Some(relay);
        self
    }

    /// Who carries out commands of type `C`. It runs on a worker and must not block: long work goes
    /// to [`Completer::spawn`](crate::command::Completer::spawn) or
    /// [`Completer::spawn_blocking`](crate::command::Completer::spawn_blocking).
    pub fn command<C: Any + Send>(mut self, handler: impl Handler<C>) -> HostBuilder {
        if !self.commands.add(handler) {
            self.twice = Some(std::any::type_name::<C>());
        }
        self
    }

    /// Makes the host. It ends with the runtime, or by [`Host::shutdown`].
    pub fn build(self, runtime: &Handle) -> Result<Host, BuildError> {
        let shared = self.make(runtime)?;
        runtime
            .attach(shared.clone())
            .map_err(|RuntimeStopping| BuildError::Stopping)?;
        Ok(Host(shared))
    }

    pub(super) fn make(self, runtime: &Handle) -> Result<Arc<HostShared>, BuildError> {
        if let Some(name) = self.twice {
            return Err(BuildError::CommandTwice(name));
        }
        if !self.mailbox.is_possible() {
            return Err(BuildError::NoRoom);
        }
        let node_id = NodeId::of(self.node.as_deref(), &self.name).map_err(BuildError::Name)?;
        Ok(Arc::new(HostShared {
            runtime: runtime.clone(),
            node_id,
            // A simulation has its own dice.
            incarnation: runtime.random(),
            is_default: self.is_default,
            population: Padded::default(),
            monitors: AtomicU64::new(0),
            unread_at_exit: AtomicU64::new(0),
            residents: Residents::new(),
            limit: self.limit,
            names: Names::default(),
            groups: Groups::default(),
            commands: self.commands,
            relay: self.relay,
            mailbox: self.mailbox,
            mailbox_bytes: self.mailbox_bytes,
            emptied: Notify::new(),
            shutdown: Mutex::default(),
        }))
    }
}

impl Host {
    /// Options with their defaults.
    pub fn builder() -> HostBuilder {
        HostBuilder {
            name: "local".to_owned(),
            node: None,
            limit: 1_000_000,
            mailbox: MailboxPolicy::default(),
            mailbox_bytes: MAILBOX_BYTES,
            relay: None,
            commands: Commands::with_built_ins(),
            twice: None,
            is_default: false,
        }
    }
}

impl fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder")
            .field("name", &self.name)
            .field("node", &self.node)
            .field("max_processes", &self.limit)
            .field("mailbox", &self.mailbox)
            .finish_non_exhaustive()
    }
}
