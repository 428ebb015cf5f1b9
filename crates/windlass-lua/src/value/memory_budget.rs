//! How much memory of the host a value may take.

use mlua::Lua;

use super::unsendable::{TOO_LARGE, Unsendable};

/// The bytes that a Lua state may have; kept in the state.
pub(crate) struct MemoryLimit(pub(crate) usize);

/// What a value may take of the host's memory: what is left of the limit of its state.
#[derive(Default)]
pub(crate) struct MemoryBudget {
    left: usize,
    whole: usize,
    /// Something did not fit.
    is_over: bool,
}

impl MemoryBudget {
    pub(crate) fn of(lua: &Lua) -> MemoryBudget {
        let limit = lua.app_data_ref::<MemoryLimit>();
        let limit = limit.map_or(usize::MAX, |limit| limit.0);
        let whole = limit.saturating_sub(lua.used_memory());
        MemoryBudget {
            left: whole,
            whole,
            is_over: false,
        }
    }

    /// What is left.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Something was found not to fit.
    pub(crate) fn exhaust(&mut self) {
        self.is_over = true;
    }

    /// Takes so many bytes. False: there are not as many.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.is_over = true;
                false
            }
        }
    }

    /// What is said of a value that does not fit.
    pub(crate) fn refusal(&self) -> Unsendable {
        Unsendable {
            what: format!("a value that takes more than {} bytes", self.whole),
            path: String::new(),
            advice: TOO_LARGE,
        }
    }
}

/// Makes something that has to fit. If it does not, the garbage of the state is collected first.
pub(crate) fn fitting<T, E>(
    lua: &Lua,
    mut make: impl FnMut(&mut MemoryBudget) -> Result<T, E>,
) -> Result<T, E> {
    let mut room = MemoryBudget::of(lua);
    let made = make(&mut room);
    if made.is_ok() || !room.is_over || lua.gc_collect().is_err() {
        return made;
    }
    make(&mut MemoryBudget::of(lua))
}
