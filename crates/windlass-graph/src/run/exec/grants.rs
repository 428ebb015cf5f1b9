//! What the system gave to the threads of lanes, and what it refused.

use windlass_runtime::dispatch::Attributes;

use crate::run::exec::driver_thread::driver_lane;
use crate::run::exec::memory_lock::RunMemory;
use crate::run::exec::pool::Pool;
use crate::run::exec::thread_attributes::{refused, wanted};
use windlass_plan::model::Graph;

/// What the system gave to a lane's threads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneGrant {
    /// The id of the lane.
    pub lane: String,
    /// What each thread has, as read back.
    pub threads: Vec<String>,
    /// What was refused.
    pub refused: Vec<String>,
}

/// What the threads of the lanes were found to have.
pub(crate) struct Grants<'a> {
    pub(crate) graph: &'a Graph,
    /// What the run's own thread has, if it has one.
    pub(crate) driver: Option<&'a Attributes>,
    pub(crate) memory: &'a RunMemory,
}

impl Grants<'_> {
    /// What a lane got; none if it asked for nothing.
    pub(crate) fn of(&self, place: usize, pools: &[Pool]) -> Option<LaneGrant> {
        let lane = &self.graph.lanes[place];
        let wanted = wanted(self.graph, lane);
        let mut found: Vec<Attributes> = pools.iter().flat_map(|pool| pool.attributes()).collect();
        if driver_lane(self.graph) == Some(place) {
            found.extend(self.driver.cloned());
        }
        let mut grant = LaneGrant {
            lane: lane.id.clone(),
            threads: found.iter().filter_map(in_words).collect(),
            refused: found.iter().flat_map(|got| refused(&wanted, got)).collect(),
        };
        grant.refused.sort_unstable();
        grant.refused.dedup();
        if lane.mlock {
            match self.memory.refused() {
                None => grant.threads.push("memory locked".to_owned()),
                Some(why) => grant.refused.push(format!("mlock: {why}")),
            }
        }
        (!grant.threads.is_empty() || !grant.refused.is_empty()).then_some(grant)
    }
}

/// What a thread has that not all have.
fn in_words(got: &Attributes) -> Option<String> {
    let affinity = got.affinity.as_ref().map(|cpus| format!("cpus {cpus:?}"));
    let nice = got.nice.map(|nice| format!("nice {nice}"));
    let policy = got.scheduling.map(|policy| format!("{policy:?}"));
    let parts: Vec<String> = affinity.into_iter().chain(nice).chain(policy).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}
