//! The channel of an edge: what has been committed and not yet read.
//!
//! One reader is the component at the end of the edge; others (taps) have a cursor each. Messages
//! stay until all readers have passed them, or overflow takes them. Nothing here blocks: a channel
//! that is full says no.

use std::collections::VecDeque;

use crate::component::{PackedId, Received, Route, Staged};
use crate::run::sinks::counts::AsyncCounts;
use crate::run::sinks::health::{Health, HealthKind, HealthSubject};
use windlass_plan::model::{CopyPolicy, Edge, Mode, Overflow};

/// A channel while a run goes on. The default has no room and no readers: what is left behind when
/// another part of the run has the real one.
#[derive(Debug, Default)]
pub(crate) struct Channel {
    route: Route,
    mode: Mode,
    /// How many messages are kept; 1 for those that keep the newest.
    capacity: usize,
    overflow: Overflow,
    lifespan: u64,
    deadline: u64,
    copies: bool,
    events: bool,
    /// Its source waits while there is no room, so nothing has to give way.
    holds_off: bool,
    /// What is kept, the oldest first.
    kept: VecDeque<Received>,
    /// Published in this epoch, visible from the next on: `previous_tick`.
    upcoming: Option<Received>,
    /// The number of the last message.
    last_seq: u64,
    /// The number of the last message that the component has got.
    read: u64,
    taps: Vec<TapCursor>,
    counts: ChannelCounts,
    /// Of an async edge: what is on its way, and what was.
    asynchronous: AsyncCounts,
}

/// The cursor of another reader.
#[derive(Debug, Default)]
struct TapCursor {
    read: u64,
    missed: u64,
}

/// What a channel counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ChannelCounts {
    pub(crate) publish: u64,
    pub(crate) delivery: u64,
    pub(crate) drop: u64,
    pub(crate) deadline_miss: u64,
    pub(crate) stale_drop: u64,
    pub(crate) reject: u64,
    pub(crate) overwrite: u64,
    pub(crate) lost: u64,
    pub(crate) health_event: u64,
    pub(crate) payload_copy: u64,
    pub(crate) max_depth: u64,
    /// Of the last message delivered, in nanoseconds of the reader's lane.
    pub(crate) message_age: u64,
}

/// Why a channel takes no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is full.
    Full,
    /// It is full, and the run has to end.
    FailFast,
}

/// What a channel has room for before it grows: thousands of edges may each allow for thousands of
/// messages.
const FIRST_ROOM: usize = 8;
/// From this share of its capacity on, in tenths, a queue is nearly full.
const HIGH_WATERMARK_TENTHS: usize = 8;
/// Smaller queues are full all the time.
const HIGH_WATERMARK_LEAST: usize = 4;

impl Channel {
    pub(crate) fn new(place: usize, port: usize, edge: &Edge) -> Channel {
        let policy = &edge.policy;
        let capacity = if policy.mode.is_latest_style() {
            1
        } else {
            policy.capacity.max(1)
        };
        Channel {
            route: Route::new(place as u32, port as u16),
            mode: policy.mode,
            capacity,
            overflow: policy.overflow,
            lifespan: policy.lifespan.as_nanos() as u64,
            deadline: policy.deadline.as_nanos() as u64,
            copies: policy.copy_policy == CopyPolicy::Copy,
            events: policy.emit_health_events,
            kept: VecDeque::with_capacity(capacity.min(FIRST_ROOM)),
            ..Channel::default()
        }
    }

    /// The same channel, whose source waits while there is no room.
    pub(crate) fn holding_off(mut self, holds_off: bool) -> Channel {
        self.holds_off = holds_off;
        self
    }

    /// Returns what it has counted.
    pub(crate) fn counts(&self) -> &ChannelCounts {
        &self.counts
    }

    // Messages of an async edge that are on their way to it.

    /// Returns what an async edge has counted.
    pub(crate) fn async_counts(&self) -> &AsyncCounts {
        &self.asynchronous
    }

    /// Returns how many messages are on their way.
    pub(crate) fn in_flight(&self) -> u64 {
        self.asynchronous.in_flight
    }

    /// Counts a message that is on its way.
    pub(crate) fn begin_async(&mut self) {
        let counts = &mut self.asynchronous;
        counts.accepted += 1;
        counts.in_flight += 1;
        counts.max_in_flight = counts.max_in_flight.max(counts.in_flight);
    }

