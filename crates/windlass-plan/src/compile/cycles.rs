//! Which components depend on each other, directly or not: Tarjan's strongly connected components.

use crate::model::{EdgeKind, Graph};

/// The groups of components that reach each other over immediate edges, in the order in which
/// Tarjan's algorithm emits them; the members of each are places in `graph.components`, sorted by
/// id.
///
/// Nodes and their edges are looked at in the order of the file. Edges whose ends do not exist are
/// left out.
pub fn strongly_connected(graph: &Graph) -> Vec<Vec<usize>> {
    let successors = immediate_successors(graph);
    let mut search = Search::new(&successors);
    for node in 0..graph.components.len() {
        search.visit(node);
    }
    let mut groups = search.groups;
    for group in &mut groups {
        group.sort_by(|&a, &b| graph.components[a].id.cmp(&graph.components[b].id));
    }
    groups
}

/// Whether a group is a cycle: it has more than one member, or an edge from its member to itself.
pub fn is_cyclic(graph: &Graph, group: &[usize]) -> bool {
    group.len() > 1
        || graph.edges.iter().any(|edge| {
            let id = &graph.components[group[0]].id;
            edge.kind == EdgeKind::Immediate
                && edge.from.component == *id
                && edge.to.component == *id
        })
}

/// The targets of each component's immediate edges, in the order of the file.
pub(crate) fn immediate_successors(graph: &Graph) -> Vec<Vec<usize>> {
    let mut places = std::collections::HashMap::new();
    for (place, component) in graph.components.iter().enumerate() {
        places.entry(component.id.as_str()).or_insert(place);
    }
    let mut successors = vec![Vec::new(); graph.components.len()];
    for edge in &graph.edges {
        let ends = (
            places.get(edge.from.component.as_str()),
            places.get(edge.to.component.as_str()),
        );
        if let (EdgeKind::Immediate, (Some(&from), Some(&to))) = (edge.kind, ends) {
            successors[from].push(to);
        }
    }
    successors
}

/// Tarjan's search with a stack of its own: a chain of thousands must not use the thread's.
struct Search<'a> {
    successors: &'a [Vec<usize>],
    /// When a node was found; 0 if it was not.
    found: Vec<usize>,
    /// The oldest node that is known to be reachable from it.
    low: Vec<usize>,
    on_stack: Vec<bool>,
    stack: Vec<usize>,
    clock: usize,
    groups: Vec<Vec<usize>>,
}

impl<'a> Search<'a> {
    fn new(successors: &'a [Vec<usize>]) -> Search<'a> {
        let nodes = successors.len();
        Search {
            successors,
            found: vec![0; nodes],
            low: vec![0; nodes],
            on_stack: vec![false; nodes],
            stack: Vec::new(),
            clock: 0,
            groups: Vec::new(),
        }
    }

    fn visit(&mut self, root: usize) {
        if self.found[root] != 0 {
            return;
        }
        // A node and how many of its successors have been looked at.
        let mut path = vec![(root, 0)];
        self.enter(root);
        while let Some((node, looked_at)) = path.last_mut() {
            let node = *node;
            match self.successors[node].get(*looked_at) {
                Some(&next) => {
                    *looked_at += 1;
                    if self.found[next] == 0 {
                        self.enter(next);
                        path.push((next, 0));
                    } else if self.on_stack[next] {
                        self.low[node] = self.low[node].min(self.found[next]);
                    }
                }
                None => {
                    path.pop();
                    if let Some(&(above, _)) = path.last() {
                        self.low[above] = self.low[above].min(self.low[node]);
                    }
                    if self.low[node] == self.found[node] {
                        self.emit(node);
                    }
                }
            }
        }
    }

    fn enter(&mut self, node: usize) {
        self.clock += 1;
        self.found[node] = self.clock;
        self.low[node] = self.clock;
        self.on_stack[node] = true;
        self.stack.push(node);
    }

    fn emit(&mut self, root: usize) {
        let mut group = Vec::new();
        while let Some(node) = self.stack.pop() {
            self.on_stack[node] = false;
            group.push(node);
            if node == root {
                break;
            }
        }
        self.groups.push(group);
    }
}
