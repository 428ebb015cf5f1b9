//! Committing: what was staged becomes visible, or is refused.
//!
//! The items of one publish belong together: all their channels are asked first, and if one refuses, no
//! reader gets any of them. The channel that refused counts it; only `fail_fast` ends the run.

use windlass_core::sync::clock;

use crate::component::Staged;
use crate::run::machine::Halt;
use crate::run::result::ErrorCode;
use crate::run::sinks::Sinks;
use crate::run::sinks::health::HealthKind;
use crate::run::sinks::trace::{Recorded, TraceName};
use crate::run::state::channel::Refusal;
use crate::run::state::channels::Channels;
use crate::run::state::tables::Tables;
use windlass_plan::model::{EdgeKind, Overflow};

/// Where in an epoch something is committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// When its component is done: what is not immediate waits.
    AtOnce,
    /// When the next epoch begins.
    Deferred,
}

impl Channels {
    /// Commits what a component has published; the list is empty afterwards.
    #[inline]
    pub(crate) fn commit(
        &mut self,
        staged: &mut Vec<Staged>,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        if staged.len() == 1
            && self.loop_buffer.is_none()
            && let Some(item) = staged.pop()
        {
            return self.commit_one(item, tables, sinks);
        }
        self.commit_all(staged, When::AtOnce, tables, sinks)
    }

    /// Commits the only item of the only publish.
    fn commit_one(&mut self, item: Staged, tables: &Tables, sinks: &mut Sinks) -> Result<(), Halt> {
        let edge = item.edge as usize;
        if !Self::is_immediate(edge, tables) {
            return self.defer(edge, item, tables, sinks);
        }
        match self[edge].refuses() {
            None => {
                let item = self.published_now(edge, item, tables);
                self.deliver(edge, item, tables, sinks);
                Ok(())
            }
            Some(refusal) => self.refuse(edge, refusal, false, 1, tables, sinks),
        }
    }

    /// Commits what was deferred in the epoch before.
    pub(crate) fn commit_deferred(
        &mut self,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        let mut deferred = std::mem::take(&mut self.deferred);
        for item in &deferred {
            if tables.edges[item.edge as usize].kind == EdgeKind::Async {
                let counts = &mut sinks.counts.asynchronous[item.edge as usize];
                counts.in_flight = counts.in_flight.saturating_sub(1);
                counts.completed += 1;
            }
        }
        let result = self.commit_all(&mut deferred, When::Deferred, tables, sinks);
        // Nothing is published meanwhile, so the list can be used again.
        self.deferred = deferred;
        result
    }

    fn commit_all(
        &mut self,
        staged: &mut Vec<Staged>,
        when: When,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        if staged.is_empty() {
            return Ok(());
        }
        let mut result = Ok(());
        let mut begin = 0;
        while begin < staged.len() && result.is_ok() {
            let of = |item: &Staged| (item.transaction, item.publish);
            let publish = of(&staged[begin]);
            let rest = &staged[begin + 1..];
            let length = 1 + rest.iter().take_while(|item| of(item) == publish).count();
            result = self.commit_publish(&mut staged[begin..begin + length], when, tables, sinks);
            begin += length;
        }
        staged.clear();
        result
    }

    /// Commits the items of one publish, all or none.
    fn commit_publish(
        &mut self,
        items: &mut [Staged],
        when: When,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        for place in 0..items.len() {
            let edge = items[place].edge as usize;
            if self.is_held(edge, tables) {
                continue;
            }
            let copied = items.len() > 1
                && (tables.edges[edge].moves || !items[place].payload.may_be_copied());
            let at_once = when == When::Deferred || Self::is_immediate(edge, tables);
            let refusal = match (copied, at_once) {
                (true, _) => Some(Refusal::Full),
                (false, true) => self[edge].refuses(),
                (false, false) => None,
            };
            if let Some(refusal) = refusal {
                return self.refuse(edge, refusal, copied, items.len(), tables, sinks);
            }
        }
        if self.loop_buffer.is_some() {
            self.remember_pass(items);
        }
        for item in items {
            let item = std::mem::take(item);
            let edge = item.edge as usize;
            if self.is_held(edge, tables) {
                self.hold_back(item);
            } else if when == When::Deferred {
                self.deliver(edge, item, tables, sinks);
            } else if Self::is_immediate(edge, tables) {
                let item = self.published_now(edge, item, tables);
                self.deliver(edge, item, tables, sinks);
            } else {
                self.defer(edge, item, tables, sinks)?;
            }
        }
        Ok(())
    }

    fn is_immediate(edge: usize, tables: &Tables) -> bool {
        tables.edges[edge].kind == EdgeKind::Immediate
    }

    /// Whether a running loop keeps what goes over this edge until it ends.
    fn is_held(&self, edge: usize, tables: &Tables) -> bool {
        match &self.loop_buffer {
            Some(buffer) => {
                let row = &tables.edges[edge];
                row.region_from == buffer.region && row.region_to != buffer.region
            }
            None => false,
        }
    }

