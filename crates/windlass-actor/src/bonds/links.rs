//! Links and monitors, as one process has them.

use std::collections::VecDeque;
use std::sync::Arc;

use windlass_core::queue::Letter;
use windlass_value::Pid;

use super::{Link, Observer, Peer};
use crate::exit::{Bond, ExitReason, Exited, MonitorRef};
use crate::shell::{Resident, Shell, Signal};

impl Shell {
    /// Adds one end of a link. Returns false if this process has ended.
    pub(crate) fn add_link(&self, to: Pid, peer: Peer) -> bool {
        let letter = Letter::new(Signal::Blank);
        self.with_ties(|ties| {
            let over = false;
            ties.links.entry(to).or_insert(Link { peer, letter, over });
        })
        .is_some()
    }

    pub(crate) fn remove_link(&self, to: Pid) -> bool {
        let link = self
            .bonds
            .lock()
            .ties_if_any()
            .and_then(|ties| ties.links.remove(&to));
        link.is_some()
    }

    /// Marks a link whose other end is over. Returns false if there is no such link, or it was
    /// marked before.
    pub(super) fn mark_link(&self, to: Pid) -> bool {
        let mut bonds = self.bonds.lock();
        let link = bonds.ties_if_any().and_then(|ties| ties.links.get_mut(&to));
        link.is_some_and(|link| !std::mem::replace(&mut link.over, true))
    }

    /// Removes a link whose other end is over, when that notification arrives. Returns false if the
    /// link was undone meanwhile.
    pub(crate) fn end_link(&self, to: Pid) -> bool {
        let mut bonds = self.bonds.lock();
        let Some(ties) = bonds.ties_if_any() else {
            return false;
        };
        let is_over = ties.links.get(&to).is_some_and(|link| link.over);
        let link = is_over.then(|| ties.links.remove(&to)).flatten();
        drop(bonds);
        link.is_some()
    }

    /// Notifies the process of the end of another, if the bond still exists.
    pub(crate) fn notify_exit(&self, exited: Exited) {
        if exited.by != Bond::Link || self.mark_link(exited.pid) {
            self.signal(Signal::Exit(exited));
        }
    }

    pub(crate) fn new_monitor(&self, target: Pid) -> Option<MonitorRef> {
        self.with_ties(|ties| {
            let key = self.host.next_monitor();
            ties.watching.insert(key, target);
            MonitorRef(key)
        })
    }

    /// Adds a monitor: `watcher` is notified when this process ends. Returns false if it has ended.
    pub(crate) fn add_observer(&self, watcher: Pid, id: MonitorRef, peer: Peer) -> bool {
        let letter = Letter::new(Signal::Blank);
        let observer = Observer { peer, letter };
        self.with_ties(|ties| ties.monitors.insert((watcher, id.0), observer))
            .is_some()
    }

    pub(crate) fn remove_observer(&self, watcher: Pid, id: MonitorRef) {
        let observer = self
            .bonds
            .lock()
            .ties_if_any()
            .and_then(|ties| ties.monitors.remove(&(watcher, id.0)));
        drop(observer);
    }

    /// Removes a monitor of this process. Returns the PID of its target.
    pub(crate) fn end_monitor(&self, id: MonitorRef) -> Option<Pid> {
        let target = self.with_ties(|ties| {
            let by = Bond::Monitor(id);
            let notices = std::mem::take(&mut ties.notices);
            let (undone, kept): (VecDeque<_>, _) =
                notices.into_iter().partition(|exited| exited.by == by);
            ties.notices = kept;
            (ties.watching.remove(&id.0), undone)
        });
        // The reasons of ends hold values of users, which are dropped here, not under the lock.
        target.and_then(|(target, _)| target)
    }

    /// The ends of links and monitors that lead to processes which cannot be reached any more.
    pub(crate) fn bonds_to(&self, lost: &dyn Fn(Pid) -> bool) -> Vec<Exited> {
        let exited = |pid, by| Exited {
            pid,
            reason: ExitReason::NoConnection,
            by,
        };
        let mut bonds = self.bonds.lock();
        let Some(ties) = bonds.ties_if_any() else {
            return Vec::new();
        };
        let links = ties.links.keys().map(|pid| exited(*pid, Bond::Link));
        let watching = ties.watching.iter();
        let monitors = watching.map(|(id, pid)| exited(*pid, Bond::Monitor(MonitorRef(*id))));
        let all = monitors.chain(links);
        all.filter(|exited| lost(exited.pid)).collect()
    }
}

/// Links two processes of this host, both ends at once. False: `other` has ended.
pub(crate) fn link_here(one: &Arc<dyn Resident>, other: &Arc<dyn Resident>) -> bool {
    let (low, high) = if one.shell().pid < other.shell().pid {
        (one, other)
    } else {
        (other, one)
    };
    // The lower PID first: two that link each other at the same time do not wait for each other.
    let mut first = low.shell().bonds.lock();
    let mut second = high.shell().bonds.lock();
    let (Some(first), Some(second)) = (first.ties(), second.ties()) else {
        return false;
    };
    for (ties, peer) in [(first, high), (second, low)] {
        let link = || Link {
            peer: Peer::Here(peer.clone()),
            letter: Letter::new(Signal::Blank),
            over: false,
        };
        ties.links.entry(peer.shell().pid).or_insert_with(link);
    }
    true
}
