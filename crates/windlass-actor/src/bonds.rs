//! What ties a process to others: links, monitors, names, groups, those who wait for its end.
//!
//! The bonds close once, by becoming `Over`: whoever comes later finds the exit there. A link and a monitor
//! hold the letter that tells of the end, so that telling cannot fail. Two locks are held at once by
//! [`link_here`] only, the lower PID first.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use windlass_core::queue::Letter;
use windlass_core::sync::atomic::Ordering;
use windlass_core::task::{AbortHandle, contain};
use windlass_sync::CancellationToken;

use crate::exit::{Bond, Exit, ExitReason, Exited, MonitorRef};
use crate::host::Shared;
use crate::relay::RemoteSignal;
use crate::shell::{CANCELLED, COMPLETE, LEAVING, Resident, Shell, Signal};
use windlass_value::Payload;
use windlass_value::Pid;

/// What ties a process to others. Closes once. Most processes have no ties, and somebody waits for them.
pub(crate) enum Bonds {
    Bare,
    OneWaits(Box<Waiter>),
    Tied(Box<Ties>),
    /// None: it was done, and ended with nothing in particular.
    Over(Option<Box<Exit>>),
}

pub(crate) struct Waiter {
    key: u64,
    waker: Waker,
}

impl Bonds {
    /// None: it is over.
    fn ties(&mut self) -> Option<&mut Ties> {
        if let Bonds::Bare | Bonds::OneWaits(_) = self {
            let waiters = match std::mem::replace(self, Bonds::Bare) {
                Bonds::OneWaits(waiter) => vec![*waiter],
                _ => Vec::new(),
            };
            *self = Bonds::Tied(Box::new(Ties {
                // The lone one has the first key.
                next_key: 1,
                waiters,
                ..Ties::default()
            }));
        }
        self.ties_if_any()
    }

