//! Dispatchers: where work runs, goes on, and ends.

mod io;
mod private;
mod promises;
mod simulated;
mod unconfined;

/// The name of this thread.
fn here() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}
