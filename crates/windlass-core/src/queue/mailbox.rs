//! The mailbox: many write, one reads, and a write into an empty mailbox wakes the reader.
//!
//! Two halves. The *mailbox* is a stack that any thread pushes to with one exchange. The *inbox* is
//! the reader's own list in the order of arrival; when it fetches, it takes the whole stack and
//! turns it round. A letter is allocated by its writer, so that a push cannot fail for want of
//! room, and those that must arrive (the news of an exit) can be written long before they are sent.
//!
//! # Who wakes
//! There is no flag that says whether the reader sleeps: a second word beside the state of its task
//! would lose wakes. A push says whether the stack was empty, and then its caller wakes the
//! reader's task, always, through the task's state word.
//!
//! - The reader sleeps only after it has seen an empty stack in its last turn. A push that comes
//!   after that look finds the stack empty, and wakes.
//! - A push that finds letters there comes after one that found none, whose wake is under way; the
//!   turn which that wake brings fetches both. Were the letters fetched before, this push would
//!   have found the stack empty.
//! - The turn sees the letter: the push comes before its wake, the wake is a read-modify-write of
//!   the state word (`Release`), and the turn begins with a look at that word (`Acquire`).
//!
//! Closing puts a mark where the stack was, which no push can replace: who writes later keeps the
//! letter.
//!
//! Rejected: a swap-push queue (a push that is preempted between its two stores hides all later
//! ones); blocks of slots (an idle process would keep one); a lock around a ring (it is what
//! channels have: one exchange more for every letter, and memory for the largest size it ever had).

use std::alloc::Layout;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};

use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::task::block;

/// What many write to.
pub struct Mailbox<T> {
    top: AtomicPtr<Node<T>>,
}

/// What one reads: letters that were fetched, oldest first.
pub struct Inbox<T> {
    first: *mut Node<T>,
    /// Of a list that is not empty.
    last: *mut Node<T>,
}

/// A message with what it takes to queue it.
pub struct Letter<T>(NonNull<Node<T>>);

struct Node<T> {
    /// Belongs to the owner of the letter: its writer, the stack, the inbox.
    next: UnsafeCell<*mut Node<T>>,
    value: T,
}

/// What a push found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the reader of an empty mailbox has to be woken"]
pub enum PushOutcome {
    /// The mailbox was empty: wake the reader.
    First,
    /// Letters that the reader knows of.
    Behind,
}

// SAFETY: letters are handed from their writer to the reader; the mailbox itself is one atomic
// word.
unsafe impl<T: Send> Send for Mailbox<T> {}
// SAFETY: as above: no code gets a reference to a value that is in it.
unsafe impl<T: Send> Sync for Mailbox<T> {}
// SAFETY: the list and its values are the inbox's alone.
unsafe impl<T: Send> Send for Inbox<T> {}
// SAFETY: through a shared inbox values are only looked at.
unsafe impl<T: Sync> Sync for Inbox<T> {}
// SAFETY: the node and its value are the letter's alone.
unsafe impl<T: Send> Send for Letter<T> {}
// SAFETY: through a shared letter the value is only looked at.
unsafe impl<T: Sync> Sync for Letter<T> {}

fn closed_mark<T>() -> *mut Node<T> {
    ptr::without_provenance_mut(1)
}

impl<T> Letter<T> {
    /// Writes a letter.
    #[inline]
    pub fn new(value: T) -> Letter<T> {
        let node = block::alloc(Layout::new::<Node<T>>()).cast::<Node<T>>();
        let next = UnsafeCell::new(ptr::null_mut());
        // SAFETY: the block is fresh, large enough and aligned.
        unsafe { node.write(Node { next, value }) };
        Letter(node)
    }

    /// Returns what is in it.
    #[inline]
    pub fn value(&self) -> &T {
        // SAFETY: the letter owns its node.
        unsafe { &self.0.as_ref().value }
    }

    /// What is in it, to be filled in later.
    pub fn value_mut(&mut self) -> &mut T {
        // SAFETY: the letter owns its node.
        unsafe { &mut self.0.as_mut().value }
    }

    /// Takes out what is in it.
    #[inline]
    pub fn open(self) -> T {
        let letter = ManuallyDrop::new(self);
        // SAFETY: the letter owned its node, and is not used again.
        unsafe { open(letter.0) }
    }

    #[inline]
    fn into_raw(self) -> NonNull<Node<T>> {
        ManuallyDrop::new(self).0
    }
}

impl<T> Drop for Letter<T> {
    fn drop(&mut self) {
        // SAFETY: the letter owned its node, and is not used again.
        drop(unsafe { open(self.0) });
    }
}

