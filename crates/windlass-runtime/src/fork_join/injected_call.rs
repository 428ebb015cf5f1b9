//! A plain thread's closure that is run on a worker, while the thread waits.
//!
//! Rules, which the `unsafe` blocks cite:
//!
//! 1. **The thread waits** until the call is dropped, which happens after the closure has run, or
//!    instead of that if the runtime ends. So what it borrows is there meanwhile.
//! 2. **The call is dropped last**: it touches nothing of the thread's frame afterwards. What wakes
//!    the thread is kept alive by the call itself.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use windlass_core::sched::fork;
use windlass_core::sync::{Arc, Parker, UnsafeCell};
use windlass_core::task::{Closure, Options, SpawnRequest};
use windlass_core::unwind::NoUnwind;

use crate::handle::Handle;

/// The runtime whose workers take over from this thread, which is none of them. None: stay here and
/// run everything in order, because it is simulated or ends.
pub(super) fn destination() -> Option<Handle> {
    let runtime = Handle::current_or_default();
    let stay = runtime.shared().simulator().is_some() || runtime.pool().is_stopping();
    (!stay).then_some(runtime)
}

/// Runs `f` on a worker of `runtime` and waits for it.
pub(super) fn on_pool<F, R>(runtime: &Handle, f: F) -> R
where
    F: FnOnce() -> R + Send,
    R: Send,
{
    let frame = Frame {
        closure: UnsafeCell::new(Some(f)),
        result: UnsafeCell::new(None),
    };
    let done = Arc::new(Parker::new());
    let call = InjectedCall {
        frame: (&raw const frame).cast(),
        run: run_there::<F, R>,
        done: done.clone(),
    };
    let body = Closure(Some(move || call.run()));
    // A panic from here on would leave the frame while a worker uses it.
    let guard = NoUnwind::arm("a fork-join call of a plain thread");
    // The handle is dropped: nothing can cancel it. What is refused is dropped, too, and so the
    // call.
    drop(
        runtime
            .pool()
            .spawn(SpawnRequest::new(body, Options::here())),
    );
    done.park();
    guard.disarm();
    // SAFETY: rules 1 and 2: the call is gone.
    let result = unsafe { frame.result.with_mut(|result| (*result).take()) };
    match result {
        Some(Ok(value)) => value,
        Some(Err(payload)) => resume_unwind(payload),
        // The runtime has ended before it began.
        None => {
            let f = frame.closure.into_inner();
            f.expect("it has not run")()
        }
    }
}

struct Frame<F, R> {
    closure: UnsafeCell<Option<F>>,
    result: UnsafeCell<Option<thread::Result<R>>>,
}

/// What a worker is sent to do.
struct InjectedCall {
    frame: *const (),
    run: unsafe fn(*const ()),
    done: Arc<Parker>,
}

// SAFETY: `run` demands that closure and result are `Send`; rule 1 keeps the frame alive.
unsafe impl Send for InjectedCall {}

impl InjectedCall {
    fn run(self) {
        // SAFETY: rule 1; once, because it takes the call.
        unsafe { (self.run)(self.frame) };
    }
}

impl Drop for InjectedCall {
    fn drop(&mut self) {
        // The thread sleeps here or nowhere.
        let _ = self.done.unpark();
    }
}

/// # Safety
/// `frame` is a [`Frame`] of these types, alive until its call is dropped, and no other thread
/// touches it.
unsafe fn run_there<F: FnOnce() -> R, R>(frame: *const ()) {
    // SAFETY: rule 1.
    let frame = unsafe { &*frame.cast::<Frame<F, R>>() };
    // SAFETY: rule 1: the thread only waits.
    let f = unsafe { frame.closure.with_mut(|closure| (*closure).take()) };
    let f = f.expect("an call runs once");
    let mark = fork::here(|here| here.map(|here| here.mark()));
    let result = catch_unwind(AssertUnwindSafe(f));
    // What it has spawned into a scope of the thread that waits.
    fork::here(|here| {
        if let (Some(here), Some(mark)) = (here, mark) {
            here.run_above(mark);
        }
    });
    // SAFETY: rule 1: the thread only waits.
    unsafe { frame.result.with_mut(|place| *place = Some(result)) };
}
