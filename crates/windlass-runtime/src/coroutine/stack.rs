//! Stacks, and where they wait between two coroutines.
//!
//! Each thread keeps the stacks that were used on it last, warm ones first; the one that has waited
//! longest goes to the depot when there are too many. The depot keeps some with their memory and
//! gives that of the others back to the system.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use windlass_core::sync::Mutex;

use super::frame::Bounds;
use super::sanitizer;
use super::slab::{self, CLASSES, Piece, SizeClass, Slot, StackError};

/// Stacks that a thread keeps, of all sizes together.
const KEPT_BY_THREAD: usize = 64;
/// Stacks of one size that the depot keeps with their memory.
const KEPT_WARM: usize = 256;

/// A stack with its guard.
#[derive(Debug)]
pub(super) struct Stack(Piece);

impl Stack {
    /// One of at least `class`'s size: this thread's last one if it has any.
    pub(super) fn take(class: SizeClass) -> Result<Stack, StackError> {
        let kept = CACHE.try_with(|cache| cache.borrow_mut().take(class));
        let stack = match kept.ok().flatten().or_else(|| take_from_depot(class)) {
            Some(piece) => Stack(piece),
            None => Stack(slab::cut(class)?),
        };
        sanitizer::unpoison(stack.bounds());
        Ok(stack)
    }

    /// Keeps the stack for the next one on this thread. No frames are on it.
    pub(super) fn give_back(self) {
        self.0.slot.clear_owner();
        let mut piece = Some(self.0);
        let _ = CACHE.try_with(|cache| cache.borrow_mut().keep(&mut piece));
        if let Some(piece) = piece {
            // The thread is ending, or has enough.
            put_into_depot(piece);
        }
    }

    /// Keeps the stack, but not its memory.
    fn give_memory_back(self) {
        slab::release_memory(&self.0);
        DEPOTS[self.0.class.index()].lock().cold.push(self.0);
    }

    pub(super) fn slot(&self) -> &'static Slot {
        self.0.slot
    }

    /// The part of it that frames may use: all but the guard.
    pub(super) fn bounds(&self) -> Bounds {
        // Derived from the mapping, so that it may be written to.
        let lowest = self.0.bottom.as_ptr().wrapping_add(slab::page());
        Bounds {
            lowest,
            top: lowest.addr() + self.0.class.size(),
        }
    }
}

/// Calls `f` on a stack of a megabyte, or here if there is none to be had.
pub(crate) fn on_fresh_stack(f: &mut dyn FnMut()) {
    /// Goes back to the others when the call is over, also by a panic.
    struct Borrowed(Option<Stack>);
    impl Drop for Borrowed {
        fn drop(&mut self) {
            if let Some(stack) = self.0.take() {
                stack.give_memory_back();
            }
        }
    }
    // SAFETY: those of the stack itself, which stays where it is.
    unsafe impl corosensei::stack::Stack for &Borrowed {
        fn base(&self) -> NonZeroUsize {
            self.0.as_ref().expect("there until it is dropped").base()
        }

        fn limit(&self) -> NonZeroUsize {
            self.0.as_ref().expect("there until it is dropped").limit()
        }
    }
    match SizeClass::for_size(1 << 20).and_then(Stack::take) {
        Ok(stack) => {
            let (here, there) = (sanitizer::Side::default(), sanitizer::Side::default());
            here.leave_for(stack.bounds());
            let ended = corosensei::on_stack(&Borrowed(Some(stack)), || {
                there.arrive();
                let ended = catch_unwind(AssertUnwindSafe(f));
                there.leave(true);
                ended
            });
            here.arrive();
            if let Err(payload) = ended {
                resume_unwind(payload);
            }
        }
        Err(_) => f(),
    }
}

// SAFETY: `cut` gives every stack a guard page, the sizes are 16 KiB and more, and both ends are
// multiples of the page size.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.bounds().top).expect("a mapped address is not null")
    }

    fn limit(&self) -> NonZeroUsize {
        self.0.bottom.addr()
    }
}

/// What one thread keeps; the youngest last.
#[derive(Default)]
struct Cache(VecDeque<Piece>);

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::default();
}

impl Cache {
    fn take(&mut self, class: SizeClass) -> Option<Piece> {
        let youngest = self.0.iter().rposition(|piece| piece.class == class)?;
        self.0.remove(youngest)
    }

    /// Keeps the piece and gives the oldest in its place, if there are too many.
    fn keep(&mut self, piece: &mut Option<Piece>) {
        self.0.extend(piece.take());
        if self.0.len() > KEPT_BY_THREAD {
            *piece = self.0.pop_front();
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        self.0.drain(..).for_each(put_into_depot);
    }
}

/// Stacks of one size that no thread keeps.
#[derive(Debug)]
struct Depot {
    warm: VecDeque<Piece>,
    cold: Vec<Piece>,
}

static DEPOTS: [Mutex<Depot>; CLASSES] = [const {
    Mutex::new(Depot {
        warm: VecDeque::new(),
        cold: Vec::new(),
    })
}; CLASSES];

fn take_from_depot(class: SizeClass) -> Option<Piece> {
    let mut depot = DEPOTS[class.index()].lock();
    depot.warm.pop_back().or_else(|| depot.cold.pop())
}

fn put_into_depot(piece: Piece) {
    let depot = &DEPOTS[piece.class.index()];
    let mut inside = depot.lock();
    inside.warm.push_back(piece);
    if inside.warm.len() <= KEPT_WARM {
        return;
    }
    let oldest = inside.warm.pop_front();
    drop(inside);
    if let Some(oldest) = oldest {
        // A system call, so not under the lock.
        slab::release_memory(&oldest);
        depot.lock().cold.push(oldest);
    }
}
