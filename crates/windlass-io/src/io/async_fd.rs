//! Any descriptor, ready when the driver says so.
//!
//! Nothing here relies on a descriptor that stays open: the driver is asked by number, and a number
//! that is closed or used again brings wrong events at worst (see `Registered::lent`). A descriptor
//! is lent (`AsFd`) only if the value lends it. So every way to make an [`AsyncFd`] is sound;
//! `register` is an `unsafe fn` because it is one in tokio, where `AsFd` needs only a number.
#![allow(unsafe_code, reason = "tokio declares `register` as an `unsafe fn`")]

use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::task::{Context, Poll, ready};

use mio::unix::SourceFd;
use mio::{Registry, Token};
use windlass_runtime::Handle;
use windlass_runtime::driver::{Direction, Reality, Registered, Source, unsupported};

use super::ready::{Found, async_io, ready_for, try_io};
use super::{Interest, Ready};

/// A value with a descriptor (a device, a socket of another library), of which a task can wait
/// until it is ready.
///
/// The descriptor must be in non-blocking mode, and of a kind that the kernel tells events of: not
/// a regular file. The caller reads and writes it itself. A guard of [`readable`](AsyncFd::readable)
/// says that it is worth trying; [`try_io`](AsyncFdReadyGuard::try_io) of the guard takes the
/// readiness back when the attempt would have blocked. Dropping this deregisters the descriptor and
/// drops the value.
///
/// In a simulation it cannot be made: events of the operating system could not be replayed.
///
/// ```
/// use std::io::{Read, Write};
/// use windlass_io::io::unix::AsyncFd;
///
/// # windlass_runtime::Runtime::new()?.block_on(async {
/// let (one, mut other) = std::os::unix::net::UnixStream::pair()?;
/// one.set_nonblocking(true)?;
/// let one = AsyncFd::new(one)?;
/// other.write_all(b"hello")?;
/// let mut word = [0; 5];
/// let count = loop {
///     let mut guard = one.readable().await?;
///     match guard.try_io(|one| one.get_ref().read(&mut word)) {
///         Ok(read) => break read?,
///         Err(_would_block) => continue,
///     }
/// };
/// assert_eq!(&word[..count], b"hello");
/// # std::io::Result::Ok(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AsyncFd<T: AsRawFd> {
    /// Before the value: the descriptor is deregistered before it is closed.
    registered: Registered<Watched>,
    inner: T,
}

/// A descriptor by its number, and what is waited for.
#[derive(Debug)]
struct Watched {
    descriptor: RawFd,
    interest: Interest,
}

impl mio::event::Source for Watched {
    fn register(&mut self, to: &Registry, token: Token, _: mio::Interest) -> io::Result<()> {
        SourceFd(&self.descriptor).register(to, token, self.interest.to_mio())
    }

    fn reregister(&mut self, to: &Registry, token: Token, _: mio::Interest) -> io::Result<()> {
        SourceFd(&self.descriptor).reregister(to, token, self.interest.to_mio())
    }

    fn deregister(&mut self, from: &Registry) -> io::Result<()> {
        SourceFd(&self.descriptor).deregister(from)
    }
}

impl<T: AsRawFd> AsyncFd<T> {
    /// Registers a value for reading and writing, on the runtime this is called in.
    ///
    /// # Errors
    /// What the operating system says; `Unsupported` in a simulation.
    #[track_caller]
    pub fn new(inner: T) -> io::Result<AsyncFd<T>> {
        Ok(AsyncFd::try_new(inner)?)
    }

    /// Registers a value as [`new`](AsyncFd::new) does, for `interest` only.
    ///
    /// # Errors
    /// As `new`.
    #[track_caller]
    pub fn with_interest(inner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
        Ok(AsyncFd::try_with_interest(inner, interest)?)
    }

    /// Registers a value as [`new`](AsyncFd::new) does.
    ///
    /// # Errors
    /// As `new`; the value comes back.
    #[track_caller]
    pub fn try_new(inner: T) -> Result<AsyncFd<T>, AsyncFdRegisterError<T>> {
        AsyncFd::try_with_interest(inner, Interest::READABLE | Interest::WRITABLE)
    }

