//! Groups: processes that are spoken to together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_sync::channel::broadcast;
use windlass_value::Pid;

use crate::error::RegisterError;
use crate::host::Host;
use crate::message::Message;
use crate::shell::Resident;

/// The groups of a host.
#[derive(Default)]
pub(crate) struct Groups(Mutex<BTreeMap<Arc<str>, Group>>);

#[derive(Default)]
struct Group {
    /// By the order of joining.
    members: BTreeMap<u64, Arc<dyn Resident>>,
    places: BTreeMap<Pid, u64>,
    next: u64,
    changes: Option<broadcast::Sender<GroupChange>>,
}

/// A change of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupChange {
    /// This process joined.
    Joined(Pid),
    /// This process left, or ended.
    Left(Pid),
}

/// Changes that a slow subscriber may be behind.
const CHANGES_KEPT: usize = 1024;

/// The members of a group at one moment, and every change since.
#[derive(Debug)]
pub struct Subscription {
    members: Vec<Pid>,
    changes: broadcast::Receiver<GroupChange>,
}

impl Subscription {
    /// The members when the subscription began.
    pub fn members(&self) -> &[Pid] {
        &self.members
    }

    /// The next change. An error says how many were missed: subscribe anew.
    pub async fn changed(&mut self) -> Result<GroupChange, Missed> {
        match self.changes.recv().await {
            Ok(change) => Ok(change),
            Err(broadcast::error::RecvError::Lagged(missed)) => Err(Missed(missed)),
            // The group keeps its sender while it has subscribers.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// A subscriber was too slow, and lost this number of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed(pub u64);

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} changes of the group were missed: subscribe anew",
            self.0
        )
    }
}

impl std::error::Error for Missed {}

impl Groups {
    fn add(&self, group: Arc<str>, process: Arc<dyn Resident>) -> Result<(), RegisterError> {
        let mut groups = self.0.lock();
        let there = groups.entry(group.clone()).or_default();
        let pid = process.shell().pid;
        if there.places.contains_key(&pid) {
            return Ok(());
        }
        // Under the lock of the groups: the process leaves what it has noted when it ends.
        if !process.shell().note_group(&group) {
            if there.is_unused() {
                groups.remove(&group);
            }
            return Err(RegisterError::NoProcess);
        }
        there.next += 1;
        there.places.insert(pid, there.next);
        there.members.insert(there.next, process);
        there.notify(GroupChange::Joined(pid));
        Ok(())
    }

    /// False: it was no member.
    pub(crate) fn remove(&self, group: &str, pid: Pid) -> bool {
        let mut groups = self.0.lock();
        let Some(there) = groups.get_mut(group) else {
            return false;
        };
        let Some(place) = there.places.remove(&pid) else {
            return false;
        };
        let member = there.members.remove(&place);
        there.notify(GroupChange::Left(pid));
        if there.is_unused() {
            groups.remove(group);
        }
        drop(groups);
        drop(member);
        true
    }

    fn members(&self, group: &str) -> Vec<Arc<dyn Resident>> {
        let groups = self.0.lock();
        let there = groups.get(group);
        there.map_or(Vec::new(), |group| {
            group.members.values().cloned().collect()
        })
    }
}

impl Group {
    fn notify(&self, change: GroupChange) {
        if let Some(changes) = &self.changes {
            // The last subscriber may be gone.
            let _ = changes.send(change);
        }
    }

    fn is_unused(&self) -> bool {
        let listened_to = |changes: &broadcast::Sender<_>| changes.receiver_count() > 0;
        self.members.is_empty() && !self.changes.as_ref().is_some_and(listened_to)
    }
}

impl Host {
    /// Adds a process of this host to a group; once more changes nothing. It leaves when it ends.
    pub fn join(&self, group: impl Into<Arc<str>>, pid: Pid) -> Result<(), RegisterError> {
        let process = self.0.find(pid).ok_or(RegisterError::NoProcess)?;
        self.0.groups.add(group.into(), process)
    }

    /// Takes a process out of a group; false: it was no member.
    pub fn leave(&self, group: &str, pid: Pid) -> bool {
        if let Some(process) = self.0.find(pid) {
            process.shell().forget_group(group);
        }
        self.0.groups.remove(group, pid)
    }

    /// The members of a group, in the order of their joining.
    pub fn members(&self, group: &str) -> Vec<Pid> {
        let members = self.0.groups.members(group);
        members.iter().map(|process| process.shell().pid).collect()
    }

    /// Sends a message to every member; how many got it. Does not wait: a full mailbox is passed
    /// over.
    pub fn broadcast(&self, group: &str, message: &Message) -> usize {
        let members = self.0.groups.members(group);
        let delivered = members
            .iter()
            .filter(|member| member.deliver(message.clone()).is_ok());
        delivered.count()
    }

    /// The members of a group and every change from then on; no change is missed or comes twice.
    pub fn subscribe(&self, group: impl Into<Arc<str>>) -> Subscription {
        let mut groups = self.0.groups.0.lock();
        let group = groups.entry(group.into()).or_default();
        let changes = match &group.changes {
            Some(changes) => changes.subscribe(),
            None => {
                let (sender, receiver) = broadcast::channel(CHANGES_KEPT);
                group.changes = Some(sender);
                receiver
            }
        };
        let members = group.members.values().map(|process| process.shell().pid);
        Subscription {
            members: members.collect(),
            changes,
        }
    }
}
