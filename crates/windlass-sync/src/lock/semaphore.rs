//! A semaphore: permits in one word, waiters in a queue.
//!
//! # The word `permits << 2 | WAITERS | CLOSED`. While WAITERS is clear, permits are taken and
//! given back with one compare-and-exchange. While it is set, only the holder of the waiters' lock
//! changes the word: a release then goes to the first in the queue, and no waiter can be overtaken.
//! The bit is set exactly while the queue is not empty, as seen under the lock.
//!
//! No wake-up is lost: a waiter sets the bit with an exchange whose expected word has too few
//! permits for it; so at that moment there are too few, and every later release sees the bit.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use windlass_core::sync::atomic::{AtomicU64, Ordering, fence};
use windlass_core::sync::{Arc, Mutex, MutexGuard};
use windlass_core::task::spend;

use crate::wait_list::{Node, Notification, Status, WaitList, WakeBatch, in_rounds};

const CLOSED: u64 = 1;
const WAITERS: u64 = 2;
const PERMIT: u64 = 4;

/// Hands out a number of permits; who finds too few waits, first come, first served.
///
/// A big request at the head of the queue is not overtaken by smaller ones behind it.
///
/// ```
/// use windlass_sync::lock::Semaphore;
///
/// # windlass_core::block_on(async {
/// let connections = Semaphore::new(2);
/// let first = connections.acquire().await?;
/// let second = connections.acquire().await?;
/// assert!(connections.try_acquire().is_err());
/// drop(first);
/// assert_eq!(connections.available_permits(), 1);
/// # drop(second);
/// # Ok::<(), windlass_sync::lock::AcquireError>(())
/// # }).unwrap();
/// ```
pub struct Semaphore {
    word: AtomicU64,
    /// The payload is the number of permits wanted.
    waiters: Mutex<WaitList<usize>>,
}

impl Semaphore {
    /// The most permits that a semaphore can hold.
    pub const MAX_PERMITS: usize = usize::MAX >> 3;

    /// A semaphore with this many permits.
    ///
    /// # Panics
    /// If there are more than [`Semaphore::MAX_PERMITS`].
    pub fn new(permits: usize) -> Semaphore {
        Semaphore {
            word: AtomicU64::new(plus(0, permits)),
            waiters: Mutex::new(WaitList::new()),
        }
    }

    /// A semaphore with this many permits, for a `static`.
    ///
    /// # Panics
    /// If there are more than [`Semaphore::MAX_PERMITS`].
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub const fn const_new(permits: usize) -> Semaphore {
        assert!(permits <= Semaphore::MAX_PERMITS);
        Semaphore {
            word: AtomicU64::new(units(permits)),
            waiters: Mutex::new(WaitList::new()),
        }
    }

    /// A semaphore that gives out no permit.
    #[cfg(not(any(windlass_loom, windlass_shuttle)))]
    pub(super) const fn const_new_closed() -> Semaphore {
        Semaphore {
            word: AtomicU64::new(CLOSED),
            waiters: Mutex::new(WaitList::new()),
        }
    }

    /// Returns the number of free permits.
    pub fn available_permits(&self) -> usize {
        permits(self.word.load(Ordering::Acquire))
    }