    /// Registers a value as [`new`](AsyncFd::new) does, for `interest` only.
    ///
    /// # Errors
    /// As `new`; the value comes back.
    #[track_caller]
    pub fn try_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<AsyncFd<T>, AsyncFdRegisterError<T>> {
        let descriptor = inner.as_raw_fd();
        let watched = Watched {
            descriptor,
            interest,
        };
        let registered = match Handle::current_or_default().reality() {
            Reality::Real(driver) => Registered::lent(driver, watched),
            Reality::Simulated(_) => Err(unsupported(
                "a simulation has no descriptors of the operating system: `AsyncFd` works outside \
                 of simulations only",
            )),
        };
        match registered {
            Ok(registered) => Ok(AsyncFd { registered, inner }),
            Err(cause) => Err(AsyncFdRegisterError { inner, cause }),
        }
    }

    /// Registers a value as [`try_new`](AsyncFd::try_new) does, under tokio's newer name.
    ///
    /// # Safety
    /// `as_raw_fd` of the value gives one descriptor, which is open as long as the `AsyncFd` has
    /// the value. This implementation does not rely on it.
    ///
    /// # Errors
    /// As `try_new`.
    #[track_caller]
    pub unsafe fn register(inner: T) -> Result<AsyncFd<T>, AsyncFdRegisterError<T>> {
        AsyncFd::try_new(inner)
    }

    /// Registers a value as [`try_with_interest`](AsyncFd::try_with_interest) does, under tokio's
    /// newer name.
    ///
    /// # Safety
    /// As `register`.
    ///
    /// # Errors
    /// As `try_new`.
    #[track_caller]
    pub unsafe fn register_with_interest(
        inner: T,
        interest: Interest,
    ) -> Result<AsyncFd<T>, AsyncFdRegisterError<T>> {
        AsyncFd::try_with_interest(inner, interest)
    }

    /// Returns the value inside.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Returns the value inside, to be changed.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Deregisters the descriptor and gives the value back.
    pub fn into_inner(self) -> T {
        let AsyncFd { registered, inner } = self;
        drop(registered);
        inner
    }

    fn source(&self) -> &Source {
        self.registered.source()
    }

    fn poll_found(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<io::Result<Found>> {
        let interest = match direction {
            Direction::Read => Interest::READABLE,
            Direction::Write => Interest::WRITABLE,
        };
        let state = ready!(self.source().poll_ready(direction, cx));
        Poll::Ready(Found::new(state, interest))
    }

    /// Polls until it may be readable: the last task that polled is woken.
    pub fn poll_read_ready<'a>(
        &'a self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let found = ready!(self.poll_found(Direction::Read, cx))?;
        Poll::Ready(Ok(AsyncFdReadyGuard::new(self, found)))
    }

