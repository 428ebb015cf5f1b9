//! The attributes of a lane's threads: CPUs, niceness and scheduling policy, as the graph asks for
//! them.

use windlass_runtime::dispatch::{Attributes, Builder, OnRefusal, Scheduling};

use windlass_plan::model::{Graph, Lane, OsPolicy, RtPolicy};

/// Gives the threads of a builder the attributes that their lane asks for.
pub(crate) fn with_attributes(mut builder: Builder, graph: &Graph, lane: &Lane) -> Builder {
    let wanted = wanted(graph, lane);
    if let Some(cpus) = wanted.affinity {
        builder = builder.affinity(cpus);
    }
    if let Some(nice) = wanted.nice {
        builder = builder.nice(nice);
    }
    if let Some(scheduling) = wanted.scheduling {
        builder = builder.scheduling(scheduling);
    }
    builder.on_refusal(match lane.os_policy {
        OsPolicy::Warn => OnRefusal::Warn,
        OsPolicy::Strict => OnRefusal::Strict,
    })
}

/// What a lane's threads should have.
pub(crate) fn wanted(graph: &Graph, lane: &Lane) -> Attributes {
    Attributes {
        affinity: cpus(graph, lane),
        nice: (lane.nice_priority != 0).then_some(lane.nice_priority),
        scheduling: scheduling(lane),
    }
}

/// The CPUs that a lane's threads may use; none: all. Those that are kept for other lanes are not
/// among them, unless nothing else is left.
fn cpus(graph: &Graph, lane: &Lane) -> Option<Vec<usize>> {
    let others = graph
        .lanes
        .iter()
        .filter(|l| l.id != lane.id && l.is_exclusive());
    let kept: Vec<usize> = others
        .flat_map(|other| other.cpu_affinity.clone())
        .collect();
    let mut mine = lane.cpu_affinity.clone();
    if mine.is_empty() {
        if kept.is_empty() {
            return None;
        }
        mine = (0..windlass_plan::check::HostInfo::this().cpus).collect();
    }
    let left: Vec<usize> = mine
        .iter()
        .copied()
        .filter(|cpu| !kept.contains(cpu))
        .collect();
    let mut cpus = if left.is_empty() { mine } else { left };
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

fn scheduling(lane: &Lane) -> Option<Scheduling> {
    let priority = u32::try_from(lane.rt_priority).unwrap_or(0);
    match lane.real_time()? {
        RtPolicy::Fifo => Some(Scheduling::Fifo { priority }),
        RtPolicy::RoundRobin => Some(Scheduling::RoundRobin { priority }),
        RtPolicy::Deadline => {
            let period = lane.cadence();
            let deadline = match lane.deadline {
                none if none.is_zero() => period,
                deadline => deadline.min(period),
            };
            let runtime = match lane.tick_budget {
                none if none.is_zero() => period / 2,
                budget => budget.min(deadline),
            };
            (!period.is_zero()).then_some(Scheduling::Deadline {
                runtime,
                deadline,
                period,
            })
        }
    }
}

/// Returns what was wanted and not given.
pub(crate) fn refused(wanted: &Attributes, got: &Attributes) -> Vec<String> {
    let mut refused = Vec::new();
    let mut compare = |same: bool, what: String| {
        if !same {
            refused.push(what);
        }
    };
    if let Some(cpus) = &wanted.affinity {
        compare(
            got.affinity.as_ref() == Some(cpus),
            format!("cpus {cpus:?}"),
        );
    }
    if let Some(nice) = wanted.nice {
        compare(got.nice == Some(nice), format!("nice {nice}"));
    }
    if let Some(policy) = wanted.scheduling {
        compare(got.scheduling == Some(policy), format!("{policy:?}"));
    }
    refused
}
