//! Preemption: the one place of this crate with unsafe code.
//!
//! A tight Lua loop runs at full speed, without a hook. When its slice is over, another thread
//! sends a signal to its thread; the handler installs a hook that fires at the next instruction,
//! and the hook yields. Where instructions count (in recordings and simulations), the hook is
//! always there.
//!
//! # Who is where
//! One Lua task runs on a thread at a time. It is a coroutine, its *base*, and may be inside
//! coroutines of its own, of which the *innermost* runs. `thread_state.rs` has both in a
//! thread-local.
//!
//! # Rules that the unsafe blocks cite
//! 1. *The state is alive*: a `lua_State` pointer is used only while something keeps its coroutine:
//!    the stack of a state that is running, or the [`Thread`](mlua::Thread) that [`drive`] was
//!    given.
//! 2. *One thread*: a Lua state is touched by the thread that holds mlua's lock of it. The handler
//!    of a signal runs on that very thread, in between two of its instructions, and touches only
//!    what Lua documents as safe from a handler (`lua_sethook`, for a state that is running).
//! 3. *The innermost is set before it runs, and replaced after*: compiler fences on both sides. A
//!    signal that comes in between hits a state that is alive and does not run: the hook fires when
//!    it does, finds no request, and goes. The request itself is found when the outer state looks
//!    for it (`entered again`).
//! 4. *No frame with a destructor is jumped over*: functions that Lua calls hold no value with one
//!    where they raise or yield.
//! 5. *A borrowed slice or budget is there*: its pointer is set for the time of one `drive`, by a
//!    guard that takes it out again however that ends, and lent for the time of a call only.
//! 6. *A hook that yields stays installed*: its next firing without a request removes it.

#![allow(unsafe_code, reason = "see the rules above")]

mod bounded;
mod coroutine;
mod hook;
mod signal;
mod thread_state;

use mlua::ffi;
use mlua::{IntoLuaMulti, Lua, MultiValue, Table, Thread};
use windlass_vm::Budget;

pub use signal::SignalError;
pub(crate) use signal::{bell, install};
pub(crate) use thread_state::{Guard, is_ending, is_thrown, with_budget};

/// Code of this source keeps what tasks of one state share. It is left alone for as long as it
/// usually takes; where it takes longer (queues without end, or ones that a script has tampered
/// with), other processes get their turn, but no other task of the same state.
///
/// This is the source of functions whose names and lines were left out when they were compiled.
/// Scripts cannot have any: they load no bytecode.
pub(crate) const PRELUDE: &str = "=?";

/// How long a task may go on, as the hook asks.
pub(crate) trait Slice {
    /// So many instructions were executed: whether it is over.
    fn is_over(&self, instructions: u64) -> bool;

    /// Whether a task that cannot yield where it is has to be thrown out.
    fn must_end(&self) -> bool;

    /// Returns whether every end of a slice throws the code out, because nothing resumes it later.
    fn throws(&self) -> bool {
        false
    }

    /// In steps of how many instructions it is asked; None if a signal says when to.
    fn granularity(&self) -> Option<u32>;
}

impl Slice for Budget<'_> {
    fn is_over(&self, instructions: u64) -> bool {
        self.spend(instructions)
    }

    fn must_end(&self) -> bool {
        Budget::must_end(self)
    }

    fn granularity(&self) -> Option<u32> {
        self.instructions().map(|_| 1000)
    }
}

/// How the resumption of a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeOutcome {
    /// It has ended, with these values.
    Ended,
    /// It waits, for what these values say.
    Suspended,
    /// Its slice is over.
    Preempted,
    /// Its slice is over inside the prelude: no other task of its state may run before it has gone
    /// on.
    PreemptedInside,
    /// An error that nothing caught: this value, and a traceback.
    Failed,
}

/// Why a coroutine yielded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum YieldReason {
    /// Its own code said so: a value for who resumed it.
    Yielded,
    /// The task waits.
    Suspended,
    /// The hook yielded.
    Preempted,
    /// The hook, in code of the prelude.
    PreemptedInside,
}

/// Goes on with a task, until it ends, waits, or its slice is over.
pub(crate) fn drive(
    lua: &Lua,
    task: &Thread,
    args: impl IntoLuaMulti,
    guard: &Guard<'_>,
) -> mlua::Result<(ResumeOutcome, MultiValue)> {
    let base = task.state();
    let mut outcome = ResumeOutcome::Failed;
    let at = &mut outcome;
    let memory = guard.memory();
    // SAFETY: rule 1, the task is borrowed for as long as this takes; rule 4, nothing in the
    // closure has a destructor, and an error that passes through it leaves it to `exec_raw`.
    let values = unsafe {
        lua.exec_raw::<MultiValue>(args, |state| {
            limit(lua, memory);
            *at = resume_base(state, base, guard);
            limit(lua, memory.map(|memory| memory.saturating_add(HEADROOM)));
        })
    };
    // An error of the interpreter itself may have passed by.
    thread_state::leave();
    limit(lua, memory.map(|memory| memory.saturating_add(HEADROOM)));
    Ok((outcome, values?))
}

/// What the host may use beyond a state's limit, so that a script that has used up its memory gets
/// an error.
const HEADROOM: usize = 256 << 10;

fn limit(lua: &Lua, memory: Option<usize>) {
    if let Some(memory) = memory {
        // It fails only for states with an allocator of their own.
        let _ = lua.set_memory_limit(memory);
    }
}

/// Resumes a base; what it gave is left on `state`.
///
/// # Safety
/// `state` runs, `base` is a task's coroutine that is kept alive (rules 1 and 2).
unsafe fn resume_base(
    state: *mut ffi::lua_State,
    base: *mut ffi::lua_State,
    guard: &Guard<'_>,
) -> ResumeOutcome {
    // SAFETY: the caller's.
    unsafe {
        let given = ffi::lua_gettop(state);
        ffi::luaL_checkstack(state, 4, std::ptr::null());
        ffi::luaL_checkstack(base, given, std::ptr::null());
        ffi::lua_xmove(state, base, given);
        if let Some(count) = guard.granularity() {
            hook::every(base, count);
        }
        let mut results = 0;
        thread_state::enter(base, guard);
        if guard.granularity().is_none()
            && thread_state::slice(|slice| slice.is_over(0)) == Some(true)
        {
            // The signal came before there was anything to interrupt.
            hook::soon(base);
        }
        let status = ffi::lua_resume(base, state, given, &mut results);
        let why = thread_state::leave();
        match status {
            ffi::LUA_OK | ffi::LUA_YIELD => {
                ffi::luaL_checkstack(state, results + 1, std::ptr::null());
                ffi::lua_xmove(base, state, results);
            }
            _ => {
                ffi::lua_xmove(base, state, 1);
                ffi::luaL_traceback(state, base, std::ptr::null(), 0);
            }
        }
        match (status, why) {
            (ffi::LUA_OK, _) => ResumeOutcome::Ended,
            (ffi::LUA_YIELD, YieldReason::Preempted) => ResumeOutcome::Preempted,
            (ffi::LUA_YIELD, YieldReason::PreemptedInside) => ResumeOutcome::PreemptedInside,
            (ffi::LUA_YIELD, _) => ResumeOutcome::Suspended,
            _ => ResumeOutcome::Failed,
        }
    }
}

/// The functions of Lua that know of tasks: `coroutine`'s, and those that the prelude is made of.
/// Standard functions that could run for ever in C are replaced.
pub(crate) fn library(lua: &Lua) -> mlua::Result<Table> {
    bounded::install(lua)?;
    coroutine::library(lua)
}