    /// Polls as [`poll_read_ready`](AsyncFd::poll_read_ready) does; the guard can change the value.
    pub fn poll_read_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let found = ready!(self.poll_found(Direction::Read, cx))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard::new(self, found)))
    }

    /// Polls until it may be writable: the last task that polled is woken.
    pub fn poll_write_ready<'a>(
        &'a self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'a, T>>> {
        let found = ready!(self.poll_found(Direction::Write, cx))?;
        Poll::Ready(Ok(AsyncFdReadyGuard::new(self, found)))
    }

    /// Polls as [`poll_write_ready`](AsyncFd::poll_write_ready) does; the guard can change the
    /// value.
    pub fn poll_write_ready_mut<'a>(
        &'a mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'a, T>>> {
        let found = ready!(self.poll_found(Direction::Write, cx))?;
        Poll::Ready(Ok(AsyncFdReadyMutGuard::new(self, found)))
    }

    /// Waits until it may be ready for something of `interest`. Cancel-safe.
    pub async fn ready(&self, interest: Interest) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        let found = ready_for(self.source(), interest).await?;
        Ok(AsyncFdReadyGuard::new(self, found))
    }

    /// Waits as [`ready`](AsyncFd::ready) does; the guard can change the value. Cancel-safe.
    pub async fn ready_mut(
        &mut self,
        interest: Interest,
    ) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        let found = ready_for(self.source(), interest).await?;
        Ok(AsyncFdReadyMutGuard::new(self, found))
    }

    /// Waits until it may be readable. Cancel-safe.
    pub async fn readable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::READABLE).await
    }

    /// Waits until it may be readable; the guard can change the value. Cancel-safe.
    pub async fn readable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::READABLE).await
    }

    /// Waits until it may be writable. Cancel-safe.
    pub async fn writable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::WRITABLE).await
    }

    /// Waits until it may be writable; the guard can change the value. Cancel-safe.
    pub async fn writable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::WRITABLE).await
    }

    /// Calls `f` whenever the descriptor may be ready, until it returns something else than
    /// `WouldBlock`. Cancel-safe if `f` is: the call that succeeds is the last.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        mut f: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        async_io(self.source(), interest, || f(&self.inner)).await
    }

    /// Calls `f` as [`async_io`](AsyncFd::async_io) does; `f` can change the value.
    pub async fn async_io_mut<R>(
        &mut self,
        interest: Interest,
        mut f: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let inner = &mut self.inner;
        async_io(self.registered.source(), interest, || f(inner)).await
    }

    /// Calls `f` if the descriptor may be ready; `WouldBlock` from `f` proves that it is not.
    ///
    /// # Errors
    /// `WouldBlock` if it is not ready; otherwise what `f` returns.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        f: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        try_io(self.source(), interest, || f(&self.inner))
    }

    /// Calls `f` as [`try_io`](AsyncFd::try_io) does; `f` can change the value.
    ///
    /// # Errors
    /// As `try_io`.
    pub fn try_io_mut<R>(
        &mut self,
        interest: Interest,
        f: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let inner = &mut self.inner;
        try_io(self.registered.source(), interest, || f(inner))
    }
}

impl<T: AsRawFd> AsRawFd for AsyncFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

impl<T: AsRawFd + AsFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncFd")
            .field("inner", &self.inner)
            .finish()
    }
}

/// The descriptor of an [`AsyncFd`] may be ready; the guard takes that back if it is not.
#[must_use = "say whether the descriptor was ready: call a method of the guard"]
pub struct AsyncFdReadyGuard<'a, T: AsRawFd> {
    async_fd: &'a AsyncFd<T>,
    found: Option<Found>,
}

/// The descriptor of an [`AsyncFd`] that can be changed may be ready; the guard takes that back if
/// it is not.
#[must_use = "say whether the descriptor was ready: call a method of the guard"]
pub struct AsyncFdReadyMutGuard<'a, T: AsRawFd> {
    async_fd: &'a mut AsyncFd<T>,
    found: Option<Found>,
}

/// What both guards have.
macro_rules! guard_methods {
    () => {
        /// Takes the readiness back that this guard stands for: the next wait is for a new event.
        /// Call it only after an attempt that would have blocked.
        pub fn clear_ready(&mut self) {
            if let Some(found) = self.found.take() {
                let source = self.async_fd.source();
                source.clear_bits(found.ready.0, found.state);
            }
        }

        /// Takes only a part of the readiness back.
        pub fn clear_ready_matching(&mut self, ready: Ready) {
            let Some(mut found) = self.found.take() else {
                return;
            };
            let source = self.async_fd.source();
            source.clear_bits((found.ready & ready).0, found.state);
            found.ready = found.ready - ready;
            if !found.ready.is_empty() {
                self.found = Some(found);
            }
        }

        /// Leaves the readiness as it is, as dropping the guard does.
        pub fn retain_ready(&mut self) {}

        /// Returns what the descriptor was found ready for.
        pub fn ready(&self) -> Ready {
            self.found.map_or(Ready::EMPTY, |found| found.ready)
        }
    };
}

