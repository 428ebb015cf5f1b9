//! How a worker looks for work that is not its own, and for how long.

use std::cell::Cell;

use super::Worker;
use crate::observe::EventKind;
use crate::sched::remote::Remote;
use crate::sync::atomic::Ordering;
use crate::sync::{clock, hint, thread};
use crate::task::{Class, Entry};
use crate::tuning::{SPIN_GREEDY_SEARCHES, SPIN_PAUSES, SPIN_PROBE_ONE_IN, YIELD_NS};

/// A worker that was seen with a task in its slot, and how many polls it had begun.
#[derive(Default)]
pub(super) struct DelayedWorker(Cell<Option<(usize, u64)>>);

/// Whether it pays to go on searching: it does if that has found something lately.
#[derive(Default)]
pub(super) struct Spinning {
    /// Searches that still go on for the full time, after one that paid.
    eager: Cell<u32>,
    searches: Cell<u32>,
    /// Searches that do not give the core away, after one that had to wait to get it back.
    greedy: Cell<u32>,
}

impl Spinning {
    /// Rounds of the next search.
    fn rounds(&self, most: u32) -> u32 {
        let number = self.searches.get().wrapping_add(1);
        self.searches.set(number);
        if self.greedy.get() > 0 {
            self.greedy.set(self.greedy.get() - 1);
            return most.min(1);
        }
        if self.pays() || number.is_multiple_of(SPIN_PROBE_ONE_IN) {
            most
        } else {
            most.min(1)
        }
    }

    fn pays(&self) -> bool {
        self.eager.get() > 0
    }

    fn found(&self, round: u32) {
        // What the first look finds would have been found without spinning.
        if round > 0 {
            self.eager.set(SPIN_PROBE_ONE_IN);
        }
    }

    /// Another thread had the core meanwhile.
    fn waited_for_core(&self) {
        self.eager.set(0);
        self.greedy.set(SPIN_GREEDY_SEARCHES);
    }

    fn found_nothing(&self) {
        self.eager.set(self.eager.get().saturating_sub(1));
    }
}

impl Worker {
    /// Looks for work that is not ours, for a while. A worker that is searching when it finds
    /// something (here or before it comes here) ends the search before it runs that.
    #[cold]
    pub(super) fn search(&self) -> Option<Entry> {
        let remote = self.remote();
        if !self.searching.get() {
            if !self.pool.idle.try_search() {
                return self.take_leftovers();
            }
            self.searching.set(true);
            remote.counters.searches.one();
            self.measure_rest();
            // A thief that emptied our queue only moved the work, so the steal is no reason to
            // wake another worker soon. Relaxed: a hint.
            if remote.robbed.load(Ordering::Relaxed) {
                remote.robbed.store(false, Ordering::Relaxed);
            }
        }
        remote.pulse.set_busy(false);
        let spin = &self.pool.config.spin;
        // Slots are for the last pass. Who was called has slept through that time already.
        let called = self.called.replace(false);
        let mut rounds = self.spinning.rounds(spin.yields);
        if self.pool.events_are_unattended() {
            // The next work is there rather than in a queue.
            rounds = rounds.min(1);
        } else if !self.spinning.pays() && self.pool.driver_is_deserted() {
            // Who gives the core away on a busy machine may have to wait for it for milliseconds,
            // and timers would wait with it: go and sit there instead.
            rounds = rounds.min(spin.tight);
        }
        let mut round = 0;
        let held_up = DelayedWorker::default();
        loop {
            let last = round >= rounds || (called && round == 0);
            let found = self
                .take_left_for_us()
                .or_else(|| self.steal(last))
                .or_else(|| self.steal_held_up(&held_up))
                .or_else(|| self.take_injected())
                .or_else(|| self.take_leftovers());
            // A job of a fork-join comes after every task there is: it may be long.
            self.job.set(match found {
                Some(_) => None,
                None => self.steal_job(last),
            });
            if found.is_some() || self.job.get().is_some() {
                self.spinning.found(round);
                return found;
            }
            if round >= rounds || self.pool.stop.phase() != self.phase.get() {
                break;
            }
            if round < spin.tight {
                // Soon, if the next look decides.
                let pauses = if held_up.0.get().is_some() {
                    SPIN_PAUSES / 8
                } else {
                    SPIN_PAUSES
                };
                (0..pauses).for_each(|_| hint::spin_loop());
            } else {
                let before = clock::now();
                thread::yield_now();
                if clock::now() - before > YIELD_NS {
                    self.spinning.waited_for_core();
                    // One last look: there was time for something to come.
                    rounds = round + 1;
                }
            }
            round += 1;
        }
        self.spinning.found_nothing();
        None
    }

