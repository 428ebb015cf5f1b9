//! What all rules look things up in.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::{HostInfo, Level};
use crate::catalog::{Catalog, Descriptor};
use crate::model::{BoundaryRole, Edge, Graph, Lane};
use crate::suggest::did_you_mean;

/// How often a check may look for a similar name, which means to compare with all others.
const MAX_SUGGESTIONS: usize = 16;

/// A graph with indices. Of two things with the same id the first counts.
pub(super) struct Context<'a> {
    pub(super) graph: &'a Graph,
    pub(super) level: Level,
    pub(super) host: &'a HostInfo,
    pub(super) catalog: &'a dyn Catalog,
    components: HashMap<&'a str, usize>,
    lanes: HashMap<&'a str, usize>,
    /// The edges that end at each component.
    incoming: Vec<Vec<usize>>,
    /// The ports of edges that end at components that do not exist.
    to_nowhere: HashSet<&'a str>,
    descriptors: Vec<Option<Cow<'a, Descriptor>>>,
    suggestions: Cell<usize>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        catalog: &'a dyn Catalog,
        level: Level,
        host: &'a HostInfo,
    ) -> Context<'a> {
        let components = places(graph.components.iter().map(|c| c.id.as_str()));
        let mut incoming = vec![Vec::new(); graph.components.len()];
        let mut to_nowhere = HashSet::new();
        for (place, edge) in graph.edges.iter().enumerate() {
            match components.get(edge.to.component.as_str()) {
                Some(&to) => incoming[to].push(place),
                None => {
                    to_nowhere.insert(edge.to.port.as_str());
                }
            }
        }
        Context {
            graph,
            level,
            host,
            catalog,
            components,
            lanes: places(graph.lanes.iter().map(|lane| lane.id.as_str())),
            incoming,
            to_nowhere,
            descriptors: graph
                .components
                .iter()
                .map(|component| {
                    let written = catalog.descriptor(&component.type_name)?;
                    // What is wrong with the ports of a configuration is for `config.rs` to say.
                    // Until it is corrected, any port may be meant.
                    let resolved = written.for_config(&component.config);
                    Some(resolved.unwrap_or_else(|_| Cow::Owned(written.clone().open_ports())))
                })
                .collect(),
            suggestions: Cell::new(0),
        }
    }

    /// The place of a component.
    pub(super) fn component(&self, id: &str) -> Option<usize> {
        self.components.get(id).copied()
    }

    pub(super) fn lane(&self, id: &str) -> Option<&'a Lane> {
        self.lanes.get(id).map(|&place| &self.graph.lanes[place])
    }

    /// The edges that end at a component, with their places.
    pub(super) fn incoming(&self, component: usize) -> impl Iterator<Item = (usize, &'a Edge)> {
        self.incoming[component]
            .iter()
            .map(|&place| (place, &self.graph.edges[place]))
    }

    /// Whether an earlier component has the same id. That is an error of its own, and edges end at
    /// the first.
    pub(super) fn is_duplicate(&self, component: usize) -> bool {
        self.component(&self.graph.components[component].id) != Some(component)
    }

    /// Whether an edge that leads nowhere may be meant for this input: one to a component that does
    /// not exist, or to a port that this component does not have. That is an error of its own.
    pub(super) fn may_be_meant(&self, component: usize, input: &str) -> bool {
        let has_port = |port: &str| {
            self.descriptor(component)
                .is_none_or(|d| d.open_ports || d.inputs.iter().any(|there| there.name == port))
        };
        let mut incoming = self.incoming(component);
        incoming.any(|(_, edge)| !has_port(&edge.to.port)) || self.to_nowhere.contains(input)
    }

    /// What is known about the type of a component.
    pub(super) fn descriptor(&self, component: usize) -> Option<&Descriptor> {
        self.descriptors[component].as_deref()
    }

    /// The role of a component: as written, or else its type's; none if the type is unknown.
    pub(super) fn role(&self, component: usize) -> Option<BoundaryRole> {
        let written = self.graph.components[component].boundary.role;
        written.or_else(|| self.descriptor(component).map(|d| d.boundary_role))
    }

    /// A fix for a type that is not known.
    pub(super) fn similar_type(&self, name: &str) -> String {
        // A typing error in a former name is close to a present one only without its namespace.
        let present = name.replacen("topoexec.transforms.", "windlass.transform.", 1);
        let present = present.replacen("topoexec.", "windlass.", 1);
        self.similar(&present, self.catalog.names().into_iter())
            .unwrap_or_else(|| "register it, or use another type".to_owned())
    }

    /// Returns a fix for an id that no component has.
    pub(super) fn similar_component(&self, id: &str) -> String {
        let ids = self.graph.components.iter().map(|c| c.id.as_str());
        self.similar(id, ids)
            .unwrap_or_else(|| format!("add a component \"{id}\", or name another"))
    }

    /// Returns a fix for an id that no lane has.
    pub(super) fn similar_lane(&self, id: &str) -> String {
        let ids = self.graph.lanes.iter().map(|lane| lane.id.as_str());
        self.similar(id, ids)
            .unwrap_or_else(|| format!("add a lane \"{id}\", or name another"))
    }

    fn similar(&self, name: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
        let so_far = self.suggestions.get();
        self.suggestions.set(so_far.saturating_add(1));
        (so_far < MAX_SUGGESTIONS)
            .then(|| did_you_mean(name, known))
            .flatten()
    }
}

fn places<'a>(ids: impl Iterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    let mut places = HashMap::new();
    for (place, id) in ids.enumerate() {
        places.entry(id).or_insert(place);
    }
    places
}
