//! What happens when a slice is over.

use std::ffi::CStr;

use mlua::ffi::{self, lua_Debug, lua_State};

use super::{PRELUDE, YieldReason, thread_state};

/// How many instructions pass before a task is asked again that could not stop where it was.
const AGAIN: i32 = 1000;

/// How many instructions of the prelude a slice that is over waits for: its functions take fewer,
/// unless a queue is very long.
const PATIENCE: u32 = 10_000;

/// Has this state asked at its next instruction.
///
/// # Safety
/// Rules 1 and 2: the state is alive, and this is its thread. May be called from the handler of a
/// signal.
pub(super) unsafe fn soon(state: *mut lua_State) {
    // SAFETY: the caller's.
    unsafe { every(state, 1) };
}

/// Has this state asked every so many instructions.
///
/// # Safety
/// Rules 1 and 2.
pub(super) unsafe fn every(state: *mut lua_State, count: u32) {
    // SAFETY: the caller's.
    unsafe {
        // Installing walks all calls that the state is inside of. Where those are many, signals
        // that come faster than that would leave no time for anything else: one that is there
        // already is not installed again.
        let there = ffi::lua_gethookmask(state) == ffi::LUA_MASKCOUNT
            && ffi::lua_gethookcount(state) == count as i32;
        if !there {
            ffi::lua_sethook(state, Some(hook), ffi::LUA_MASKCOUNT, count as i32);
        }
    }
}

/// The hook: lets the task go on, or yield, or throws it out.
unsafe extern "C-unwind" fn hook(state: *mut lua_State, record: *mut lua_Debug) {
    // SAFETY: Lua calls this with a state that runs; rule 4: nothing here has a destructor.
    unsafe {
        let granularity = thread_state::slice(|slice| slice.granularity()).flatten();
        // Before a step asks again at once, it counts the least that it can count: one instruction.
        let count = ffi::lua_gethookcount(state) as u64;
        match thread_state::slice(|slice| slice.is_over(count)) {
            Some(true) => {}
            _ => {
                return match granularity {
                    Some(count) => every(state, count),
                    // Rule 6.
                    None => ffi::lua_sethook(state, None, 0, 0),
                };
            }
        }
        let throws = thread_state::slice(|slice| slice.throws()) == Some(true);
        let must_end = thread_state::slice(|slice| slice.must_end()) == Some(true);
        let why = match is_prelude(state, record) {
            true if !throws && !must_end && thread_state::wait_inside() < PATIENCE => {
                return soon(state);
            }
            true => YieldReason::PreemptedInside,
            false => YieldReason::Preempted,
        };
        if !throws && ffi::lua_isyieldable(state) != 0 && thread_state::is_open() {
            thread_state::set_yield_reason(why);
            // In a hook this comes back, and Lua yields after it.
            ffi::lua_yield(state, 0);
            return;
        }
        if throws || must_end {
            // Whatever catches this runs into the next.
            soon(state);
            thread_state::set_thrown();
            ffi::luaL_error(state, c"interrupted: its time is over".as_ptr());
        }
        every(state, AGAIN as u32);
    }
}

/// Whether the function that runs is one of the prelude.
///
/// # Safety
/// As the hook's.
unsafe fn is_prelude(state: *mut lua_State, record: *mut lua_Debug) -> bool {
    // SAFETY: Lua gives the record to the hook, for exactly this call.
    unsafe {
        if ffi::lua_getinfo(state, c"S".as_ptr(), record) == 0 || (*record).source.is_null() {
            return false;
        }
        CStr::from_ptr((*record).source).to_bytes() == PRELUDE.as_bytes()
    }
}
