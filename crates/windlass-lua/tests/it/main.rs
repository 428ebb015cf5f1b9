//! What Lua processes promise, on both placements and in the simulator.

mod arrivals;
mod component;
mod coroutines;
mod examples;
mod files;
mod limits;
mod processes;
mod replay;
mod support;
mod tasks;
mod values;
