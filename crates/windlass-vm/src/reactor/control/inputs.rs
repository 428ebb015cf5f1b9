//! Steps 2 to 6: blocking work, timers, and what comes from outside.

use windlass_core::sync::clock;

use super::event_queues::OutsideEvent;
use super::{Control, number};
use crate::guest::Ending;
use crate::object::Waiter;
use crate::reactor::end;
use crate::reactor::event::Event;
use crate::record::Line;
use crate::vm::GuestScheduler;

impl Control {
    pub(super) fn submit(&mut self) {
        loop {
            let next = self.reactor().submissions.lock().pop_front();
            let Some((waiter, work)) = next else {
                return;
            };
            if self.reactor().is_replaying() {
                // The recording knows what came of it.
                continue;
            }
            self.vm.run_blocking(waiter, work, |waiter, ending| {
                let vm = waiter.guest.vm.clone();
                if let GuestScheduler::Reactor(reactor) = &vm.scheduler {
                    reactor.post(Event::Io { waiter, ending });
                }
            });
        }
    }

    pub(super) fn fire_timers(&mut self) {
        if self.reactor().is_replaying() {
            while let Some(key) = self.queues.timers.pop_front() {
                let due = self.reactor().deadlines.lock().remove(key);
                if let Some((waiter, ending)) = due {
                    self.fire(waiter, ending);
                }
            }
            return;
        }
        let now = clock::now();
        loop {
            let due = self.reactor().deadlines.lock().pop_due(now);
            match due {
                Some((waiter, ending)) => self.fire(waiter, ending),
                None => return,
            }
        }
    }

    fn fire(&self, waiter: Waiter, ending: Ending) {
        self.log(|| Line::Timer {
            task: number(&waiter.guest),
            wait: waiter.generation.0,
        });
        let _ = waiter.end(ending);
    }

    pub(super) fn take_in(&mut self, outside: OutsideEvent) {
        match outside {
            OutsideEvent::Inject(guest) => {
                self.admit(&guest);
                self.log(|| Line::Inject {
                    task: number(&guest),
                    pid: guest.pid(),
                });
            }
            OutsideEvent::Input(guest, generation, ending) => {
                self.log(|| Line::Input {
                    task: number(&guest),
                    wait: generation.0,
                    ending: ending.clone(),
                });
                guest.input(generation, ending);
            }
            OutsideEvent::Cancel(guest, reason) => {
                self.log(|| Line::Cancel {
                    task: number(&guest),
                    reason: reason.as_ref().to_owned(),
                });
                guest.cancel(reason);
            }
            OutsideEvent::Kill(guest) => {
                self.log(|| Line::Kill {
                    task: number(&guest),
                });
                self.guests.remove(&number(&guest));
                end(&guest);
                self.ask(&guest);
            }
            OutsideEvent::Pause(on) => {
                self.log(|| Line::Pause { on });
                self.paused = on;
            }
        }
    }
}
