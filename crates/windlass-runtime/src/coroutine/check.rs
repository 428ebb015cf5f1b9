//! `WINDLASS_CHECK=1`: what should never happen is looked for at every switch.
//!
//! A few words at the far end of each stack are written before it is used and compared at every
//! switch: code that steps over the guard page (a large frame that does not touch each page, C
//! code) leaves a trace there. And code that suspends a coroutine must be running on its stack.
//!
//! After a coroutine was suspended no thread-local of the program may point into its stack: that is
//! what a library leaves behind that keeps a pointer to a frame in a thread-local for the duration
//! of a call (`scoped-tls`). The next coroutine on the thread would find it, and restore it later,
//! when the frame is gone. Ours are exchanged at every switch, so what is left is another
//! library's. On Linux the thread's block of thread-locals is searched for such words; elsewhere it
//! is not.
//!
//! Nor may a coroutine be suspended while it makes the initial value of a `thread_local!`. The
//! names of the functions on its stack tell, in programs that have symbols. Naming them takes long,
//! so each depth at which a coroutine of one kind is suspended is looked at once.
//!
//! Nor may a coroutine be suspended while it exits the process, by the destructor of a thread-local
//! that waits: others on the thread would go on with thread-locals that are gone.

use std::backtrace::Backtrace;
use std::collections::HashSet;
use std::panic::Location;
use std::sync::OnceLock;

use windlass_core::sync::Mutex;
use windlass_core::thread_end;

use super::frame::{Bounds, Frame};

const WORDS: usize = 8;
const CANARY: u64 = 0x57A7_E0F7_4E57_AC4B;

static ON: OnceLock<bool> = OnceLock::new();

#[inline(always)]
fn is_on() -> bool {
    // Asked for before the first switch, in `begin`.
    ON.get() == Some(&true)
}

/// The far end of a stack.
fn canaries(frame: &Frame) -> *mut [u64; WORDS] {
    frame.bounds().lowest.cast()
}

/// Before the first resume.
pub(super) fn begin(frame: &Frame) {
    let on = ON.get_or_init(|| std::env::var("WINDLASS_CHECK").is_ok_and(|value| value == "1"));
    if *on {
        // SAFETY: the lowest usable words of a stack that no other coroutine has (rule 2), aligned
        // to a page.
        unsafe { canaries(frame).write([CANARY; WORDS]) };
    }
}

/// Called after every switch back to the resumer.
#[inline(always)]
pub(super) fn switched(frame: &Frame) {
    if is_on() {
        check_canaries(frame);
    }
}

#[cold]
fn check_canaries(frame: &Frame) {
    // SAFETY: as in `begin`.
    let found = unsafe { canaries(frame).read() };
    if found != [CANARY; WORDS] {
        die(frame, "used its stack to the very end");
    }
}

/// Called after a suspension, on the stack of the resumer.
#[inline(always)]
pub(super) fn suspended(frame: &Frame) {
    if is_on() {
        check_thread_locals(frame);
    }
}

#[cold]
fn check_thread_locals(frame: &Frame) {
    let Bounds { lowest, top } = frame.bounds();
    let stack = lowest.addr()..top;
    if crate::os::any_thread_local(|word| stack.contains(&word)) {
        die(
            frame,
            "waits inside a call that keeps a pointer to its stack in a thread-local (as the crate \
             scoped-tls does), where others on this thread find it",
        );
    }
}

/// Before every switch away from the coroutine.
#[inline(always)]
pub(super) fn suspending(frame: &Frame) {
    if is_on() {
        check_stack(frame);
    }
}

#[cold]
fn check_stack(frame: &Frame) {
    let address = stack_pointer();
    let Bounds { lowest, top } = frame.bounds();
    if !(lowest.addr()..top).contains(&address) {
        die(frame, "was suspended by code on another stack");
    }
    check_initial_values(frame, top - address);
    if thread_end::process_exits() {
        die(
            frame,
            "waits while it exits the process, in the destructor of a thread-local; others on this \
             thread may use thread-locals that are gone",
        );
    }
}

/// Where this thread's stack ends at the moment. Not the address of a variable: AddressSanitizer
/// keeps variables elsewhere.
#[inline(always)]
fn stack_pointer() -> usize {
    let address: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it copies a register.
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it copies a register.
    unsafe {
        std::arch::asm!("mov {}, sp", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        let here = 0u8;
        address = (&raw const here).addr();
    }
    address
}

/// Where coroutines of one kind were spawned, and how deep their stacks were when they were
/// suspended.
type Seen = HashSet<(Option<&'static Location<'static>>, usize)>;

fn check_initial_values(frame: &Frame, depth: usize) {
    static SEEN: Mutex<Option<Seen>> = Mutex::new(None);
    /// More are not looked at.
    const MOST: usize = 10_000;

    let spawned_at = frame.header().map(|header| header.meta().location());
    let is_new = {
        let mut seen = SEEN.lock();
        let seen = seen.get_or_insert_default();
        seen.len() < MOST && seen.insert((spawned_at, depth))
    };
    if is_new && makes_initial_value(&Backtrace::force_capture().to_string()) {
        die(
            frame,
            "waits while it makes the initial value of a thread_local!, which another coroutine on \
             this thread may make meanwhile",
        );
    }
}

/// True if a function of the standard library that makes such a value is on the stack. With full
/// debug information, and with none, the name of the function has its path; with line tables only
/// the name of its file has.
fn makes_initial_value(stack: &str) -> bool {
    stack.lines().any(|line| {
        let is_function = line.contains("thread_local::") && line.contains("::lazy::");
        let is_file = line.contains("thread_local/") && line.contains("/lazy.rs:");
        is_function || is_file
    })
}

#[cold]
fn die(frame: &Frame, what: &str) -> ! {
    let who = frame
        .header()
        .map_or_else(|| "driven by hand".to_owned(), super::describe);
    eprintln!("WINDLASS_CHECK: a coroutine ({who}) {what}; memory may be corrupt");
    std::process::abort();
}
