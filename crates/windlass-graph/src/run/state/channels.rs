//! The channels of a run, and what is on its way to them.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

use windlass_value::Payload;

use crate::component::Staged;
use crate::run::state::channel::Channel;
use crate::run::state::loops::LoopBuffer;

/// The channels of a run by edge, and what waits for its turn to be in them.
pub(crate) struct Channels {
    by_edge: Vec<Channel>,
    /// What becomes visible when the next epoch begins.
    pub(crate) deferred: Vec<Staged>,
    /// What is written to the state store when the next epoch begins.
    pub(crate) store_writes: Vec<(Arc<str>, Payload)>,
    /// What a loop that is running keeps to itself.
    pub(crate) loop_buffer: Option<LoopBuffer>,
    /// The times of the lanes in this epoch: the age of a message counts on its reader's clock.
    lane_times: Vec<u64>,
}

impl Channels {
    pub(crate) fn new(by_edge: Vec<Channel>, lane_times: Vec<u64>) -> Channels {
        Channels {
            by_edge,
            deferred: Vec::new(),
            store_writes: Vec::new(),
            loop_buffer: None,
            lane_times,
        }
    }

    /// Takes the times of the lanes, which an epoch that begins has set.
    pub(crate) fn set_lane_times(&mut self, times: impl Iterator<Item = u64>) {
        self.lane_times.clear();
        self.lane_times.extend(times);
    }

    /// Returns the time of a lane in this epoch.
    #[inline]
    pub(crate) fn lane_time(&self, lane: usize) -> u64 {
        self.lane_times[lane]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [Channel] {
        &mut self.by_edge
    }
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
