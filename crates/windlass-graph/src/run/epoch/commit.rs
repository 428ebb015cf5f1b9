//! Committing: what was staged becomes visible, or is refused.
//!
//! The items of one publish belong together: all their channels are asked first, and if one
//! refuses, no reader gets any of them. The channel that refused counts it; only `fail_fast` ends
//! the run.

use crate::component::Staged;
use crate::run::epoch::EpochTime;
use crate::run::result::ErrorCode;
use crate::run::run_state::Halt;
use crate::run::sinks::Sinks;
use crate::run::sinks::sink::{Admission, Commit, CommitRefusal, Deferral, Sink};
use crate::run::state::channel::Refusal;
use crate::run::state::channels::Channels;
use crate::run::state::tables::{EdgeRow, Tables};
use windlass_plan::model::{EdgeKind, Overflow};

/// Where in an epoch something is committed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CommitPoint {
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
        now: EpochTime<'_>,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        if let [item] = staged.as_mut_slice()
            && !self.is_in_loop()
        {
            let result = self.commit_one(item, now, tables, sinks);
            staged.clear();
            return result;
        }
        self.commit_all(staged, CommitPoint::AtOnce, now, tables, sinks)
    }

    /// Commits the only item of the only publish.
    ///
    /// The item stays where it was staged until its channel takes the parts: moving all of it from
    /// call to call took 12 of 88 ns per message.
    fn commit_one(
        &mut self,
        item: &mut Staged,
        now: EpochTime<'_>,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        let edge = item.edge as usize;
        if !Self::is_immediate(edge, tables) {
            return self.defer_item(edge, std::mem::take(item), now, tables, sinks);
        }
        match self[edge].refuses() {
            None => {
                publish_now(item, now, &tables.edges[edge]);
                self.deliver(edge, item, now, tables, sinks);
                Ok(())
            }
            Some(refusal) => self.refuse(edge, refusal, false, 1, tables, sinks),
        }
    }

    /// Commits what was deferred in the epoch before.
    pub(crate) fn commit_deferred(
        &mut self,
        now: EpochTime<'_>,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        let mut deferred = self.take_deferred();
        for item in &deferred {
            if tables.edges[item.edge as usize].kind == EdgeKind::Async {
                self[item.edge as usize].end_async();
            }
        }
        let result = self.commit_all(&mut deferred, CommitPoint::Deferred, now, tables, sinks);
        // Nothing is published meanwhile, so the list can be used again.
        self.reuse_deferred(deferred);
        result
    }

    fn commit_all(
        &mut self,
        staged: &mut Vec<Staged>,
        when: CommitPoint,
        now: EpochTime<'_>,
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
            result =
                self.commit_publish(&mut staged[begin..begin + length], when, now, tables, sinks);
            begin += length;
        }
        staged.clear();
        result
    }

    /// Commits the items of one publish, all or none.
    fn commit_publish(
        &mut self,
        items: &mut [Staged],
        when: CommitPoint,
        now: EpochTime<'_>,
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
            let at_once = when == CommitPoint::Deferred || Self::is_immediate(edge, tables);
            let refusal = match (copied, at_once) {
                (true, _) => Some(Refusal::Full),
                (false, true) => self[edge].refuses(),
                (false, false) => None,
            };
            if let Some(refusal) = refusal {
                return self.refuse(edge, refusal, copied, items.len(), tables, sinks);
            }
        }
        if let Some(buffer) = self.loop_buffer() {
            buffer.remember(items);
        }
        for item in items {
            let edge = item.edge as usize;
            if self.is_held(edge, tables)
                && let Some(buffer) = self.loop_buffer()
            {
                buffer.hold(std::mem::take(item));
            } else if when == CommitPoint::Deferred {
                self.deliver(edge, item, now, tables, sinks);
            } else if Self::is_immediate(edge, tables) {
                publish_now(item, now, &tables.edges[edge]);
                self.deliver(edge, item, now, tables, sinks);
            } else {
                self.defer_item(edge, std::mem::take(item), now, tables, sinks)?;
            }
        }
        Ok(())
    }

    fn is_immediate(edge: usize, tables: &Tables) -> bool {
        tables.edges[edge].kind == EdgeKind::Immediate
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
        self[edge].count_refusal(&mut sinks.health);
        sinks.commit_refusal(&CommitRefusal { items });
        if refusal == Refusal::FailFast {
            let from = tables.plan.edges[edge].from;
            let id = &tables.plan.graph.edges[edge].id;
            let message = format!(
                "channel {id} is full and its overflow policy is fail_fast: give it more capacity, or another policy"
            );
            return Err(sinks.halt("commit", ErrorCode::Runtime, Some(from), message));
        }
        if copied {
            let from = tables.plan.edges[edge].from;
            let id = &tables.plan.graph.edges[edge].id;
            let message = format!(
                "a payload of which there may be one only was published to several edges, {id} among them"
            );
            sinks.add_error("commit", ErrorCode::Runtime, Some(from), message, false);
        }
        Ok(())
    }

    /// Puts an item into its channel, which takes the payload out of it.
    #[inline]
    fn deliver(
        &mut self,
        edge: usize,
        item: &mut Staged,
        now: EpochTime<'_>,
        tables: &Tables,
        sinks: &mut Sinks,
    ) {
        let row = &tables.edges[edge];
        let channel = &mut self[edge];
        sinks.commit(&Commit {
            epoch: now.epoch,
            edge,
            kind: row.kind,
            item,
            channel,
        });
        let time = now.lane_times[row.reader_lane];
        channel.accept(item, now.epoch, time, &mut sinks.health);
    }

    /// Keeps an item for the next epoch.
    fn defer_item(
        &mut self,
        edge: usize,
        mut item: Staged,
        now: EpochTime<'_>,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        let row = &tables.edges[edge];
        publish_now(&mut item, now, row);
        if row.kind == EdgeKind::Async {
            return self.admit(edge, item, now, tables, sinks);
        }
        sinks.deferral(&Deferral { kind: row.kind });
        // Only state edges have one.
        if let Some(key) = &row.key {
            self.write_store_value(key.clone(), item.payload.clone());
        }
        self.defer(item);
        Ok(())
    }

    /// Lets an item onto an async edge, if it may have one more on its way.
    fn admit(
        &mut self,
        edge: usize,
        item: Staged,
        now: EpochTime<'_>,
        tables: &Tables,
        sinks: &mut Sinks,
    ) -> Result<(), Halt> {
        let limit = tables.edges[edge].max_inflight as u64;
        let overflow = tables.plan.graph.edges[edge].policy.overflow;
        let full = limit > 0 && self[edge].in_flight() >= limit;
        let replaces = matches!(overflow, Overflow::Overwrite | Overflow::DropOldest);
        if full && !replaces {
            self.count_refused_async(edge, item.transaction, now.epoch, sinks);
            if overflow == Overflow::FailFast {
                return self.refuse(edge, Refusal::FailFast, false, 1, tables, sinks);
            }
            return Ok(());
        }
        if full {
            self.drop_oldest_deferred(edge);
            self[edge].replace_async(&mut sinks.health);
        }
        sinks.deferral(&Deferral {
            kind: EdgeKind::Async,
        });
        self[edge].begin_async();
        sinks.admission(&Admission {
            epoch: now.epoch,
            edge,
            transaction: item.transaction,
            accepted: true,
        });
        self.defer(item);
        Ok(())
    }

    /// Counts an item that `publish` refused.
    pub(crate) fn count_refused_async(
        &mut self,
        edge: usize,
        transaction: u64,
        epoch: u64,
        sinks: &mut Sinks,
    ) {
        self[edge].reject_async(&mut sinks.health);
        sinks.admission(&Admission {
            epoch,
            edge,
            transaction,
            accepted: false,
        });
    }
}

/// Says when an item was published: its age counts from now, on the clock of its reader.
#[inline]
fn publish_now(item: &mut Staged, now: EpochTime<'_>, row: &EdgeRow) {
    item.published = now.lane_times[row.reader_lane];
}
