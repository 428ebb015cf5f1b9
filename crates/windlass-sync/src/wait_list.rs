//! The queue of waiters under every lock and channel: first come, first served, and no allocation
//! per wait.
//!
//! A [`Node`] lives inside the future that waits (its *owner*); the [`WaitList`] it is linked into
//! lives in the primitive, behind that primitive's lock.
//!
//! # The access protocol
//! 1. A list has one lock, and `&mut WaitList` proves that it is held. A node is only ever linked
//!    into one list.
//! 2. A node stays where it is from its first `push` on, until it was notified or taken out. It is
//!    not `Unpin`, and the drop of its owner takes it out.
//! 3. The links and the waker of a node are touched only under the lock, and they are initialised
//!    exactly while the node is linked: `push` writes them, `unlink` moves them out. Most waits end
//!    before they begin, and pay for none of it.
//! 4. The payload belongs to the owner while the node is not linked, and to the holder of the lock
//!    while it is.
//! 5. The notifier of a node unlinks it, takes its waker, writes the payload and, as the very last
//!    access, stores the status with Release. The owner that loads the status with Acquire has
//!    everything back, without the lock; no other thread touches the node any more.
//! 6. Wakers and users' values run users' code when woken or dropped: that happens outside of the
//!    lock. What comes out of a list is handed to the caller for it.

use std::any::Any;
use std::marker::PhantomPinned;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

use windlass_core::sync::atomic::{AtomicU8, Ordering};
use windlass_core::sync::{Mutex, UnsafeCell};

/// Why a waiter was notified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notification {
    /// The waiter got what it waited for: it is in the payload, or is the waiter's own now.
    Served,
    /// All waiters were let go: the primitive was closed, or a broadcast reached all.
    Released,
}

/// The state of a node, as its owner sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Not linked, and the payload is the owner's.
    Idle,
    /// Linked, as far as one can tell without the lock.
    Waiting,
    /// Unlinked by a notifier.
    Notified(Notification),
}

const IDLE: u8 = 0;
const WAITING: u8 = 1;
const SERVED: u8 = 2;
const RELEASED: u8 = 3;

fn status_of(notification: Notification) -> u8 {
    match notification {
        Notification::Served => SERVED,
        Notification::Released => RELEASED,
    }
}

/// One waiter of a list.
pub(crate) struct Node<P> {
    link: UnsafeCell<MaybeUninit<Link<P>>>,
    payload: UnsafeCell<P>,
    status: AtomicU8,
    _pinned: PhantomPinned,
}

struct Link<P> {
    previous: Option<NonNull<Node<P>>>,
    next: Option<NonNull<Node<P>>>,
    waker: Option<Waker>,
}

// SAFETY: rules 3 to 5: links and waker are behind the lock, and the payload moves between threads
// with the lock or with the status; it is never shared.
unsafe impl<P: Send> Send for Node<P> {}
// SAFETY: as above; a shared node gives out its status only.
unsafe impl<P: Send> Sync for Node<P> {}

impl<P> Node<P> {
    #[inline]
    pub(crate) fn new(payload: P) -> Node<P> {
        Node {
            link: UnsafeCell::new(MaybeUninit::uninit()),
            payload: UnsafeCell::new(payload),
            status: AtomicU8::new(IDLE),
            _pinned: PhantomPinned,
        }
    }

    /// Where the node stands. Under the lock the answer is exact.
    #[inline]
    pub(crate) fn status(&self) -> Status {
        // Acquire: pairs with the Release store in `WaitList::notify`.
        match self.status.load(Ordering::Acquire) {
            IDLE => Status::Idle,
            WAITING => Status::Waiting,
            SERVED => Status::Notified(Notification::Served),
            _ => Status::Notified(Notification::Released),
        }
    }

    /// The owner has seen the notification; the node can be used again.
    pub(crate) fn reset(&self) {
        // Relaxed: after it was notified (rule 5) the node is its owner's alone.
        self.status.store(IDLE, Ordering::Relaxed);
    }

    /// The owner notifies itself, so that its next poll or its drop finds it so.
    pub(crate) fn notify_self(&self, notification: Notification) {
        // Relaxed: the node is idle or notified, and so its owner's alone.
        self.status
            .store(status_of(notification), Ordering::Relaxed);
    }

    /// The payload, for the owner.
    ///
    /// # Safety
    /// The caller is the owner and the node is not linked: its status was seen to be idle or
    /// notified.
    #[inline]
    pub(crate) unsafe fn payload<R>(&self, f: impl FnOnce(&mut P) -> R) -> R {
        // SAFETY: rule 4, as the caller promises.
        self.payload.with_mut(|payload| f(unsafe { &mut *payload }))
    }