impl<'a, T: AsRawFd> AsyncFdReadyGuard<'a, T> {
    fn new(async_fd: &'a AsyncFd<T>, found: Found) -> AsyncFdReadyGuard<'a, T> {
        let found = Some(found);
        AsyncFdReadyGuard { async_fd, found }
    }

    guard_methods!();

    /// Calls `f`; if it would have blocked, the readiness is taken back.
    ///
    /// # Errors
    /// `TryIoError` if it would have blocked: wait again.
    pub fn try_io<R>(
        &mut self,
        f: impl FnOnce(&'a AsyncFd<T>) -> io::Result<R>,
    ) -> Result<io::Result<R>, TryIoError> {
        match f(self.async_fd) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.clear_ready();
                Err(TryIoError(()))
            }
            result => Ok(result),
        }
    }

    /// Returns the [`AsyncFd`] of this guard.
    pub fn get_ref(&self) -> &'a AsyncFd<T> {
        self.async_fd
    }

    /// Returns the value with the descriptor.
    pub fn get_inner(&self) -> &'a T {
        self.async_fd.get_ref()
    }
}

impl<'a, T: AsRawFd> AsyncFdReadyMutGuard<'a, T> {
    fn new(async_fd: &'a mut AsyncFd<T>, found: Found) -> AsyncFdReadyMutGuard<'a, T> {
        let found = Some(found);
        AsyncFdReadyMutGuard { async_fd, found }
    }

    guard_methods!();

    /// Calls `f`; if it would have blocked, the readiness is taken back.
    ///
    /// # Errors
    /// `TryIoError` if it would have blocked: wait again.
    pub fn try_io<R>(
        &mut self,
        f: impl FnOnce(&mut AsyncFd<T>) -> io::Result<R>,
    ) -> Result<io::Result<R>, TryIoError> {
        match f(self.async_fd) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.clear_ready();
                Err(TryIoError(()))
            }
            result => Ok(result),
        }
    }

    /// Returns the [`AsyncFd`] of this guard.
    pub fn get_ref(&self) -> &AsyncFd<T> {
        self.async_fd
    }

    /// Returns the [`AsyncFd`] of this guard, to be changed.
    pub fn get_mut(&mut self) -> &mut AsyncFd<T> {
        self.async_fd
    }

    /// Returns the value with the descriptor.
    pub fn get_inner(&self) -> &T {
        self.async_fd.get_ref()
    }

    /// Returns the value with the descriptor, to be changed.
    pub fn get_inner_mut(&mut self) -> &mut T {
        self.async_fd.get_mut()
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFdReadyGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadyGuard")
            .field("async_fd", &self.async_fd)
            .finish()
    }
}

impl<T: fmt::Debug + AsRawFd> fmt::Debug for AsyncFdReadyMutGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutReadyGuard")
            .field("async_fd", &self.async_fd)
            .finish()
    }
}

/// The attempt would have blocked; the guard has taken the readiness back.
#[derive(Debug)]
pub struct TryIoError(());

/// A value could not be registered; it is in the error.
pub struct AsyncFdRegisterError<T> {
    inner: T,
    cause: io::Error,
}

/// The name that tokio had for [`AsyncFdRegisterError`] before.
#[doc(hidden)]
#[deprecated(note = "use `AsyncFdRegisterError` instead")]
pub type AsyncFdTryNewError<T> = AsyncFdRegisterError<T>;

impl<T> AsyncFdRegisterError<T> {
    /// Gives the value back, and why it could not be registered.
    pub fn into_parts(self) -> (T, io::Error) {
        (self.inner, self.cause)
    }
}

impl<T> fmt::Display for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.cause, f)
    }
}

impl<T> fmt::Debug for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.cause, f)
    }
}

impl<T> Error for AsyncFdRegisterError<T> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.cause)
    }
}

impl<T> From<AsyncFdRegisterError<T>> for io::Error {
    fn from(error: AsyncFdRegisterError<T>) -> io::Error {
        error.cause
    }
}
