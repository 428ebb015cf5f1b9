//! A wake-up without a value.
//!
//! # The word
//! `broadcasts << 2 | WAITERS | PERMIT`. PERMIT is a wake-up that came before its waiter; there is
//! at most one. WAITERS is set exactly while the queue is not empty, as seen under the lock, and
//! then PERMIT is clear. `broadcasts` counts the calls of `notify_waiters`.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_core::sync::{Arc, Mutex};
use windlass_core::task::spend;

use crate::wait_list::{Node, Notification, Status, WaitList, in_rounds};

const PERMIT: u64 = 1;
const WAITERS: u64 = 2;
const BROADCAST: u64 = 4;
/// In place of a waiter's count of broadcasts: `notify_last` chose it. The word has no room for so
/// many broadcasts.
const LAST: u64 = u64::MAX;

/// Wakes tasks that wait for something which is kept elsewhere.
///
/// ```
/// use windlass_sync::lock::Notify;
///
/// # windlass_core::block_on(async {
/// let news = Notify::new();
/// news.notify_one();
/// // It came before a task waited, and was kept.
/// news.notified().await;
/// # });
/// ```
pub struct Notify {
    word: AtomicU64,
    /// The payload is the count of broadcasts that the waiter knew; it grows along the list.
    waiters: Mutex<WaitList<u64>>,
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl Notify {
    /// Makes a `Notify` without waiters and without a kept wake-up.
    pub fn new() -> Notify {
        Notify {
            word: AtomicU64::new(0),
            waiters: Mutex::new(WaitList::new()),
        }
    }

    /// Makes a `Notify` without waiters and without a kept wake-up, for a `static`.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub const fn const_new() -> Notify {
        Notify {
            word: AtomicU64::new(0),
            waiters: Mutex::new(WaitList::new()),
        }
    }

    /// Wakes the first waiter; without one, the next waiter goes on at once. Several such
    /// calls in a row are kept as one.
    pub fn notify_one(&self) {
        self.wake_or_keep(|waiters| waiters.notify_front(Notification::Served, |_| ()));
    }

    /// Wakes the waiter that came last; without one, the next waiter goes on at once, as after
    /// [`Notify::notify_one`].
    pub fn notify_last(&self) {
        self.wake_or_keep(|waiters| {
            waiters.notify_back(Notification::Served, |known| *known = LAST)
        });
    }

    /// Wakes the waiter that `choose` notifies, or keeps the wake-up for the next one.
    #[inline]
    fn wake_or_keep(&self, choose: impl FnOnce(&mut WaitList<u64>) -> Option<Option<Waker>>) {
        let mut now = self.word.load(Ordering::Relaxed);
        while now & WAITERS == 0 {
            // Also if it is set: Release, for what this caller did. Pairs with the Acquire in
            // `take_permit`.
            match self.word.compare_exchange_weak(
                now,
                now | PERMIT,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(changed) => now = changed,
            }
        }
        let mut waiters = self.waiters.lock();
        let waker = choose(&mut waiters);
        self.note_empty(&waiters);
        if waker.is_none() {
            // Those who waited have left. Release: as above.
            self.word.fetch_or(PERMIT, Ordering::Release);
        }
        drop(waiters);
        if let Some(waker) = waker.flatten() {
            waker.wake();
        }
    }

    /// Wakes every waiter and every holder of a [`Notified`]; nothing is kept for those who come
    /// later.
    pub fn notify_waiters(&self) {
        let waiters = self.waiters.lock();
        // Release: pairs with the Acquire loads of the count.
        let broadcasts = self.word.fetch_add(BROADCAST, Ordering::Release) / BROADCAST + 1;
        drop(waiters);
        in_rounds(&self.waiters, |waiters, wakes| {
            waiters.notify_while(Notification::Released, wakes, |known| *known < broadcasts);
            self.note_empty(waiters);
        });
    }

    /// Waits for a wake-up.
    ///
    /// Cancel-safe: a wake-up by `notify_one` that reached a dropped wait goes to the next, one by
    /// `notify_last` to the one before.
    /// `notify_waiters` reaches the future from its creation on, `notify_one` from its first poll
    /// or [`Notified::enable`] on.
    pub fn notified(&self) -> Notified<'_> {
        Notified(Wait::new(self))
    }

    /// Waits for a wake-up as [`Notify::notified`] does, with a future that does not borrow.
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        OwnedNotified(Wait::new(self))
    }

    /// Blocks this thread until a wake-up.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_notified(&self) {
        windlass_core::block_on(self.notified());
    }

    /// Takes the wake-up that is kept, or notes a broadcast since `known`.
    fn take(&self, known: u64) -> Option<Notification> {
        let mut now = self.word.load(Ordering::Acquire);
        loop {
            if now / BROADCAST != known {
                return Some(Notification::Released);
            }
            if now & PERMIT == 0 {
                return None;
            }
            // Acquire: pairs with the Release in `notify_one`.
            match self.word.compare_exchange_weak(
                now,
                now & !PERMIT,
                Ordering::Acquire,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(Notification::Served),
                Err(changed) => now = changed,
            }
        }
    }

    fn note_empty(&self, waiters: &WaitList<u64>) {
        if waiters.is_empty() {
            // Relaxed: the bit carries nothing.
            self.word.fetch_and(!WAITERS, Ordering::Relaxed);
        }
    }
}

