//! Lua's coroutines, for code that is preempted.
//!
//! A coroutine of a script runs inside a task, which is a coroutine itself. When the task waits or
//! is preempted inside of it, the yield goes outwards through every coroutine up to the task, and
//! back in the same way when the task goes on: who resumed the coroutine does not notice.

use mlua::ffi::{self, lua_State};
use mlua::{Lua, Table};

use super::{YieldReason, hook, thread_state};

/// The place of the table of coroutines that are between two halves of such a yield.
const BUSY: i32 = ffi::lua_upvalueindex(1);

/// The coroutine of a `wrap`.
const WRAPPED: i32 = ffi::lua_upvalueindex(2);

/// How the resumption of a coroutine ended.
enum CoroutineOutcome {
    /// Ended or yielded, with so many values.
    Returned(i32),
    /// Ended with an error.
    Failed,
    /// The task waits, or is preempted: so many values go outwards.
    Outwards(i32),
}

/// Resumes `inner` with what is on top of `outer`.
///
/// # Safety
/// Rules 1 and 2; `outer` runs and has `inner` on its stack or as an upvalue.
unsafe fn go(outer: *mut lua_State, inner: *mut lua_State, given: i32) -> CoroutineOutcome {
    // SAFETY: the caller's.
    unsafe {
        if ffi::lua_checkstack(inner, given) == 0 {
            ffi::lua_pushstring(outer, c"too many arguments to resume".as_ptr());
            return CoroutineOutcome::Failed;
        }
        ffi::lua_xmove(outer, inner, given);
        let open = ffi::lua_isyieldable(outer) != 0;
        if !open {
            thread_state::block(1);
        }
        let mut results = 0;
        thread_state::set_innermost(inner);
        let status = ffi::lua_resume(inner, outer, given, &mut results);
        thread_state::set_innermost(outer);
        if !open {
            thread_state::block(-1);
        }
        let yielded = status == ffi::LUA_YIELD;
        let outwards = yielded && thread_state::yield_reason() != YieldReason::Yielded;
        if !outwards
            && thread_state::slice(|slice| slice.granularity().is_none() && slice.is_over(0))
                == Some(true)
        {
            // Entered again: the signal may have hit the other one a moment too late.
            hook::soon(outer);
        }
        if status != ffi::LUA_OK && !yielded {
            ffi::lua_xmove(inner, outer, 1);
            return CoroutineOutcome::Failed;
        }
        if ffi::lua_checkstack(outer, results + 4) == 0 {
            ffi::lua_settop(inner, -results - 1);
            ffi::lua_pushstring(outer, c"too many results to resume".as_ptr());
            return CoroutineOutcome::Failed;
        }
        ffi::lua_xmove(inner, outer, results);
        match outwards {
            true => CoroutineOutcome::Outwards(results),
            false => CoroutineOutcome::Returned(results),
        }
    }
}

/// Marks the coroutine at this place as busy, or not: another task must not resume it in between.
///
/// # Safety
/// As `go`'s. Nothing is pushed to the inner one, which may have stopped anywhere.
unsafe fn mark(outer: *mut lua_State, inner: i32, busy: bool) {
    // SAFETY: the caller's; the stack has room, `go` has seen to that, or it is a C function's own.
    unsafe {
        ffi::lua_pushvalue(outer, inner);
        match busy {
            true => ffi::lua_pushboolean(outer, 1),
            false => ffi::lua_pushnil(outer),
        }
        ffi::lua_rawset(outer, BUSY);
    }
}

/// Whether a coroutine is inside a task that waits, or is a task itself.
///
/// # Safety
/// As `go`'s.
unsafe fn is_busy(outer: *mut lua_State, inner: i32) -> bool {
    // SAFETY: the caller's.
    unsafe {
        ffi::luaL_checkstack(outer, 2, std::ptr::null());
        ffi::lua_pushvalue(outer, inner);
        ffi::lua_rawget(outer, BUSY);
        let busy = ffi::lua_toboolean(outer, -1) != 0;
        ffi::lua_settop(outer, -2);
        busy
    }
}

/// Implements `coroutine.resume(co, ...)`.
unsafe extern "C-unwind" fn resume(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        let inner = coroutine_at(state, 1);
        if inner != state && is_busy(state, 1) {
            ffi::lua_pushboolean(state, 0);
            ffi::lua_pushstring(state, c"cannot resume non-suspended coroutine".as_ptr());
            return 2;
        }
        let given = ffi::lua_gettop(state) - 1;
        let outcome = go(state, inner, given);
        resumed(state, outcome)
    }
}

unsafe extern "C-unwind" fn resume_again(
    state: *mut lua_State,
    _status: i32,
    _context: ffi::lua_KContext,
) -> i32 {
    // SAFETY: as `resume`: the coroutine is still at place 1, what came is above it.
    unsafe {
        let inner = ffi::lua_tothread(state, 1);
        mark(state, 1, false);
        let given = ffi::lua_gettop(state) - 1;
        let outcome = go(state, inner, given);
        resumed(state, outcome)
    }
}