    /// Returns the node's notification; until there is one, keeps its waker fresh.
    ///
    /// # Safety
    /// The caller is the owner, the node was pushed, and `list` gives the list it was pushed into.
    #[inline]
    pub(crate) unsafe fn poll_notified<S>(
        &self,
        cx: &mut Context<'_>,
        lock: &Mutex<S>,
        list: impl FnOnce(&mut S) -> &mut WaitList<P>,
    ) -> Poll<Notification> {
        if let Status::Notified(notification) = self.status() {
            return Poll::Ready(notification);
        }
        let mut state = lock.lock();
        if let Status::Notified(notification) = self.status() {
            return Poll::Ready(notification);
        }
        // SAFETY: the node is linked into this list: its status, under the lock, is waiting.
        let old = unsafe { list(&mut state).renew(self, cx.waker()) };
        drop(state);
        drop(old);
        Poll::Pending
    }

    /// Takes the node out of its list, unless it was notified before. Afterwards its status is idle
    /// or notified.
    ///
    /// # Safety
    /// As for [`Node::poll_notified`], but the node need not have been pushed.
    #[inline]
    pub(crate) unsafe fn withdraw<S>(
        &self,
        lock: &Mutex<S>,
        list: impl FnOnce(&mut S) -> &mut WaitList<P>,
    ) {
        if self.status() != Status::Waiting {
            return;
        }
        let mut state = lock.lock();
        // SAFETY: as the caller promises.
        let waker = unsafe { list(&mut state).remove(self) };
        drop(state);
        drop(waker);
    }
}

/// Waiters in the order of their arrival.
pub(crate) struct WaitList<P> {
    front: Option<NonNull<Node<P>>>,
    back: Option<NonNull<Node<P>>>,
    len: usize,
}

// SAFETY: the list's nodes may be touched from any thread that holds the lock (rules 3 and 4).
unsafe impl<P: Send> Send for WaitList<P> {}

