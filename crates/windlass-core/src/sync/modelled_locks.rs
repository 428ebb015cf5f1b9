//! The locks of both model checkers, which have the interface of the standard library's.

/// Defines `Mutex`, `RwLock` and `Condvar` over those of a model checker, without poisoning: a
/// thread that panics ends the model. `const` where the checker's constructors are.
macro_rules! modelled_locks {
    ($checker:ident $(, $is_const:tt)?) => {
        pub use $checker::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

        /// A lock whose hand-over the checker decides.
        #[derive(Debug)]
        pub struct Mutex<T>($checker::sync::Mutex<T>);

        impl<T> Mutex<T> {
            /// Makes a lock around `value`.
            pub $($is_const)? fn new(value: T) -> Self {
                Mutex($checker::sync::Mutex::new(value))
            }

            /// Gives the value back.
            pub fn into_inner(self) -> T {
                self.0
                    .into_inner()
                    .unwrap_or_else(|poisoned| poisoned.into_inner())
            }

            /// Waits for the lock.
            pub fn lock(&self) -> MutexGuard<'_, T> {
                self.0
                    .lock()
                    .unwrap_or_else(|poisoned| poisoned.into_inner())
            }

            /// Takes the lock if it is free.
            pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
                self.0.try_lock().ok()
            }
        }

        impl<T: Default> Default for Mutex<T> {
            fn default() -> Self {
                Mutex::new(T::default())
            }
        }

        /// A lock for many readers or one writer whose order the checker decides.
        #[derive(Debug)]
        pub struct RwLock<T>($checker::sync::RwLock<T>);

        impl<T> RwLock<T> {
            /// Makes a lock around `value`.
            pub $($is_const)? fn new(value: T) -> Self {
                RwLock($checker::sync::RwLock::new(value))
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

            /// Reads if there is no writer.
            pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
                self.0.try_read().ok()
            }
        }

        /// A condition variable whose order the checker decides.
        #[derive(Debug, Default)]
        pub struct Condvar($checker::sync::Condvar);

        impl Condvar {
            /// Makes a condition variable without waiters.
            pub $($is_const)? fn new() -> Self {
                Condvar($checker::sync::Condvar::new())
            }

            /// Waits until notified.
            pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
                self.0
                    .wait(guard)
                    .unwrap_or_else(|poisoned| poisoned.into_inner())
            }

            /// Waits until notified: time does not pass in a model.
            pub fn wait_for<'a, T>(
                &self,
                guard: MutexGuard<'a, T>,
                _limit: std::time::Duration,
            ) -> (MutexGuard<'a, T>, bool) {
                (self.wait(guard), false)
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
    };
}

pub(super) use modelled_locks;
