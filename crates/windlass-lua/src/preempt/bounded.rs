//! The functions of Lua's standard library whose loops a script can make as long as it likes.
//!
//! No hook fires inside a function of C: `string.rep('', math.maxinteger)`, or `table.insert` into
//! a table with a huge `__len`, cannot be preempted, killed or timed out. Each function here looks
//! at its arguments first. A loop that is short for certain is C's own, called in the same frame,
//! so that results and messages are Lua's. Any other call goes to `bounded.lua`, whose loops are of
//! Lua and can be left between two instructions.
//!
//! A table with a metatable is never short: its metamethods can be functions of C that take long
//! each. A length alone says little: a table with 64 keys, at the powers of two, has a raw length
//! of 2^63.
//!
//! What stays C's own, whatever it is given, takes time in proportion to memory that the state has
//! already: `upper`, `reverse`, `byte`, `format`, `pack`, `unpack`, `utf8`, `tonumber`, comparing
//! and joining strings, a collection of garbage. The limit of memory bounds all of these.
//!
//! Rejected: counting steps and giving up, as patterns do. A long insert is no mistake, and has an
//! end.

use std::ffi::{CStr, c_int};

use mlua::ffi::{self, lua_Integer, lua_State};
use mlua::{Function, Lua, Table, Value};

/// So many values are moved, or compared, in one call of C: about a millisecond.
const FEW: u64 = 10_000;

/// So many values are joined in one call of C; each is a copy of bytes, and nothing is compared.
const FEW_JOINED: u64 = 1_000_000;

/// So often a string is repeated in one call of C.
const FEW_REPEATED: lua_Integer = 65_536;

/// Strings of so many bytes altogether are sorted in one call of C: each byte is compared several
/// times.
const FEW_BYTES: usize = 1 << 20;

/// The chunk's name: lines of it are left out of tracebacks. Not the prelude's: it may be
/// preempted.
const NAME: &CStr = c"=windlass:bounded";
const SOURCE: &str = include_str!("bounded.lua");

/// The function of C, as an upvalue.
const STANDARD: c_int = ffi::lua_upvalueindex(1);

/// The table that the functions of one state share, as an upvalue: `standard`, what `bounded.lua`
/// needs of the standard library, and the functions of `bounded.lua` by their names, from the first
/// call of one on.
const LIBRARY: c_int = ffi::lua_upvalueindex(2);

/// Calls C's function in this frame, or the one in Lua.
///
/// # Safety
/// In a function that Lua has called with both upvalues (rules 1, 2 and 4).
unsafe fn call(state: *mut lua_State, name: &CStr, short: bool) -> c_int {
    // SAFETY: the caller's. The upvalue is a function of C: `install` has taken it out of the
    // standard library.
    unsafe {
        match ffi::lua_tocfunction(state, STANDARD) {
            Some(standard) if short => standard(state),
            _ => {
                let given = ffi::lua_gettop(state);
                ffi::luaL_checkstack(state, 4, std::ptr::null());
                if ffi::lua_getfield(state, LIBRARY, name.as_ptr()) == ffi::LUA_TNIL {
                    load(state);
                    ffi::lua_settop(state, given);
                    ffi::lua_getfield(state, LIBRARY, name.as_ptr());
                }
                ffi::lua_insert(state, 1);
                ffi::lua_callk(state, given, ffi::LUA_MULTRET, 0, Some(finish));
                ffi::lua_gettop(state)
            }
        }
    }
}

/// Has `bounded.lua` put its functions into the shared table.
///
/// # Safety
/// As `call`'s.
unsafe fn load(state: *mut lua_State) {
    // SAFETY: the caller's; the source is as long as it says.
    unsafe {
        let source = SOURCE.as_ptr().cast();
        let mode = c"t".as_ptr();
        if ffi::luaL_loadbufferx(state, source, SOURCE.len(), NAME.as_ptr(), mode) != ffi::LUA_OK {
            // Only memory can be missing: that the source is right is seen to by the tests.
            ffi::lua_error(state);
        }
        ffi::lua_pushvalue(state, LIBRARY);
        ffi::lua_call(state, 1, 0);
    }
}

/// The function in Lua has been left in between, and has now ended: its results are all there is on
/// the stack.
unsafe extern "C-unwind" fn finish(
    state: *mut lua_State,
    _status: c_int,
    _context: ffi::lua_KContext,
) -> c_int {
    // SAFETY: Lua calls this with a state that runs.
    unsafe { ffi::lua_gettop(state) }
}

