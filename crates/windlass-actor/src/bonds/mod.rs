//! What ties a process to others: links, monitors, names, groups, tasks that wait for its end.
//!
//! The bonds close once, by becoming `Over`: later callers find the exit there. A link and a
//! monitor hold the letter that notifies of the end, so that a notification cannot fail. Two locks
//! are held at once by [`link_here`] only, the lower PID first.

mod announce;
mod context;
mod links;
mod names;
mod waiters;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};
use std::task::Waker;

use windlass_core::queue::Letter;
use windlass_core::task::AbortHandle;
use windlass_sync::CancellationToken;
use windlass_value::Pid;

pub(crate) use self::announce::announce;
pub(crate) use self::links::link_here;
use self::waiters::ExitWaiter;
use crate::exit::{Exit, Exited};
use crate::pub_sub::Departure;
use crate::shell::{Resident, Shell, Signal};

/// What ties a process to others. Closes once. Most processes have no ties and one task that waits
/// for their end.
pub(crate) enum Bonds {
    Bare,
    OneWaits(Box<ExitWaiter>),
    Tied(Box<Ties>),
    /// None: it was done, and ended with nothing in particular.
    Over(Option<Box<Exit>>),
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
    /// The monitors of this process. The key has the watcher, too: each host counts its monitors
    /// for itself.
    monitors: BTreeMap<(Pid, u64), Observer>,
    /// The targets of the monitors that this process has.
    pub(crate) watching: BTreeMap<u64, Pid>,
    names: Vec<Arc<str>>,
    groups: Vec<Arc<str>>,
    /// What the process has subscribed to.
    subscriptions: Vec<Weak<dyn Departure>>,
    /// Cancelled with the process, and with its code when that is upgraded.
    context: Option<CancellationToken>,
    timers: BTreeMap<u64, AbortHandle>,
    /// Ends of others that an async process has not looked at.
    pub(crate) notices: VecDeque<Exited>,
    pub(crate) cancel_reason: Option<Arc<str>>,
    pub(crate) foreign: Option<Waker>,
    waiters: Vec<ExitWaiter>,
    next_key: u64,
}

/// The other end of a link, and the letter that notifies it of this end.
pub(crate) struct Link {
    peer: Peer,
    letter: Letter<Signal>,
    /// The other end is over, and the notification is on its way. It counts only if the link still
    /// exists then.
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
}
