//! The control loop.

mod event_queues;
mod inputs;
mod replay;
mod results;
mod slots;

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use windlass_core::queue::Inbox;
use windlass_core::sync::atomic::{Ordering, fence};
use windlass_core::sync::clock;
use windlass_runtime::time::{Instant, Sleep, sleep_until};

use self::event_queues::{EventQueues, OutsideEvent, WorkerEvent};
use self::replay::Replay;
use crate::guest::Resume;
use crate::guest_shared::GuestShared;
use crate::reactor::event::Event;
use crate::reactor::{Reactor, end};
use crate::record::Line;
use crate::slot::Slot;
use crate::vm::{GuestScheduler, VmShared};

/// The control loop, as a future that ends when the VM is gone and its guests are.
pub(super) struct Control {
    vm: Arc<VmShared>,
    inbox: Inbox<Event>,
    queues: EventQueues,
    /// Guests that have not ended, by number.
    guests: HashMap<u64, Arc<GuestShared>>,
    last: u64,
    slots: Vec<Arc<Slot>>,
    /// Which guest each slot has.
    used: Vec<Option<Arc<GuestShared>>>,
    /// Slots whose guest did not come back: another has taken the place of each, for good.
    lost: Vec<bool>,
    /// What guests go on with that were not stepped after all.
    unused: HashMap<u64, Resume>,
    /// Nothing is to run, as a recording says.
    paused: bool,
    timer: Option<Pin<Box<Sleep>>>,
    /// Fires when the first of the guests that run may have to be asked or given up, or earlier. It
    /// is left alone when that guest comes back: guests that begin later are due later, and a timer
    /// for each step would cost more than one that fires for nothing.
    stuck_timer: Option<Pin<Box<Sleep>>>,
    /// That timer has fired.
    looks_for_stuck: bool,
    stopping: bool,
    replay: Replay,
}

impl Control {
    pub(super) fn new(vm: Arc<VmShared>, workers: usize) -> Control {
        Control {
            vm,
            inbox: Inbox::new(),
            queues: EventQueues::default(),
            guests: HashMap::new(),
            last: 0,
            slots: (0..workers).map(|_| Arc::default()).collect(),
            used: vec![None; workers],
            lost: vec![false; workers],
            unused: HashMap::new(),
            paused: false,
            timer: None,
            stuck_timer: None,
            looks_for_stuck: false,
            stopping: false,
            replay: Replay::default(),
        }
    }

    fn reactor(&self) -> &Reactor {
        match &self.vm.scheduler {
            GuestScheduler::Reactor(reactor) => reactor,
            GuestScheduler::Pool(_) => unreachable!("this is the reactor's"),
        }
    }

    /// One turn: the nine steps, without the last. Gives when it wants the next at the latest.
    fn turn(&mut self) -> Option<u64> {
        let mut channels = VecDeque::new();
        let mut suspended = Vec::new();
        // 1. What the workers say.
        while let Some(event) = self.queues.results.pop_front() {
            self.handle(event, &mut channels, &mut suspended);
        }
        // 2. Blocking work goes to its threads.
        self.submit();
        // 3. And comes back.
        while let Some((waiter, ending)) = self.queues.completions.pop_front() {
            self.log(|| Line::Io {
                task: number(&waiter.guest),
                wait: waiter.generation.0,
                ending: ending.clone(),
            });
            let _ = waiter.end(ending);
        }
        // 4. Timers.
        self.fire_timers();
        // 5. Channels: each hands over directly, in the order of what was done.
        while let Some((guest, op)) = channels.pop_front() {
            self.vm.perform(&guest, op);
        }
        for guest in suspended {
            if !guest.is_over() && !guest.park() {
                self.reactor().make_ready(&guest);
            }
        }
        // 6. What comes from outside.
        while let Some(outside) = self.queues.outside.pop_front() {
            self.take_in(outside);
        }
        // 7. Those whose slice is over, if another waits for their slot or they may be stuck.
        self.preempt();
        self.give_up_stuck();
        // 8. Who runs next.
        self.dispatch();
        self.reactor().log.turn();
        self.next_look()
    }

    fn log(&self, line: impl FnOnce() -> Line) {
        self.reactor().log.line(line);
    }

    // ---- step 1 ----

    // ---- steps 2 to 4 ----

    // ---- step 6 ----

    // ---- steps 7 and 8 ----

    // ---- fetching events ----