    /// Waits for one permit.
    ///
    /// Cancel-safe: a dropped wait leaves the queue, and gives back what it was given.
    pub async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.acquire_many(1).await
    }

    /// Waits for `permits` permits at once. Cancel-safe like [`Semaphore::acquire`].
    pub async fn acquire_many(&self, permits: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        let permits = permits as usize;
        self.wait(permits).await?;
        Ok(SemaphorePermit::new(self, permits))
    }

    /// Waits for as many permits as a weight says, such as a number of bytes: more than a `u32` can
    /// say, if need be. Cancel-safe like [`Semaphore::acquire`].
    ///
    /// # Panics
    /// If there are more than [`Semaphore::MAX_PERMITS`].
    pub async fn acquire_weight(&self, weight: usize) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.wait(weight).await?;
        Ok(SemaphorePermit::new(self, weight))
    }

    /// Takes as many permits as a weight says, if they are free and there is no waiter.
    pub fn try_acquire_weight(
        &self,
        weight: usize,
    ) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_take(weight)?;
        Ok(SemaphorePermit::new(self, weight))
    }

    /// Waits for one permit that does not borrow the semaphore. Cancel-safe like
    /// [`Semaphore::acquire`].
    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        self.acquire_many_owned(1).await
    }

    /// Waits for permits that do not borrow the semaphore. Cancel-safe like [`Semaphore::acquire`].
    pub async fn acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        let permits = permits as usize;
        self.wait(permits).await?;
        Ok(OwnedSemaphorePermit {
            semaphore: self,
            permits,
        })
    }

    /// Blocks this thread until it has one permit.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        windlass_core::block_on(self.acquire())
    }

    /// Blocks this thread until it has `permits` permits.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_acquire_many(&self, permits: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        windlass_core::block_on(self.acquire_many(permits))
    }

    /// Blocks this thread until it has a permit that does not borrow the semaphore.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        windlass_core::block_on(self.acquire_owned())
    }

    /// Blocks this thread until it has permits that do not borrow the semaphore.
    ///
    /// # Panics
    /// Inside a task: it would block its worker.
    #[track_caller]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        windlass_core::block_on(self.acquire_many_owned(permits))
    }

    /// Takes one permit if it is free and there is no waiter.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `permits` permits if they are free and there is no waiter.
    pub fn try_acquire_many(&self, permits: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        let permits = permits as usize;
        self.try_take(permits)?;
        Ok(SemaphorePermit::new(self, permits))
    }

    /// Takes one permit that does not borrow the semaphore, if it is free and there is no waiter.
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// Takes permits that do not borrow the semaphore, if they are free and there is no waiter.
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        let permits = permits as usize;
        self.try_take(permits)?;
        Ok(OwnedSemaphorePermit {
            semaphore: self,
            permits,
        })
    }

    /// Adds permits, to those who wait first.
    ///
    /// # Panics
    /// If there would be more than [`Semaphore::MAX_PERMITS`].
    pub fn add_permits(&self, permits: usize) {
        self.release(permits);
    }

    /// Takes up to `permits` free permits away for good; gives how many there were.
    pub fn forget_permits(&self, permits: usize) -> usize {
        // While there are waiters, only the holder of the lock changes the word.
        let _waiters = self.waiters.lock();
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            let taken = permits.min(self::permits(now));
            let next = now - units(taken);
            // Relaxed: what these permits guard is of no interest any more.
            match self
                .word
                .compare_exchange_weak(now, next, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return taken,
                Err(changed) => now = changed,
            }
        }
    }

    /// Refuses every request from now on; waiters are notified at once. Permits that are held stay
    /// valid.
    pub fn close(&self) {
        in_rounds(&self.waiters, |waiters, wakes| {
            // Release: pairs with the Acquire loads of the word.
            self.word.fetch_or(CLOSED, Ordering::Release);
            waiters.notify_while(Notification::Released, wakes, |_| true);
            self.note_empty(waiters);
        });
    }

    /// True once the semaphore was closed.
    pub fn is_closed(&self) -> bool {
        // Acquire: pairs with the Release in `close`.
        self.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// The bare wait: permits without a guard.
    pub(crate) fn wait(&self, permits: usize) -> Acquire<'_> {
        assert!(
            permits <= Semaphore::MAX_PERMITS,
            "a semaphore never has {permits} permits: Semaphore::MAX_PERMITS is {}",
            Semaphore::MAX_PERMITS
        );
        Acquire {
            semaphore: self,
            node: Node::new(permits),
            wanted: permits,
        }
    }

    /// Takes permits without a guard.
    #[inline]
    pub(crate) fn try_take(&self, wanted: usize) -> Result<(), TryAcquireError> {
        let mut now = self.word.load(Ordering::Relaxed);
        loop {
            if now & CLOSED != 0 {
                // Acquire: pairs with the Release in `close`, for what was done before it.
                fence(Ordering::Acquire);
                return Err(TryAcquireError::Closed);
            }
            if now & WAITERS != 0 || permits(now) < wanted {
                return Err(TryAcquireError::NoPermits);
            }
            let next = now - units(wanted);
            // Acquire: pairs with the Release in `release`, for what the permits guard.
            match self
                .word
                .compare_exchange_weak(now, next, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Ok(()),
                Err(changed) => now = changed,
            }
        }
    }

    /// Gives permits back.
    #[inline]
    pub(crate) fn release(&self, given: usize) {
        let mut now = self.word.load(Ordering::Relaxed);
        while now & WAITERS == 0 {
            let next = plus(now, given);
            // Release: pairs with the Acquire in `try_take` and in `serve`.
            match self
                .word
                .compare_exchange_weak(now, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(changed) => now = changed,
            }
        }
        self.release_to_waiters(given);
    }

    #[cold]
    fn release_to_waiters(&self, given: usize) {
        let waiters = self.waiters.lock();
        // The queue may have emptied meanwhile; then others use the word without the lock. Release:
        // as in `release`.
        let mut now = self.word.load(Ordering::Relaxed);
        while let Err(changed) = self.word.compare_exchange_weak(
            now,
            plus(now, given),
            Ordering::Release,
            Ordering::Relaxed,
        ) {
            now = changed;
        }
        self.settle(waiters);
    }

    /// Serves the waiters that can be served, then releases the lock.
    fn settle<'a>(&'a self, mut waiters: MutexGuard<'a, WaitList<usize>>) {
        let mut wakes = WakeBatch::new();
        loop {
            self.serve(&mut waiters, &mut wakes);
            drop(waiters);
            if !wakes.is_full() {
                return wakes.finish();
            }
            wakes.wake_all();
            waiters = self.waiters.lock();
        }
    }

    /// Gives permits to the first waiters, as far as they go.
    fn serve(&self, waiters: &mut WaitList<usize>, wakes: &mut WakeBatch) {
        waiters.notify_while(Notification::Served, wakes, |wanted| {
            // WAITERS is set: no other thread changes the word.
            if permits(self.word.load(Ordering::Relaxed)) < *wanted {
                return false;
            }
            // Acquire: pairs with the Release in every `release`; what those did goes on to the
            // waiter with the Release in `notify_front`.
            self.word.fetch_sub(units(*wanted), Ordering::Acquire);
            true
        });
        self.note_empty(waiters);
    }

    fn note_empty(&self, waiters: &WaitList<usize>) {
        if waiters.is_empty() {
            // Relaxed: the bit carries nothing, and the rest of the word stays what it was.
            self.word.fetch_and(!WAITERS, Ordering::Relaxed);
        }
    }

    fn poll_take(&self, wanted: usize) -> Poll<Result<(), AcquireError>> {
        match self.try_take(wanted) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(TryAcquireError::Closed) => Poll::Ready(Err(AcquireError(()))),
            Err(TryAcquireError::NoPermits) => Poll::Pending,
        }
    }

    /// Takes permits, or joins the queue.
    fn take_or_wait(
        &self,
        node: &Node<usize>,
        wanted: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), AcquireError>> {
        if let Poll::Ready(result) = self.poll_take(wanted) {
            return Poll::Ready(result);
        }
        // Users' code: before the lock, and dropped after it.
        let waker = cx.waker().clone();
        let mut waiters = self.waiters.lock();
        loop {
            let now = self.word.load(Ordering::Relaxed);
            // Asked of the very word that the exchange expects: an equal word has too few permits
            // too, whatever came and went in between.
            if now & CLOSED != 0 || now & WAITERS == 0 && permits(now) >= wanted {
                match self.poll_take(wanted) {
                    Poll::Ready(result) => return Poll::Ready(result),
                    Poll::Pending => continue,
                }
            }
            // Relaxed: the waiter learns what it has to know from the lock and its status. The
            // exchange fails if permits came in after we looked: no release would give them to us.
            let marked = self.word.compare_exchange(
                now,
                now | WAITERS,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if marked.is_ok() {
                break;
            }
        }
        // SAFETY: the node is pinned in its `Acquire`, whose drop takes it out; it is idle.
        unsafe { waiters.push(node, Some(waker)) };
        Poll::Pending
    }
}

