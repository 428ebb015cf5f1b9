//! Stacks: their sizes, their guards, their number, and what happens when one is too small.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use windlass_runtime::coroutine::{self, Builder, StackError};
use windlass_runtime::time;
use windlass_sync::lock::Notify;

use crate::support::{eventually, join, runtime, wait, with_little_memory};

/// Recursion that the compiler cannot turn into a loop.
fn dive(depth: usize) -> usize {
    let here = std::hint::black_box([depth; 32]);
    if depth == 0 {
        return 0;
    }
    1 + dive(depth - 1) + here[0] - here[31]
}

/// Runs the named test of this binary in a process of its own, which does what `CHILD` says.
fn alone(test: &str, what: &str, variables: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env(CHILD, what)
        .envs(variables.iter().copied())
        .output()
        .expect("it starts")
}

const CHILD: &str = "WINDLASS_TEST_CHILD";

/// True in the process that [`alone`] started.
fn is_child(what: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|value| value == what)
}

#[test]
fn a_stack_is_as_large_as_was_asked_for() {
    if cfg!(windlass_asan) {
        // Frames are larger there.
        return;
    }
    let runtime = runtime(2);
    for (size, depth) in [(64 << 10, 50), (1 << 20, 1_000), (16 << 20, 20_000)] {
        let handle = Builder::new()
            .stack_size(size)
            .spawn_on(runtime.handle(), move || dive(depth));
        assert_eq!(join("it comes back up", handle), depth);
    }
}

#[test]
fn a_stack_that_is_too_large_is_an_error() {
    let _runtime = runtime(1);
    let error = Builder::new()
        .stack_size(usize::MAX)
        .try_spawn(|| ())
        .expect_err("too large");
    assert!(matches!(error, StackError::TooLarge(_)));
    assert!(error.to_string().contains("the most is 1 GiB"), "{error}");
}

#[test]
fn an_overflow_names_the_coroutine_and_ends_the_program() {
    const TEST: &str = "coroutine::stacks::an_overflow_names_the_coroutine_and_ends_the_program";
    if is_child("overflow") {
        let runtime = runtime(1);
        let handle = Builder::new()
            .name("too deep")
            .spawn_on(runtime.handle(), || dive(1_000_000));
        let _ = wait("never", handle);
        return;
    }
    let output = alone(TEST, "overflow", &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("the stack of a coroutine has overflowed: too deep, spawned at"),
        "{text}"
    );
    assert!(text.contains("stacks.rs"), "{text}");
}

#[test]
fn naming_overflows_can_be_switched_off_and_the_guard_stays() {
    const TEST: &str =
        "coroutine::stacks::naming_overflows_can_be_switched_off_and_the_guard_stays";
    if is_child("overflow, silently") {
        coroutine::report_overflows(false);
        let runtime = runtime(1);
        let handle = Builder::new().spawn_on(runtime.handle(), || dive(1_000_000));
        let _ = wait("never", handle);
        return;
    }
    let output = alone(TEST, "overflow, silently", &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(!text.contains("the stack of a coroutine"), "{text}");
}

/// The standard library's handler still tells of the stacks that are its own.
#[test]
fn the_overflow_of_a_threads_stack_is_left_to_the_standard_library() {
    if cfg!(windlass_asan) {
        // The sanitizer reports it in its own way.
        return;
    }
    const TEST: &str =
        "coroutine::stacks::the_overflow_of_a_threads_stack_is_left_to_the_standard_library";
    if is_child("overflow of a thread") {
        let runtime = runtime(1);
        join(
            "the handler is installed",
            Builder::new().spawn_on(runtime.handle(), || ()),
        );
        let deep = std::thread::Builder::new().name("deep thread".into());
        let _ = deep.spawn(|| dive(10_000_000)).expect("a thread").join();
        return;
    }
    let output = alone(TEST, "overflow of a thread", &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("deep thread"), "{text}");
    assert!(text.contains("has overflowed its stack"), "{text}");
}

fn mappings() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("on Linux");
    maps.lines().count()
}