    fn fetch(&mut self) -> bool {
        let vm = self.vm.clone();
        let GuestScheduler::Reactor(reactor) = &vm.scheduler else {
            return false;
        };
        let mut any = false;
        loop {
            let next = self.inbox.pop().or_else(|| {
                self.inbox.fetch(&reactor.inbox);
                self.inbox.pop()
            });
            let Some(event) = next else {
                break;
            };
            any = true;
            match self.reactor().is_replaying() {
                true => self.sort_for_replay(event),
                false => self.sort(event),
            }
        }
        let paused = self.vm.is_paused();
        if !self.reactor().is_replaying() && paused != self.paused {
            self.queues.outside.push_back(OutsideEvent::Pause(paused));
            any = true;
        }
        any
    }

    fn sort(&mut self, event: Event) {
        let queues = &mut self.queues;
        match event {
            Event::Op { guest, op } => queues.results.push_back(WorkerEvent::Op { guest, op }),
            Event::Result(result) => queues.results.push_back(WorkerEvent::Result(result)),
            Event::Io { waiter, ending } => queues.completions.push_back((waiter, ending)),
            Event::Input {
                guest,
                generation,
                ending,
            } => {
                let input = OutsideEvent::Input(guest, generation, ending);
                queues.outside.push_back(input);
            }
            Event::Cancel { guest, reason } => {
                queues
                    .outside
                    .push_back(OutsideEvent::Cancel(guest, reason));
            }
            Event::Kill { guest } => queues.outside.push_back(OutsideEvent::Kill(guest)),
            Event::Inject { guest } => queues.outside.push_back(OutsideEvent::Inject(guest)),
            Event::WakeLoop => {}
            Event::Stop => self.stopping = true,
            Event::EndRecording => self.reactor().log.end_recording(),
        }
    }

    /// Everything ends: the replay is over, or the runtime.
    fn end_all(&mut self) {
        // In the same order each time.
        let mut guests: Vec<_> = self.guests.drain().collect();
        guests.sort_unstable_by_key(|(number, _)| *number);
        for (_, guest) in guests {
            end(&guest);
        }
        for guest in self.replay.injected.drain(..) {
            end(&guest);
        }
    }

    fn is_done(&self) -> bool {
        self.stopping && self.guests.is_empty() && self.used.iter().all(Option::is_none)
    }

    /// Turns until there is nothing to do; gives when there will be.
    fn go_on(&mut self) -> Option<u64> {
        let mut next = None;
        if self.reactor().is_replaying() {
            loop {
                self.fetch();
                let ends = self.gather()?;
                self.turn();
                self.reactor().log.must_be_at(ends);
            }
        }
        loop {
            let any = self.fetch();
            let now = clock::now();
            let due = self.reactor().deadlines.lock().first();
            let looks = next.is_some_and(|next| next <= now)
                || self.timer.is_some()
                || std::mem::take(&mut self.looks_for_stuck);
            if !any && !looks && due.is_none_or(|due| due > now) {
                break;
            }
            self.timer = None;
            next = self.turn();
        }
        let due = self.reactor().deadlines.lock().first();
        match (due, next) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// When the clock of the core says `at`.
fn instant_of(at: u64) -> Instant {
    Instant::now() + Duration::from_nanos(at.saturating_sub(clock::now()))
}

/// The number of a guest in a recording.
fn number(guest: &GuestShared) -> u64 {
    guest.number.load(Ordering::Relaxed)
}

impl Future for Control {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if this.reactor().waker.get().is_none() {
            let _ = this.reactor().waker.set(cx.waker().clone());
            // Pairs with the fence in `Reactor::wake`.
            fence(Ordering::SeqCst);
        }
        loop {
            let next = this.go_on();
            if this.is_done() {
                return Poll::Ready(());
            }
            // 9. Sleeps until something is posted, or due.
            if this.poll_stuck_timer(cx) {
                this.looks_for_stuck = true;
                continue;
            }
            let Some(next) = next else {
                this.timer = None;
                return Poll::Pending;
            };
            let timer = this.timer.insert(Box::pin(sleep_until(instant_of(next))));
            if timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // From now on a post fails.
        let vm = self.vm.clone();
        let GuestScheduler::Reactor(reactor) = &vm.scheduler else {
            return;
        };
        let mut rest = reactor.inbox.close();
        while let Some(event) = self.inbox.pop().or_else(|| rest.pop()) {
            super::refuse(event);
        }
        self.end_all();
        reactor.log.stop();
    }
}
