//! Pictures of a plan: for a page (mermaid, dot, SVG) and for a terminal (text).

mod dot;
mod mermaid;
mod svg;
mod text;

use crate::compile::Plan;
use crate::model::{Edge, EdgeKind, named};

named! {
    /// What a plan is drawn as.
    pub enum Picture {
        /// For pages that render it.
        Mermaid = "mermaid",
        /// For a terminal.
        Text = "text",
        /// A text for graphviz.
        Dot = "dot",
        /// An image of its own.
        Svg = "svg",
    }
}

impl Plan {
    /// Draws it.
    ///
    /// ```
    /// use windlass_plan::compile::compile;
    /// use windlass_plan::model::{Component, Edge, EdgeKind, Graph, Lane, LaneKind};
    /// use windlass_plan::render::Picture;
    ///
    /// let mut graph = Graph::new("two");
    /// graph.lanes.push(Lane::new("main", LaneKind::EventLoop));
    /// graph.components.push(Component::new("first", "any.Type", "main"));
    /// graph.components.push(Component::new("second", "any.Type", "main"));
    /// graph.edges.push(Edge::new("e", "first.out", "second.in", EdgeKind::Immediate));
    /// let picture = compile(graph)?.draw(Picture::Mermaid);
    /// assert!(picture.starts_with("flowchart LR"));
    /// # Ok::<(), windlass_plan::compile::CompileError>(())
    /// ```
    pub fn draw(&self, picture: Picture) -> String {
        match picture {
            Picture::Mermaid => mermaid::draw(self),
            Picture::Text => text::draw(self),
            Picture::Dot => dot::draw(self),
            Picture::Svg => svg::draw(self),
        }
    }
}

/// What is written at an edge: its ports, and how it is kept if that is not the usual.
fn label(edge: &Edge) -> String {
    let mut label = if edge.from.port == edge.to.port {
        edge.from.port.clone()
    } else {
        format!("{} → {}", edge.from.port, edge.to.port)
    };
    if edge.kind != EdgeKind::Immediate {
        label.push_str(&format!(" [{}]", edge.kind));
    }
    let policy = &edge.policy;
    if policy.mode != crate::model::Mode::Latest {
        label.push_str(&format!(" {}", policy.mode));
    }
    if policy.capacity > 1 {
        label.push_str(&format!("({})", policy.capacity));
    }
    label
}

/// Whether a message is seen in the epoch in which it was published.
fn is_solid(edge: &Edge) -> bool {
    edge.kind == EdgeKind::Immediate
}
