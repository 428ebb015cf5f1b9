//! Subgraphs and template instances become plain lists of components, edges and loops.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::template::{Template, instantiate, room_for, templates};
use super::walk::{At, Fields, Walk};
use crate::model::Scope;
use crate::source::{Node, Value};

/// The lists of a graph, a subgraph or a template.
#[derive(Default)]
pub(super) struct Body {
    pub(super) components: Vec<Rc<Node>>,
    pub(super) edges: Vec<Rc<Node>>,
    pub(super) loops: Vec<Rc<Node>>,
}

/// The lists after expansion: in the order of the file, then subgraphs, then template instances.
#[derive(Default)]
pub(super) struct Expanded {
    pub(super) components: Vec<Part>,
    pub(super) edges: Vec<Part>,
    pub(super) loops: Vec<Part>,
    pub(super) scopes: Vec<Names>,
}

/// An item of a list, and the scope that it comes from.
pub(super) struct Part {
    pub(super) node: Rc<Node>,
    pub(super) scope: Option<usize>,
}

/// What a scope calls its own.
pub(super) struct Names {
    pub(super) scope: Scope,
    /// The ids of its components, without its prefix.
    components: HashSet<String>,
}

impl Body {
    /// Takes the lists of a subgraph or a template.
    pub(super) fn read(walk: &mut Walk<'_>, fields: &mut Fields<'_>) -> Body {
        let components = fields.need(walk, "components");
        let edges = fields.get(walk, "edges");
        let loops = fields.get(walk, "composite_loops");
        let mut list = |at: Option<At<'_>>| at.map_or_else(Vec::new, |at| walk.items(&at).to_vec());
        Body {
            components: list(components),
            edges: list(edges),
            loops: list(loops),
        }
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Rc<Node>> {
        self.components.iter().chain(&self.edges).chain(&self.loops)
    }

    pub(super) fn map(&self, mut change: impl FnMut(&Rc<Node>) -> Rc<Node>) -> Body {
        Body {
            components: self.components.iter().map(&mut change).collect(),
            edges: self.edges.iter().map(&mut change).collect(),
            loops: self.loops.iter().map(&mut change).collect(),
        }
    }

    fn size(&self) -> usize {
        self.nodes()
            .fold(0, |size: usize, node| size.saturating_add(node.size))
    }
}

impl Names {
    /// A reference as the whole graph says it: what the scope calls its own gets the prefix.
    pub(super) fn full(&self, component: String) -> String {
        match self.components.contains(&component) {
            true => format!("{}.{component}", self.scope.id),
            false => component,
        }
    }
}

/// Expands what the root of a file has; nothing if it is over a limit, which is reported.
pub(super) fn expand(walk: &mut Walk<'_>, root: &mut Fields<'_>, own: Body) -> Expanded {
    let mut expansion = Expansion {
        expanded: Expanded::default(),
        nodes: 0,
        stopped: false,
    };
    expansion.add(walk, &root.at, own, None);
    if let Some(at) = root.get(walk, "subgraphs") {
        expansion.subgraphs(walk, &at);
    }
    let before = walk.problem_count();
    let templates = root.get(walk, "templates").map(|at| templates(walk, &at));
    if let Some(at) = root.get(walk, "template_instances") {
        expansion.instances(walk, &at, &templates.unwrap_or_default());
    }
    // What a template would have become without its mistakes is not known.
    if expansion.stopped || walk.problem_count() > before {
        walk.give_up_meaning();
    }
    match expansion.stopped {
        true => Expanded::default(),
        false => expansion.expanded,
    }
}

struct Expansion {
    expanded: Expanded,
    /// Nodes so far, each instance counted.
    nodes: usize,
    /// A limit was exceeded: the rest is not looked at.
    stopped: bool,
}

impl Expansion {
    fn subgraphs(&mut self, walk: &mut Walk<'_>, at: &At<'_>) {
        for (nth, node) in walk.items(at).iter().enumerate() {
            let at = walk.at(format!("subgraphs[{nth}]"), node);
            let Some(mut fields) = walk.fields(at) else {
                continue;
            };
            let id = fields.need(walk, "id").and_then(|at| walk.id(&at, None));
            let body = Body::read(walk, &mut fields);
            if id.is_none() {
                // Its components are not called what they would be.
                walk.give_up_meaning();
            }
            self.add(walk, &fields.at, body, Some(id.unwrap_or_default()));
            fields.finish(walk);
        }
    }

    fn instances(
        &mut self,
        walk: &mut Walk<'_>,
        at: &At<'_>,
        templates: &HashMap<String, Template>,
    ) {
        let mut room = room_for(walk);
        for (nth, node) in walk.items(at).iter().enumerate() {
            if walk.is_full() {
                walk.error(at, "the other instances were not looked at", "");
                return;
            }
            let at = walk.at(format!("template_instances[{nth}]"), node);
            let Some(mut fields) = walk.fields(at) else {
                continue;
            };
            let id = fields.need(walk, "id").and_then(|at| walk.id(&at, None));
            let template_at = fields.need(walk, "template");
            let name = template_at.as_ref().and_then(|at| walk.text(at));
            let given = fields.get(walk, "parameters");
            if let (Some(at), Some(name)) = (template_at, name) {
                match templates.get(&name) {
                    Some(template) if !self.stopped => {
                        let body = instantiate(walk, template, &fields.at, given, &mut room);
                        self.stopped |= body.is_none();
                        let body = body.unwrap_or_default();
                        self.add(walk, &fields.at, body, Some(id.unwrap_or_default()));
                    }
                    Some(_) => {}
                    None => {
                        let known = templates.keys().map(String::as_str);
                        let fix =
                            walk.suggest(&name, known, || "declare it in `templates`".to_owned());
                        walk.error(&at, format!("there is no template {name:?}"), fix);
                    }
                }
            }
            fields.finish(walk);
        }
    }

    /// Adds the lists of a body, as long as they are within the limits.
    fn add(&mut self, walk: &mut Walk<'_>, at: &At<'_>, body: Body, scope: Option<String>) {
        if self.stopped {
            return;
        }
        self.nodes = self.nodes.saturating_add(body.size());
        let limits = walk.limits;
        let expanded = &self.expanded;
        let counts = [
            ("node count", self.nodes, limits.input_bytes),
            (
                "component count",
                expanded.components.len() + body.components.len(),
                limits.components,
            ),
            (
                "edge count",
                expanded.edges.len() + body.edges.len(),
                limits.edges,
            ),
            (
                "loop count",
                expanded.loops.len() + body.loops.len(),
                limits.loops,
            ),
        ];
        for (what, count, limit) in counts {
            if count > limit {
                walk.over_limit(at, what, limit);
                self.stopped = true;
            }
        }
        if self.stopped {
            return;
        }
        let scope = scope.map(|id| {
            self.expanded.scopes.push(Names {
                components: body
                    .components
                    .iter()
                    .filter_map(|node| id_of(node))
                    .collect(),
                scope: Scope {
                    id,
                    ..Scope::default()
                },
            });
            self.expanded.scopes.len() - 1
        });
        let parts = |nodes: Vec<Rc<Node>>| nodes.into_iter().map(move |node| Part { node, scope });
        self.expanded.components.extend(parts(body.components));
        self.expanded.edges.extend(parts(body.edges));
        self.expanded.loops.extend(parts(body.loops));
    }
}

fn id_of(node: &Node) -> Option<String> {
    match &node.get("id")?.value {
        Value::Scalar(scalar) => Some(scalar.text.clone()),
        _ => None,
    }
}
