//! What these programs share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::time::{Duration, Instant};

use windlass_core::task::JoinHandle;
use windlass_runtime::Runtime;

/// How long a program waits for what must happen. Only a broken promise takes as long as this.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A runtime with this many workers.
pub(crate) fn runtime(workers: usize) -> Runtime {
    Runtime::builder()
        .workers(workers)
        .build()
        .expect("a runtime")
}

/// Panics that a program expects are not printed.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| std::panic::set_hook(Box::new(|_| {})));
}

/// The message of the panic that `f` ends with.
#[track_caller]
pub(crate) fn panic_message(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    windlass_core::task::panic_message(&*payload)
        .unwrap_or_default()
        .to_owned()
}

/// Waits for a task; a hang is a failure with a name.
#[track_caller]
pub(crate) fn join<T: Send + 'static>(what: &str, handle: JoinHandle<T>) -> T {
    let began = Instant::now();
    while !handle.is_finished() {
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::sleep(ms(1));
    }
    match windlass_core::block_on(handle) {
        Ok(value) => value,
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Looks until `condition` holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(
            began.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::sleep(ms(1));
    }
}

/// Uses some of the stack below `f`, so that a frame that is gone is overwritten.
#[inline(never)]
pub(crate) fn deep<R>(depth: usize, f: &mut dyn FnMut() -> R) -> R {
    let mut filler = [0x41_u8; 512];
    std::hint::black_box(&mut filler);
    let result = if depth == 0 { f() } else { deep(depth - 1, f) };
    std::hint::black_box(&mut filler);
    result
}

/// Runs `f` on a thread and waits until it has run, not until the thread has ended: a thread stays
/// on which a coroutine cannot unwind. A panic of `f` is the caller's.
pub(crate) fn on_a_thread<R: Send + 'static>(
    f: impl FnOnce() -> R + Send + 'static,
) -> (R, std::thread::JoinHandle<()>) {
    let (tell, told) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let _ = tell.send(catch_unwind(AssertUnwindSafe(f)));
    });
    match told.recv().expect("the closure has run") {
        Ok(output) => (output, thread),
        Err(payload) => std::panic::resume_unwind(payload),
    }
}
