//! What the tests have in common.

use std::future::Future;
use std::time::Duration;

use windlass_actor::Exit;
use windlass_lua::{Interpreter, Script};
use windlass_runtime::Runtime;
use windlass_runtime::time::timeout;
use windlass_value::Payload;
use windlass_vm::{Placement, Vm};

/// Whatever takes this long has not been woken.
const LONG: Duration = Duration::from_secs(60);

pub(crate) const BOTH: [Placement; 2] = [Placement::Reactor, Placement::Pool];

/// Runs a test on real workers; what hangs fails.
pub(crate) fn real<F>(test: impl FnOnce() -> F)
where
    F: Future<Output = ()>,
{
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
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
pub(crate) fn simulated<F>(test: impl Fn() -> F)
where
    F: Future<Output = ()>,
{
    for seed in 0..3 {
        let once = || {
            let runtime = Runtime::simulated(seed);
            runtime.block_on(test());
            runtime.trace().expect("it is simulated").hash
        };
        assert_eq!(once(), once(), "seed {seed} has two histories");
    }
}

pub(crate) fn interpreter(placement: Placement) -> Interpreter {
    let vm = Vm::builder()
        .placement(placement)
        .workers(2)
        .build()
        .expect("a VM");
    Interpreter::builder(&vm).build().expect("an interpreter")
}

/// Runs a text to its end.
pub(crate) async fn run(lua: &Interpreter, text: &str) -> Exit {
    let task = lua
        .spawn(Script::text("test.lua", text), [])
        .expect("it starts");
    task.join().await
}

/// What a text ends with; it must not fail.
pub(crate) async fn value(lua: &Interpreter, text: &str) -> Payload {
    let exit = run(lua, text).await;
    assert!(exit.reason.is_normal(), "{}", exit.reason);
    exit.value
}

/// Why a text fails; it must.
pub(crate) async fn failure(lua: &Interpreter, text: &str) -> String {
    let exit = run(lua, text).await;
    assert!(!exit.reason.is_normal(), "it ended with {:?}", exit.value);
    exit.reason.to_string()
}

/// Makes a test of each function, per placement, on real workers and in the simulator.
macro_rules! everywhere {
    ($($(#[$meta:meta])* async fn $name:ident($lua:ident: Interpreter) $body:block)*) => { $(
        mod $name {
            use super::*;

            async fn test($lua: Interpreter) $body

            #[test]
            fn on_the_reactor() {
                crate::support::real(|| test(crate::support::interpreter(windlass_vm::Placement::Reactor)));
            }

            #[test]
            fn on_the_pool() {
                crate::support::real(|| test(crate::support::interpreter(windlass_vm::Placement::Pool)));
            }

            #[test]
            fn in_the_simulator() {
                for placement in crate::support::BOTH {
                    crate::support::simulated(|| async {
                        test(crate::support::interpreter(placement)).await;
                    });
                }
            }
        }
    )* };
}
pub(crate) use everywhere;