/// Whether this argument is a table without a metatable; None if it is no table.
///
/// # Safety
/// As `call`'s.
unsafe fn is_plain(state: *mut lua_State, place: c_int) -> Option<bool> {
    // SAFETY: the caller's; a function of C has room for 20 values.
    unsafe {
        if ffi::lua_type(state, place) != ffi::LUA_TTABLE {
            return None;
        }
        let has = ffi::lua_getmetatable(state, place) != 0;
        if has {
            ffi::lua_settop(state, -2);
        }
        Some(!has)
    }
}

/// The whole number at this place, which is one from now on, whatever it was written as.
///
/// # Safety
/// As `call`'s.
unsafe fn whole(state: *mut lua_State, place: c_int) -> Option<lua_Integer> {
    // SAFETY: the caller's.
    unsafe {
        let mut is_whole = 0;
        let number = ffi::lua_tointegerx(state, place, &mut is_whole);
        if is_whole == 0 {
            return None;
        }
        ffi::lua_pushinteger(state, number);
        ffi::lua_replace(state, place);
        Some(number)
    }
}

/// The same, or nothing where nothing was given. The outer None: something else was given.
///
/// # Safety
/// As `call`'s.
unsafe fn optional(state: *mut lua_State, place: c_int) -> Option<Option<lua_Integer>> {
    // SAFETY: the caller's.
    unsafe {
        match ffi::lua_type(state, place) {
            ffi::LUA_TNONE | ffi::LUA_TNIL => Some(None),
            _ => whole(state, place).map(Some),
        }
    }
}

/// How many there are from `first` to `last`.
fn span(first: lua_Integer, last: lua_Integer) -> u64 {
    match first <= last {
        true => last.abs_diff(first).saturating_add(1),
        false => 0,
    }
}

/// The length of a string, or of what a number is as one.
///
/// # Safety
/// As `call`'s.
unsafe fn text(state: *mut lua_State, place: c_int) -> Option<usize> {
    // SAFETY: the caller's.
    unsafe {
        if ffi::lua_isstring(state, place) == 0 {
            return None;
        }
        let mut length = 0;
        // Makes a string of a number, at its place.
        ffi::lua_tolstring(state, place, &mut length);
        Some(length)
    }
}

/// `string.rep(text, count, separator)`.
unsafe extern "C-unwind" fn rep(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        let short = match (text(state, 1), whole(state, 2)) {
            (Some(length), Some(count)) if count > FEW_REPEATED => {
                let separator = match ffi::lua_type(state, 3) {
                    ffi::LUA_TNONE | ffi::LUA_TNIL => Some(0),
                    _ => text(state, 3),
                };
                // Where the result is larger than C allows, C says so before it begins.
                separator.is_none_or(|separator| {
                    (length + separator) as u128 * count as u128 > c_int::MAX as u128
                })
            }
            _ => true,
        };
        call(state, c"rep", short)
    }
}

/// Whether what is behind a position of the first argument is short. Arguments that are wrong are:
/// C says so.
///
/// # Safety
/// As `call`'s.
unsafe fn is_short_behind(state: *mut lua_State) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let (Some(plain), Some(position)) = (is_plain(state, 1), whole(state, 2)) else {
            return true;
        };
        let length = ffi::lua_rawlen(state, 1) as u64;
        plain && length.saturating_sub(position.max(0) as u64) <= FEW
    }
}

/// `table.insert(list, position, value)`.
unsafe extern "C-unwind" fn insert(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        // Two arguments: it is appended.
        let short = ffi::lua_gettop(state) != 3 || is_short_behind(state);
        call(state, c"insert", short)
    }
}

/// Implements `table.remove(list, position)`.
unsafe extern "C-unwind" fn remove(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        // Without a position it is the last.
        let last = matches!(ffi::lua_type(state, 2), ffi::LUA_TNONE | ffi::LUA_TNIL);
        let short = last || is_short_behind(state);
        call(state, c"remove", short)
    }
}

/// `table.move(from, first, last, target, to)`.
unsafe extern "C-unwind" fn move_(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        let to = match ffi::lua_type(state, 5) {
            ffi::LUA_TNONE | ffi::LUA_TNIL => Some(true),
            _ => is_plain(state, 5),
        };
        let short = match (
            is_plain(state, 1),
            whole(state, 2),
            whole(state, 3),
            whole(state, 4),
            to,
        ) {
            (Some(from), Some(first), Some(last), Some(_), Some(to)) => {
                from && to && span(first, last) <= FEW
            }
            _ => true,
        };
        call(state, c"move", short)
    }
}