fn permits(word: u64) -> usize {
    (word / PERMIT) as usize
}

const fn units(permits: usize) -> u64 {
    permits as u64 * PERMIT
}

/// The word with more permits.
#[inline]
#[track_caller]
fn plus(word: u64, given: usize) -> u64 {
    assert!(
        given <= Semaphore::MAX_PERMITS - permits(word),
        "{given} more permits are too many for this semaphore: Semaphore::MAX_PERMITS is {}",
        Semaphore::MAX_PERMITS
    );
    word + units(given)
}

/// The wait for permits; permits that it was given and did not take go back when it is dropped.
#[must_use = "futures do nothing unless awaited"]
pub(crate) struct Acquire<'a> {
    semaphore: &'a Semaphore,
    node: Node<usize>,
    wanted: usize,
}

impl Future for Acquire<'_> {
    type Output = Result<(), AcquireError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let spent = ready!(spend(cx));
        let this = self.into_ref().get_ref();
        let result = match this.node.status() {
            Status::Idle => {
                ready!(this.semaphore.take_or_wait(&this.node, this.wanted, cx))
            }
            _ => {
                let lock = &this.semaphore.waiters;
                // SAFETY: the node is ours and was pushed into the semaphore's list.
                match ready!(unsafe { this.node.poll_notified(cx, lock, |waiters| waiters) }) {
                    Notification::Served => Ok(()),
                    Notification::Released => Err(AcquireError(())),
                }
            }
        };
        this.node.reset();
        spent.made_progress();
        Poll::Ready(result)
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        if self.node.status() == Status::Waiting {
            let mut waiters = self.semaphore.waiters.lock();
            // SAFETY: the node is ours and was pushed into this list.
            let waker = unsafe { waiters.remove(&self.node) };
            // A big request may have held up those behind it.
            self.semaphore.settle(waiters);
            drop(waker);
        }
        if self.node.status() == Status::Notified(Notification::Served) {
            self.semaphore.release(self.wanted);
        }
    }
}

