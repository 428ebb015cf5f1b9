//! The joiner's waker, in one word.
//!
//! Most joiners are tasks of ours, and then the word is the joiner's header with a counted
//! reference; the vtable need not be stored. Any other waker is boxed, and the word is tagged.

use std::ptr::NonNull;
use std::task::Waker;

use crate::deep::nested;
use crate::task::error::contain;
use crate::task::header::{self, Header};
use crate::task::waker;

/// None, a task, or a boxed waker.
#[derive(Debug)]
pub(crate) struct JoinWaker(*mut ());

const TAG: usize = 1;

enum Kind {
    None,
    Task(NonNull<Header>),
    Boxed(NonNull<Waker>),
}

impl JoinWaker {
    pub(crate) const NONE: JoinWaker = JoinWaker(std::ptr::null_mut());

    /// A clone of `waker`.
    pub(crate) fn new(waker: &Waker) -> JoinWaker {
        match waker::task_of(waker) {
            Some(task) => {
                // SAFETY: rule 7: `waker` holds a reference for the duration of the call.
                unsafe { task.as_ref() }.state.retain();
                JoinWaker(task.as_ptr().cast())
            }
            None => {
                let boxed = Box::into_raw(Box::new(waker.clone()));
                JoinWaker(boxed.map_addr(|address| address | TAG).cast())
            }
        }
    }

    fn kind(&self) -> Kind {
        if self.0.addr() & TAG == 0 {
            return NonNull::new(self.0.cast()).map_or(Kind::None, Kind::Task);
        }
        let boxed = self.0.map_addr(|address| address & !TAG).cast();
        NonNull::new(boxed).map_or(Kind::None, Kind::Boxed)
    }

    pub(crate) fn will_wake(&self, other: &Waker) -> bool {
        match self.kind() {
            Kind::None => false,
            Kind::Task(task) => waker::task_of(other) == Some(task),
            // SAFETY: the box is ours until drop.
            Kind::Boxed(waker) => unsafe { waker.as_ref() }.will_wake(other),
        }
    }

    pub(crate) fn wake_by_ref(&self) {
        match self.kind() {
            Kind::None => {}
            Kind::Task(task) => waker::wake(task),
            // SAFETY: the box is ours until drop.
            Kind::Boxed(waker) => unsafe { waker.as_ref() }.wake_by_ref(),
        }
    }

    pub(crate) fn take(&mut self) -> JoinWaker {
        std::mem::replace(self, JoinWaker::NONE)
    }
}

impl Drop for JoinWaker {
    fn drop(&mut self) {
        match self.kind() {
            Kind::None => {}
            // SAFETY: rule 7: the reference that `new` counted.
            Kind::Task(task) => unsafe { header::release(task) },
            // SAFETY: the box that `new` made, taken back once.
            Kind::Boxed(waker) => drop_boxed(unsafe { Box::from_raw(waker.as_ptr()) }),
        }
    }
}

/// A foreign waker whose drop panics must not take a worker along. It may hold the handle of a
/// task, and so on. A function of its own: what it takes to catch a panic is not on the way of
/// tasks.
#[cold]
#[inline(never)]
fn drop_boxed(waker: Box<Waker>) {
    nested(|| {
        contain(|| drop(waker));
    });
}