    /// Counts a message that arrives.
    pub(crate) fn end_async(&mut self) {
        let counts = &mut self.asynchronous;
        counts.in_flight = counts.in_flight.saturating_sub(1);
        counts.completed += 1;
    }

    /// Counts a message that was on its way and gave way to another.
    pub(crate) fn replace_async(&mut self, health: &mut Health) {
        let counts = &mut self.asynchronous;
        counts.in_flight -= 1;
        match self.overflow {
            Overflow::Overwrite => counts.overwrite += 1,
            _ => counts.dropped += 1,
        }
        self.count_eviction(health);
    }

    /// Counts a message that found as many on their way as may be.
    pub(crate) fn reject_async(&mut self, health: &mut Health) {
        self.asynchronous.rejected += 1;
        self.raise(health, HealthKind::TaskReject);
    }

    /// Counts a message that was on its way when the run ended.
    pub(crate) fn cancel_async(&mut self) {
        self.asynchronous.cancelled += 1;
    }

    /// Whether its source waits while there is no room.
    pub(crate) fn holds_off(&self) -> bool {
        self.holds_off
    }

    /// How many messages it would take now without losing another.
    pub(crate) fn room(&self) -> usize {
        match self.mode.is_latest_style() {
            true => usize::from(self.waiting() == 0),
            false => self.capacity.saturating_sub(self.kept.len()),
        }
    }

    /// Adds a reader and gives its number. It sees what comes from now on, and of a latched channel
    /// the value that is there.
    pub(crate) fn tap(&mut self) -> usize {
        let sees_what_is_there = self.mode == Mode::Latched && !self.kept.is_empty();
        self.taps.push(TapCursor {
            read: self.last_seq - u64::from(sees_what_is_there),
            missed: 0,
        });
        self.taps.len() - 1
    }

    /// Whether it would take a message now.
    #[inline]
    pub(crate) fn refuses(&self) -> Option<Refusal> {
        let replaces = matches!(self.overflow, Overflow::Overwrite | Overflow::DropOldest);
        if replaces || !self.is_full() {
            return None;
        }
        Some(match self.overflow {
            Overflow::FailFast => Refusal::FailFast,
            _ => Refusal::Full,
        })
    }

    fn is_full(&self) -> bool {
        match self.mode {
            Mode::PreviousTick => self.upcoming.is_some(),
            // A value that all readers have read makes room.
            Mode::Latched => self.unread() > 0,
            _ => self.kept.len() >= self.capacity,
        }
    }

    /// Counts a message that was refused.
    pub(crate) fn count_refusal(&mut self, health: &mut Health) {
        match self.overflow {
            Overflow::DropNewest => self.counts.drop += 1,
            _ => self.counts.reject += 1,
        }
        self.raise(health, HealthKind::ChannelOverflow);
    }

    /// Counts a message that gave way to another before it came here.
    fn count_eviction(&mut self, health: &mut Health) {
        self.counts.drop += 1;
        self.lose(health);
    }

    /// Returns the id of the message that comes next.
    pub(crate) fn next_id(&self) -> PackedId {
        PackedId::new(self.route.edge, self.last_seq + 1)
    }

    /// Takes a message out of `staged`; `refuses` has been asked.
    ///
    /// Inlined with `keep`, so that the message is made where it stays.
    #[inline(always)]
    pub(crate) fn accept(
        &mut self,
        staged: &mut Staged,
        epoch: u64,
        now: u64,
        health: &mut Health,
    ) -> PackedId {
        self.last_seq += 1;
        self.counts.publish += 1;
        let id = PackedId::new(self.route.edge, self.last_seq);
        let message = Received {
            payload: std::mem::take(&mut staged.payload),
            route: self.route,
            seq: self.last_seq,
            root: staged.root.unwrap_or(id),
            cause: staged.cause,
            epoch,
            transaction: staged.transaction,
            event_time: staged.event_time,
            published: staged.published,
            arrived: now,
        };
        if self.mode.is_latest_style() && self.last_seq > 1 {
            self.counts.overwrite += 1;
        }
        if self.mode == Mode::PreviousTick {
            self.put_off(message, health);
            return id;
        }
        self.keep(message, health);
        id
    }

    /// Keeps a message for the next epoch: `previous_tick`.
    #[cold]
    fn put_off(&mut self, message: Received, health: &mut Health) {
        if self.upcoming.replace(message).is_some() {
            self.lose(health);
        }
    }