/// Takes the value out and frees the node.
///
/// # Safety
/// The caller owns the node and does not use it again.
#[inline]
unsafe fn open<T>(node: NonNull<Node<T>>) -> T {
    // SAFETY: ours, says the caller; the value is moved out exactly once.
    let value = unsafe { ptr::read(&raw const (*node.as_ptr()).value) };
    // What is left of the node, the link, needs dropping under the model checkers only.
    // SAFETY: as above.
    unsafe { ptr::drop_in_place(&raw mut (*node.as_ptr()).next) };
    // SAFETY: it came from `block::alloc` with this layout, and is empty now.
    unsafe { block::free(node.cast(), Layout::new::<Node<T>>()) };
    value
}

impl<T> Mailbox<T> {
    /// An empty one.
    pub fn new() -> Mailbox<T> {
        Mailbox {
            top: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Puts a letter in; hands it back if the mailbox is closed.
    #[inline]
    pub fn push(&self, letter: Letter<T>) -> Result<PushOutcome, Letter<T>> {
        let node = letter.into_raw();
        let mut top = self.top.load(Ordering::Relaxed);
        loop {
            if top == closed_mark() {
                return Err(Letter(node));
            }
            // SAFETY: the node is ours until the exchange succeeds.
            unsafe { node.as_ref() }
                .next
                .with_mut(|next| unsafe { *next = top });
            // Release: pairs with the Acquire in `fetch` and `close`: the reader sees the letter.
            match self.top.compare_exchange_weak(
                top,
                node.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) if top.is_null() => return Ok(PushOutcome::First),
                Ok(_) => return Ok(PushOutcome::Behind),
                Err(changed) => top = changed,
            }
        }
    }

    /// Returns true if the mailbox takes no more letters.
    pub fn is_closed(&self) -> bool {
        // Relaxed: a hint; the push itself says.
        self.top.load(Ordering::Relaxed) == closed_mark()
    }

    /// Refuses letters from now on; gives those that are in it, oldest first.
    pub fn close(&self) -> Inbox<T> {
        // Acquire: pairs with the Release in `push`.
        let top = self.top.swap(closed_mark(), Ordering::Acquire);
        let mut inbox = Inbox::new();
        if top != closed_mark() {
            inbox.append(top);
        }
        inbox
    }
}

impl<T> Inbox<T> {
    /// An empty one.
    pub const fn new() -> Inbox<T> {
        Inbox {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
        }
    }

    /// Moves everything from the mailbox behind what is here; true if there was something.
    ///
    /// An exchange, not a swap: another thread may close the mailbox in this moment, and the mark
    /// stays.
    #[inline]
    pub fn fetch(&mut self, mailbox: &Mailbox<T>) -> bool {
        // Relaxed: a letter that is not seen here finds an empty mailbox, and its writer wakes us.
        let mut top = mailbox.top.load(Ordering::Relaxed);
        loop {
            if top.is_null() || top == closed_mark() {
                return false;
            }
            // Acquire: pairs with the Release in `push`. What is taken is the whole stack below the
            // top of this very moment, so it does not matter which node it is.
            match mailbox.top.compare_exchange_weak(
                top,
                ptr::null_mut(),
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(changed) => top = changed,
            }
        }
        self.append(top);
        true
    }

    /// Takes the oldest value.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let node = NonNull::new(self.first)?;
        // SAFETY: nodes in the list are the inbox's own.
        self.first = unsafe { node.as_ref() }.next.with(|next| unsafe { *next });
        // SAFETY: as above, and it has just left the list.
        Some(unsafe { open(node) })
    }

