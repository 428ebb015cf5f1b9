//! The channels of a run, and what is on its way to them.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use windlass_value::Payload;

use crate::component::Staged;
use crate::run::outside::taps::Taps;
use crate::run::sinks::health::Health;
use crate::run::state::channel::Channel;
use crate::run::state::loop_buffer::LoopBuffer;
use crate::run::state::tables::Tables;
use windlass_plan::compile::Plan;

/// The channels of a run by edge, and what waits for its turn to be in them.
pub(crate) struct Channels {
    by_edge: Vec<Channel>,
    /// What becomes visible when the next epoch begins.
    deferred: Vec<Staged>,
    /// What is written to the state store when the next epoch begins.
    store_writes: Vec<(Arc<str>, Payload)>,
    /// What a loop that is running keeps to itself.
    loop_buffer: Option<LoopBuffer>,
    /// The readers outside of the graph.
    taps: Taps,
}

impl Channels {
    pub(crate) fn new(plan: &Plan, tables: &Tables) -> Channels {
        let edges = 0..plan.graph.edges.len();
        Channels::of(edges.map(|edge| new_channel(plan, tables, edge)).collect())
    }

    fn of(by_edge: Vec<Channel>) -> Channels {
        Channels {
            by_edge,
            deferred: Vec::new(),
            store_writes: Vec::new(),
            loop_buffer: None,
            taps: Taps::default(),
        }
    }

    #[inline]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [Channel] {
        &mut self.by_edge
    }

    /// Whether something becomes visible when the next epoch begins.
    pub(crate) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Keeps an item until the next epoch begins.
    pub(crate) fn defer(&mut self, item: Staged) {
        self.deferred.push(item);
    }

    /// Takes what becomes visible now. The list goes back with `reuse_deferred`.
    pub(crate) fn take_deferred(&mut self) -> Vec<Staged> {
        std::mem::take(&mut self.deferred)
    }

    /// Uses an emptied list again. Nothing has been deferred since it was taken.
    pub(crate) fn reuse_deferred(&mut self, emptied: Vec<Staged>) {
        self.deferred = emptied;
    }

    /// Drops the oldest item that is on its way to an edge.
    pub(crate) fn drop_oldest_deferred(&mut self, edge: usize) {
        let oldest = self.deferred.iter().position(|i| i.edge as usize == edge);
        if let Some(oldest) = oldest {
            self.deferred.remove(oldest);
        }
    }

    /// Returns how many messages an edge has room for, besides those that are on their way to it.
    pub(crate) fn free_room(&self, edge: u32) -> usize {
        let deferred = self.deferred.iter().filter(|item| item.edge == edge);
        let free = self.by_edge[edge as usize].room();
        free.saturating_sub(deferred.count())
    }

    /// Keeps what is to be written to the state store; the list is empty afterwards.
    #[inline]
    pub(crate) fn write_store(&mut self, writes: &mut Vec<(Arc<str>, Payload)>) {
        if !writes.is_empty() {
            self.store_writes.append(writes);
        }
    }

    /// Adds one value that is to be written to the state store.
    pub(crate) fn write_store_value(&mut self, key: Arc<str>, value: Payload) {
        self.store_writes.push((key, value));
    }

    /// Returns what is to be written to the state store now.
    pub(crate) fn store_writes(&mut self) -> &mut Vec<(Arc<str>, Payload)> {
        &mut self.store_writes
    }

    /// Returns the readers outside of the graph, and the channels that they read.
    pub(crate) fn taps(&mut self) -> (&mut Taps, &mut [Channel]) {
        (&mut self.taps, &mut self.by_edge)
    }

    // The loop that is running.

    /// Begins to hold back what a loop publishes to the outside.
    pub(crate) fn begin_loop(&mut self, buffer: LoopBuffer) {
        self.loop_buffer = Some(buffer);
    }

    /// Whether a loop is running.
    #[inline]
    pub(crate) fn is_in_loop(&self) -> bool {
        self.loop_buffer.is_some()
    }

    /// Returns what the running loop keeps to itself.
    #[inline]
    pub(crate) fn loop_buffer(&mut self) -> Option<&mut LoopBuffer> {
        self.loop_buffer.as_mut()
    }

    /// Ends the running loop; returns what it has held back.
    pub(crate) fn end_loop(&mut self) -> Option<Vec<Staged>> {
        self.loop_buffer.take().map(LoopBuffer::into_held)
    }

    /// Whether a running loop keeps what goes over this edge until it ends.
    #[inline]
    pub(crate) fn is_held(&self, edge: usize, tables: &Tables) -> bool {
        match &self.loop_buffer {
            Some(buffer) => {
                let row = &tables.edges[edge];
                buffer.holds(row.region_from, row.region_to)
            }
            None => false,
        }
    }

    // Parts of a run.

    /// Takes the channels into a region out, for a part of the run that runs beside it. Those from
    /// other regions stay and hand over what is unread.
    pub(crate) fn split_off(&mut self, region: usize, tables: &Tables) -> Channels {
        let mut part = Channels::of(self.by_edge.iter().map(|_| Channel::default()).collect());
        for (edge, row) in tables.edges.iter().enumerate() {
            if row.region_to != region {
                continue;
            }
            part.by_edge[edge] = if row.region_from == region {
                std::mem::take(&mut self.by_edge[edge])
            } else {
                let mut beside = new_channel(&tables.plan, tables, edge);
                self.by_edge[edge].hand_over(&mut beside);
                beside
            };
        }
        part
    }

    /// Takes the channels of a region back; returns what its loop has held back.
    pub(crate) fn merge(
        &mut self,
        mut part: Channels,
        region: usize,
        tables: &Tables,
        health: &mut Health,
    ) -> Option<Vec<Staged>> {
        for (edge, row) in tables.edges.iter().enumerate() {
            if row.region_to != region {
                continue;
            }
            let beside = std::mem::take(&mut part.by_edge[edge]);
            match row.region_from == region {
                true => self.by_edge[edge] = beside,
                false => self.by_edge[edge].take_over(beside, health),
            }
        }
        self.store_writes.append(&mut part.store_writes);
        self.deferred.append(&mut part.deferred);
        part.end_loop()
    }
}

fn new_channel(plan: &Plan, tables: &Tables, edge: usize) -> Channel {
    let channel = Channel::new(edge, plan.edges[edge].to_port, &plan.graph.edges[edge]);
    channel.holding_off(tables.edges[edge].holds_off)
}

impl Index<usize> for Channels {
    type Output = Channel;

    #[inline]
    fn index(&self, edge: usize) -> &Channel {
        &self.by_edge[edge]
    }
}

impl IndexMut<usize> for Channels {
    #[inline]
    fn index_mut(&mut self, edge: usize) -> &mut Channel {
        &mut self.by_edge[edge]
    }
}
