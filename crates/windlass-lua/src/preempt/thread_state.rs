//! What runs on this thread.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ptr;

use mlua::ffi::lua_State;
use std::sync::atomic::{Ordering, compiler_fence};
use windlass_vm::Budget;

use super::{Slice, YieldReason};

/// What runs on this thread. The handler of a signal reads `innermost` only.
struct ThreadState {
    innermost: Cell<*mut lua_State>,
    base: Cell<*mut lua_State>,
    /// How many coroutines were resumed from where the task cannot yield.
    blocked: Cell<u32>,
    /// How many instructions the hook has waited for the prelude to end.
    inside: Cell<u32>,
    /// True from the moment that the hook throws until the next base is entered.
    thrown: Cell<bool>,
    yield_reason: Cell<YieldReason>,
    task: Cell<u64>,
    slice: Cell<Option<*const dyn Slice>>,
    budget: Cell<*const Budget<'static>>,
}

thread_local! {
    // Initialised by the compiler and without a destructor: reading it is a load, also in the
    // handler of a signal.
    static HERE: ThreadState = const {
        ThreadState {
            innermost: Cell::new(ptr::null_mut()),
            base: Cell::new(ptr::null_mut()),
            blocked: Cell::new(0),
            inside: Cell::new(0),
            thrown: Cell::new(false),
            yield_reason: Cell::new(YieldReason::Yielded),
            task: Cell::new(0),
            slice: Cell::new(None),
            budget: Cell::new(ptr::null()),
        }
    };
}

/// Lends a slice, and a budget, to whatever Lua code runs on this thread, until it is dropped.
pub(crate) struct Guard<'a> {
    granularity: Option<u32>,
    task: Cell<u64>,
    memory: Cell<Option<usize>>,
    before: (Option<*const dyn Slice>, *const Budget<'static>),
    lent: PhantomData<&'a ()>,
}

impl<'a> Guard<'a> {
    /// For a guest: its budget is its slice.
    pub(crate) fn of_budget(budget: &'a Budget<'a>) -> Guard<'a> {
        // Its lifetime is forgotten here, and given back by `with_budget`; see rule 5.
        let erased = ptr::from_ref(budget).cast::<Budget<'static>>();
        Guard::lend(budget, erased)
    }

    /// For code that is no guest's.
    pub(crate) fn of_slice(slice: &'a (dyn Slice + 'a)) -> Guard<'a> {
        Guard::lend(slice, ptr::null())
    }

    fn lend(slice: &'a (dyn Slice + 'a), budget: *const Budget<'static>) -> Guard<'a> {
        let granularity = slice.granularity();
        // SAFETY: only the lifetime is forgotten; rule 5.
        let erased: *const dyn Slice =
            unsafe { std::mem::transmute::<*const (dyn Slice + 'a), *const dyn Slice>(slice) };
        let before = HERE.with(|here| {
            (
                here.slice.replace(Some(erased)),
                here.budget.replace(budget),
            )
        });
        Guard {
            granularity,
            task: Cell::new(0),
            memory: Cell::new(None),
            before,
            lent: PhantomData,
        }
    }

    pub(crate) fn granularity(&self) -> Option<u32> {
        self.granularity
    }

    /// The bytes that Lua code may have.
    pub(crate) fn set_memory(&self, bytes: usize) {
        self.memory.set(Some(bytes));
    }

    pub(crate) fn memory(&self) -> Option<usize> {
        self.memory.get()
    }

    /// The task that is driven next.
    pub(crate) fn set_task(&self, task: u64) {
        self.task.set(task);
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        leave();
        HERE.with(|here| {
            here.slice.set(self.before.0);
            here.budget.set(self.before.1);
        });
    }
}

/// Calls with the budget of the guest that runs here; None if none does.
pub(crate) fn with_budget<T>(call: impl FnOnce(Option<&Budget<'_>>) -> T) -> T {
    let budget = HERE.with(|here| here.budget.get());
    // SAFETY: rule 5: it is not null only while the guard borrows it.
    call(unsafe { budget.as_ref() })
}

/// Asks the slice of what runs here; None if nothing does.
pub(super) fn slice<T>(ask: impl FnOnce(&dyn Slice) -> T) -> Option<T> {
    let slice = HERE.with(|here| here.slice.get())?;
    // SAFETY: rule 5: it is there only while the guard borrows it.
    Some(ask(unsafe { &*slice }))
}

/// Whether what runs here was ended from outside, or has used up its time, for functions that take
/// long. Never where instructions count: a replay would not find it out at the same place.
pub(crate) fn is_ending() -> bool {
    let ending = slice(|slice| match slice.throws() {
        true => slice.is_over(0),
        false => slice.granularity().is_none() && slice.must_end(),
    });
    ending.unwrap_or(false)
}

/// The hook is about to throw out what runs here.
pub(super) fn set_thrown() {
    HERE.with(|here| here.thrown.set(true));
}

/// Returns true if the hook has thrown out what runs here. Message handlers of scripts are not
/// called then: Lua calls them inside of the hook, where no hook could end them.
pub(crate) fn is_thrown() -> bool {
    HERE.with(|here| here.thrown.get())
}

/// A base is about to run.
pub(super) fn enter(base: *mut lua_State, guard: &Guard<'_>) {
    HERE.with(|here| {
        here.base.set(base);
        here.blocked.set(0);
        here.inside.set(0);
        here.thrown.set(false);
        here.task.set(guard.task.get());
    });
    set_innermost(base);
}

/// Nothing runs any more; says why the last yield was.
pub(super) fn leave() -> YieldReason {
    set_innermost(ptr::null_mut());
    HERE.with(|here| {
        here.base.set(ptr::null_mut());
        here.yield_reason.get()
    })
}

/// This state runs from now on. Rule 3.
pub(super) fn set_innermost(state: *mut lua_State) {
    // The handler runs on this thread: the compiler's order is all that counts.
    compiler_fence(Ordering::SeqCst);
    HERE.with(|here| here.innermost.set(state));
    compiler_fence(Ordering::SeqCst);
}

/// The state that runs here, if one does. For the handler, too.
pub(super) fn innermost() -> *mut lua_State {
    HERE.with(|here| here.innermost.get())
}

/// Whether this is the base of the task that runs.
pub(super) fn is_base(state: *mut lua_State) -> bool {
    HERE.with(|here| here.base.get() == state)
}

pub(super) fn task() -> u64 {
    HERE.with(|here| here.task.get())
}

pub(super) fn set_yield_reason(reason: YieldReason) {
    HERE.with(|here| here.yield_reason.set(reason));
}

pub(super) fn yield_reason() -> YieldReason {
    HERE.with(|here| here.yield_reason.get())
}

/// One more coroutine that was resumed from where the task cannot yield, or one less.
pub(super) fn block(by: i32) {
    HERE.with(|here| here.blocked.set(here.blocked.get().wrapping_add_signed(by)));
}

/// The hook has found the prelude once more in this turn: how often it has by now.
pub(super) fn wait_inside() -> u32 {
    HERE.with(|here| {
        here.inside.set(here.inside.get().saturating_add(1));
        here.inside.get()
    })
}

/// Whether a yield of the innermost reaches the base.
pub(super) fn is_open() -> bool {
    HERE.with(|here| here.blocked.get() == 0)
}
