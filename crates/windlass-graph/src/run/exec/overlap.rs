//! Regions that overlap: those without a path between them, on lanes with threads.
//!
//! Regions are *collected* in the compiled order, and *committed* in the compiled order.
//! Ahead of its turn a region is collected as soon as everything before it in that order is
//! collected, and everything that leads to it is committed. Its invocations fly then, on the
//! threads of its lane; or are called here, while others fly. So:
//!
//! * what a region collects is what it would collect in its turn: it reads what its predecessors
//!   have committed, and no other region writes there;
//! * invocations are numbered in the same order as without overlap;
//! * counts, trace and order of a region are written when it is committed.
//!
//! Loops, output boundaries, and lanes that may refuse to go on (`fail_fast`) are not collected
//! ahead: they run in their turn, when everything before them is committed and nothing else is
//! under way.

use std::collections::VecDeque;

use crate::run::exec::flight::EarlyFlight;
use crate::run::run_state::{Halt, RunState};
use windlass_plan::compile::Plan;
use windlass_plan::model::{BoundaryRole, LaneKind, LaneOverflow};

/// Which regions may be collected ahead of their turn.
#[derive(Debug)]
pub(crate) struct Overlap {
    /// Whether each region may, by region.
    may_fly: Vec<bool>,
    /// Whether any two may be under way at once.
    pub(crate) is_possible: bool,
}

impl Overlap {
    /// `role` says the boundary role of a component.
    pub(crate) fn of(plan: &Plan, role: impl Fn(usize) -> BoundaryRole) -> Overlap {
        let lane_of = |component: usize| &plan.graph.lanes[plan.nodes[component].lane];
        let may_fly = |region: &windlass_plan::compile::Region| match region.components.as_slice() {
            &[component] if region.composite_loop.is_none() => {
                let lane = lane_of(component);
                let refuses =
                    lane.kind == LaneKind::ThreadPool && lane.overflow == LaneOverflow::FailFast;
                let is_output = matches!(
                    role(component),
                    BoundaryRole::Output | BoundaryRole::InputOutput
                );
                !refuses && !is_output
            }
            _ => false,
        };
        let may_fly: Vec<bool> = plan.regions.iter().map(may_fly).collect();
        // One on threads of its own is enough: another may run here meanwhile.
        let threaded = plan
            .regions
            .iter()
            .zip(&may_fly)
            .filter(|(region, may_fly)| {
                **may_fly
                    && matches!(
                        lane_of(region.components[0]).kind,
                        LaneKind::ThreadPool | LaneKind::IsolatedThread
                    )
            });
        let is_possible = threaded.count() > 0 && may_fly.iter().filter(|may| **may).count() > 1;
        Overlap {
            may_fly,
            is_possible,
        }
    }
}

impl RunState {
    /// The regions of an epoch, as far ahead of their turns as may be.
    pub(crate) async fn regions_overlapping(&mut self) -> Result<(), Halt> {
        let tables = self.tables.clone();
        let plan = &*tables.plan;
        let mut committed = vec![false; plan.regions.len()];
        // None: not due in this epoch.
        let mut flights: VecDeque<Option<EarlyFlight>> = VecDeque::new();
        let mut ahead = 0;
        let mut result = Ok(());
        for (turn, &place) in plan.order.iter().enumerate() {
            while let Some(&next) = plan.order.get(ahead) {
                let region = &plan.regions[next];
                let may_fly = tables.overlap.may_fly[next]
                    // What it says about itself during its turn counts in its turn.
                    && !self.members.has_door(region.components[0])
                    && region.incoming.iter().all(|&before| committed[before])
                    // With nothing under way it may as well be run at once.
                    && (self.has_threads(region.components[0]) || !flights.is_empty());
                if !may_fly {
                    break;
                }
                ahead += 1;
                let collected = match self.skips(region) {
                    true => Ok(None),
                    false => self.collect_ahead(region.components[0]).map(Some),
                };
                match collected {
                    Ok(flight) => flights.push_back(flight),
                    // Nothing that flies can refuse.
                    Err(halt) => result = Err(halt),
                }
            }
            result = match flights.pop_front() {
                Some(Some(flight)) => result.and(self.land_ahead(flight).await),
                Some(None) => result,
                None => {
                    ahead = turn + 1;
                    result.and(self.region_in_turn(plan, place).await)
                }
            };
            if result.is_err() {
                break;
            }
            committed[place] = true;
        }
        for flight in flights.into_iter().flatten() {
            self.recall(flight).await;
        }
        result
    }

    fn has_threads(&self, component: usize) -> bool {
        self.tables.components[component].pool.is_some()
    }
}
