//! Running a program under many seeds.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use windlass_core::sched::simulate::Trace;

use crate::runtime::Runtime;

/// The variable that holds the one seed to run.
const SEED: &str = "WINDLASS_SEED";

/// Runs `program` once for each seed from 0 to `seeds - 1`, twice each, and compares the traces.
///
/// A program that panics under a seed has that seed printed, and `WINDLASS_SEED=<seed>` in the
/// environment then runs this one alone. `#[windlass::test(simulated, seeds = 1000)]` is made of
/// this.
///
/// # Panics
/// As the program does; and if the two runs of a seed differ, which means that the program has
/// another input than the simulator.
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
    match catch_unwind(AssertUnwindSafe(|| runtime.block_on(program()))) {
        Ok(()) => runtime.trace().unwrap_or_default(),
        Err(panic) => {
            eprintln!("the simulation failed with seed {seed}; to replay it: {SEED}={seed}");
            resume_unwind(panic)
        }
    }
}
