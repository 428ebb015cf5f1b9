//! From a graph to regions and their order.
//!
//! A *region* is what runs as one: a component, or the members of a composite loop. Regions are
//! ordered by their immediate edges alone: what the other kinds carry becomes visible in a later
//! epoch.

mod cycles;
mod order;
mod plan;
mod plan_json;

pub use cycles::{is_cyclic, strongly_connected};
pub use plan::{CompileError, EdgePlan, NodePlan, Plan, PortPlan, Region, compile};
