//! Committing: what was staged becomes visible, or is refused.
//!
//! The items of one publish belong together: all their channels are asked first, and if one refuses, no
//! reader gets any of them. The channel that refused counts it; only `fail_fast` ends the run.

use windlass_core::sync::clock;

use super::channel::Refusal;
use super::health::HealthKind;
use super::machine::{Halt, Machine};
use super::result::ErrorCode;
use super::trace::{Recorded, TraceName};
use crate::component::Staged;
use windlass_plan::model::{EdgeKind, Overflow};

/// Where in an epoch something is committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    /// When its component is done: what is not immediate waits.
    AtOnce,
    /// When the next epoch begins.
    Deferred,
}

impl Machine {
    /// Commits what a component has published; the list is empty afterwards.
    #[inline]
    pub(crate) fn commit(&mut self, staged: &mut Vec<Staged>) -> Result<(), Halt> {
        if staged.len() == 1
            && self.loop_buffer.is_none()
            && let Some(item) = staged.pop()
        {
            return self.commit_one(item);
        }
        self.commit_all(staged, When::AtOnce)
    }

    /// Commits the only item of the only publish.
    fn commit_one(&mut self, item: Staged) -> Result<(), Halt> {
        let edge = item.edge as usize;
        if !self.is_immediate(edge) {
            return self.defer(edge, item);
        }
        match self.channels[edge].refuses() {
            None => {
                self.deliver(edge, self.published_now(edge, item));
                Ok(())
            }
            Some(refusal) => self.refuse(edge, refusal, false, 1),
        }
    }

    /// Commits what was deferred in the epoch before.
    pub(crate) fn commit_deferred(&mut self) -> Result<(), Halt> {
        let mut deferred = std::mem::take(&mut self.deferred);
        for item in &deferred {
            if self.tables.edges[item.edge as usize].kind == EdgeKind::Async {
                let counts = &mut self.counts.asynchronous[item.edge as usize];
                counts.in_flight = counts.in_flight.saturating_sub(1);
                counts.completed += 1;
            }
        }
        let result = self.commit_all(&mut deferred, When::Deferred);
        // Nothing is published meanwhile, so the list can be used again.
        self.deferred = deferred;
        result
    }