impl<P> WaitList<P> {
    pub(crate) const fn new() -> WaitList<P> {
        WaitList {
            front: None,
            back: None,
            len: 0,
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The payload of the first waiter.
    #[inline]
    pub(crate) fn front(&mut self) -> Option<&mut P> {
        let node = self.front?;
        // SAFETY: rules 1, 2 and 4: the node is linked, so it is there and its payload is ours for
        // as long as the list is borrowed.
        Some(unsafe { node.as_ref().payload.with_mut(|payload| &mut *payload) })
    }

    /// Links the node at the end; `waker` is woken when it is notified.
    ///
    /// # Safety
    /// The caller owns the node and keeps rule 2 for it; its status is idle.
    #[inline]
    pub(crate) unsafe fn push(&mut self, node: &Node<P>, waker: Option<Waker>) {
        let this = NonNull::from(node);
        let previous = self.back.replace(this);
        let link = Link {
            previous,
            next: None,
            waker,
        };
        // SAFETY: rule 3: the caller has `&mut` on the list, and an idle node has no link to drop.
        node.link.with_mut(|place| unsafe {
            (*place).write(link);
        });
        match previous {
            Some(previous) => edit(previous, |link| link.next = Some(this)),
            None => self.front = Some(this),
        }
        self.len += 1;
        // Relaxed: others see it under the lock only.
        node.status.store(WAITING, Ordering::Relaxed);
    }

    /// Makes `waker` the one to wake; gives the old one back (rule 6).
    ///
    /// # Safety
    /// The node is linked into this list.
    pub(crate) unsafe fn renew(&mut self, node: &Node<P>, waker: &Waker) -> Option<Waker> {
        edit(NonNull::from(node), |link| match &link.waker {
            Some(known) if known.will_wake(waker) => None,
            _ => link.waker.replace(waker.clone()),
        })
    }

    /// Takes the node out, unless it was notified before or never pushed; its status says which.
    /// Gives its waker back (rule 6).
    ///
    /// # Safety
    /// The caller owns the node, and this is the list it was pushed into.
    pub(crate) unsafe fn remove(&mut self, node: &Node<P>) -> Option<Waker> {
        if node.status() != Status::Waiting {
            return None;
        }
        let waker = self.unlink(NonNull::from(node));
        // Relaxed: the node is its owner's alone from here on.
        node.status.store(IDLE, Ordering::Relaxed);
        waker
    }

    /// Tells the first waiter, after `hand_over` has written its payload. The caller wakes what it
    /// gets (rule 6); none at all if there is no waiter.
    #[inline]
    pub(crate) fn notify_front(
        &mut self,
        notification: Notification,
        hand_over: impl FnOnce(&mut P),
    ) -> Option<Option<Waker>> {
        let node = self.front?;
        Some(self.notify(node, notification, hand_over))
    }

    /// Notifies the waiter that came last, as `notify_front` does the first one.
    pub(crate) fn notify_back(
        &mut self,
        notification: Notification,
        hand_over: impl FnOnce(&mut P),
    ) -> Option<Option<Waker>> {
        let node = self.back?;
        Some(self.notify(node, notification, hand_over))
    }

    /// Rule 1: a node of this list.
    #[inline]
    fn notify(
        &mut self,
        node: NonNull<Node<P>>,
        notification: Notification,
        hand_over: impl FnOnce(&mut P),
    ) -> Option<Waker> {
        let waker = self.unlink(node);
        // SAFETY: rules 2 and 4: it was linked under this very lock, so it is there and its payload
        // is ours until the store below.
        let node = unsafe { node.as_ref() };
        // SAFETY: as above.
        node.payload
            .with_mut(|payload| hand_over(unsafe { &mut *payload }));
        // Release: pairs with the Acquire load in `Node::status`. Rule 5: the owner may be gone
        // right after this.
        node.status
            .store(status_of(notification), Ordering::Release);
        waker
    }

    /// Tells waiters from the front while `due` says so of their payload and there is room for
    /// their wakers.
    pub(crate) fn notify_while(
        &mut self,
        notification: Notification,
        wakes: &mut WakeBatch,
        mut due: impl FnMut(&P) -> bool,
    ) {
        while !wakes.is_full() && self.front().is_some_and(|payload| due(payload)) {
            wakes.extend(self.notify_front(notification, |_| ()).flatten());
        }
    }

    /// Rule 1: a node of this list.
    fn unlink(&mut self, node: NonNull<Node<P>>) -> Option<Waker> {
        let Link {
            previous,
            next,
            waker,
        } = {
            // SAFETY: rule 2: a linked node is there.
            let node = unsafe { node.as_ref() };
            // SAFETY: rule 3: it is linked, so its link is initialised. It is not linked below, and
            // so not read again.
            node.link
                .with_mut(|link| unsafe { (*link).assume_init_read() })
        };
        match previous {
            Some(previous) => edit(previous, |link| link.next = next),
            None => self.front = next,
        }
        match next {
            Some(next) => edit(next, |link| link.previous = previous),
            None => self.back = previous,
        }
        self.len -= 1;
        waker
    }
}

/// Changes the links of a node. Called by the list, for nodes that are linked.
#[inline]
fn edit<P, R>(node: NonNull<Node<P>>, f: impl FnOnce(&mut Link<P>) -> R) -> R {
    // SAFETY: rules 2 and 3: a linked node is there, its link is initialised, and the caller has
    // `&mut` on its list.
    unsafe {
        node.as_ref()
            .link
            .with_mut(|link| f((*link).assume_init_mut()))
    }
}

/// Wakers collected under a lock, to be woken after it.
///
/// A waker that panics does not keep the others from being woken; its panic goes on at the end.
pub(crate) struct WakeBatch {
    wakers: [MaybeUninit<Waker>; WakeBatch::LEN],
    len: usize,
    panic: Option<Box<dyn Any + Send>>,
}

impl WakeBatch {
    /// Half a kilobyte of stack; a longer list is notified in rounds of this many.
    #[cfg(not(windlass_loom))]
    const LEN: usize = 32;
    #[cfg(windlass_loom)]
    const LEN: usize = 1;

    #[inline]
    pub(crate) fn new() -> WakeBatch {
        WakeBatch {
            wakers: [const { MaybeUninit::uninit() }; WakeBatch::LEN],
            len: 0,
            panic: None,
        }
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.len == WakeBatch::LEN
    }

    /// Keeps a waker, if there is one, for later. There must be room.
    #[inline]
    pub(crate) fn extend(&mut self, waker: Option<Waker>) {
        if let Some(waker) = waker {
            self.wakers[self.len].write(waker);
            self.len += 1;
        }
    }

    /// Wakes all of them, outside of every lock.
    pub(crate) fn wake_all(&mut self) {
        for place in &mut self.wakers[..std::mem::take(&mut self.len)] {
            // SAFETY: the first `len` places are filled, and `len` is 0 now: each is read once.
            let waker = unsafe { place.assume_init_read() };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                // Only one panic can go on; the drop of another might panic again.
                std::mem::forget(self.panic.replace(panic));
            }
        }
    }

    /// Wakes all of them and lets a panic of one of them go on. By reference: moving the batch
    /// would cost more than all the rest when there is no waiter.
    #[inline]
    pub(crate) fn finish(&mut self) {
        if self.len > 0 || self.panic.is_some() {
            self.finish_some();
        }
    }

    #[cold]
    fn finish_some(&mut self) {
        self.wake_all();
        if let Some(panic) = self.panic.take() {
            resume_unwind(panic);
        }
    }
}

impl Drop for WakeBatch {
    #[inline]
    fn drop(&mut self) {
        if self.len > 0 {
            // Something panicked between collecting and waking: those collected were notified
            // already.
            self.wake_all();
        }
    }
}

/// Runs `round` under the lock and wakes what it collected outside, until a round leaves room in
/// the batch: then every waiter was notified.
#[inline]
pub(crate) fn in_rounds<S>(lock: &Mutex<S>, mut round: impl FnMut(&mut S, &mut WakeBatch)) {
    let mut wakes = WakeBatch::new();
    loop {
        let mut state = lock.lock();
        round(&mut state, &mut wakes);
        drop(state);
        if !wakes.is_full() {
            return wakes.finish();
        }
        wakes.wake_all();
    }
}
