//! The shim over the standard library.
#![allow(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is the shim"
)]

pub use std::sync::{Arc, MutexGuard, RwLockReadGuard, RwLockWriteGuard};

use std::time::Duration;

use crate::tuning;

/// Atomics and fences: the standard ones behind types of our own, so that clippy can tell an
/// atomic of the shim from one that the model checkers do not see.
pub mod atomic {
    pub use std::sync::atomic::{Ordering, fence};

    macro_rules! atomic {
        ($(#[$doc:meta])* $name:ident $(<$param:ident>)?, $value:ty) => {
            $(#[$doc])*
            #[derive(Debug, Default)]
            #[repr(transparent)]
            pub struct $name $(<$param>)? (std::sync::atomic::$name $(<$param>)?);

            #[allow(missing_docs, reason = "as in the standard library")]
            impl $(<$param>)? $name $(<$param>)? {
                #[inline(always)]
                pub const fn new(value: $value) -> Self {
                    $name(std::sync::atomic::$name::new(value))
                }

                #[inline(always)]
                pub fn load(&self, order: Ordering) -> $value {
                    self.0.load(order)
                }

                #[inline(always)]
                pub fn store(&self, value: $value, order: Ordering) {
                    self.0.store(value, order);
                }

                #[inline(always)]
                pub fn swap(&self, value: $value, order: Ordering) -> $value {
                    self.0.swap(value, order)
                }

                #[inline(always)]
                pub fn compare_exchange(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.0.compare_exchange(current, new, success, failure)
                }

                #[inline(always)]
                pub fn compare_exchange_weak(
                    &self,
                    current: $value,
                    new: $value,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$value, $value> {
                    self.0.compare_exchange_weak(current, new, success, failure)
                }

                #[inline(always)]
                pub fn as_ptr(&self) -> *mut $value {
                    self.0.as_ptr()
                }
            }
        };
    }

    macro_rules! arithmetic {
        ($name:ident, $value:ty, $($operation:ident),*) => {
            #[allow(missing_docs, reason = "as in the standard library")]
            impl $name {
                $(
                    #[inline(always)]
                    pub fn $operation(&self, value: $value, order: Ordering) -> $value {
                        self.0.$operation(value, order)
                    }
                )*
            }
        };
    }

    atomic!(/// A boolean.
        AtomicBool, bool);
    atomic!(/// A byte.
        AtomicU8, u8);
    atomic!(/// 32 bits.
        AtomicU32, u32);
    atomic!(/// 32 bits with a sign.
        AtomicI32, i32);
    atomic!(/// 64 bits.
        AtomicU64, u64);
    atomic!(/// A machine word.
        AtomicUsize, usize);
    atomic!(/// A pointer.
        AtomicPtr<T>, *mut T);
    arithmetic!(
        AtomicU8, u8, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max
    );
    arithmetic!(
        AtomicU32, u32, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_xor
    );
    arithmetic!(
        AtomicU64, u64, fetch_add, fetch_sub, fetch_and, fetch_or, fetch_max
    );
    arithmetic!(AtomicUsize, usize, fetch_add, fetch_sub, fetch_or);
}

/// Hints to the core.
pub mod hint {
    pub use std::hint::spin_loop;

    /// Brings the first two cache lines behind `address` closer, if that is cheap. Any address will
    /// do: nothing is read.
    #[inline(always)]
    pub fn prefetch<T>(address: *const T) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let address = address.cast::<i8>();
            // SAFETY: a prefetch is a hint: it faults on no address and reads nothing.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(address);
                _mm_prefetch::<_MM_HINT_T0>(address.wrapping_add(64));
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }
}

/// Threads of the operating system.
pub mod thread {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::time::Duration;

    pub use std::thread::{ThreadId, current, panicking};

    use super::{Condvar, Mutex};
    use crate::sync::{UnfinishedPart, UnfinishedThread, clock};
    use crate::thread_end;
    use crate::unwind::PanicPayload;

    /// Gives the core away.
    pub fn yield_now() {
        std::thread::yield_now();
    }

    thread_local! {
        /// The first thread-local of a thread of ours that has a destructor. The C library destroys
        /// the oldest last, so all others are gone when this one is.
        static LAST_DESTROYED: RefCell<Option<NotifyEnd>> = const { RefCell::new(None) };
    }

    /// Notifies the joiner when it is dropped.
    struct NotifyEnd(Arc<dyn Fn() + Send + Sync>);

    impl Drop for NotifyEnd {
        fn drop(&mut self) {
            (self.0)();
        }
    }

    /// Starts a named OS thread; `stack` of 0 means the platform's default stack size.
    pub fn spawn<T, F>(name: String, stack: usize, f: F) -> std::io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let mut builder = std::thread::Builder::new().name(name);
        if stack > 0 {
            builder = builder.stack_size(stack);
        }
        let ending = Arc::new(Ending {
            progress: Mutex::new(Progress::Runs),
            changed: Condvar::new(),
        });
        let own = ending.clone();
        let thread = builder.spawn(move || {
            let at_end = own.clone();
            let notify = NotifyEnd(Arc::new(move || at_end.note_destroyed()));
            LAST_DESTROYED.with(|last| last.replace(Some(notify)));
            let output = catch_unwind(AssertUnwindSafe(f));
            let stays = thread_end::finish();
            own.note_returned(output, stays);
            drop(own);
            if stays {
                thread_end::stay();
            }
        })?;
        Ok(JoinHandle { thread, ending })
    }

    /// Waits for a thread's end.
    #[derive(Debug)]
    pub struct JoinHandle<T> {
        thread: std::thread::JoinHandle<()>,
        ending: Arc<Ending<T>>,
    }

    /// How far a thread has come, and where it leaves its result.
    #[derive(Debug)]
    struct Ending<T> {
        progress: Mutex<Progress<T>>,
        changed: Condvar,
    }

    #[derive(Debug)]
    enum Progress<T> {
        /// Its closure has not returned.
        Runs,
        /// Its closure has returned, and its thread-locals are destroyed now.
        Returned(Result<T, PanicPayload>),
        /// Its thread-locals are destroyed, or it stays for good because of coroutines that did not
        /// unwind (`thread_end`).
        Over {
            output: Option<Result<T, PanicPayload>>,
            stays: bool,
        },
    }

    impl<T> JoinHandle<T> {
        /// Waits until the thread has ended, or stays for good with its closure ended. The error is
        /// the payload of its panic.
        pub fn join(self) -> Result<T, PanicPayload> {
            match join_by(self, None) {
                Ok(output) => output,
                Err(_) => unreachable!("there is no deadline"),
            }
        }
    }

    /// As [`JoinHandle::join`], until `deadline` on the clock; then the thread is left to itself.
    pub fn join_by<T>(
        thread: JoinHandle<T>,
        deadline: Option<u64>,
    ) -> Result<Result<T, PanicPayload>, UnfinishedThread> {
        let JoinHandle { thread, ending } = thread;
        let (output, stays) = ending.wait(deadline).map_err(|runs| UnfinishedThread {
            name: thread.thread().name().unwrap_or("(unnamed)").to_owned(),
            runs,
        })?;
        if !stays {
            // Its closure caught every panic, and its thread-locals are gone: it ends.
            let _ = thread.join();
        }
        Ok(output)
    }

    impl<T> Ending<T> {
        fn note_returned(&self, output: Result<T, PanicPayload>, stays: bool) {
            *self.progress.lock() = match stays {
                true => Progress::Over {
                    output: Some(output),
                    stays,
                },
                false => Progress::Returned(output),
            };
            self.changed.notify_all();
        }

        fn note_destroyed(&self) {
            let mut progress = self.progress.lock();
            let output = match std::mem::replace(&mut *progress, Progress::Runs) {
                Progress::Returned(output) => Some(output),
                // It stays, and its joiner knows.
                Progress::Over { output, .. } => output,
                // The process exits on this thread, inside of its closure.
                Progress::Runs => return,
            };
            *progress = Progress::Over {
                output,
                stays: false,
            };
            drop(progress);
            self.changed.notify_all();
        }

        /// The result, and whether the thread stays.
        fn wait(
            &self,
            deadline: Option<u64>,
        ) -> Result<(Result<T, PanicPayload>, bool), UnfinishedPart> {
            let mut progress = self.progress.lock();
            loop {
                if let Progress::Over { output, stays } = &mut *progress
                    && let Some(output) = output.take()
                {
                    return Ok((output, *stays));
                }
                let Some(deadline) = deadline else {
                    progress = self.changed.wait(progress);
                    continue;
                };
                let left = deadline.saturating_sub(clock::now());
                if left == 0 {
                    return Err(match *progress {
                        Progress::Runs => UnfinishedPart::Closure,
                        Progress::Returned(_) | Progress::Over { .. } => {
                            UnfinishedPart::ThreadLocals
                        }
                    });
                }
                progress = self
                    .changed
                    .wait_for(progress, Duration::from_nanos(left))
                    .0;
            }
        }
    }
}

/// A lock without poisoning: engine data is consistent at every point that can unwind.
#[derive(Debug, Default)]
pub struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// Makes a lock around `value`.
    pub const fn new(value: T) -> Self {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Gives the value back.
    pub fn into_inner(self) -> T {
        self.0
            .into_inner()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for the lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match self.try_lock() {
            Some(guard) => guard,
            None => self.lock_contended(),
        }
    }

    /// Keeps away from the lock for longer and longer, then sleeps until it is free.
    #[cold]
    fn lock_contended(&self) -> MutexGuard<'_, T> {
        let mut pauses = tuning::LOCK_PAUSES_FIRST;
        while pauses <= tuning::LOCK_PAUSES_LAST {
            for _ in 0..pauses {
                std::hint::spin_loop();
            }
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            pauses *= 2;
        }
        self.0
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes the lock if it is free; never blocks.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        had(self.0.try_lock())
    }
}