    fn refuse(
        &mut self,
        edge: usize,
        refusal: Refusal,
        copied: bool,
        items: usize,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        let plan = &*tables.plan;
        self[edge].count_refusal(&mut sinks.health);
        sinks.counts.publication.failed_commit += items as u64;
        if refusal == Refusal::FailFast {
            let from = tables.plan.edges[edge].from;
            let id = &tables.plan.graph.edges[edge].id;
            let message = format!(
                "channel {id} is full and its overflow policy is fail_fast: give it more capacity, or another policy"
            );
            return Err(sinks.halt(plan, "commit", ErrorCode::Runtime, Some(from), message));
        }
        if copied {
            let from = tables.plan.edges[edge].from;
            let id = &tables.plan.graph.edges[edge].id;
            let message = format!(
                "a payload of which there may be one only was published to several edges, {id} among them"
            );
            sinks.add_error(
                plan,
                "commit",
                ErrorCode::Runtime,
                Some(from),
                message,
                false,
            );
        }
        Ok(())
    }

    #[inline]
    fn deliver(&mut self, edge: usize, item: Staged, tables: &Tables, sinks: &mut Sinks) {
        let row = &tables.edges[edge];
        let now = self.lane_time(row.reader_lane);
        sinks.counts.publication.committed += 1;
        sinks.counts.publication.state_committed += u64::from(row.kind == EdgeKind::State);
        let epoch = sinks.epoch;
        if sinks.trace.on {
            self.deliver_traced(edge, item, tables, sinks);
        } else {
            self[edge].accept(item, epoch, now, &mut sinks.health);
        }
    }

    fn deliver_traced(&mut self, edge: usize, item: Staged, tables: &Tables, sinks: &mut Sinks) {
        let now = self.lane_time(tables.edges[edge].reader_lane);
        let (cause, root, transaction) = (item.cause, item.root, item.transaction);
        let epoch = sinks.epoch;
        let id = self[edge].accept(item, epoch, now, &mut sinks.health);
        let from = tables.plan.edges[edge].from;
        let event = Recorded {
            channel: edge as u32,
            transaction,
            causation: cause,
            correlation: Some(root.unwrap_or(id)),
            ..sinks.event(tables, TraceName::ChannelCommit, from, clock::now())
        };
        sinks.trace.push(event);
    }

    /// Says when an item was published: its age counts from now, on the clock of whoever reads it.
    #[inline]
    fn published_now(&self, edge: usize, mut item: Staged, tables: &Tables) -> Staged {
        item.published = self.lane_time(tables.edges[edge].reader_lane);
        item
    }

    /// Keeps an item for the next epoch.
    fn defer(
        &mut self,
        edge: usize,
        item: Staged,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        let item = self.published_now(edge, item, tables);
        match tables.edges[edge].kind {
            EdgeKind::Async => return self.admit(edge, item, tables, sinks),
            EdgeKind::State => {
                sinks.counts.publication.state += 1;
                if let Some(key) = &tables.edges[edge].key {
                    self.store_writes.push((key.clone(), item.payload.clone()));
                }
            }
            EdgeKind::Delay | EdgeKind::Immediate => sinks.counts.publication.delayed += 1,
        }
        self.deferred.push(item);
        Ok(())
    }

    /// Lets an item onto an async edge, if it may have one more on its way.
    fn admit(
        &mut self,
        edge: usize,
        item: Staged,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        let limit = tables.edges[edge].max_inflight as u64;
        let overflow = tables.plan.graph.edges[edge].policy.overflow;
        let full = limit > 0 && sinks.counts.asynchronous[edge].in_flight >= limit;
        let replaces = matches!(overflow, Overflow::Overwrite | Overflow::DropOldest);
        if full && !replaces {
            self.count_refused_async(edge, item.transaction, tables, sinks);
            if overflow == Overflow::FailFast {
                return self.refuse(edge, Refusal::FailFast, false, 1, tables, sinks);
            }
            return Ok(());
        }
        if full {
            let oldest = self.deferred.iter().position(|i| i.edge as usize == edge);
            if let Some(oldest) = oldest {
                self.deferred.remove(oldest);
            }
            let counts = &mut sinks.counts.asynchronous[edge];
            counts.in_flight -= 1;
            match overflow {
                Overflow::Overwrite => counts.overwrite += 1,
                _ => counts.dropped += 1,
            }
            self[edge].count_eviction(&mut sinks.health);
        }
        sinks.counts.publication.asynchronous += 1;
        let counts = &mut sinks.counts.asynchronous[edge];
        counts.accepted += 1;
        counts.in_flight += 1;
        counts.max_in_flight = counts.max_in_flight.max(counts.in_flight);
        Self::trace_admission(edge, item.transaction, true, tables, sinks);
        self.deferred.push(item);
        Ok(())
    }

    /// Counts what `publish` was told no for.
    pub(crate) fn count_refused_async(
        &mut self,
        edge: usize,
        transaction: u64,
        tables: &Tables,
        sinks: &mut Sinks,
    ) {
        sinks.counts.asynchronous[edge].rejected += 1;
        self[edge].raise(&mut sinks.health, HealthKind::TaskReject);
        Self::trace_admission(edge, transaction, false, tables, sinks);
    }

    fn trace_admission(
        edge: usize,
        transaction: u64,
        accepted: bool,
        tables: &Tables,
        sinks: &mut Sinks,
    ) {
        if !sinks.trace.on {
            return;
        }
        let from = tables.plan.edges[edge].from;
        let mut event = sinks.event(tables, TraceName::AsyncAdmission, from, clock::now());
        event.channel = edge as u32;
        event.transaction = transaction;
        event.attributes.push(("accepted", accepted.into()));
        sinks.trace.push(event);
    }
}
