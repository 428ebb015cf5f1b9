//! Who decides which guest runs.

/// Who decides which guest runs when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// One control loop, on workers of its own: decisions can be recorded and replayed.
    #[default]
    Reactor,
    /// The workers of the runtime, each for itself, with work stealing: faster.
    Pool,
}
