//! What the measurements of all areas share.

use std::fmt::Debug;

use divan::Bencher;
use divan::counter::IntoCounter;
use windlass::Runtime;

/// Measures `work` as a task of a runtime with a worker per processor, and checks its result.
pub(crate) fn measure<F>(
    bencher: Bencher<'_, '_>,
    count: impl IntoCounter,
    expected: F::Output,
    work: impl Fn() -> F,
) where
    F: Future<Output: PartialEq + Debug + Send> + Send + 'static,
{
    let runtime = runtime();
    bencher.counter(count).bench_local(|| {
        let result = runtime.block_on(runtime.spawn(work()));
        assert_eq!(result.expect("it ends"), expected);
    });
}

pub(crate) fn runtime() -> Runtime {
    Runtime::new().expect("a runtime starts")
}
