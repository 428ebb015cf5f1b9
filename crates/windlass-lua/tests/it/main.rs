//! What Lua processes promise, on both placements and in the simulator.

mod coroutines;
mod limits;
mod processes;
mod support;
mod tasks;
mod values;
