//! Fork-join: closures that borrow, run in parallel by the runtime's own workers.
//!
//! ```
//! use windlass_runtime::fork_join::join;
//!
//! fn sum(numbers: &[u64]) -> u64 {
//!     if numbers.len() <= 1_000 {
//!         return numbers.iter().sum();
//!     }
//!     let (left, right) = numbers.split_at(numbers.len() / 2);
//!     let (left, right) = join(|| sum(left), || sum(right));
//!     left + right
//! }
//!
//! let numbers: Vec<u64> = (0..100_000).collect();
//! assert_eq!(sum(&numbers), 4_999_950_000);
//! ```
//! | | |
//! |---|---|
//! | [`join`] | two closures, both results |
//! | [`scope`] | as many closures as you like, all of which end before it returns |
//! | [`par_for_each`], [`par_map`] | the same for every item of a slice or range |
//! | [`Flow`] | steps that wait for each other, made once and run often |
//!
//! **Where it runs.** On a worker (inside a task) the calling thread begins at once, and other
//! workers of the same runtime take what it has not come to. On a plain thread the whole call moves
//! to the runtime the thread is in, or else to the process-wide default, and the thread waits.
//! Tasks come first: a worker takes part only when it finds no task to run. But what it has taken
//! it finishes, and if all workers are at it, a task waits until one is done: after one of many
//! pieces in [`par_for_each`], after up to half of everything in a [`join`] of two large halves. A
//! simulated runtime has one worker and runs everything in order.
//!
//! **What holds.** All closures have ended when the function returns, also when it panics: nothing
//! that they borrow can be gone. Panics are resumed in the caller after that.
//!
//! **Holding a `std` lock across one of these is the error of holding it across `.await`.** The
//! worker that waits runs other parts of the same computation meanwhile, and another worker may run
//! what the lock keeps out. It waits for the caller then, and the caller for it.
//!
//! These functions take the calling thread until everything has ended. That is their purpose for
//! computations; for what waits (sockets, timers, channels) use tasks.

mod first_panic;
mod flow;
mod injected_call;
mod join;
mod output_slice;
mod par;
mod scope;
mod thieves;

use windlass_core::unwind::PanicPayload;

pub use flow::{Flow, FlowError};
pub use join::join;
pub use par::{Grain, Parallel, par_for_each, par_map, with_grain};
pub use scope::{Scope, scope};

/// Drops a panic's payload whose place another one takes; its destructor is user code.
fn forget_payload(payload: PanicPayload) {
    windlass_core::task::contain(|| drop(payload));
}
