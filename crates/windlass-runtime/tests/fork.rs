//! After `fork` without `exec` a runtime's threads do not exist: using it is a panic, not a hang.
#![cfg(unix)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use windlass_runtime::Runtime;

/// Runs `check` in a child of `fork`; true if it said so there.
fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs Rust code that may allocate. The test's own thread is the only one
    // that it can rely on, and glibc makes its allocator usable again after a fork.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let held = catch_unwind(AssertUnwindSafe(check)).unwrap_or(false);
        // SAFETY: ends the child without destructors, which would be the parent's.
        unsafe { libc::_exit(if held { 0 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: `status` is ours, and `child` is our child.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(waited, child);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

fn panics_clearly<T>(f: impl FnOnce() -> T) -> bool {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        return false;
    };
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| text.to_string())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    message.is_some_and(|text| {
        text.contains("belongs to the parent process") && text.contains("build a new Runtime")
    })
}

#[test]
fn a_runtime_of_the_parent_panics_clearly_in_a_child_of_fork() {
    // The panics below are the point of the test, and their reports would take locks in the child.
    std::panic::set_hook(Box::new(|_| {}));
    let runtime = Runtime::builder().workers(2).build().expect("a runtime");
    assert_eq!(
        runtime
            .block_on(runtime.spawn(async { 1 }))
            .expect("a task"),
        1
    );

    assert!(
        in_child(|| panics_clearly(|| runtime.spawn(async {}).detach())),
        "spawn"
    );
    assert!(
        in_child(|| panics_clearly(|| runtime.block_on(async {}))),
        "block_on"
    );
    assert!(
        in_child(|| panics_clearly(|| runtime.spawn_blocking(|| ()).detach())),
        "blocking"
    );
    assert!(
        in_child(|| panics_clearly(|| runtime.handle().try_spawn(async {}).is_ok())),
        "try"
    );

    // Dropping it there waits for nobody, and a runtime that is built there works.
    // SAFETY: the child's copy of the handle is dropped once, and the parent's is its own.
    let copy = || unsafe { std::ptr::read(&runtime) };
    assert!(in_child(|| {
        drop(copy());
        let own = Runtime::builder()
            .workers(2)
            .build()
            .expect("a runtime in the child");
        let works = own
            .block_on(own.spawn(async { 2 }))
            .is_ok_and(|output| output == 2);
        drop(own);
        works
    }));

    assert_eq!(
        runtime
            .block_on(runtime.spawn(async { 3 }))
            .expect("the parent goes on"),
        3
    );
}