/// A wait for a wake-up: where the `Notify` is, and the place in its queue.
struct Wait<N: Deref<Target = Notify>> {
    notify: N,
    node: Node<u64>,
}

impl<N: Deref<Target = Notify>> Wait<N> {
    fn new(notify: N) -> Wait<N> {
        // The payload is what it knows; Acquire: pairs with the Release in `notify_waiters`.
        let known = notify.word.load(Ordering::Acquire) / BROADCAST;
        Wait {
            notify,
            node: Node::new(known),
        }
    }

    fn enable(self: Pin<&mut Self>) -> bool {
        let this = self.into_ref().get_ref();
        if this.node.status() == Status::Idle
            && let Some(notification) = this.take_or_wait(None)
        {
            this.node.notify_self(notification);
        }
        this.node.status() != Status::Waiting
    }

    /// Returns a notification that is there already; otherwise the node waits.
    fn take_or_wait(&self, waker: Option<&Waker>) -> Option<Notification> {
        // SAFETY: rule 4: the node is ours and idle.
        let known = unsafe { self.node.payload(|known| *known) };
        if let Some(notification) = self.notify.take(known) {
            return Some(notification);
        }
        let waker = waker.cloned();
        let mut waiters = self.notify.waiters.lock();
        loop {
            let now = self.notify.word.load(Ordering::Relaxed);
            // Asked of the very word that the exchange expects: an equal word has no wake-up for us
            // either, whatever came and went in between.
            if now & PERMIT != 0 || now / BROADCAST != known {
                match self.notify.take(known) {
                    Some(notification) => return Some(notification),
                    None => continue,
                }
            }
            // Relaxed: the bit carries nothing.
            let marked = self.notify.word.compare_exchange(
                now,
                now | WAITERS,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if marked.is_ok() {
                break;
            }
        }
        // SAFETY: the node is pinned in this future, whose drop takes it out; it is idle.
        unsafe { waiters.push(&self.node, waker) };
        None
    }

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let spent = ready!(spend(cx));
        let this = self.into_ref().get_ref();
        if this.node.status() == Status::Idle {
            if this.take_or_wait(Some(cx.waker())).is_none() {
                return Poll::Pending;
            }
        } else {
            let lock = &this.notify.waiters;
            // SAFETY: the node is ours and was pushed into this list, or notified itself.
            ready!(unsafe { this.node.poll_notified(cx, lock, |waiters| waiters) });
        }
        // Ready from now on, with nothing left to pass on.
        this.node.notify_self(Notification::Released);
        spent.made_progress();
        Poll::Ready(())
    }

    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("status", &self.node.status())
            .field("notify", &*self.notify)
            .finish()
    }
}

impl<N: Deref<Target = Notify>> Drop for Wait<N> {
    fn drop(&mut self) {
        if self.node.status() == Status::Waiting {
            let mut waiters = self.notify.waiters.lock();
            // SAFETY: the node is ours and was pushed into this list.
            let waker = unsafe { waiters.remove(&self.node) };
            self.notify.note_empty(&waiters);
            drop(waiters);
            drop(waker);
        }
        if self.node.status() == Status::Notified(Notification::Served) {
            // SAFETY: rule 4: the node is ours and was notified.
            match unsafe { self.node.payload(|known| *known) } {
                LAST => self.notify.notify_last(),
                _ => self.notify.notify_one(),
            }
        }
    }
}

macro_rules! notified {
    ($(#[$about:meta])* $Type:ident [$($lifetime:lifetime)?] $Notify:ty) => {
        $(#[$about])*
        #[must_use = "futures do nothing unless awaited"]
        pub struct $Type$(<$lifetime>)?(Wait<$Notify>);

        impl$(<$lifetime>)? $Type$(<$lifetime>)? {
            /// Joins the queue now, without waiting: a later `notify_one` can reach this future.
            /// True if it has its wake-up already; the next poll is then ready.
            pub fn enable(self: Pin<&mut Self>) -> bool {
                self.wait().enable()
            }

            fn wait(self: Pin<&mut Self>) -> Pin<&mut Wait<$Notify>> {
                // SAFETY: the wait is pinned with its future: it is never moved out, and the future
                // has no drop of its own.
                unsafe { self.map_unchecked_mut(|this| &mut this.0) }
            }
        }

        impl$(<$lifetime>)? Future for $Type$(<$lifetime>)? {
            type Output = ();

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
                self.wait().poll(cx)
            }
        }

        impl$(<$lifetime>)? fmt::Debug for $Type$(<$lifetime>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.debug(stringify!($Type), f)
            }
        }
    };
}

notified! {
    /// The future of [`Notify::notified`].
    Notified ['a] &'a Notify
}
notified! {
    /// The future of [`Notify::notified_owned`].
    OwnedNotified [] Arc<Notify>
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("Notify")
            .field("kept", &(word & PERMIT != 0))
            .field("has_waiters", &(word & WAITERS != 0))
            .finish()
    }
}
