//! From a graph to regions and their order.

mod cycles;

pub use cycles::{is_cyclic, strongly_connected};
