//! Naming the coroutine whose stack has overflowed.
//!
//! The guard page below a stack turns an overflow into SIGSEGV. The handler runs on the thread's
//! alternate stack (the standard library gives every thread one), says whose stack it was and
//! aborts. Any other fault goes to the handler that was there before: the standard library's, which
//! knows the stacks of threads.

use std::io::Write;
use std::sync::Once;

use windlass_core::sync::atomic::{AtomicBool, Ordering};
use windlass_core::task::Header;

use super::frame;
use super::slab;

static WANTED: AtomicBool = AtomicBool::new(true);
static ONCE: Once = Once::new();

/// Whether a stack overflow is reported with the coroutine's name; it is unless switched off before
/// the first coroutine starts. Without it the program still ends with SIGSEGV.
pub fn report_overflows(wanted: bool) {
    WANTED.store(wanted, Ordering::Relaxed);
}

/// The handler that was there before.
static mut BEFORE: Option<libc::sigaction> = None;

/// Before the first coroutine runs.
pub(super) fn install() {
    ONCE.call_once(|| {
        if !WANTED.load(Ordering::Relaxed) {
            return;
        }
        // SAFETY: `BEFORE` is written here, once, before the handler that reads it is installed.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGSEGV, std::ptr::null(), &mut before) != 0 {
                return;
            }
            (&raw mut BEFORE).write(Some(before));
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = on_fault as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&mut ours.sa_mask);
            libc::sigaction(libc::SIGSEGV, &ours, std::ptr::null_mut());
        }
    });
}

/// Async-signal-safe: it reads memory that is there, writes to standard error and aborts.
extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid `siginfo_t` for SIGSEGV.
    let address = unsafe { (*info).si_addr() }.addr();
    if slab::is_guard(address) {
        report(frame::current().and_then(|frame| frame.header()));
        // SAFETY: ends the program.
        unsafe { libc::abort() };
    }
    chain(signal, info, context);
}

fn report(task: Option<&Header>) {
    let mut line = Line::default();
    let _ = line.write_all(b"\nthe stack of a coroutine has overflowed: ");
    match task {
        Some(task) => {
            let name = task.meta().name().map_or("(unnamed)", |name| name);
            let _ = write!(line, "{name}, spawned at {}", task.meta().location());
        }
        None => {
            let _ = line.write_all(b"driven by hand");
        }
    }
    let _ = line.write_all(b"; give it a larger one with coroutine::Builder::stack_size\n");
    // SAFETY: the buffer is ours, and `write` is async-signal-safe.
    unsafe { libc::write(2, line.bytes.as_ptr().cast(), line.used) };
}

/// A line of text without an allocation.
struct Line {
    bytes: [u8; 512],
    used: usize,
}

impl Default for Line {
    fn default() -> Self {
        Line {
            bytes: [0; 512],
            used: 0,
        }
    }
}

impl Write for Line {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        let room = &mut self.bytes[self.used..];
        let taken = more.len().min(room.len());
        room[..taken].copy_from_slice(&more[..taken]);
        self.used += taken;
        // What does not fit is left out.
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Not ours: the handler that was there before, or the default.
fn chain(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: written once, before this handler was installed; the handler's type follows from its
    // flags.
    unsafe {
        let before = (&raw const BEFORE).read();
        match before {
            Some(before)
                if before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN =>
            {
                if before.sa_flags & libc::SA_SIGINFO != 0 {
                    let handler: extern "C" fn(
                        libc::c_int,
                        *mut libc::siginfo_t,
                        *mut libc::c_void,
                    ) = std::mem::transmute(before.sa_sigaction);
                    handler(signal, info, context);
                } else {
                    let handler: extern "C" fn(libc::c_int) =
                        std::mem::transmute(before.sa_sigaction);
                    handler(signal);
                }
            }
            _ => {
                // The instruction is tried again, and faults with the default action.
                libc::signal(signal, libc::SIG_DFL);
            }
        }
    }
}
