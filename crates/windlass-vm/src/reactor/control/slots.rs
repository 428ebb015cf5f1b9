//! Steps 7 and 8: which guest leaves its slot, and which one runs next.

use std::future::Future;
use std::sync::Arc;
use std::task::Context;

use windlass_core::sync::clock;
use windlass_runtime::time::sleep_until;

use super::{Control, instant_of, number};
use crate::guest::Resume;
use crate::guest_process::close;
use crate::guest_shared::GuestShared;
use crate::reactor::job::{Job, StepInput};
use crate::record::Line;
use crate::slot::Slot;

impl Control {
    /// The slots that have a guest, with that guest.
    fn running(&self) -> impl Iterator<Item = (&Arc<Slot>, &Arc<GuestShared>)> {
        let slots = self.slots.iter().zip(&self.used);
        slots.filter_map(|(slot, used)| used.as_ref().map(|guest| (slot, guest)))
    }

    /// Asks this guest to come to the end of its step, if it is inside one.
    pub(super) fn ask(&self, guest: &Arc<GuestShared>) {
        for (slot, _) in self
            .running()
            .filter(|(_, running)| Arc::ptr_eq(running, guest))
        {
            slot.ask();
        }
    }

    /// Returns whether this guest has to end its step even if no guest waits for its slot.
    fn is_bounded(&self, slot: &Slot, guest: &GuestShared) -> bool {
        slot.shares() || guest.limits.cpu.is_some() || guest.is_over()
    }

    /// Whether more guests are ready than there are slots for.
    fn is_crowded(&self) -> bool {
        let waiting = self.reactor().ready.lock().len();
        let slots = self.used.iter().zip(&self.lost);
        waiting
            > slots
                .filter(|(used, lost)| used.is_none() && !**lost)
                .count()
    }

    /// Asks guests to make room.
    pub(super) fn preempt(&self) {
        if self.vm.counting {
            return;
        }
        let crowded = self.is_crowded() || self.paused;
        let now = clock::now();
        for (slot, guest) in self.running() {
            let since = slot.since();
            let late = since != 0 && now >= self.vm.stuck.ask_at(since, self.slice());
            let wanted = crowded || late || self.is_bounded(slot, guest);
            if !wanted || (!self.paused && !self.is_over(slot, now)) {
                continue;
            }
            match slot.ask() {
                true => self.vm.counts.asked(),
                // It could not stop where it was.
                false => slot.ring(),
            }
        }
    }

    /// Gives up the slots of guests that do not come back, and has another slot and worker for
    /// each.
    pub(super) fn give_up_stuck(&mut self) {
        if self.vm.counting {
            return;
        }
        let (now, slice) = (clock::now(), self.slice());
        self.vm.stuck.forget_returned();
        for place in 0..self.slots.len() {
            let (slot, since) = (&self.slots[place], self.slots[place].since());
            let Some(guest) = &self.used[place] else {
                continue;
            };
            if self.vm.stuck.is_due(since, slice, now)
                && slot.is_asked()
                && self.vm.stuck.give_up(slot, since, guest)
            {
                self.lost[place] = true;
                self.slots.push(Arc::default());
                self.used.push(None);
                self.lost.push(false);
            }
        }
    }

    /// Of each slot that has a guest: whether it was not given up.
    fn kept(&self) -> impl Iterator<Item = bool> {
        let slots = self.used.iter().zip(&self.lost);
        slots.filter_map(|(used, lost)| used.as_ref().map(|_| !lost))
    }

    fn free_slot(&self) -> Option<usize> {
        let mut slots = self.used.iter().zip(&self.lost);
        slots.position(|(used, lost)| used.is_none() && !lost)
    }

    fn is_over(&self, slot: &Slot, now: u64) -> bool {
        let since = slot.since();
        since != 0 && now.saturating_sub(since) >= self.slice()
    }

    fn slice(&self) -> u64 {
        self.reactor().slice.as_nanos() as u64
    }

    /// Returns when the next slice is over, if that matters to another guest.
    pub(super) fn next_look(&self) -> Option<u64> {
        if self.vm.counting || self.paused {
            return None;
        }
        let now = clock::now();
        let crowded = self.is_crowded();
        let watched = self.running().zip(self.kept());
        // A guest that was given up is not asked again: its result says when it has returned.
        let watched = watched
            .filter(|((slot, guest), kept)| *kept && (crowded || self.is_bounded(slot, guest)));
        let over = watched.map(|((slot, _), _)| match slot.since() {
            // On its way to a worker, or back.
            0 => now + self.slice(),
            // It has been asked.
            _ if self.is_over(slot, now) => now + self.slice() / 2,
            since => since + self.slice(),
        });
        over.min()
    }

    /// When the first of the guests that run has to be asked to make room, or is stuck, though no
    /// other waits for its slot.
    fn next_stuck(&self) -> Option<u64> {
        if self.vm.counting {
            return None;
        }
        let (stuck, slice) = (&self.vm.stuck, self.slice());
        let watched = self.running().zip(self.kept()).filter(|(_, kept)| *kept);
        let due = watched.filter_map(|((slot, _), _)| match slot.since() {
            // On its way to a worker, or back.
            0 => Some(stuck.ask_at(clock::now(), slice)),
            // It is named, and there is no worker left for its place.
            since if stuck.is_given_up(slot, since) => None,
            since if slot.is_asked() => Some(stuck.due_at(since, slice)),
            since => Some(stuck.ask_at(since, slice)),
        });
        due.min()
    }

    /// Sets the timer for guests that may be stuck, if there is none. True: it has fired.
    pub(super) fn poll_stuck_timer(&mut self, cx: &mut Context<'_>) -> bool {
        if self.stuck_timer.is_none() {
            let next = self.next_stuck();
            self.stuck_timer = next.map(|next| Box::pin(sleep_until(instant_of(next))));
        }
        let Some(timer) = &mut self.stuck_timer else {
            return false;
        };
        let fired = timer.as_mut().poll(cx).is_ready();
        if fired {
            self.stuck_timer = None;
        }
        fired
    }

    pub(super) fn dispatch(&mut self) {
        if self.paused {
            return;
        }
        while let Some(place) = self.free_slot() {
            let next = self.reactor().ready.lock().pop_front();
            let Some(guest) = next else {
                return;
            };
            let stored = guest.stored.lock().take();
            let Some(stored) = stored else {
                continue;
            };
            if guest.is_over() {
                close(stored);
                continue;
            }
            let task = number(&guest);
            let before = self.unused.remove(&task).unwrap_or(Resume::Go);
            let resume = before.and(guest.arrived());
            self.log(|| Line::Dispatch { task, slot: place });
            let answers = self.reactor().log.answers(task);
            self.used[place] = Some(guest.clone());
            drop(self.reactor().pool().spawn(Job {
                shared: guest,
                slot: self.slots[place].clone(),
                place,
                input: Some(StepInput {
                    guest: stored,
                    resume,
                    answers,
                }),
            }));
        }
    }
}
