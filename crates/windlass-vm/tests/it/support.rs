//! What the tests have in common.

use std::future::Future;
use std::time::Duration;

use windlass_runtime::Runtime;
use windlass_runtime::time::timeout;
use windlass_vm::{Builder, Placement, Vm};

/// Whatever takes this long has not been woken.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const BOTH: [Placement; 2] = [Placement::Reactor, Placement::Pool];

/// Runs a test on real workers; what hangs fails.
pub(crate) fn real<F>(workers: usize, test: impl FnOnce() -> F)
where
    F: Future<Output = ()>,
{
    let runtime = Runtime::builder()
        .workers(workers)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let mut test = std::pin::pin!(test());
        if timeout(LONG, test.as_mut()).await.is_err() {
            let mut dump = Vec::new();
            let _ = windlass_runtime::Handle::current().debug_dump(&mut dump);
            panic!("it hangs:\n{}", String::from_utf8_lossy(&dump));
        }
    });
    runtime.shutdown(Duration::from_secs(1));
}

/// Runs a test in the simulator, each seed twice: one seed is one history.
pub(crate) fn simulated<F>(seeds: u64, test: impl Fn() -> F)
where
    F: Future<Output = ()>,
{
    for seed in 0..seeds {
        let once = || {
            let runtime = Runtime::simulated(seed);
            runtime.block_on(test());
            runtime.trace().expect("it is simulated").hash
        };
        assert_eq!(once(), once(), "seed {seed} has two histories");
    }
}

pub(crate) fn vm(placement: Placement) -> Builder {
    Vm::builder().placement(placement).workers(2)
}

/// Makes a test of each function, per placement, on real workers and in the simulator.
macro_rules! everywhere {
    ($($(#[$meta:meta])* async fn $name:ident($vm:ident: Vm) $body:block)*) => { $(
        mod $name {
            use super::*;

            async fn test($vm: Vm) $body

            #[test]
            fn on_the_reactor() {
                real(2, || async { test(vm(Placement::Reactor).build().expect("a VM")).await });
            }

            #[test]
            fn on_the_pool() {
                real(2, || async { test(vm(Placement::Pool).build().expect("a VM")).await });
            }

            #[test]
            fn in_the_simulator() {
                for placement in BOTH {
                    simulated(10, || async { test(vm(placement).build().expect("a VM")).await });
                }
            }
        }
    )* };
}
pub(crate) use everywhere;
