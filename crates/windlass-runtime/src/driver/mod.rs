//! Where one parked worker sleeps: I/O readiness through mio, and the timers' next deadline.
//!
//! One thread at a time holds the engine's `DriverGuard`; everything behind `poller` is its own.
//! Other threads register sources, ring, and read nothing. A source that is given up stays in the
//! graveyard until no thread has an event of it in hand: the next look buries it, or the thread
//! that gave up many, under the poller's lock and only while no event is kept for delivery.
//!
//! The token of an event is the address of its source. That of a *lent* descriptor, which its
//! owner may close at any time, is only looked up: where a duplicate keeps the descriptor's file
//! open, the kernel goes on telling of it, and no call can end that.

mod alarm_clock;
mod reality;
mod registered;
mod source;

use std::collections::BTreeMap;
use std::io;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::time::Duration;

use mio::event::Source as MioSource;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use windlass_core::sched::driver::Driver;
use windlass_core::sync::atomic::{AtomicUsize, Ordering};
use windlass_core::sync::{Arc, Mutex, clock};
use windlass_core::tuning::MAX_IO_COMPLETIONS;

use self::alarm_clock::AlarmClock;
pub use self::reality::Reality;
pub use self::registered::{Registered, unsupported};
pub use self::source::{Direction, Ready, Source};
use windlass_sync::time::{TICK_NS, Timers};

const BELL: Token = Token(0);
const ALARM: Token = Token(1);
/// In the token of a lent descriptor, beside the address, which is even.
const LENT: usize = 1;

/// So many sources that were given up are buried at once, for workers that are too busy to look.
const FULL_GRAVEYARD: usize = 64;

/// A busy worker asks the kernel for events at most this often: a look costs a system call, and the
/// workers' interval can be as short as a few microseconds.
const LOOK_EVERY_NS: u64 = 50_000;

/// When timers come thick and fast, those that are due close together share a wake-up: each costs
/// some 17 us of CPU on a virtual machine. The pause between two doubles from half a tick to eight
/// ticks as long as there is always a timer due at its end; a timer that is alone is exact.
const PAUSE_LEAST_NS: u64 = TICK_NS / 2;
const PAUSE_MOST_NS: u64 = 8 * TICK_NS;

/// The driver of a runtime: the kernel's events and the timers.
pub struct IoDriver {
    poller: Mutex<Poller>,
    registry: Registry,
    bell: Arc<Bell>,
    timers: Timers,
    /// How many sources there are, for a look without the lock.
    sources: AtomicUsize,
    registered: Mutex<AllSources>,
    graveyard: Mutex<Vec<Arc<Source>>>,
}

// What a panic leaves half done is behind locks and in atomics; the timers' way to ring, a closure,
// only wakes.
impl UnwindSafe for IoDriver {}
impl RefUnwindSafe for IoDriver {}

/// All sources, by address; touched when one comes or goes, and at the end.
#[derive(Default)]
struct AllSources {
    all: BTreeMap<usize, Arc<Source>>,
    closed: bool,
}

/// What the worker that sleeps in the driver polls with.
struct Poller {
    poll: Poll,
    events: Events,
    clock: AlarmClock,
    looked: u64,
    /// When timers last fired after a sleep, and how long no others do after that.
    fired: u64,
    pause: u64,
}

/// Ends a sleep.
struct Bell(Waker);

impl Bell {
    fn ring(&self) {
        // The counter of an eventfd is full after 2^64 rings that no thread heard.
        let _ = self.0.wake();
    }
}

impl IoDriver {
    pub(crate) fn new(workers: usize) -> io::Result<Arc<IoDriver>> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let bell = Arc::new(Bell(Waker::new(&registry, BELL)?));
        let clock = AlarmClock::new(&registry, ALARM)?;
        let rung = bell.clone();
        Ok(Arc::new(IoDriver {
            poller: Mutex::new(Poller {
                poll,
                events: Events::with_capacity(MAX_IO_COMPLETIONS),
                clock,
                looked: 0,
                fired: 0,
                pause: PAUSE_LEAST_NS,
            }),
            registry,
            bell,
            timers: Timers::new(workers, move || rung.ring()),
            sources: AtomicUsize::new(0),
            registered: Mutex::default(),
            graveyard: Mutex::default(),
        }))
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.timers
    }

    /// Sources that are registered.
    pub(crate) fn sources(&self) -> usize {
        self.sources.load(Ordering::Relaxed)
    }

    /// The pool has ended: nothing is waited for any more, and every waiter is notified.
    pub(crate) fn close(&self) {
        let all = {
            let mut registered = self.registered.lock();
            registered.closed = true;
            std::mem::take(&mut registered.all)
        };
        all.into_values().for_each(|source| source.shut());
        self.timers.close();
    }

    fn deliver_events(&self, poller: &Poller) {
        for event in poller.events.iter() {
            if event.token() == BELL || event.token() == ALARM {
                continue;
            }
            let token = event.token().0;
            if token & LENT != 0 {
                let source = self.registered.lock().all.get(&(token & !LENT)).cloned();
                // None: it was given up. Another one may be at its place: a false alarm.
                if let Some(source) = source {
                    source.happened(event);
                }
                continue;
            }
            // SAFETY: the token was made from a source that its registration or the graveyard
            // keeps alive: that is emptied only while there is no event, and later ones are not of
            // what it held, whose descriptors are deregistered.
            let source = unsafe { &*std::ptr::with_exposed_provenance::<Source>(token) };
            source.happened(event);
        }
    }

    /// Lets go of what was given up before the last look.
    fn bury(&self) {
        let buried = std::mem::take(&mut *self.graveyard.lock());
        drop(buried);
    }

    /// Gives up a source, which is deregistered.
    fn give_up(&self, source: Arc<Source>) {
        let mut graveyard = self.graveyard.lock();
        graveyard.push(source);
        let is_full = graveyard.len() >= FULL_GRAVEYARD;
        drop(graveyard);
        if !is_full {
            return;
        }
        // A thread that has the poller buries them itself, or is asleep until there is an event.
        if let Some(poller) = self.poller.try_lock()
            && poller.events.is_empty()
        {
            let buried = std::mem::take(&mut *self.graveyard.lock());
            drop(poller);
            drop(buried);
        }
    }
}