    /// The last searcher to find work wakes another, if there is more.
    pub(super) fn end_search(&self) {
        self.searching.set(false);
        self.remote().pulse.set_busy(true);
        if self.pool.idle.end_search()
            && self.pool.has_work(self.index)
            && self.is_worth_a_wake()
            && let Some(sleeper) = self.pool.idle.claim()
        {
            self.pool.unpark(sleeper);
        }
        // What was measured before the search says nothing about what follows.
        self.begin_batch(clock::now());
    }

    /// Whether what is queued here takes longer than it takes another worker to wake up, by the
    /// mean of the last polls. If that misjudges it, the watchdog announces after a millisecond.
    pub(super) fn is_worth_a_wake(&self) -> bool {
        let remote = self.remote();
        let local = remote.ring.len() + usize::from(!remote.slot.is_empty());
        let queued = local + self.pool.injector.len();
        // Nothing here: then it is in a class queue, or behind another worker.
        queued == 0 || queued as u64 * self.pace.poll_ns.get() >= self.policy.worth_a_wake_ns
    }

    /// Half of a victim's ring; on the last pass the slots too.
    pub(super) fn steal(&self, last: bool) -> Option<Entry> {
        let mut victims = self.victims(last);
        let slots = victims.clone();
        victims
            .find_map(|victim| self.steal_from_ring(victim))
            .or_else(|| {
                let mut victims = slots.filter(|_| last);
                victims.find_map(|victim| self.steal_from_slot(victim))
            })
    }

    /// Other workers in turn, from a random one on: some of them, on the last pass all.
    pub(in crate::sched) fn victims(
        &self,
        last: bool,
    ) -> impl Iterator<Item = usize> + Clone + use<> {
        let (own, workers) = (self.index, self.pool.crew.used_ids());
        let probes = if !self.pool.config.stealing || workers == 1 {
            0
        } else if last {
            workers
        } else {
            self.pool.config.victims.min(workers)
        };
        let start = if probes == 0 {
            0
        } else {
            self.rng.borrow_mut().below(workers)
        };
        (0..probes)
            .map(move |offset| (start + offset) % workers)
            .filter(move |victim| *victim != own)
    }

    pub(super) fn steal_from_ring(&self, victim: usize) -> Option<Entry> {
        let victim = self.pool.crew.remote(victim);
        if victim.ring.is_empty() {
            return None;
        }
        self.remote().counters.steals_tried.one();
        let (item, count) = victim.ring.steal_into(&self.remote().ring)?;
        self.stole(victim, count);
        // SAFETY: rule 1: the queue owned the entry and has handed it over.
        Some(unsafe { Entry::from_raw(item) })
    }

    pub(super) fn steal_from_slot(&self, victim: usize) -> Option<Entry> {
        let victim = self.pool.crew.remote(victim);
        if victim.slot.is_empty() {
            return None;
        }
        self.remote().counters.steals_tried.one();
        let item = victim.slot.steal()?;
        self.stole(victim, 1);
        // SAFETY: rule 1: the queue owned the entry and has handed it over.
        Some(unsafe { Entry::from_raw(item) })
    }

    /// A task in the slot of a worker that has been in the same poll since the last look: it does
    /// not come to it soon.
    pub(super) fn steal_held_up(&self, seen: &DelayedWorker) -> Option<Entry> {
        let (worker, polls) = seen.0.take().unwrap_or((self.index, 0));
        self.victims(false).find_map(|victim| {
            let remote = self.pool.crew.remote(victim);
            if remote.slot.is_empty() || !remote.pulse.is_busy() {
                return None;
            }
            let now = remote.pulse.polls();
            if victim == worker && polls == now {
                return self.steal_from_slot(victim);
            }
            seen.0.set(Some((victim, now)));
            None
        })
    }

    pub(super) fn stole(&self, victim: &Remote, count: usize) {
        let remote = self.remote();
        remote.counters.steals_made.one();
        remote.counters.tasks_stolen.add(count as u64);
        remote.recorder.record(EventKind::Steal, count as u64);
        victim.robbed.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_leftovers(&self) -> Option<Entry> {
        if !self.pool.classes.any() {
            return None;
        }
        let classes = &self.pool.classes;
        classes
            .pop(Class::High)
            .or_else(|| classes.pop(Class::Low))
            .or_else(|| classes.pop(Class::Background))
    }

    /// Runs the job that the search has found instead of a task, if it has; there is no task below
    /// it.
    pub(super) fn found_job(&self) -> bool {
        let Some(job) = self.job.take() else {
            return false;
        };
        self.end_search();
        self.run_job(job);
        true
    }
}
