//! In which order regions run (Kahn), and in which order components are started.

use std::collections::VecDeque;

use super::plan::Region;
use crate::model::{Graph, Priority};

/// The order of the regions, given in the order in which Tarjan's algorithm emitted them.
///
/// Those that are ready wait in a queue that is sorted by priority, and otherwise stays as it is:
/// the first ones in the order of `regions`, later ones as their last predecessor is taken, by id.
pub(super) fn region_order(graph: &Graph, regions: &[Region]) -> Vec<usize> {
    let urgency: Vec<Priority> = regions
        .iter()
        .map(|region| region_priority(graph, region))
        .collect();
    let mut waiting_for: Vec<usize> = regions.iter().map(|r| r.incoming.len()).collect();
    let mut ready: VecDeque<usize> = (0..regions.len())
        .filter(|&r| waiting_for[r] == 0)
        .collect();
    ready.make_contiguous().sort_by_key(|&r| urgency[r]);
    let mut order = Vec::with_capacity(regions.len());
    while let Some(region) = ready.pop_front() {
        order.push(region);
        let mut freed = Vec::new();
        for &next in &regions[region].outgoing {
            waiting_for[next] -= 1;
            if waiting_for[next] == 0 {
                freed.push(next);
            }
        }
        freed.sort_by(|&a, &b| regions[a].id.cmp(&regions[b].id));
        for next in freed {
            insert_by_urgency(&mut ready, next, &urgency);
        }
    }
    order
}

/// Behind all that are as urgent: what pushing it to the end and sorting stably comes to.
fn insert_by_urgency(ready: &mut VecDeque<usize>, region: usize, urgency: &[Priority]) {
    let place = ready.partition_point(|&other| urgency[other] <= urgency[region]);
    ready.insert(place, region);
}

/// The highest of its members; `High` is the least value.
fn region_priority(graph: &Graph, region: &Region) -> Priority {
    region
        .components
        .iter()
        .map(|&member| graph.components[member].execution.priority)
        .min()
        .unwrap_or_default()
}

/// The components in the order of the file, each after those it depends on. Those of a circle come
/// last; the checks refuse it.
pub(super) fn start_order(graph: &Graph) -> Vec<usize> {
    let place_of: std::collections::HashMap<&str, usize> = graph
        .components
        .iter()
        .enumerate()
        .map(|(place, component)| (component.id.as_str(), place))
        .collect();
    let mut dependents = vec![Vec::new(); graph.components.len()];
    let mut waiting_for = vec![0; graph.components.len()];
    for (place, component) in graph.components.iter().enumerate() {
        for other in &component.depends_on {
            if let Some(&other) = place_of.get(other.as_str()) {
                dependents[other].push(place);
                waiting_for[place] += 1;
            }
        }
    }
    let mut ready: std::collections::BTreeSet<usize> = (0..waiting_for.len())
        .filter(|&place| waiting_for[place] == 0)
        .collect();
    let mut order = Vec::with_capacity(waiting_for.len());
    while let Some(place) = ready.pop_first() {
        order.push(place);
        for &next in &dependents[place] {
            waiting_for[next] -= 1;
            if waiting_for[next] == 0 {
                ready.insert(next);
            }
        }
    }
    order.extend((0..waiting_for.len()).filter(|&place| waiting_for[place] > 0));
    order
}
