//! Components: their type, their lane, and what they are started after.

use super::Level;
use super::context::Context;
use crate::catalog::{Descriptor, came_with_version_2};
use crate::diagnostic::{Code, Diagnostic};
use crate::suggest::did_you_mean;

pub(super) fn check(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    for (place, component) in context.graph.components.iter().enumerate() {
        let name = &component.type_name;
        let has_to_be_known = match context.level {
            Level::Schema => false,
            Level::OwnTypes => is_own(name),
            Level::Registry => true,
        };
        if has_to_be_known && context.descriptor(place).is_none() {
            let message = format!("component type {name:?} does not exist");
            let path = format!("components[{place}].type");
            let finding = Diagnostic::new(Code::UnknownComponent, path, message);
            found.push(
                finding
                    .component(&component.id)
                    .fix(context.similar_type(name)),
            );
        }
        if context.graph.schema_version < 2 && came_with_version_2(name) {
            let message = format!("component type {name:?} came with schema version 2");
            let path = format!("components[{place}].type");
            let finding = Diagnostic::new(Code::GraphValidationError, path, message);
            found.push(
                finding
                    .component(&component.id)
                    .fix("write `schema_version: 2`"),
            );
        }
        let lane = &component.execution.lane;
        if context.lane(lane).is_none() {
            let message = format!("lane {lane:?} does not exist");
            let path = format!("components[{place}].execution.lane");
            let finding = Diagnostic::new(Code::GraphValidationError, path, message);
            found.push(
                finding
                    .component(&component.id)
                    .fix(context.similar_lane(lane)),
            );
        }
        timeout(context, place, found);
        for (nth, id) in component.depends_on.iter().enumerate() {
            if context.component(id).is_none() {
                let message = format!("component {id:?}, to be started before, does not exist");
                let path = format!("components[{place}].depends_on[{nth}]");
                let finding = Diagnostic::new(Code::UnknownComponent, path, message);
                found.push(
                    finding
                        .component(&component.id)
                        .fix(context.similar_component(id)),
                );
            }
        }
    }
    start_order(context, found);
}

/// How the names of this project's types begin.
const OWN: [&str; 2] = ["windlass", "topoexec"];

/// Whether a type can only be one of this project's: its name begins as theirs do, or nearly so.
fn is_own(type_name: &str) -> bool {
    let Some((namespace, _)) = type_name.split_once('.') else {
        return false;
    };
    OWN.contains(&namespace) || did_you_mean(namespace, OWN).is_some()
}

/// Whether the invocations of a component can be ended as `timeout_ms` demands.
fn timeout(context: &Context<'_>, place: usize, found: &mut Vec<Diagnostic>) {
    let component = &context.graph.components[place];
    if component.execution.timeout.is_zero() {
        return;
    }
    let path = format!("components[{place}].execution.timeout_ms");
    if component.execution.reentrant {
        let message = "`timeout_ms` needs one invocation at a time, and `reentrant: true` lets several overlap";
        let finding = Diagnostic::new(Code::GraphValidationError, &*path, message);
        found.push(finding.component(&component.id).fix("remove one of them"));
    }
    // An unknown type may do anything.
    let stays = |descriptor: &Descriptor| !descriptor.preemptible;
    if context.descriptor(place).is_some_and(stays) {
        let message = format!(
            "the type `{}` cannot be pre-empted: what takes longer than `timeout_ms` is asked to cancel and counted, \
             as with `max_callback_ms`, and goes on until it sees that",
            component.type_name
        );
        let finding = Diagnostic::new(Code::CannotPreempt, path, message);
        let fix = "use a guest component, or move it to a lane with `max_callback_ms`";
        found.push(finding.component(&component.id).fix(fix));
    }
}

/// Reports the components that would each have to be started before another of them.
fn start_order(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let components = &context.graph.components;
    let mut needs = vec![Vec::new(); components.len()];
    let mut needed_by = vec![Vec::new(); components.len()];
    for (place, component) in components.iter().enumerate() {
        for other in component
            .depends_on
            .iter()
            .filter_map(|id| context.component(id))
        {
            needs[place].push(other);
            needed_by[other].push(place);
        }
    }
    // A component that depends on none, or that none depends on, is in no cycle. These are taken
    // away until only components in cycles are left.
    let mut left = vec![true; components.len()];
    remove_free(&mut left, &needs, &needed_by);
    remove_free(&mut left, &needed_by, &needs);
    let stuck: Vec<usize> = (0..components.len()).filter(|&place| left[place]).collect();
    if let Some(&first) = stuck.first() {
        let message = "depends_on goes round in a circle: none of these can be started first";
        let path = format!("components[{first}].depends_on");
        let finding = Diagnostic::new(Code::GraphValidationError, path, message);
        let finding = stuck.iter().fold(finding, |finding, &place| {
            finding.component(&components[place].id)
        });
        found.push(finding.fix("remove one of the dependencies"));
    }
}

/// Removes what needs nothing that is left, until nothing more can be removed.
fn remove_free(left: &mut [bool], needs: &[Vec<usize>], needed_by: &[Vec<usize>]) {
    let still_left =
        |left: &[bool], place: usize| needs[place].iter().filter(|&&n| left[n]).count();
    let mut open: Vec<usize> = (0..left.len())
        .map(|place| still_left(left, place))
        .collect();
    let mut free: Vec<usize> = (0..left.len())
        .filter(|&place| left[place] && open[place] == 0)
        .collect();
    while let Some(place) = free.pop() {
        left[place] = false;
        for &other in &needed_by[place] {
            open[other] = open[other].saturating_sub(1);
            if left[other] && open[other] == 0 {
                free.push(other);
            }
        }
    }
}