    /// Puts a message behind the others; the oldest goes if there is no room.
    #[inline(always)]
    fn keep(&mut self, message: Received, health: &mut Health) {
        if self.kept.len() >= self.capacity {
            self.evict(health);
        }
        self.kept.push_back(message);
        self.counts.max_depth = self.counts.max_depth.max(self.kept.len() as u64);
        if self.capacity >= HIGH_WATERMARK_LEAST
            && self.mode != Mode::Barrier
            && self.kept.len() * 10 >= self.capacity.saturating_mul(HIGH_WATERMARK_TENTHS)
        {
            self.raise(health, HealthKind::BackpressureHighWatermark);
        }
    }

    #[inline(never)]
    fn evict(&mut self, health: &mut Health) {
        let Some(oldest) = self.kept.pop_front() else {
            return;
        };
        for tap in &mut self.taps {
            if tap.read < oldest.seq {
                tap.missed += 1;
            }
        }
        let unread = oldest.seq > self.read;
        if !self.mode.is_latest_style() {
            match self.overflow {
                Overflow::DropOldest => self.counts.drop += 1,
                _ => self.counts.overwrite += 1,
            }
        }
        if unread {
            self.lose(health);
        }
    }

    /// Counts a value that is gone before it was read.
    fn lose(&mut self, health: &mut Health) {
        self.counts.lost += 1;
        self.raise(health, HealthKind::ChannelOverflow);
    }

    /// Raises a health event at this edge, unless the edge emits none.
    fn raise(&mut self, health: &mut Health, kind: HealthKind) {
        if self.events {
            self.counts.health_event += 1;
            health.raise(kind, HealthSubject::Channel(self.route.edge));
        }
    }

    /// The values of the epoch before become visible: `previous_tick`.
    pub(crate) fn begin_epoch(&mut self, now: u64, health: &mut Health) {
        if let Some(mut message) = self.upcoming.take() {
            message.arrived = now;
            self.keep(message, health);
        }
    }

    /// How many messages the component could get now. Of a barrier all or none: what is too old is
    /// dropped first, so that it does not count.
    #[inline]
    pub(crate) fn available(&mut self, now: u64, health: &mut Health) -> usize {
        if self.mode == Mode::Barrier {
            return self.available_at_barrier(now, health);
        }
        self.unread()
    }

    #[inline(never)]
    fn available_at_barrier(&mut self, now: u64, health: &mut Health) -> usize {
        let is_stale = |channel: &Channel| {
            let mut unread = channel.kept.iter().filter(|m| m.seq > channel.read);
            let oldest = unread.next();
            oldest.is_some_and(|m| now.saturating_sub(m.published) > channel.lifespan)
        };
        while self.lifespan > 0 && is_stale(self) && self.next_unread().is_some() {
            self.count_stale(health);
        }
        let unread = self.unread();
        if unread < self.capacity { 0 } else { unread }
    }

    fn count_stale(&mut self, health: &mut Health) {
        self.counts.stale_drop += 1;
        self.counts.drop += 1;
        self.raise(health, HealthKind::ChannelStaleDrop);
    }

    /// How many messages wait here, visible or not yet.
    pub(crate) fn waiting(&self) -> usize {
        self.unread() + usize::from(self.upcoming.is_some())
    }

    #[inline]
    fn unread(&self) -> usize {
        if self.forgets_at_once() {
            self.kept.len()
        } else {
            self.kept.iter().filter(|m| m.seq > self.read).count()
        }
    }

    /// Whether no other reader needs what the component has read.
    #[inline]
    fn forgets_at_once(&self) -> bool {
        self.taps.is_empty() && self.mode != Mode::Latched
    }

    /// The next message for the component; those that are too old are dropped on the way.
    #[inline]
    pub(crate) fn take(&mut self, now: u64, health: &mut Health) -> Option<Received> {
        if self.lifespan == 0 && self.deadline == 0 && self.forgets_at_once() {
            let message = self.kept.pop_front()?;
            self.read = message.seq;
            self.counts.delivery += 1;
            self.counts.payload_copy += u64::from(self.copies);
            self.counts.message_age = now.saturating_sub(message.published);
            return Some(message);
        }
        self.take_with_care(now, health)
    }

