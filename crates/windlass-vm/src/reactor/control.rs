//! The control loop.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use windlass_actor::{ExitReason, Payload};
use windlass_core::queue::Inbox;
use windlass_core::sync::atomic::{Ordering, fence};
use windlass_core::sync::clock;
use windlass_runtime::time::{Instant, Sleep, sleep_until};

use super::event::{Event, StepOutcome, StepResult};
use super::job::{Job, Todo};
use super::{Reactor, end};
use crate::effects::Op;
use crate::guest::{Ending, Resume};
use crate::object::Waiter;
use crate::reason::Reason;
use crate::record::{Line, RecordedPayload, Script, Source};
use crate::shell::{begin, close};
use crate::slot::Slot;
use crate::task::GuestShared;
use crate::vm::{GuestScheduler, Shared};
use windlass_sync::park::Generation;

/// The control loop, as a future that ends when the VM is gone and its guests are.
pub(super) struct Control {
    vm: Arc<Shared>,
    inbox: Inbox<Event>,
    news: News,
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

/// What has come and not been looked at, by the step that looks at it.
#[derive(Default)]
struct News {
    results: VecDeque<WorkerEvent>,
    completions: VecDeque<(Waiter, Ending)>,
    timers: VecDeque<(u64, u64)>,
    outside: VecDeque<Outside>,
}

/// What came from the workers.
enum WorkerEvent {
    Op { guest: Arc<GuestShared>, op: Op },
    Result(StepResult),
}

/// What came from elsewhere.
enum Outside {
    Inject(Arc<GuestShared>),
    Input(Arc<GuestShared>, Generation, Ending),
    Cancel(Arc<GuestShared>, Arc<str>),
    Kill(Arc<GuestShared>),
    Pause(bool),
}

/// What has come and is not due yet, in a replay.
#[derive(Default)]
struct Replay {
    /// What guests do, by guest.
    guests: HashMap<u64, VecDeque<WorkerEvent>>,
    /// Guests that were started.
    injected: VecDeque<Arc<GuestShared>>,
}

impl Control {
    pub(super) fn new(vm: Arc<Shared>, workers: usize) -> Control {
        Control {
            vm,
            inbox: Inbox::new(),
            news: News::default(),
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
        while let Some(event) = self.news.results.pop_front() {
            self.handle(event, &mut channels, &mut suspended);
        }
        // 2. Blocking work goes to its threads.
        self.submit();
        // 3. And comes back.
        while let Some((waiter, ending)) = self.news.completions.pop_front() {
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
        while let Some(outside) = self.news.outside.pop_front() {
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

    fn handle(
        &mut self,
        event: WorkerEvent,
        channels: &mut VecDeque<(Arc<GuestShared>, Op)>,
        suspended: &mut Vec<Arc<GuestShared>>,
    ) {
        match event {
            WorkerEvent::Op { guest, op } => {
                self.log(|| Line::Op {
                    task: number(&guest),
                    name: op.description(),
                });
                self.apply(guest, op, channels);
            }
            WorkerEvent::Result(result) => self.result(result, channels, suspended),
        }
    }

    fn apply(
        &mut self,
        guest: Arc<GuestShared>,
        op: Op,
        channels: &mut VecDeque<(Arc<GuestShared>, Op)>,
    ) {
        match op {
            Op::Spawned(child) => self.admit(&child),
            // After the channels' own: what it takes back may be one of them.
            Op::Withdraw { .. } | Op::Close(_) => channels.push_back((guest, op)),
            Op::Begin {
                reason: Reason::ChannelSend(..) | Reason::ChannelReceive(_),
                ..
            } => channels.push_back((guest, op)),
            op => self.vm.perform(&guest, op),
        }
    }

    fn result(
        &mut self,
        result: StepResult,
        channels: &mut VecDeque<(Arc<GuestShared>, Op)>,
        suspended: &mut Vec<Arc<GuestShared>>,
    ) {
        let StepResult {
            guest,
            slot,
            outcome,
            spent,
            script,
        } = result;
        self.used[slot] = None;
        if let StepOutcome::Rejected(resume) = outcome {
            // The slot is free again, and the guest still wants to go on.
            self.unused.insert(number(&guest), resume);
            self.reactor().ready.lock().push_front(guest);
            return;
        }
        self.log(|| Line::Result {
            task: number(&guest),
            step: match &script {
                Script::Reading { short: true, .. } => "asked for more than then".to_owned(),
                _ => outcome.description(),
            },
            spent,
            answers: match script {
                Script::Writing(answers) => answers,
                Script::Reading { given, .. } => given,
                Script::Live => Vec::new(),
            }
            .into_iter()
            .map(RecordedPayload)
            .collect(),
        });
        if guest.is_over() {
            // It was ended meanwhile.
            return end(&guest);
        }
        match outcome {
            StepOutcome::Yield => self.reactor().make_ready(&guest),
            StepOutcome::Suspend(reason) => {
                self.apply(guest.clone(), begin(reason), channels);
                suspended.push(guest);
            }
            StepOutcome::Over(result) => self.finish(&guest, result),
            StepOutcome::Rejected(_) => {}
        }
    }

    fn finish(&mut self, guest: &Arc<GuestShared>, result: Result<Payload, ExitReason>) {
        self.guests.remove(&number(guest));
        guest.finish(result);
        guest.request_step();
    }

    /// A guest that is new.
    fn admit(&mut self, guest: &Arc<GuestShared>) {
        self.last += 1;
        guest.number.store(self.last, Ordering::Relaxed);
        // Its process may have ended already.
        if !guest.is_over() {
            self.guests.insert(self.last, guest.clone());
            self.reactor().make_ready(guest);
        }
    }

    // ---- steps 2 to 4 ----

    fn submit(&mut self) {
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

    fn fire_timers(&mut self) {
        if self.reactor().is_replaying() {
            while let Some(key) = self.news.timers.pop_front() {
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

    // ---- step 6 ----

    fn take_in(&mut self, outside: Outside) {
        match outside {
            Outside::Inject(guest) => {
                self.admit(&guest);
                self.log(|| Line::Inject {
                    task: number(&guest),
                    pid: guest.pid(),
                });
            }
            Outside::Input(guest, generation, ending) => {
                self.log(|| Line::Input {
                    task: number(&guest),
                    wait: generation.0,
                    ending: ending.clone(),
                });
                guest.input(generation, ending);
            }
            Outside::Cancel(guest, reason) => {
                self.log(|| Line::Cancel {
                    task: number(&guest),
                    reason: reason.as_ref().to_owned(),
                });
                guest.cancel(reason);
            }
            Outside::Kill(guest) => {
                self.log(|| Line::Kill {
                    task: number(&guest),
                });
                self.guests.remove(&number(&guest));
                end(&guest);
                self.ask(&guest);
            }
            Outside::Pause(on) => {
                self.log(|| Line::Pause { on });
                self.paused = on;
            }
        }
    }

    // ---- steps 7 and 8 ----

    /// The slots that have a guest, and whom.
    fn running(&self) -> impl Iterator<Item = (&Arc<Slot>, &Arc<GuestShared>)> {
        let slots = self.slots.iter().zip(&self.used);
        slots.filter_map(|(slot, used)| used.as_ref().map(|guest| (slot, guest)))
    }

    /// Asks this guest to come to the end of its step, if it is inside one.
    fn ask(&self, guest: &Arc<GuestShared>) {
        for (slot, _) in self
            .running()
            .filter(|(_, running)| Arc::ptr_eq(running, guest))
        {
            slot.ask();
        }
    }

    /// Whether this guest has to end its step though nobody waits for its slot.
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
    fn preempt(&self) {
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
    fn give_up_stuck(&mut self) {
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

    /// When the next slice is over, if somebody waits for it.
    fn next_look(&self) -> Option<u64> {
        if self.vm.counting || self.paused {
            return None;
        }
        let now = clock::now();
        let crowded = self.is_crowded();
        let watched = self.running().zip(self.kept());
        // A guest that was given up is not asked again: its result says when it has come back.
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
    fn poll_stuck_timer(&mut self, cx: &mut Context<'_>) -> bool {
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

    fn dispatch(&mut self) {
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
            let script = self.reactor().log.script(task);
            self.used[place] = Some(guest.clone());
            drop(self.reactor().pool().spawn(Job {
                shared: guest,
                slot: self.slots[place].clone(),
                place,
                todo: Some(Todo {
                    guest: stored,
                    resume,
                    script,
                }),
            }));
        }
    }

    // ---- what has come ----

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
            self.news.outside.push_back(Outside::Pause(paused));
            any = true;
        }
        any
    }

    fn sort(&mut self, event: Event) {
        let news = &mut self.news;
        match event {
            Event::Op { guest, op } => news.results.push_back(WorkerEvent::Op { guest, op }),
            Event::Result(result) => news.results.push_back(WorkerEvent::Result(result)),
            Event::Io { waiter, ending } => news.completions.push_back((waiter, ending)),
            Event::Input {
                guest,
                generation,
                ending,
            } => {
                let input = Outside::Input(guest, generation, ending);
                news.outside.push_back(input);
            }
            Event::Cancel { guest, reason } => {
                news.outside.push_back(Outside::Cancel(guest, reason));
            }
            Event::Kill { guest } => news.outside.push_back(Outside::Kill(guest)),
            Event::Inject { guest } => news.outside.push_back(Outside::Inject(guest)),
            Event::WakeLoop => {}
            Event::Stop => self.stopping = true,
            Event::EndRecording => self.reactor().log.end_recording(),
        }
    }

    /// In a replay only guests, and those who start them, are listened to.
    fn sort_for_replay(&mut self, event: Event) {
        match event {
            Event::Op { guest, op } => {
                let queue = self.replay.guests.entry(number(&guest)).or_default();
                queue.push_back(WorkerEvent::Op { guest, op });
            }
            Event::Result(result) => {
                let queue = self.replay.guests.entry(number(&result.guest)).or_default();
                queue.push_back(WorkerEvent::Result(result));
            }
            Event::Inject { guest } => self.replay.injected.push_back(guest),
            Event::Stop => self.stopping = true,
            _ => {}
        }
    }

    /// Puts together what the next turn of the recording consists of, and gives the line that comes after it; None
    /// if something of it has not come yet.
    fn gather(&mut self) -> Option<usize> {
        let vm = self.vm.clone();
        let GuestScheduler::Reactor(reactor) = &vm.scheduler else {
            return None;
        };
        let Some(lines) = reactor.log.next_turn() else {
            if !reactor.log.is_over() {
                reactor.log.end_of_replay();
            }
            self.end_all();
            return None;
        };
        let begins = reactor
            .replay_position()
            .map_or(0, |position| position.line);
        let ends = begins + lines.len() + 1;
        if let Some(line) = lines.iter().find(|line| !self.has_come(line, &lines)) {
            // Nobody runs: it will not come.
            let runs = self
                .used
                .iter()
                .flatten()
                .any(|guest| !self.has_ended_its_step(guest));
            if !runs && !matches!(line.source(), Source::Outside) {
                reactor.log.diverged(line, "nothing".to_owned());
                self.end_all();
            }
            return None;
        }
        for line in lines {
            self.gather_line(line);
        }
        Some(ends)
    }

    /// Whether how its step ended has come already, and is not due.
    fn has_ended_its_step(&self, guest: &GuestShared) -> bool {
        let done = self.replay.guests.get(&number(guest));
        done.is_some_and(|done| {
            done.iter()
                .any(|event| matches!(event, WorkerEvent::Result(_)))
        })
    }

    /// Whether everything of this line's source that the turn has is there.
    fn has_come(&self, line: &Line, turn: &[Line]) -> bool {
        let source = line.source();
        let wanted = turn.iter().filter(|line| line.source() == source).count();
        match source {
            Source::Guest(task) => {
                let queue = self.replay.guests.get(&task);
                queue.map_or(0, VecDeque::len) >= wanted
            }
            Source::Outside => self.replay.injected.len() >= wanted,
            Source::File | Source::Decision => true,
        }
    }

    fn gather_line(&mut self, line: Line) {
        let guest = |task: u64| self.guests.get(&task).cloned();
        let news = &mut self.news;
        match line {
            Line::Op { task, .. } | Line::Result { task, .. } => {
                let queue = self.replay.guests.get_mut(&task);
                news.results.extend(queue.and_then(VecDeque::pop_front));
            }
            Line::Inject { pid, .. } => {
                let guest = self.replay.injected.pop_front();
                news.outside.extend(guest.map(|guest| {
                    let _ = guest.recorded_pid.set(pid);
                    Outside::Inject(guest)
                }));
            }
            Line::Io { task, wait, ending } => {
                news.completions.extend(guest(task).map(|guest| {
                    let generation = Generation(wait);
                    (Waiter { guest, generation }, ending)
                }));
            }
            Line::Timer { task, wait } => news.timers.push_back((task, wait)),
            Line::Input { task, wait, ending } => {
                let input = |guest| Outside::Input(guest, Generation(wait), ending);
                news.outside.extend(guest(task).map(input));
            }
            Line::Cancel { task, reason } => {
                let cancel = |guest| Outside::Cancel(guest, reason.into());
                news.outside.extend(guest(task).map(cancel));
            }
            Line::Kill { task } => news.outside.extend(guest(task).map(Outside::Kill)),
            Line::Pause { on } => news.outside.push_back(Outside::Pause(on)),
            Line::Dispatch { .. } | Line::Turn {} => {}
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
        // Whoever posts from now on is told.
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
