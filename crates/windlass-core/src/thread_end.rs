//! Thread-locals outlive the frames of coroutines.
//!
//! The frames of a suspended coroutine may hold a reference to a thread-local (`LocalKey::with`),
//! and other threads may use what those frames have lent them. So a thread must not destroy its
//! thread-locals while frames are suspended on it:
//!
//! 1. **Frames are counted**, per thread, from the first resume of a coroutine to its end.
//!    Migrating coroutines are not: their author has vouched that they keep nothing of a thread's.
//! 2. **A mark is left** when the outermost call that ran coroutines on a thread returns to plain
//!    code with frames suspended (`leave_mark`). The C library destroys the youngest thread-local
//!    first, so the mark is destroyed before every thread-local that these frames can refer to.
//! 3. **When a mark is destroyed**, the thread's destructors begin: local coroutines unwind, no
//!    other coroutine of this thread is resumed any more ([`epoch`]), and if frames are left (in a
//!    section that nothing unwinds out of, or on a simulated runtime that lives elsewhere) the
//!    thread is named and stays for good.
//! 4. **Threads of ours** do the same when their closure returns, and the thread that joins them
//!    does not wait for one that stays (`sync::thread::spawn`), nor past a deadline for one whose
//!    thread-locals take long (`sync::thread::join_by`).
//!
//! If the process exits, nothing unwinds and no thread stays: `exit` runs no destructors of values
//! on the stack, and destroys the thread-locals of the thread that calls it under the code that
//! uses them, with and without coroutines. A destructor of a thread-local must not wait then (the
//! third form of the limit in the runtime's `coroutine/frame.rs`).
//!
//! Where marks cannot be left (other C libraries), coroutines that are suspended when the outermost
//! call returns count as lost: they are not resumed.
//!
//! Rejected: one mark per thread, because a key that is first used inside of a coroutine is
//! destroyed before it; ending the thread without its destructors, because joining it frees the
//! memory of its thread-locals.

use std::cell::Cell;

use crate::context;
use crate::executor::local_set;
use crate::sync::Parker;

thread_local! {
    static FRAMES: Frames = const { Frames {
        alive: Cell::new(0),
        has_suspended: Cell::new(false),
        epoch: Cell::new(0),
        exits: Cell::new(false),
    } };
}

/// What is known of the coroutines of a thread. Without a destructor, so it is there to the end.
struct Frames {
    /// Coroutines that have begun here and have not ended.
    alive: Cell<usize>,
    /// One was suspended since the last mark.
    has_suspended: Cell<bool>,
    /// Marks that were destroyed.
    epoch: Cell<u64>,
    /// The process exits, and this thread runs its destructors.
    exits: Cell<bool>,
}

/// A coroutine begins on this thread, and will end here.
pub fn note_begun() {
    FRAMES.with(|frames| frames.alive.set(frames.alive.get() + 1));
}

/// A coroutine that began on this thread has ended.
pub fn note_ended() {
    FRAMES.with(|frames| frames.alive.set(frames.alive.get() - 1));
}

/// A coroutine of this thread was suspended.
#[inline]
pub fn note_suspended() {
    FRAMES.with(|frames| frames.has_suspended.set(true));
}

/// How often the thread's destructors have begun. A coroutine is resumed only in the epoch in which
/// it began: afterwards thread-locals that its frames refer to may be gone.
pub fn epoch() -> u64 {
    FRAMES.with(|frames| frames.epoch.get())
}

fn alive() -> usize {
    FRAMES.with(|frames| frames.alive.get())
}

/// Leaves a mark if coroutines were suspended since the last one: for the end of the outermost call
/// that runs coroutines on a thread.
pub(crate) fn leave_mark() {
    if FRAMES.with(|frames| frames.has_suspended.replace(false)) && alive() > 0 && !register_mark()
    {
        // Without a mark nothing is known of the thread's end: it counts as begun.
        begin_epoch();
    }
}

/// Lets the coroutines of this thread unwind that can; true if frames are left.
pub(crate) fn finish() -> bool {
    if alive() > 0 {
        local_set::finish_sets_of_thread();
    }
    alive() > 0
}

fn begin_epoch() {
    FRAMES.with(|frames| frames.epoch.set(frames.epoch.get() + 1));
}

/// Names this thread and waits for ever: others may use what its frames have lent them.
pub(crate) fn stay() -> ! {
    let thread = std::thread::current();
    eprintln!(
        "windlass: the thread `{}` does not end: {} coroutine(s) that began on it did not unwind, \
         and may have lent its thread-locals to others",
        thread.name().unwrap_or("(unnamed)"),
        alive()
    );
    let nobody_unparks = Parker::new();
    loop {
        nobody_unparks.park();
    }
}

/// Registers a mark. It takes some 40 bytes until the thread ends. False: there is no memory for
/// it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn register_mark() -> bool {
    use std::ffi::c_void;
    use std::ptr::null_mut;

    unsafe extern "C" {
        static __dso_handle: u8;
        fn __cxa_thread_atexit_impl(
            destroy: extern "C" fn(*mut c_void),
            value: *mut c_void,
            library: *const c_void,
        ) -> i32;
    }
    extern "C" fn destroy(_value: *mut c_void) {
        // A thread that ends has returned from all calls.
        let exits = context::runs_tasks() || (alive() > 0 && process_exits());
        let stays = !exits && finish();
        begin_epoch();
        if stays {
            stay();
        }
    }
    // SAFETY: `destroy` can be called at any time on this thread until it ends, and ignores its
    // value.
    unsafe { __cxa_thread_atexit_impl(destroy, null_mut(), (&raw const __dso_handle).cast()) == 0 }
}

/// No mark can be left here.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn register_mark() -> bool {
    false
}

/// True if this thread's destructors run because the process exits: `exit` is below us on the
/// stack. Walks the stack, so it is for rare cases. Needs no file: the unwinder's tables are in
/// memory.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn process_exits() -> bool {
    use std::ffi::{c_int, c_void};
    use std::ptr::without_provenance_mut;

    const GO_ON: c_int = 0;
    const END: c_int = 5;
    unsafe extern "C" {
        fn _Unwind_Backtrace(
            look: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
            argument: *mut c_void,
        ) -> c_int;
        fn _Unwind_GetIP(frame: *mut c_void) -> usize;
        fn _Unwind_FindEnclosingFunction(address: *mut c_void) -> *mut c_void;
    }
    extern "C" fn look(frame: *mut c_void, found: *mut c_void) -> c_int {
        // SAFETY: the frame is the unwinder's own.
        let address = unsafe { _Unwind_GetIP(frame) };
        // One before the return address: `exit` does not return, so that may be another function's.
        let inside = without_provenance_mut(address.wrapping_sub(1));
        // SAFETY: any address will do.
        let function = unsafe { _Unwind_FindEnclosingFunction(inside) };
        if function.addr() != (libc::exit as *const c_void).addr() {
            return GO_ON;
        }
        // SAFETY: `found` is the variable below.
        unsafe { *found.cast::<bool>() = true };
        END
    }
    FRAMES.with(|frames| {
        if !frames.exits.get() {
            let mut found = false;
            // SAFETY: `look` has the signature that is called, and gets the variable that outlives
            // the call.
            unsafe { _Unwind_Backtrace(look, (&raw mut found).cast()) };
            frames.exits.set(found);
        }
        frames.exits.get()
    })
}

/// Returns false: the end of the process is not seen here.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn process_exits() -> bool {
    false
}