    /// As `take`, to where its reader finds it: a message is moved once. False if there is none.
    #[inline]
    pub(crate) fn take_into(
        &mut self,
        inputs: &mut Vec<Received>,
        now: u64,
        health: &mut Health,
    ) -> bool {
        let before = inputs.len();
        if self.lifespan == 0 && self.deadline == 0 && self.forgets_at_once() {
            let Some(first) = self.kept.front() else {
                return false;
            };
            self.read = first.seq;
            self.counts.delivery += 1;
            self.counts.payload_copy += u64::from(self.copies);
            self.counts.message_age = now.saturating_sub(first.published);
            inputs.extend(self.kept.pop_front());
        } else {
            inputs.extend(self.take_with_care(now, health));
        }
        inputs.len() > before
    }

    /// The same where age counts, or others read, too.
    #[inline(never)]
    fn take_with_care(&mut self, now: u64, health: &mut Health) -> Option<Received> {
        while self.unread() > 0 {
            let mut message = self.next_unread()?;
            let age = now.saturating_sub(message.published);
            if self.lifespan > 0 && age > self.lifespan {
                self.count_stale(health);
                continue;
            }
            if self.deadline > 0 && age > self.deadline {
                message.route.set_late();
                self.counts.deadline_miss += 1;
                self.raise(health, HealthKind::ChannelDeadlineMiss);
            }
            self.counts.delivery += 1;
            self.counts.payload_copy += u64::from(self.copies);
            self.counts.message_age = age;
            return Some(message);
        }
        None
    }

    fn next_unread(&mut self) -> Option<Received> {
        if self.forgets_at_once() {
            let message = self.kept.pop_front()?;
            self.read = message.seq;
            return Some(message);
        }
        let place = self.kept.iter().position(|m| m.seq > self.read)?;
        let message = self.kept[place].clone();
        self.read = message.seq;
        self.trim();
        Some(message)
    }

    /// The next message for a tap, and how many it has missed since the last.
    pub(crate) fn take_for(&mut self, tap: usize) -> Option<(Received, u64)> {
        // None while another part of the run has the real channel.
        let reader = self.taps.get_mut(tap)?;
        let message = self.kept.iter().find(|m| m.seq > reader.read)?.clone();
        reader.read = message.seq;
        let missed = std::mem::take(&mut reader.missed);
        self.trim();
        Some((message, missed))
    }

    /// Drops what all readers have read; a latched value stays.
    fn trim(&mut self) {
        if self.mode == Mode::Latched {
            return;
        }
        let least = self.taps.iter().map(|tap| tap.read).min();
        let done = least.map_or(self.read, |least| least.min(self.read));
        while self.kept.front().is_some_and(|m| m.seq <= done) {
            self.kept.pop_front();
        }
    }

    /// What has not been read is dropped, but for the newest `but`.
    pub(crate) fn drop_unread(&mut self, but: usize, health: &mut Health) {
        for _ in but..self.unread() {
            if self.next_unread().is_some() {
                self.counts.drop += 1;
                self.lose(health);
            }
        }
    }

    /// Gives what is unread to another channel of the same edge, for a part of the run that goes on
    /// beside it.
    pub(crate) fn hand_over(&mut self, other: &mut Channel) {
        while self.unread() > 0 {
            let Some(message) = self.next_unread() else {
                break;
            };
            other.last_seq = message.seq;
            other.kept.push_back(message);
        }
    }

    /// Takes in what such a channel has counted. What it has left goes back to the front, as far as
    /// there is room: the oldest give way to messages that came meanwhile.
    pub(crate) fn take_over(&mut self, other: Channel, health: &mut Health) {
        let (mine, its) = (&mut self.counts, other.counts);
        mine.delivery += its.delivery;
        mine.drop += its.drop;
        mine.deadline_miss += its.deadline_miss;
        mine.stale_drop += its.stale_drop;
        mine.health_event += its.health_event;
        mine.payload_copy += its.payload_copy;
        if its.delivery > 0 {
            mine.message_age = its.message_age;
        }
        for message in other.kept.into_iter().rev() {
            self.read = self.read.min(message.seq - 1);
            // Another reader may not have passed it yet: then it has been here all the time.
            if self.kept.iter().all(|kept| kept.seq != message.seq) {
                self.kept.push_front(message);
            }
        }
        while self.kept.len() > self.capacity && !self.holds_off {
            self.evict(health);
        }
    }
}
