//! Running a program under many seeds.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use windlass_core::sched::simulate::Trace;
use windlass_core::sync::Arc;

use super::Simulator;
use crate::handle::Handle;
use crate::runtime::Runtime;

/// The variable that holds the one seed to run.
const SEED: &str = "WINDLASS_SEED";

/// Runs `program` once for each seed from 0 to `seeds - 1`, twice each, and compares the traces.
///
/// A program that panics under a seed has that seed printed, and `WINDLASS_SEED=<seed>` in the
/// environment then runs this one alone. `#[windlass::test(simulated, seeds = 1000)]` is made of
/// this.
///
/// A task that panics fails the run as well if its panic is not seen: its handle was dropped, or
/// never awaited. Processes are reported by their supervisors; see [`expect_panics`] for other
/// exceptions.
///
/// # Panics
/// As the program does; if the panic of a task was not seen; and if the two runs of a seed
/// differ, which means that the program has another input than the simulator.
pub fn explore<F>(seeds: u64, program: impl Fn() -> F)
where
    F: Future<Output = ()>,
{
    match std::env::var(SEED).ok() {
        Some(text) => match text.trim().parse() {
            Ok(seed) => check(seed, &program),
            Err(_) => panic!("{SEED} must be a number, the seed to run; it is {text:?}"),
        },
        None => (0..seeds).for_each(|seed| check(seed, &program)),
    }
}

fn check<F: Future<Output = ()>>(seed: u64, program: &impl Fn() -> F) {
    let (first, second) = (run(seed, program), run(seed, program));
    assert!(
        first.hash == second.hash,
        "seed {seed} gave two different traces ({} and {} steps): the program has an input that the \
         simulator does not control, such as a clock, a thread, a random hash map or a file\n\
         first:  {:?}\nsecond: {:?}",
        first.steps,
        second.steps,
        first.latest.back(),
        second.latest.back(),
    );
}

fn run<F: Future<Output = ()>>(seed: u64, program: &impl Fn() -> F) -> Trace {
    let runtime = Runtime::simulated(seed);
    let failed =
        || eprintln!("the simulation failed with seed {seed}; to replay it: {SEED}={seed}");
    let trace = match catch_unwind(AssertUnwindSafe(|| runtime.block_on(program()))) {
        Ok(()) => runtime.trace().unwrap_or_default(),
        Err(panic) => {
            failed();
            resume_unwind(panic)
        }
    };
    let unobserved = runtime.handle().unobserved_panics();
    if !unobserved.is_empty() {
        failed();
        panic!(
            "tasks panicked and nobody was told: {}. Await their handles, or call \
             simulator::expect_panics() if they are meant to",
            unobserved.join("; ")
        );
    }
    trace
}

/// Panics of tasks are expected until this is dropped; see [`expect_panics`].
#[derive(Debug)]
#[must_use = "panics are expected until this is dropped"]
pub struct ExpectPanics(Option<Arc<Simulator>>);

/// From now on tasks of this simulation may panic unseen, until the guard is
/// dropped. Outside of a simulation it has no effect: there unseen panics are not looked for.
pub fn expect_panics() -> ExpectPanics {
    let runtime = Handle::try_current().ok();
    let simulator = runtime.and_then(|runtime| runtime.shared().simulator().cloned());
    if let Some(simulator) = &simulator {
        simulator.world().begin_expecting_panics();
    }
    ExpectPanics(simulator)
}

impl Drop for ExpectPanics {
    fn drop(&mut self) {
        if let Some(simulator) = &self.0 {
            simulator.world().end_expecting_panics();
        }
    }
}