impl Poller {
    /// The moment to wake up for a deadline: that, or the end of the pause.
    fn not_too_soon(&mut self, deadline: u64) -> u64 {
        let earliest = self.fired.saturating_add(self.pause);
        self.pause = if deadline < earliest {
            (self.pause * 2).min(PAUSE_MOST_NS)
        } else {
            PAUSE_LEAST_NS
        };
        deadline.max(earliest)
    }

    /// Asks the kernel. `timeout` of none: until something happens.
    fn look(&mut self, timeout: Option<Duration>) {
        // An interrupted or failed look is an empty one; the caller comes back.
        if self.poll.poll(&mut self.events, timeout).is_err() {
            self.events.clear();
        }
    }
}

impl Driver for IoDriver {
    fn sleep(&self) {
        self.bury();
        let mut poller = self.poller.lock();
        let until = self.timers.begin_sleep();
        let now = clock::now();
        let timeout = match until.map(|until| poller.not_too_soon(until)) {
            Some(until) if until <= now => Some(Duration::ZERO),
            until => poller.clock.set(until, now),
        };
        poller.look(timeout);
        self.timers.end_sleep();
    }

    fn deliver(&self) {
        let mut poller = self.poller.lock();
        self.deliver_events(&poller);
        poller.events.clear();
        let now = clock::now();
        poller.looked = now;
        if self.timers.next().is_some_and(|next| next <= now) {
            poller.fired = now;
        }
        drop(poller);
        self.timers.expire(now);
    }

    fn poll(&self, now: u64) {
        self.timers.expire(now);
        if self.sources() == 0 {
            return;
        }
        let mut poller = self.poller.lock();
        if now.saturating_sub(poller.looked) < LOOK_EVERY_NS {
            return;
        }
        poller.looked = now;
        self.bury();
        poller.look(Some(Duration::ZERO));
        self.deliver_events(&poller);
        poller.events.clear();
    }

    fn has_sources(&self) -> bool {
        self.sources() > 0
    }

    fn ring(&self) {
        self.bell.ring();
    }
}

impl std::fmt::Debug for IoDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IoDriver")
            .field("sources", &self.sources())
            .finish_non_exhaustive()
    }
}

/// What an operation on a resource says whose runtime has ended.
pub fn shut_down() -> io::Error {
    io::Error::other("the runtime of this resource has been shut down: open it on a running one")
}

/// A registered resource: tells when it is ready, and is deregistered on drop.
#[derive(Debug)]
pub(crate) struct Registration {
    driver: Arc<IoDriver>,
    source: Arc<Source>,
}

impl Registration {
    /// Registers `resource` for reading and writing. `is_lent`: another owner may close its
    /// descriptor before it is deregistered.
    pub(crate) fn new(
        driver: &Arc<IoDriver>,
        resource: &mut impl MioSource,
        is_lent: bool,
    ) -> io::Result<Registration> {
        let source = Arc::new(Source::default());
        let address = Arc::as_ptr(&source).expose_provenance();
        let token = Token(if is_lent { address | LENT } else { address });
        {
            let mut registered = driver.registered.lock();
            if registered.closed {
                return Err(shut_down());
            }
            registered.all.insert(address, source.clone());
        }
        driver.sources.fetch_add(1, Ordering::Relaxed);
        // From here on the drop takes it back.
        let registration = Registration {
            driver: driver.clone(),
            source,
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        driver.registry.register(resource, token, interest)?;
        Ok(registration)
    }

    /// Where it is registered.
    pub(crate) fn driver(&self) -> &Arc<IoDriver> {
        &self.driver
    }

    /// The state of the resource.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Takes the resource out of the driver. Must come before it is closed.
    pub(crate) fn deregister(&self, resource: &mut impl MioSource) {
        // A descriptor that the kernel no longer knows needs no deregistration.
        let _ = self.driver.registry.deregister(resource);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.driver.sources.fetch_sub(1, Ordering::Relaxed);
        let address = Arc::as_ptr(&self.source).addr();
        drop(self.driver.registered.lock().all.remove(&address));
        self.driver.give_up(self.source.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_while_no_thread_looks_is_freed() -> io::Result<()> {
        let driver = IoDriver::new(1)?;
        for _ in 0..10 * FULL_GRAVEYARD {
            let (sender, _receiver) = mio::unix::pipe::new()?;
            drop(Registered::new(&driver, sender)?);
            assert!(driver.graveyard.lock().len() < FULL_GRAVEYARD);
        }
        // Events that are kept for delivery: their sources stay.
        let (sender, _receiver) = mio::unix::pipe::new()?;
        let kept = Registered::new(&driver, sender)?;
        driver.sleep();
        drop(kept);
        for _ in 0..2 * FULL_GRAVEYARD {
            let (sender, _receiver) = mio::unix::pipe::new()?;
            drop(Registered::new(&driver, sender)?);
        }
        assert!(driver.graveyard.lock().len() > FULL_GRAVEYARD);
        driver.deliver();
        let (sender, _receiver) = mio::unix::pipe::new()?;
        drop(Registered::new(&driver, sender)?);
        assert!(driver.graveyard.lock().is_empty());
        Ok(())
    }
}
