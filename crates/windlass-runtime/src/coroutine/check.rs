//! `WINDLASS_CHECK=1`: what should never happen is looked for at every switch.
//!
//! A few words at the far end of each stack are written before it is used and compared at every
//! switch: whoever steps over the guard page (a large frame that does not touch each page, C code)
//! leaves a trace there. And whoever suspends a coroutine must be running on its stack.

use std::sync::OnceLock;

use super::frame::Frame;

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
    std::ptr::with_exposed_provenance_mut(frame.bounds().0)
}

/// Before the first resume.
pub(super) fn begin(frame: &Frame) {
    let on = ON.get_or_init(|| std::env::var("WINDLASS_CHECK").is_ok_and(|value| value == "1"));
    if *on {
        // SAFETY: the lowest usable words of a stack that nobody else has (rule 2), aligned to a page.
        unsafe { canaries(frame).write([CANARY; WORDS]) };
    }
}

/// After every switch back to whoever resumed.
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

/// Before every switch away from the coroutine.
#[inline(always)]
pub(super) fn suspending(frame: &Frame) {
    if is_on() {
        check_stack(frame);
    }
}

#[cold]
fn check_stack(frame: &Frame) {
    let here = 0u8;
    let address = (&raw const here).addr();
    let (lowest, top) = frame.bounds();
    if !(lowest..top).contains(&address) {
        die(frame, "was suspended by code on another stack");
    }
}

#[cold]
fn die(frame: &Frame, what: &str) -> ! {
    let who = frame
        .header()
        .map_or_else(|| "driven by hand".to_owned(), super::describe);
    eprintln!("WINDLASS_CHECK: a coroutine ({who}) {what}; memory may be corrupt");
    std::process::abort();
}
