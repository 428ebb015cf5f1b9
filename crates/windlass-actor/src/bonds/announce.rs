//! The notifications of the end of a process.

use windlass_core::queue::Letter;
use windlass_core::sync::atomic::Ordering;
use windlass_core::task::contain;
use windlass_value::Payload;

use super::{Bonds, Peer, Ties};
use crate::exit::{Bond, Exit, ExitReason, Exited, MonitorRef};
use crate::host::HostShared;
use crate::relay::RemoteSignal;
use crate::shell::{CANCELLED, COMPLETE, Shell, Signal};

/// Notifies all processes and tasks that are tied to a process of its end. Returns false if that
/// was done before.
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
        // A peer that has ended itself, or that has undone the link, is not notified.
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

impl HostShared {
    /// Sends the notification of an end, in the letter that the link or monitor holds.
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
