//! The thread that a run on the real clock is driven by: that of its most urgent lane on the clock.

use windlass_runtime::dispatch::{Attributes, Builder, Dispatcher, OnRefusal};

use crate::run::exec::pool::thread_name;
use crate::run::exec::thread_attributes::{refused, wanted, with_attributes};
use windlass_plan::model::{Graph, Lane, OsPolicy, RtPolicy};

/// The lane whose thread a run on the real clock is driven by: the most urgent.
pub(crate) fn driver_lane(graph: &Graph) -> Option<usize> {
    let on_clock = graph
        .lanes
        .iter()
        .enumerate()
        .filter(|(_, l)| l.follows_clock());
    let urgency = |lane: &Lane| {
        let real_time = match lane.real_time() {
            // Before every other policy.
            Some(RtPolicy::Deadline) => i32::MAX,
            Some(RtPolicy::Fifo | RtPolicy::RoundRobin) => lane.rt_priority,
            None => 0,
        };
        (real_time, -lane.nice_priority)
    };
    // The first of the most urgent.
    let most = on_clock.rev().max_by_key(|(_, lane)| urgency(lane));
    most.map(|(place, _)| place)
}

/// The thread that a run on the real clock is driven by.
pub(crate) fn driver_thread(graph: &Graph, place: usize) -> Builder {
    let lane = &graph.lanes[place];
    let builder = Dispatcher::builder(1).name(thread_name(lane));
    // Whether that is enough is for the run to say, on that thread.
    with_attributes(builder, graph, lane).on_refusal(OnRefusal::Warn)
}

/// What the system refused to a lane that demands it.
pub(crate) fn refused_strictly(graph: &Graph, place: usize, got: &Attributes) -> Vec<String> {
    let lane = &graph.lanes[place];
    match lane.os_policy {
        OsPolicy::Warn => Vec::new(),
        OsPolicy::Strict => refused(&wanted(graph, lane), got),
    }
}
