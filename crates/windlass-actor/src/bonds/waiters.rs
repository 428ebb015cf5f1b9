//! Those who wait for the end of a process.

use std::task::Waker;

use windlass_value::Payload;

use super::Bonds;
use crate::exit::{Exit, ExitReason};
use crate::shell::Shell;

pub(crate) struct ExitWaiter {
    key: u64,
    pub(super) waker: Waker,
}

impl Shell {
    /// Waits for the end: the exit, or the key under which the waker is kept.
    pub(crate) fn wait_for_exit(&self, key: Option<u64>, waker: &Waker) -> Result<Exit, u64> {
        // A waker's clone and drop may run anything: before the lock, and after it.
        let waker = waker.clone();
        let mut bonds = self.bonds.lock();
        let (key, old) = match &mut *bonds {
            Bonds::Over(exit) => return Ok(self.exit_of(exit.as_deref())),
            Bonds::Bare => {
                let waiter = ExitWaiter { key: 1, waker };
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
                        ties.waiters.push(ExitWaiter { key, waker });
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
}
