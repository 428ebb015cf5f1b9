//! Values of the host in Lua.

use std::sync::Arc;

use mlua::{AnyUserData, MetaMethod, UserData, UserDataMethods};
use windlass_actor::Pid;
use windlass_value::Payload;

/// A PID in Lua.
#[derive(Clone, Copy)]
pub(crate) struct LuaPid(pub(crate) Pid);

impl UserData for LuaPid {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, pid, ()| Ok(pid.0.to_string()));
        methods.add_meta_method(MetaMethod::Eq, |_, pid, other: AnyUserData| {
            Ok(other.borrow::<LuaPid>().is_ok_and(|other| other.0 == pid.0))
        });
    }
}

/// Bytes that are shared instead of copied, however often they are sent.
pub(crate) struct Buffer(pub(crate) Arc<[u8]>);

impl UserData for Buffer {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::Len, |_, buffer, ()| Ok(buffer.0.len()));
        methods.add_meta_method(MetaMethod::ToString, |lua, buffer, ()| {
            lua.create_string(&buffer.0)
        });
        methods.add_meta_method(MetaMethod::Eq, |_, buffer, other: AnyUserData| {
            Ok(other
                .borrow::<Buffer>()
                .is_ok_and(|other| other.0 == buffer.0))
        });
        methods.add_method("sub", |lua, buffer, (from, to): (i64, Option<i64>)| {
            let length = buffer.0.len() as i64;
            let place = |at: i64| if at < 0 { (length + at + 1).max(0) } else { at };
            let (from, to) = (place(from).max(1), place(to.unwrap_or(-1)).min(length));
            match from <= to {
                true => lua.create_string(&buffer.0[from as usize - 1..to as usize]),
                false => lua.create_string(""),
            }
        });
    }
}

/// A Rust value on its way through Lua.
pub(super) struct OpaqueValue(pub(super) Payload);

impl UserData for OpaqueValue {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_meta_method(MetaMethod::ToString, |_, _, ()| {
            Ok("opaque value of the host")
        });
    }
}