/// Permits that go back when dropped.
#[must_use = "dropping the permit gives it back"]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl<'a> SemaphorePermit<'a> {
    /// The caller has taken the permits.
    pub(super) fn new(semaphore: &'a Semaphore, permits: usize) -> SemaphorePermit<'a> {
        SemaphorePermit { semaphore, permits }
    }

    /// Gives all permits but one back.
    pub(super) fn keep_one(&mut self) {
        let rest = std::mem::replace(&mut self.permits, 1) - 1;
        self.semaphore.release(rest);
    }

    /// Returns the semaphore that the permits came from.
    pub fn semaphore(&self) -> &'a Semaphore {
        self.semaphore
    }

    /// Takes over the permits of another.
    ///
    /// # Panics
    /// If the other is of another semaphore.
    #[track_caller]
    pub fn merge(&mut self, mut other: SemaphorePermit<'a>) {
        assert!(
            std::ptr::eq(self.semaphore, other.semaphore),
            "merging permits from different semaphore instances"
        );
        self.permits += std::mem::take(&mut other.permits);
    }

    /// Splits `permits` of its permits off; none if it has fewer.
    pub fn split(&mut self, permits: usize) -> Option<SemaphorePermit<'a>> {
        self.permits = self.permits.checked_sub(permits)?;
        Some(SemaphorePermit::new(self.semaphore, permits))
    }

    /// Returns the number of permits that this holds.
    pub fn num_permits(&self) -> usize {
        self.permits
    }

    /// Takes the permits out of the semaphore for good.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for SemaphorePermit<'_> {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.semaphore.release(self.permits);
        }
    }
}

/// Permits that keep their semaphore alive and go back when dropped.
#[must_use = "dropping the permit gives it back"]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    permits: usize,
}

impl OwnedSemaphorePermit {
    /// Takes over the permits of another.
    ///
    /// # Panics
    /// If the other is of another semaphore.
    #[track_caller]
    pub fn merge(&mut self, mut other: OwnedSemaphorePermit) {
        assert!(
            Arc::ptr_eq(&self.semaphore, &other.semaphore),
            "merging permits from different semaphore instances"
        );
        self.permits += std::mem::take(&mut other.permits);
    }

    /// Splits `permits` of its permits off; none if it has fewer.
    pub fn split(&mut self, permits: usize) -> Option<OwnedSemaphorePermit> {
        self.permits = self.permits.checked_sub(permits)?;
        Some(OwnedSemaphorePermit {
            semaphore: self.semaphore.clone(),
            permits,
        })
    }

    /// Returns the number of permits that this holds.
    pub fn num_permits(&self) -> usize {
        self.permits
    }

    /// The semaphore they came from.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }

    /// Takes the permits out of the semaphore for good.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for OwnedSemaphorePermit {
    fn drop(&mut self) {
        if self.permits > 0 {
            self.semaphore.release(self.permits);
        }
    }
}

/// The semaphore is closed and gives out no more permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AcquireError(());

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("semaphore closed")
    }
}

impl Error for AcquireError {}

/// Why a permit could not be had at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore is closed and gives out no more permits.
    Closed,
    /// Too few are free, or others wait for them.
    NoPermits,
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryAcquireError::Closed => "semaphore closed",
            TryAcquireError::NoPermits => "no permits available",
        })
    }
}

impl Error for TryAcquireError {}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("Semaphore")
            .field("permits", &permits(word))
            .field("has_waiters", &(word & WAITERS != 0))
            .field("closed", &(word & CLOSED != 0))
            .finish()
    }
}

impl fmt::Debug for SemaphorePermit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemaphorePermit")
            .field("permits", &self.permits)
            .field("semaphore", &self.semaphore)
            .finish()
    }
}

impl fmt::Debug for OwnedSemaphorePermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedSemaphorePermit")
            .field("permits", &self.permits)
            .field("semaphore", &self.semaphore)
            .finish()
    }
}