    fn commit_all(&mut self, staged: &mut Vec<Staged>, when: When) -> Result<(), Halt> {
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
            result = self.commit_publish(&mut staged[begin..begin + length], when);
            begin += length;
        }
        staged.clear();
        result
    }

    /// Commits the items of one publish, all or none.
    fn commit_publish(&mut self, items: &mut [Staged], when: When) -> Result<(), Halt> {
        for place in 0..items.len() {
            let edge = items[place].edge as usize;
            if self.is_held(edge) {
                continue;
            }
            let copied = items.len() > 1
                && (self.tables.edges[edge].moves || !items[place].payload.may_be_copied());
            let at_once = when == When::Deferred || self.is_immediate(edge);
            let refusal = match (copied, at_once) {
                (true, _) => Some(Refusal::Full),
                (false, true) => self.channels[edge].refuses(),
                (false, false) => None,
            };
            if let Some(refusal) = refusal {
                return self.refuse(edge, refusal, copied, items.len());
            }
        }
        if self.loop_buffer.is_some() {
            self.remember_pass(items);
        }
        for item in items {
            let item = std::mem::take(item);
            let edge = item.edge as usize;
            if self.is_held(edge) {
                self.hold_back(item);
            } else if when == When::Deferred {
                self.deliver(edge, item);
            } else if self.is_immediate(edge) {
                self.deliver(edge, self.published_now(edge, item));
            } else {
                self.defer(edge, item)?;
            }
        }
        Ok(())
    }

    fn is_immediate(&self, edge: usize) -> bool {
        self.tables.edges[edge].kind == EdgeKind::Immediate
    }

    /// Whether a running loop keeps what goes over this edge until it ends.
    fn is_held(&self, edge: usize) -> bool {
        match &self.loop_buffer {
            Some(buffer) => {
                let row = &self.tables.edges[edge];
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
    ) -> Result<(), Halt> {
        self.channels[edge].count_refusal(&mut self.health);
        self.counts.publication.failed_commit += items as u64;
        if refusal == Refusal::FailFast {
            let from = self.plan.edges[edge].from;
            let id = &self.plan.graph.edges[edge].id;
            let message = format!(
                "channel {id} is full and its overflow policy is fail_fast: give it more capacity, or another policy"
            );
            return Err(self.halt("commit", ErrorCode::Runtime, Some(from), message));
        }
        if copied {
            let from = self.plan.edges[edge].from;
            let id = &self.plan.graph.edges[edge].id;
            let message = format!(
                "a payload of which there may be one only was published to several edges, {id} among them"
            );
            self.add_error("commit", ErrorCode::Runtime, Some(from), message, false);
        }
        Ok(())
    }

    #[inline]
    fn deliver(&mut self, edge: usize, item: Staged) {
        let row = &self.tables.edges[edge];
        let now = self.lanes[row.reader_lane].now;
        self.counts.publication.committed += 1;
        self.counts.publication.state_committed += u64::from(row.kind == EdgeKind::State);
        let epoch = self.env.epoch;
        if self.trace.on {
            self.deliver_traced(edge, item, now);
        } else {
            self.channels[edge].accept(item, epoch, now, &mut self.health);
        }
    }

    fn deliver_traced(&mut self, edge: usize, item: Staged, now: u64) {
        let (cause, root, transaction) = (item.cause, item.root, item.transaction);
        let epoch = self.env.epoch;
        let id = self.channels[edge].accept(item, epoch, now, &mut self.health);
        let from = self.plan.edges[edge].from;
        let event = Recorded {
            channel: edge as u32,
            transaction,
            causation: cause,
            correlation: Some(root.unwrap_or(id)),
            ..self.recorded(TraceName::ChannelCommit, from, clock::now())
        };
        self.trace.push(event);
    }

    /// Says when an item was published: its age counts from now, on the clock of whoever reads it.
    #[inline]
    fn published_now(&self, edge: usize, mut item: Staged) -> Staged {
        item.published = self.lanes[self.tables.edges[edge].reader_lane].now;
        item
    }

    /// Keeps an item for the next epoch.
    fn defer(&mut self, edge: usize, item: Staged) -> Result<(), Halt> {
        let item = self.published_now(edge, item);
        match self.tables.edges[edge].kind {
            EdgeKind::Async => return self.admit(edge, item),
            EdgeKind::State => {
                self.counts.publication.state += 1;
                if let Some(key) = &self.tables.edges[edge].key {
                    self.store_writes.push((key.clone(), item.payload.clone()));
                }
            }
            EdgeKind::Delay | EdgeKind::Immediate => self.counts.publication.delayed += 1,
        }
        self.deferred.push(item);
        Ok(())
    }

    /// Lets an item onto an async edge, if it may have one more on its way.
    fn admit(&mut self, edge: usize, item: Staged) -> Result<(), Halt> {
        let limit = self.tables.edges[edge].max_inflight as u64;
        let overflow = self.plan.graph.edges[edge].policy.overflow;
        let full = limit > 0 && self.counts.asynchronous[edge].in_flight >= limit;
        let replaces = matches!(overflow, Overflow::Overwrite | Overflow::DropOldest);
        if full && !replaces {
            self.count_refused_async(edge, item.transaction);
            if overflow == Overflow::FailFast {
                return self.refuse(edge, Refusal::FailFast, false, 1);
            }
            return Ok(());
        }
        if full {
            let oldest = self.deferred.iter().position(|i| i.edge as usize == edge);
            if let Some(oldest) = oldest {
                self.deferred.remove(oldest);
            }
            let counts = &mut self.counts.asynchronous[edge];
            counts.in_flight -= 1;
            match overflow {
                Overflow::Overwrite => counts.overwrite += 1,
                _ => counts.dropped += 1,
            }
            self.channels[edge].count_eviction(&mut self.health);
        }
        self.counts.publication.asynchronous += 1;
        let counts = &mut self.counts.asynchronous[edge];
        counts.accepted += 1;
        counts.in_flight += 1;
        counts.max_in_flight = counts.max_in_flight.max(counts.in_flight);
        self.trace_admission(edge, item.transaction, true);
        self.deferred.push(item);
        Ok(())
    }

    /// Counts what `publish` was told no for.
    pub(crate) fn count_refused_async(&mut self, edge: usize, transaction: u64) {
        self.counts.asynchronous[edge].rejected += 1;
        self.channels[edge].raise(&mut self.health, HealthKind::TaskReject);
        self.trace_admission(edge, transaction, false);
    }

    fn trace_admission(&mut self, edge: usize, transaction: u64, accepted: bool) {
        if !self.trace.on {
            return;
        }
        let from = self.plan.edges[edge].from;
        let mut event = self.recorded(TraceName::AsyncAdmission, from, clock::now());
        event.channel = edge as u32;
        event.transaction = transaction;
        event.attributes.push(("accepted", accepted.into()));
        self.trace.push(event);
    }
}