/// Returns the guard if the lock was free, also one that a panic left behind.
#[inline]
fn had<G>(tried: std::sync::TryLockResult<G>) -> Option<G> {
    match tried {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

/// A lock for many readers or one writer, without poisoning. Its owner's data is consistent at
/// every point that can unwind, or is a user's value that the user left so.
#[derive(Debug, Default)]
pub struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// Makes a lock around `value`.
    pub const fn new(value: T) -> Self {
        RwLock(std::sync::RwLock::new(value))
    }

    /// Waits until there is no writer.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0
            .read()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until there is no reader and no writer.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0
            .write()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Reads if there is no writer; never blocks.
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        had(self.0.try_read())
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar);

impl Condvar {
    /// Makes a condition variable without waiters.
    pub const fn new() -> Self {
        Condvar(std::sync::Condvar::new())
    }

    /// Waits until notified.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0
            .wait(guard)
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until notified, or until `limit` has passed: for deadlines that a user set, for a
    /// thread that sleeps until its next tick, for retiring an idle thread and for the watchdog;
    /// never to look whether a wake-up was lost.
    pub fn wait_for<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let (guard, result) = self
            .0
            // The one timed wait: its callers wait for a deadline, a tick, a keep-alive or the
            // watchdog's period.
            .wait_timeout(guard, limit)
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        (guard, result.timed_out())
    }

    /// Notifies one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Notifies all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// A cell whose accesses loom can check; here it is the plain one.
#[derive(Debug)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps `value` in a cell.
    pub const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// Returns the value and drops the cell.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Gives shared access; the caller upholds the access protocol of the owner.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Gives exclusive access; the caller upholds the access protocol of the owner.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
