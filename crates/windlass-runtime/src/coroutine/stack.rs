//! Stacks, and where they wait between two coroutines.
//!
//! Each thread keeps the stacks that were used on it last, warm ones first; the one that has waited
//! longest goes to the depot when there are too many. The depot keeps some with their memory and
//! gives that of the others back to the system.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::num::NonZeroUsize;

use windlass_core::sync::Mutex;

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
        match kept.ok().flatten().or_else(|| take_from_depot(class)) {
            Some(piece) => Ok(Stack(piece)),
            None => slab::cut(class).map(Stack),
        }
    }

    /// Keeps the stack for the next one on this thread. Nobody's frames are on it.
    pub(super) fn give_back(self) {
        self.0.slot.clear_owner();
        let mut piece = Some(self.0);
        let _ = CACHE.try_with(|cache| cache.borrow_mut().keep(&mut piece));
        if let Some(piece) = piece {
            // The thread is ending, or has enough.
            put_into_depot(piece);
        }
    }

    pub(super) fn slot(&self) -> &'static Slot {
        self.0.slot
    }

    /// The lowest usable address.
    pub(super) fn lowest(&self) -> usize {
        self.0.bottom.addr().get() + slab::page()
    }

    /// The address above the highest.
    pub(super) fn top(&self) -> usize {
        self.lowest() + self.0.class.size()
    }
}

// SAFETY: `cut` gives every stack a guard page, the sizes are 16 KiB and more, and both ends are
// multiples of the page size.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.top()).expect("a mapped address is not null")
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