/// A guard page by `mprotect` splits a mapping, and the kernel allows 65,530 of those.
#[test]
fn forty_thousand_parked_coroutines_take_few_mappings() {
    const COUNT: usize = 40_000;
    let runtime = runtime(2);
    let (parked, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let before = mappings();
    let handles: Vec<_> = (0..COUNT)
        .map(|_| {
            let (parked, gate) = (parked.clone(), gate.clone());
            Builder::new().spawn_on(runtime.handle(), move || {
                parked.fetch_add(1, Ordering::SeqCst);
                coroutine::wait(gate.notified());
            })
        })
        .collect();
    eventually("all are parked", || parked.load(Ordering::SeqCst) == COUNT);
    let more = mappings() - before;
    assert!(more < 200, "{more} mappings");
    while parked.load(Ordering::SeqCst) > 0 {
        gate.notify_one();
        parked.fetch_sub(1, Ordering::SeqCst);
    }
    for handle in handles {
        join("each ends", handle);
    }
}

#[test]
fn stacks_are_used_again() {
    let runtime = runtime(1);
    let before = mappings();
    for _ in 0..20_000 {
        let handle = Builder::new().spawn_on(runtime.handle(), coroutine::yield_now);
        runtime.block_on(handle).expect("it ends");
    }
    assert!(mappings() - before < 20);
}

/// Run again in a process with little address space.
#[test]
fn no_memory_for_a_stack_is_an_error_and_the_program_goes_on() {
    with_little_memory(
        "coroutine::stacks::no_memory_for_a_stack_is_an_error_and_the_program_goes_on",
        || {
            let runtime = runtime(1);
            let _entered = runtime.enter();
            let gate = Arc::new(Notify::new());
            let mut handles = Vec::new();
            // Less than a large stack, and enough for everything else.
            let reserve = Vec::<u8>::with_capacity(200 << 20);
            let error = loop {
                let gate = gate.clone();
                let spawned = Builder::new()
                    .stack_size(256 << 20)
                    .try_spawn(move || coroutine::wait(gate.notified()));
                match spawned {
                    Ok(handle) => handles.push(handle),
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, StackError::Map(_)), "{error}");
            drop(reserve);
            // One that takes its stack when it starts tells its handle.
            let late = Builder::new().stack_size(512 << 20).spawn(|| ());
            let error = wait("it ends", late).expect_err("no stack");
            let payload = error.try_into_panic().expect("it counts as a panic");
            assert!(payload.is::<StackError>());
            let small = Builder::new().spawn(|| 7);
            assert_eq!(join("a small one runs", small), 7);
            for handle in &handles {
                handle.abort();
            }
        },
    );
}

#[test]
fn with_checks_switched_on_everything_still_runs() {
    if cfg!(windlass_asan) {
        // The sanitizer keeps the bounds of the stack in a thread-local.
        return;
    }
    const TEST: &str = "coroutine::stacks::with_checks_switched_on_everything_still_runs";
    if is_child("checked") {
        let runtime = runtime(2);
        let _entered = runtime.enter();
        let handles: Vec<_> = (0..200)
            .map(|_| {
                coroutine::spawn(|| {
                    let numbers = [1, 2, 3];
                    coroutine::scope(|s| {
                        s.spawn(|| coroutine::wait(time::sleep(Duration::from_millis(1))));
                        coroutine::yield_now();
                        numbers.len()
                    })
                })
            })
            .collect();
        for handle in handles {
            assert_eq!(join("each ends", handle), 3);
        }
        return;
    }
    let output = alone(TEST, "checked", &[("WINDLASS_CHECK", "1")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
}

/// Something has written to the far end of a stack, past the guard of another, say.
#[test]
fn a_check_finds_what_was_written_to_the_far_end_of_a_stack() {
    if cfg!(windlass_asan) {
        // The sanitizer moves frames to the heap, and finds such a write itself.
        return;
    }
    const TEST: &str =
        "coroutine::stacks::a_check_finds_what_was_written_to_the_far_end_of_a_stack";
    if is_child("overwritten") {
        let runtime = runtime(1);
        let handle = Builder::new()
            .name("careless")
            .spawn_on(runtime.handle(), || {
                // Deep enough to reach the last words, and not the guard.
                let here = 0u8;
                let page = (&raw const here).addr() & !0xFFF;
                clobber(page + 0x1000 - (64 << 10));
                coroutine::yield_now();
            });
        let _ = wait("never", handle);
        return;
    }
    let output = alone(TEST, "overwritten", &[("WINDLASS_CHECK", "1")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(text.contains("WINDLASS_CHECK"), "{text}");
    assert!(text.contains("careless"), "{text}");
    let output = alone(TEST, "overwritten", &[]);
    assert!(output.status.success(), "without the check nobody notices");
}

/// Writes over the lowest word of the stack that begins at `address`.
#[allow(unsafe_code, reason = "breaking memory is what this test is about")]
fn clobber(address: usize) {
    let word = std::ptr::with_exposed_provenance_mut::<u64>(address);
    // SAFETY: the lowest word of this very stack, which is mapped and holds nothing but a canary.
    unsafe { word.write_volatile(0) };
}

scoped_tls::scoped_thread_local!(static FOREIGN: u32);

/// Two coroutines wait inside a call that keeps a pointer to their stacks in a thread-local.
fn wait_inside_a_foreign_scope(runtime: &windlass_runtime::Runtime) {
    let (sender, receiver) = windlass_sync::channel::mpmc::buffered::<()>(2);
    let waits: Vec<_> = (0..2)
        .map(|number| {
            let receiver = receiver.clone();
            Builder::new()
                .name("scoped")
                .spawn_on(runtime.handle(), move || {
                    FOREIGN.set(&number, || {
                        coroutine::wait(receiver.recv()).expect("it is sent")
                    });
                })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(50));
    for wait in waits {
        coroutine::wait(sender.send(())).expect("somebody listens");
        join("a coroutine inside of a foreign scope", wait);
    }
}

/// A limit of safe coroutines, as `docs/coroutines.md` has it: what another library keeps in a
/// thread-local for the duration of a call is not exchanged. It can be seen, though.
#[test]
fn a_foreign_scope_across_a_wait_is_left_on_the_thread_and_found_by_the_check() {
    if cfg!(windlass_asan) {
        // The sanitizer moves frames to the heap, and finds such a write itself.
        return;
    }
    const TEST: &str = "coroutine::stacks::\
                        a_foreign_scope_across_a_wait_is_left_on_the_thread_and_found_by_the_check";
    if is_child("scoped") {
        let runtime = runtime(1);
        wait_inside_a_foreign_scope(&runtime);
        // Nobody is inside of a scope, and yet there is a value, which is gone.
        let is_left = runtime.spawn(async { FOREIGN.is_set() });
        assert!(join("a look at the thread-local", is_left));
        return;
    }
    let output = alone(TEST, "scoped", &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "without the check nobody notices: {text}"
    );
    if cfg!(target_os = "linux") {
        let output = alone(TEST, "scoped", &[("WINDLASS_CHECK", "1")]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(text.contains("thread-local"), "{text}");
        assert!(text.contains("scoped"), "it says who: {text}");
    }
}

thread_local! {
    static SLOWLY_MADE: u32 = {
        coroutine::wait(windlass_runtime::time::sleep(Duration::from_millis(20)));
        7
    };
}

/// Waits when its thread ends.
struct WaitsAtTheEnd;

impl Drop for WaitsAtTheEnd {
    fn drop(&mut self) {
        coroutine::wait(windlass_runtime::time::sleep(Duration::from_millis(20)));
    }
}

thread_local! {
    static WAITS_AT_THE_END: WaitsAtTheEnd = const { WaitsAtTheEnd };
}

/// A third form of that limit, when the process exits.
#[test]
fn a_wait_in_the_middle_of_an_exit_is_found_by_the_check() {
    const TEST: &str = "coroutine::stacks::a_wait_in_the_middle_of_an_exit_is_found_by_the_check";
    if is_child("exit") {
        let runtime = runtime(1);
        let exits = Builder::new().name("exits").spawn_on(runtime.handle(), || {
            WAITS_AT_THE_END.with(|_| {});
            std::process::exit(0);
        });
        join("a coroutine that exits", exits);
    }
    let output = alone(TEST, "exit", &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "without the check: {text}");
    if cfg!(all(target_os = "linux", target_env = "gnu")) {
        let output = alone(TEST, "exit", &[("WINDLASS_CHECK", "1")]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert!(text.contains("exits the process"), "{text}");
    }
}

/// The other form of that limit: the initial value of a `thread_local!` is made twice.
#[test]
fn a_wait_in_an_initial_value_is_found_by_the_check() {
    const TEST: &str = "coroutine::stacks::a_wait_in_an_initial_value_is_found_by_the_check";
    if is_child("initial") {
        let runtime = runtime(1);
        let made = Builder::new()
            .name("maker")
            .stack_size(1 << 20)
            .spawn_on(runtime.handle(), || SLOWLY_MADE.with(|value| *value));
        assert_eq!(join("a coroutine that makes a value", made), 7);
        return;
    }
    let output = alone(TEST, "initial", &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "without the check: {text}");
    let output = alone(TEST, "initial", &[("WINDLASS_CHECK", "1")]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(
        text.contains("initial value") && text.contains("maker"),
        "{text}"
    );
}