/// # Safety
/// As `go`'s, in a C function that Lua has called.
unsafe fn resumed(state: *mut lua_State, outcome: CoroutineOutcome) -> i32 {
    // SAFETY: the caller's.
    unsafe {
        match outcome {
            CoroutineOutcome::Returned(results) => {
                ffi::lua_pushboolean(state, 1);
                ffi::lua_insert(state, -(results + 1));
                results + 1
            }
            CoroutineOutcome::Failed => {
                ffi::lua_pushboolean(state, 0);
                ffi::lua_insert(state, -2);
                2
            }
            CoroutineOutcome::Outwards(values) => {
                mark(state, 1, true);
                ffi::lua_yieldk(state, values, 0, Some(resume_again))
            }
        }
    }
}

/// What `coroutine.wrap` gives.
unsafe extern "C-unwind" fn wrapped(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        let inner = ffi::lua_tothread(state, WRAPPED);
        if is_busy(state, WRAPPED) {
            return ffi::luaL_error(state, c"cannot resume non-suspended coroutine".as_ptr());
        }
        let given = ffi::lua_gettop(state);
        let outcome = go(state, inner, given);
        unwrapped(state, inner, outcome)
    }
}

unsafe extern "C-unwind" fn wrapped_again(
    state: *mut lua_State,
    _status: i32,
    _context: ffi::lua_KContext,
) -> i32 {
    // SAFETY: as `wrapped`.
    unsafe {
        let inner = ffi::lua_tothread(state, WRAPPED);
        mark(state, WRAPPED, false);
        let given = ffi::lua_gettop(state);
        let outcome = go(state, inner, given);
        unwrapped(state, inner, outcome)
    }
}

/// # Safety
/// As `go`'s, in a C function that Lua has called.
unsafe fn unwrapped(
    state: *mut lua_State,
    inner: *mut lua_State,
    outcome: CoroutineOutcome,
) -> i32 {
    // SAFETY: the caller's.
    unsafe {
        match outcome {
            CoroutineOutcome::Returned(results) => results,
            CoroutineOutcome::Outwards(values) => {
                mark(state, WRAPPED, true);
                ffi::lua_yieldk(state, values, 0, Some(wrapped_again))
            }
            CoroutineOutcome::Failed => {
                let status = ffi::lua_status(inner);
                if status != ffi::LUA_OK && status != ffi::LUA_YIELD {
                    // Its variables are closed, and what that gives is the error.
                    ffi::lua_settop(state, -2);
                    ffi::lua_closethread(inner, state);
                    ffi::lua_xmove(inner, state, 1);
                }
                if status != ffi::LUA_ERRMEM && ffi::lua_type(state, -1) == ffi::LUA_TSTRING {
                    ffi::luaL_where(state, 1);
                    ffi::lua_insert(state, -2);
                    ffi::lua_concat(state, 2);
                }
                ffi::lua_error(state)
            }
        }
    }
}

/// Implements `coroutine.create(f)` for scripts.
unsafe extern "C-unwind" fn create(state: *mut lua_State) -> i32 {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        ffi::luaL_checktype(state, 1, ffi::LUA_TFUNCTION);
        let inner = ffi::lua_newthread(state);
        ffi::lua_pushvalue(state, 1);
        ffi::lua_xmove(state, inner, 1);
        1
    }
}

/// Implements `coroutine.wrap(f)` for scripts.
unsafe extern "C-unwind" fn wrap(state: *mut lua_State) -> i32 {
    // SAFETY: as `create`.
    unsafe {
        ffi::lua_pushvalue(state, BUSY);
        ffi::lua_insert(state, 1);
        // The function is the second now.
        ffi::luaL_checktype(state, 2, ffi::LUA_TFUNCTION);
        let inner = ffi::lua_newthread(state);
        ffi::lua_pushvalue(state, 2);
        ffi::lua_xmove(state, inner, 1);
        ffi::lua_pushvalue(state, 1);
        ffi::lua_insert(state, -2);
        ffi::lua_pushcclosure(state, wrapped, 2);
        1
    }
}

/// `coroutine.yield(...)`: to who resumed this coroutine.
unsafe extern "C-unwind" fn yield_(state: *mut lua_State) -> i32 {
    // SAFETY: as `create`.
    unsafe {
        if thread_state::is_base(state) {
            return ffi::luaL_error(state, c"attempt to yield from outside a coroutine".as_ptr());
        }
        thread_state::set_yield_reason(YieldReason::Yielded);
        ffi::lua_yield(state, ffi::lua_gettop(state))
    }
}