/// The places of the first argument that are meant, where the bounds are at these places.
///
/// # Safety
/// As `call`'s; the first argument is a plain table.
unsafe fn places(state: *mut lua_State, first: c_int, last: c_int) -> Option<u64> {
    // SAFETY: the caller's.
    unsafe {
        let first = optional(state, first)?.unwrap_or(1);
        let last = optional(state, last)?.unwrap_or_else(|| {
            lua_Integer::try_from(ffi::lua_rawlen(state, 1)).unwrap_or(lua_Integer::MAX)
        });
        Some(span(first, last))
    }
}

/// `table.concat(list, separator, first, last)`.
unsafe extern "C-unwind" fn concat(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        let nothing = matches!(ffi::lua_type(state, 2), ffi::LUA_TNONE | ffi::LUA_TNIL);
        let short = match is_plain(state, 1) {
            Some(plain) if nothing || text(state, 2).is_some() => {
                let places = places(state, 3, 4);
                places.is_none_or(|places| plain && places <= FEW_JOINED)
            }
            _ => true,
        };
        call(state, c"concat", short)
    }
}

/// `table.unpack(list, first, last)`: C refuses more than the stack has room for.
unsafe extern "C-unwind" fn unpack(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        let short = is_plain(state, 1) != Some(false) || places(state, 2, 3).is_none();
        call(state, c"unpack", short)
    }
}

/// Implements `table.sort(list, before)`.
unsafe extern "C-unwind" fn sort(state: *mut lua_State) -> c_int {
    // SAFETY: Lua calls this with a state that runs; rule 4.
    unsafe {
        let takes = matches!(
            ffi::lua_type(state, 2),
            ffi::LUA_TNONE | ffi::LUA_TNIL | ffi::LUA_TFUNCTION
        );
        let short = match is_plain(state, 1) {
            Some(plain) if takes => plain && is_short_to_sort(state),
            _ => true,
        };
        call(state, c"sort", short)
    }
}

/// Whether the plain table that is the first argument has few values, and short strings.
///
/// # Safety
/// As `call`'s.
unsafe fn is_short_to_sort(state: *mut lua_State) -> bool {
    // SAFETY: the caller's.
    unsafe {
        let length = ffi::lua_rawlen(state, 1) as u64;
        if length > FEW {
            return false;
        }
        let mut bytes = 0_usize;
        for place in 1..=length as lua_Integer {
            if ffi::lua_rawgeti(state, 1, place) == ffi::LUA_TSTRING {
                bytes = bytes.saturating_add(ffi::lua_rawlen(state, -1));
            }
            ffi::lua_settop(state, -2);
        }
        bytes <= FEW_BYTES
    }
}

/// Puts these functions in the place of the standard ones. Before any script runs.
pub(super) fn install(lua: &Lua) -> mlua::Result<()> {
    let functions: [(&str, &str, ffi::lua_CFunction); 7] = [
        ("string", "rep", rep),
        ("table", "insert", insert),
        ("table", "remove", remove),
        ("table", "move", move_),
        ("table", "concat", concat),
        ("table", "unpack", unpack),
        ("table", "sort", sort),
    ];
    let (library, standard) = (lua.create_table()?, lua.create_table()?);
    let globals = lua.globals();
    for name in ["error", "type", "pcall"] {
        standard.raw_set(name, globals.raw_get::<Value>(name)?)?;
    }
    let others = [
        ("string", "format"),
        ("string", "gsub"),
        ("math", "min"),
        ("math", "maxinteger"),
        ("math", "tointeger"),
        ("math", "ult"),
    ];
    for (table, name) in others {
        let value = globals.raw_get::<Table>(table)?.raw_get::<Value>(name)?;
        standard.raw_set(name, value)?;
    }
    library.raw_set("standard", &standard)?;
    for (table, name, function) in functions {
        let table: Table = globals.raw_get(table)?;
        let own: Function = table.raw_get(name)?;
        // SAFETY: rules 1 and 2: exec_raw gives a state that this thread has locked, in a protected
        // call, with these two values on its stack.
        let made: Function = unsafe {
            lua.exec_raw((&own, &library), |state| {
                ffi::lua_pushcclosure(state, function, 2);
            })?
        };
        // Runs of a long list are sorted by C where these are short.
        let known = if name == "sort" { &made } else { &own };
        standard.raw_set(name, known)?;
        table.raw_set(name, &made)?;
    }
    Ok(())
}