    pub(crate) fn ties_if_any(&mut self) -> Option<&mut Ties> {
        match self {
            Bonds::Tied(ties) => Some(ties),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(crate) struct Ties {
    links: BTreeMap<Pid, Link>,
    /// Those who are told of its end. By watcher, too: each host counts its monitors for itself.
    monitors: BTreeMap<(Pid, u64), Observer>,
    /// Those whose end it wants to be told of.
    pub(crate) watching: BTreeMap<u64, Pid>,
    names: Vec<Arc<str>>,
    groups: Vec<Arc<str>>,
    /// Cancelled with the process, and with its code when that is upgraded.
    context: Option<CancellationToken>,
    timers: BTreeMap<u64, AbortHandle>,
    /// Ends of others that an async process has not looked at.
    pub(crate) notices: VecDeque<Exited>,
    pub(crate) cancel_reason: Option<Arc<str>>,
    pub(crate) foreign: Option<Waker>,
    waiters: Vec<Waiter>,
    next_key: u64,
}

/// The other end of a link, and the letter that tells it of this one's end.
pub(crate) struct Link {
    peer: Peer,
    letter: Letter<Signal>,
    /// The other end is over, and the news of that is on its way. It counts only if the link is still here
    /// then.
    over: bool,
}

pub(crate) enum Peer {
    Here(Arc<dyn Resident>),
    Elsewhere(Pid),
}

pub(crate) struct Observer {
    peer: Peer,
    letter: Letter<Signal>,
}

impl Ties {
    fn new_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }
}

impl Shell {
    /// None: it has ended.
    pub(crate) fn with_ties<R>(&self, f: impl FnOnce(&mut Ties) -> R) -> Option<R> {
        self.bonds.lock().ties().map(f)
    }

    /// Waits for the end: the exit, or the key under which the waker is kept.
    pub(crate) fn wait_for_exit(&self, key: Option<u64>, waker: &Waker) -> Result<Exit, u64> {
        // A waker's clone and drop may run anything: before the lock, and after it.
        let waker = waker.clone();
        let mut bonds = self.bonds.lock();
        let (key, old) = match &mut *bonds {
            Bonds::Over(exit) => return Ok(self.exit_of(exit.as_deref())),
            Bonds::Bare => {
                let waiter = Waiter { key: 1, waker };
                *bonds = Bonds::OneWaits(Box::new(waiter));
                (1, None)
            }
            Bonds::OneWaits(waiter) if key == Some(waiter.key) => {
                let old = std::mem::replace(&mut waiter.waker, waker);
                (waiter.key, Some(old))
            }
            bonds => {
                let Some(ties) = bonds.ties() else {
                    return Ok(self.exit_of(None));
                };
                let key = key.unwrap_or_else(|| ties.new_key());
                let there = ties.waiters.iter_mut().find(|waiter| waiter.key == key);
                match there {
                    Some(there) => (key, Some(std::mem::replace(&mut there.waker, waker))),
                    None => {
                        ties.waiters.push(Waiter { key, waker });
                        (key, None)
                    }
                }
            }
        };
        drop(bonds);
        drop(old);
        Err(key)
    }

    fn exit_of(&self, exit: Option<&Exit>) -> Exit {
        exit.cloned().unwrap_or(Exit {
            pid: self.pid,
            reason: ExitReason::Normal,
            value: Payload::Nil,
        })
    }

    pub(crate) fn stop_waiting(&self, key: u64) {
        let mut bonds = self.bonds.lock();
        let waiter = match &mut *bonds {
            Bonds::OneWaits(waiter) if waiter.key == key => {
                match std::mem::replace(&mut *bonds, Bonds::Bare) {
                    Bonds::OneWaits(waiter) => Some(*waiter),
                    _ => None,
                }
            }
            Bonds::Tied(ties) => {
                let place = ties.waiters.iter().position(|waiter| waiter.key == key);
                place.map(|place| ties.waiters.swap_remove(place))
            }
            _ => None,
        };
        drop(bonds);
        drop(waiter);
    }

    /// Notes a name or group, unless the process is on its way out.
    pub(crate) fn note_name(&self, name: &Arc<str>) -> bool {
        self.note(|ties| ties.names.push(name.clone()))
    }

    pub(crate) fn note_group(&self, group: &Arc<str>) -> bool {
        self.note(|ties| ties.groups.push(group.clone()))
    }

    fn note(&self, note: impl FnOnce(&mut Ties)) -> bool {
        let noted = self.with_ties(|ties| {
            let stays = !self.is_leaving();
            if stays {
                note(ties);
            }
            stays
        });
        noted == Some(true)
    }

    pub(crate) fn forget_name(&self, name: &str) {
        self.with_ties(|ties| ties.names.retain(|there| **there != *name));
    }

    pub(crate) fn forget_group(&self, group: &str) {
        self.with_ties(|ties| ties.groups.retain(|there| **there != *group));
    }

    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        let mut bonds = self.bonds.lock();
        bonds
            .ties_if_any()
            .map_or(Vec::new(), |ties| ties.names.clone())
    }

    /// What ends with the process, or with its code when that is upgraded.
    pub(crate) fn context(&self) -> CancellationToken {
        let context = self.with_ties(|ties| {
            let context = ties.context.get_or_insert_default().clone();
            (context, self.is_leaving())
        });
        let (context, is_over) = context.unwrap_or_else(|| (CancellationToken::new(), true));
        if is_over {
            // Not under the lock: it wakes.
            context.cancel();
        }
        context
    }

    /// The code is another one from now on.
    pub(crate) fn end_context(&self) {
        let ended = self
            .bonds
            .lock()
            .ties_if_any()
            .map(|ties| (ties.context.take(), std::mem::take(&mut ties.timers)));
        if let Some((context, timers)) = ended {
            context.iter().for_each(CancellationToken::cancel);
            timers.into_values().for_each(|timer| timer.abort());
        }
    }

    /// The process is on its way out: it gets no names, groups and contexts any more.
    pub(crate) fn leave(&self) {
        self.flags.fetch_or(LEAVING, Ordering::AcqRel);
        self.end_context();
    }

    pub(crate) fn names_and_groups(&self) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let mut bonds = self.bonds.lock();
        let take = |ties: &mut Ties| {
            let (names, groups) = (&mut ties.names, &mut ties.groups);
            (std::mem::take(names), std::mem::take(groups))
        };
        bonds.ties_if_any().map(take).unwrap_or_default()
    }