    /// Takes the oldest value that `wanted` says yes to; the others stay in their order.
    pub fn pop_where(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Option<T> {
        let mut before: *mut Node<T> = ptr::null_mut();
        let mut node = NonNull::new(self.first)?;
        loop {
            // SAFETY: nodes in the list are the inbox's own. `wanted` cannot reach the list.
            let (is_wanted, next) = unsafe {
                let there = node.as_ref();
                (wanted(&there.value), there.next.with(|next| *next))
            };
            if is_wanted {
                match NonNull::new(before) {
                    None => self.first = next,
                    // SAFETY: as above.
                    Some(before) => unsafe { before.as_ref() }
                        .next
                        .with_mut(|there| unsafe { *there = next }),
                }
                if next.is_null() {
                    self.last = before;
                }
                // SAFETY: it has just left the list.
                return Some(unsafe { open(node) });
            }
            before = node.as_ptr();
            node = NonNull::new(next)?;
        }
    }

    /// True if nothing is here; there may be something in the mailbox.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Turns a stack round and puts it behind the list.
    fn append(&mut self, newest: *mut Node<T>) {
        let (mut chain, mut node) = (ptr::null_mut(), newest);
        while let Some(there) = NonNull::new(node) {
            // SAFETY: the exchange made the whole stack ours.
            unsafe { there.as_ref() }.next.with_mut(|next| unsafe {
                node = *next;
                *next = chain;
            });
            chain = there.as_ptr();
        }
        if chain.is_null() {
            return;
        }
        match NonNull::new(self.first) {
            None => self.first = chain,
            // SAFETY: the list is not empty, so `last` is its last node.
            Some(_) => unsafe { &*self.last }
                .next
                .with_mut(|next| unsafe { *next = chain }),
        }
        self.last = newest;
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Self {
        Mailbox::new()
    }
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Inbox::new()
    }
}

impl<T> Drop for Mailbox<T> {
    fn drop(&mut self) {
        drop(self.close());
    }
}

impl<T> Drop for Inbox<T> {
    /// Drops every value. One that panics keeps no other from being dropped, and its panic goes no
    /// further: a second one during the same drop would end the program.
    fn drop(&mut self) {
        while let Some(value) = self.pop() {
            if std::mem::needs_drop::<T>() {
                crate::task::contain(|| drop(value));
            }
        }
    }
}

impl<T> fmt::Debug for Mailbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let closed = self.is_closed();
        f.debug_struct("Mailbox").field("closed", &closed).finish()
    }
}

impl<T> fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox")
            .field("empty", &self.is_empty())
            .finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for Letter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: the letter owns its node.
        let value = unsafe { &self.0.as_ref().value };
        f.debug_tuple("Letter").field(value).finish()
    }
}

#[cfg(all(test, not(any(windlass_loom, windlass_shuttle))))]
mod tests {
    use super::*;

    fn filled(values: std::ops::Range<u32>) -> Mailbox<u32> {
        let mailbox = Mailbox::new();
        for value in values {
            let _ = mailbox.push(Letter::new(value)).expect("it is open");
        }
        mailbox
    }

    #[test]
    fn letters_keep_their_order_over_several_fetches() {
        let mailbox = filled(0..3);
        let mut inbox = Inbox::new();
        assert!(inbox.fetch(&mailbox));
        assert_eq!(inbox.pop(), Some(0));
        assert_eq!(mailbox.push(Letter::new(3)).ok(), Some(PushOutcome::First));
        assert_eq!(mailbox.push(Letter::new(4)).ok(), Some(PushOutcome::Behind));
        assert!(inbox.fetch(&mailbox));
        assert!(!inbox.fetch(&mailbox));
        let rest: Vec<_> = std::iter::from_fn(|| inbox.pop()).collect();
        assert_eq!(rest, [1, 2, 3, 4]);
    }

    #[test]
    fn what_is_not_wanted_stays_in_its_order() {
        let mailbox = filled(0..6);
        let mut inbox = Inbox::new();
        inbox.fetch(&mailbox);
        assert_eq!(inbox.pop_where(|value| *value == 5), Some(5));
        assert_eq!(inbox.pop_where(|value| *value == 0), Some(0));
        assert_eq!(inbox.pop_where(|value| *value == 2), Some(2));
        assert_eq!(inbox.pop_where(|value| *value == 9), None);
        let _ = mailbox.push(Letter::new(6)).expect("it is open");
        inbox.fetch(&mailbox);
        let rest: Vec<_> = std::iter::from_fn(|| inbox.pop()).collect();
        assert_eq!(rest, [1, 3, 4, 6]);
    }

    #[test]
    fn a_closed_mailbox_hands_letters_back() {
        let mailbox = filled(0..2);
        let mut left = mailbox.close();
        assert_eq!(
            (left.pop(), left.pop(), left.pop()),
            (Some(0), Some(1), None)
        );
        let refused = mailbox.push(Letter::new(7)).expect_err("it is closed");
        assert_eq!(refused.open(), 7);
        assert!(mailbox.is_closed() && mailbox.close().is_empty());
        assert!(!Inbox::new().fetch(&mailbox));
    }

    #[test]
    fn what_nobody_reads_is_dropped_once() {
        let value = std::rc::Rc::new(());
        let mailbox = Mailbox::new();
        for _ in 0..4 {
            let _ = mailbox.push(Letter::new(value.clone())).expect("open");
        }
        let mut inbox = Inbox::new();
        inbox.fetch(&mailbox);
        let _ = mailbox.push(Letter::new(value.clone())).expect("open");
        let _unsent = Letter::new(value.clone());
        drop((inbox.pop(), inbox, mailbox));
        assert_eq!(std::rc::Rc::strong_count(&value), 2);
    }
}
