//! The signal that ends slices.

use std::fmt;
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicUsize, Ordering};
use windlass_vm::Bell;

use super::{hook, thread_state};

/// The signal could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalError {
    signal: i32,
    message: String,
}

impl fmt::Display for SignalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (signal, message) = (self.signal, &self.message);
        write!(
            f,
            "signal {signal} cannot be used to preempt Lua: {message}; choose another with Builder::signal"
        )
    }
}

impl std::error::Error for SignalError {}

/// What was there before, to be called, too: one per signal.
static BEFORE: [AtomicUsize; 65] = [const { AtomicUsize::new(0) }; 65];

/// Installs the handler, once per signal.
pub(crate) fn install(signal: i32) -> Result<(), SignalError> {
    static INSTALLED: Mutex<u128> = Mutex::new(0);
    let failed = |message: String| SignalError { signal, message };
    if !(1..=64).contains(&signal) {
        return Err(failed("there is no such signal".to_owned()));
    }
    if signal == libc::SIGKILL || signal == libc::SIGSTOP {
        return Err(failed("it cannot be caught".to_owned()));
    }
    let mut installed = INSTALLED.lock();
    if *installed & (1 << signal) != 0 {
        return Ok(());
    }
    // SAFETY: the structures are plain data, filled as sigaction(2) says; the handler keeps to rule
    // 2.
    let result = unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        let result = libc::sigaction(signal, &action, before.as_mut_ptr());
        let before = before.assume_init();
        let handler = before.sa_sigaction;
        if result == 0 && handler != libc::SIG_DFL && handler != libc::SIG_IGN {
            // Handlers of both kinds take what they want of the three arguments.
            BEFORE[signal as usize].store(handler, Ordering::Release);
        }
        result
    };
    if result != 0 {
        return Err(failed(io::Error::last_os_error().to_string()));
    }
    *installed |= 1 << signal;
    Ok(())
}

type Handler = unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// The handler: has the state that runs on this thread asked at its next instruction.
unsafe extern "C" fn handle(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    let state = thread_state::innermost();
    if !state.is_null() {
        // SAFETY: rules 2 and 3.
        unsafe { hook::soon(state) };
    }
    let before = BEFORE[signal as usize].load(Ordering::Acquire);
    if before != 0 {
        // SAFETY: it was installed as a handler by other code; one that takes the number only
        // ignores the rest.
        unsafe {
            let before: Handler = std::mem::transmute::<usize, Handler>(before);
            before(signal, info, context);
        }
    }
}

/// Interrupts what runs on one thread.
struct ThreadBell {
    thread: libc::pid_t,
    signal: i32,
}

impl Bell for ThreadBell {
    fn ring(&self) {
        // SAFETY: a system call without pointers. A thread that has ended is not found; another
        // with its number that runs no Lua ignores the signal.
        unsafe {
            libc::syscall(libc::SYS_tgkill, libc::getpid(), self.thread, self.signal);
        }
    }
}

/// Interrupts what runs on this thread, with this signal.
pub(crate) fn bell(signal: i32) -> Arc<dyn Bell> {
    use std::cell::RefCell;
    thread_local! {
        static BELL: RefCell<Option<(i32, Arc<dyn Bell>)>> = const { RefCell::new(None) };
    }
    BELL.with_borrow_mut(|bell| match bell {
        Some((of, bell)) if *of == signal => bell.clone(),
        _ => {
            // Touched before a handler can come.
            thread_state::innermost();
            // SAFETY: a system call without arguments.
            let thread = unsafe { libc::syscall(libc::SYS_gettid) } as libc::pid_t;
            let made: Arc<dyn Bell> = Arc::new(ThreadBell { thread, signal });
            *bell = Some((signal, made.clone()));
            made
        }
    })
}