    /// Asked under the lock of the bonds. The flag is set before that lock is taken to empty what is there.
    fn is_leaving(&self) -> bool {
        self.flags.load(Ordering::Acquire) & LEAVING != 0
    }

    pub(crate) fn add_timer(&self, task: AbortHandle) -> u64 {
        let added = self.with_ties(|ties| {
            let key = ties.new_key();
            if self.is_leaving() {
                return Err(key);
            }
            ties.timers.retain(|_, timer| !timer.is_finished());
            ties.timers.insert(key, task.clone());
            Ok(key)
        });
        match added {
            Some(Ok(key)) => key,
            Some(Err(key)) => {
                task.abort();
                key
            }
            None => {
                task.abort();
                0
            }
        }
    }

    pub(crate) fn stop_timer(&self, key: u64) -> bool {
        let timer = self.with_ties(|ties| ties.timers.remove(&key)).flatten();
        timer.inspect(AbortHandle::abort).is_some()
    }

    /// Adds one end of a link. False: this end is over.
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

    /// The other end of a link is over; false: there is no such link, or it was told already.
    fn mark_link(&self, to: Pid) -> bool {
        let mut bonds = self.bonds.lock();
        let link = bonds.ties_if_any().and_then(|ties| ties.links.get_mut(&to));
        link.is_some_and(|link| !std::mem::replace(&mut link.over, true))
    }

    /// The news that the other end of a link is over has come; false: the link was undone meanwhile.
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

    /// Tells the process of the end of another, if it still wants to know.
    pub(crate) fn tell_exit(&self, exited: Exited) {
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

    /// Tells `watcher` when this one ends. False: it has.
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

    /// Stops watching; whom.
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

/// Tells everybody who is tied to a process that it is over; true if nobody had done so.
pub(crate) fn announce(shell: &Shell, reason: ExitReason, value: Payload) -> bool {
    let over = match (&reason, &value) {
        (ExitReason::Normal, Payload::Nil) => None,
        _ => Some(Box::new(Exit {
            pid: shell.pid,
            reason: reason.clone(),
            value,
        })),
    };
    let mut bonds = shell.bonds.lock();
    if let Bonds::Over(_) = &*bonds {
        return false;
    }
    let ties = std::mem::replace(&mut *bonds, Bonds::Over(over));
    drop(bonds);
    shell.flags.fetch_or(COMPLETE | CANCELLED, Ordering::AcqRel);
    let ties = match ties {
        Bonds::Tied(ties) => *ties,
        Bonds::OneWaits(waiter) => {
            contain(|| waiter.waker.wake());
            return true;
        }
        Bonds::Bare | Bonds::Over(_) => return true,
    };
    let Ties {
        links,
        monitors,
        watching,
        waiters,
        foreign,
        ..
    } = ties;
    let exited = |by| Exited {
        pid: shell.pid,
        reason: reason.clone(),
        by,
    };
    for ((_, id), observer) in monitors {
        let by = Bond::Monitor(MonitorRef(id));
        shell
            .host
            .notify(observer.peer, observer.letter, exited(by));
    }
    for (_, link) in links {
        // One whose end is on the way here is gone itself, and one that has undone the link is not told.
        let wants = match &link.peer {
            Peer::Here(peer) => peer.shell().mark_link(shell.pid),
            Peer::Elsewhere(_) => true,
        };
        if link.over || !wants {
            continue;
        }
        shell
            .host
            .notify(link.peer, link.letter, exited(Bond::Link));
    }
    for (id, target) in watching {
        shell.host.end_monitor(target, shell.pid, MonitorRef(id));
    }
    let waiters = waiters.into_iter().map(|waiter| waiter.waker);
    for waker in waiters.chain(foreign) {
        contain(|| waker.wake());
    }
    true
}

impl Shared {
    /// Sends the news of an end; the letter was written long ago.
    fn notify(&self, peer: Peer, mut letter: Letter<Signal>, exited: Exited) {
        match peer {
            Peer::Here(peer) => {
                *letter.value_mut() = Signal::Exit(exited);
                peer.shell().signal_by(letter);
            }
            Peer::Elsewhere(pid) => self.send_signal(pid, RemoteSignal::Exited(exited)),
        }
    }
}