/// The task waits, for what the arguments say.
unsafe extern "C-unwind" fn suspend(state: *mut lua_State) -> i32 {
    // SAFETY: as `create`.
    unsafe {
        if ffi::lua_isyieldable(state) == 0 || !thread_state::is_open() {
            // As the host says that something went wrong: the prelude knows where.
            ffi::lua_pushboolean(state, 0);
            ffi::lua_pushstring(state, c"cannot_wait".as_ptr());
            ffi::lua_pushstring(
                state,
                c"cannot wait here: a function of the host, or a comparison of table.sort, is in between"
                    .as_ptr(),
            );
            return 3;
        }
        thread_state::set_yield_reason(YieldReason::Suspended);
        ffi::lua_yield(state, ffi::lua_gettop(state))
    }
}

/// Implements `coroutine.close(co)` for scripts.
unsafe extern "C-unwind" fn close(state: *mut lua_State) -> i32 {
    // SAFETY: as `create`.
    unsafe {
        let inner = coroutine_at(state, 1);
        let inside = ffi::lua_status(inner) == ffi::LUA_OK && has_frames(inner);
        if inner == state || inside || is_busy(state, 1) {
            return ffi::luaL_error(state, c"cannot close a running coroutine".as_ptr());
        }
        // Its variables are closed by code of the script.
        thread_state::block(1);
        thread_state::set_innermost(inner);
        let status = ffi::lua_closethread(inner, state);
        thread_state::set_innermost(state);
        thread_state::block(-1);
        if status == ffi::LUA_OK {
            ffi::lua_pushboolean(state, 1);
            return 1;
        }
        ffi::lua_pushboolean(state, 0);
        ffi::lua_xmove(inner, state, 1);
        2
    }
}

/// Whether a coroutine is inside a call.
///
/// # Safety
/// Rules 1 and 2.
unsafe fn has_frames(inner: *mut lua_State) -> bool {
    // SAFETY: the caller's; the record is plain data that Lua fills.
    unsafe {
        let mut record: ffi::lua_Debug = std::mem::zeroed();
        ffi::lua_getstack(inner, 0, &mut record) != 0
    }
}

/// The task that runs: its number.
unsafe extern "C-unwind" fn current(state: *mut lua_State) -> i32 {
    // SAFETY: as `create`.
    unsafe {
        ffi::lua_pushinteger(state, thread_state::task() as ffi::lua_Integer);
        1
    }
}

/// Where the code of this level is: `file:line: `.
unsafe extern "C-unwind" fn location(state: *mut lua_State) -> i32 {
    // SAFETY: as `create`.
    unsafe {
        let level = ffi::luaL_checkinteger(state, 1) as i32;
        ffi::luaL_where(state, level);
        1
    }
}

/// The calls that this one is inside of.
unsafe extern "C-unwind" fn traceback(state: *mut lua_State) -> i32 {
    // SAFETY: as `create`.
    unsafe {
        let level = ffi::luaL_optinteger(state, 1, 1) as i32;
        ffi::luaL_traceback(state, state, std::ptr::null(), level);
        1
    }
}

/// Marks a coroutine as a task, which scripts do not resume.
unsafe extern "C-unwind" fn guard(state: *mut lua_State) -> i32 {
    // SAFETY: as `create`.
    unsafe {
        coroutine_at(state, 1);
        mark(state, 1, true);
        0
    }
}

/// # Safety
/// In a C function that Lua has called.
unsafe fn coroutine_at(state: *mut lua_State, place: i32) -> *mut lua_State {
    // SAFETY: the caller's.
    unsafe {
        let inner = ffi::lua_tothread(state, place);
        if inner.is_null() {
            ffi::luaL_checktype(state, place, ffi::LUA_TTHREAD);
        }
        inner
    }
}

pub(super) fn library(lua: &Lua) -> mlua::Result<Table> {
    let functions: [(&std::ffi::CStr, ffi::lua_CFunction); 11] = [
        (c"resume", resume),
        (c"create", create),
        (c"wrap", wrap),
        (c"yield", yield_),
        (c"close", close),
        (c"suspend", suspend),
        (c"current", current),
        (c"location", location),
        (c"traceback", traceback),
        (c"guard", guard),
        (c"is_task", is_task),
    ];
    // SAFETY: rules 1 and 2: exec_raw gives a state that this thread has locked, in a protected
    // call.
    unsafe {
        lua.exec_raw((), |state| {
            ffi::lua_createtable(state, 0, functions.len() as i32);
            // Weak: a coroutine without another reference is not kept.
            ffi::lua_newtable(state);
            ffi::lua_newtable(state);
            ffi::lua_pushstring(state, c"k".as_ptr());
            ffi::lua_setfield(state, -2, c"__mode".as_ptr());
            ffi::lua_setmetatable(state, -2);
            for (name, function) in functions {
                ffi::lua_pushvalue(state, -1);
                ffi::lua_pushcclosure(state, function, 1);
                ffi::lua_setfield(state, -3, name.as_ptr());
            }
            ffi::lua_settop(state, -2);
        })
    }
}

/// Whether the running coroutine is a task's own.
unsafe extern "C-unwind" fn is_task(state: *mut lua_State) -> i32 {
    // SAFETY: as `create`.
    unsafe {
        ffi::lua_pushboolean(state, i32::from(thread_state::is_base(state)));
        1
    }
}
