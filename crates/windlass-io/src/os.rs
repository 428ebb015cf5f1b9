//! System calls for signals, sockets, pipes and commands.
#![allow(unsafe_code, reason = "system calls; see each block")]

use std::io;
use std::os::fd::{FromRawFd, RawFd};

use windlass_core::sync::atomic::{AtomicI32, Ordering};
use windlass_core::sync::{Mutex, thread};

use crate::fs::File;
use crate::io::ReadBuf;

pub(crate) use libc::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGIO, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
};
/// What has no handler, or none that could go on afterwards.
pub(crate) const CANNOT_BE_HEARD: [i32; 6] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
];
/// Signal numbers are below this.
pub(crate) const SIGNALS: usize = 65;

/// Where the handler writes; -1 before there is a pipe.
static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

impl FromRawFd for File {
    /// Takes over a descriptor of a file that is open already.
    ///
    /// # Safety
    /// The descriptor is open, and the caller owns it.
    unsafe fn from_raw_fd(descriptor: RawFd) -> File {
        // SAFETY: as the caller promises.
        File::from_std(unsafe { std::fs::File::from_raw_fd(descriptor) })
    }
}

extern "C" fn on_signal(signal: libc::c_int) {
    let pipe = SIGNAL_PIPE.load(Ordering::Relaxed);
    let byte = signal as u8;
    // SAFETY: `write` is async-signal-safe and the byte is valid; a full pipe loses a repetition of
    // a signal that is still to be read. The interrupted code's errno is put back.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(pipe, (&raw const byte).cast(), 1);
        *libc::__errno_location() = errno;
    }
}

/// From now on `notify` is called for `signal`, on a thread of its own. Once per signal; later
/// calls change nothing.
pub(crate) fn watch_signal(signal: i32, notify: fn(i32)) -> io::Result<()> {
    static WATCHED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    let mut watched = WATCHED.lock();
    if watched.contains(&signal) {
        return Ok(());
    }
    if watched.is_empty() && SIGNAL_PIPE.load(Ordering::Relaxed) < 0 {
        start_signal_thread(notify)?;
    }
    let handler: extern "C" fn(libc::c_int) = on_signal;
    // SAFETY: a zeroed sigaction is valid, and the handler does only what a handler may.
    let installed = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &action, std::ptr::null_mut())
    };
    if installed != 0 {
        return Err(io::Error::last_os_error());
    }
    watched.push(signal);
    Ok(())
}

fn start_signal_thread(notify: fn(i32)) -> io::Result<()> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let [from, to] = ends;
    // The handler must not block; the reader must.
    // SAFETY: a descriptor of our own.
    unsafe { libc::fcntl(to, libc::F_SETFL, libc::O_NONBLOCK) };
    SIGNAL_PIPE.store(to, Ordering::Relaxed);
    thread::spawn("windlass-signal".into(), 64 * 1024, move || {
        let mut byte = 0u8;
        // Both ends stay open as long as the program runs; an interrupted read is begun anew.
        loop {
            // SAFETY: reads one byte into a valid place.
            let read = unsafe { libc::read(from, (&raw mut byte).cast(), 1) };
            if read == 1 {
                notify(i32::from(byte));
            }
        }
    })?;
    Ok(())
}

/// Number, user and group of the process at the other end of a Unix stream socket.
#[cfg(target_os = "linux")]
pub(crate) fn peer_credentials(socket: &impl std::os::fd::AsFd) -> io::Result<(i32, u32, u32)> {
    use std::os::fd::AsRawFd;
    let mut found = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is borrowed and so open, and the kernel writes at most `length` bytes
    // to `found`, which is as long.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok((found.pid, found.uid, found.gid)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Number, user and group of the process at the other end of a Unix stream socket.
#[cfg(not(target_os = "linux"))]
pub(crate) fn peer_credentials(_: &impl std::os::fd::AsFd) -> io::Result<(i32, u32, u32)> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Reads into the part of `buffer` that is not filled, which need not hold values; gives how many
/// bytes that were.
pub(crate) fn read_into(
    descriptor: &impl std::os::fd::AsFd,
    buffer: &mut ReadBuf<'_>,
) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    // SAFETY: only the kernel writes to it, and it writes values.
    let room = unsafe { buffer.unfilled_mut() };
    // SAFETY: the descriptor is borrowed and so open, and the kernel writes at most `room.len()`
    // bytes.
    let read = unsafe {
        libc::read(
            descriptor.as_fd().as_raw_fd(),
            room.as_mut_ptr().cast(),
            room.len(),
        )
    };
    let count = usize::try_from(read).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has written so many bytes.
    unsafe { buffer.assume_init(count) };
    buffer.advance(count);
    Ok(count)
}

/// How a descriptor was opened: `O_RDONLY`, `O_WRONLY` or `O_RDWR`.
pub(crate) fn access_mode(descriptor: &impl std::os::fd::AsFd) -> io::Result<libc::c_int> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is borrowed and so open, and the call takes no pointers.
    let flags = unsafe { libc::fcntl(descriptor.as_fd().as_raw_fd(), libc::F_GETFL) };
    match flags {
        -1 => Err(io::Error::last_os_error()),
        flags => Ok(flags & libc::O_ACCMODE),
    }
}

/// Receives without taking: the bytes stay for the next receive.
pub(crate) fn peek(socket: &impl std::os::fd::AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is borrowed and so open, and the kernel writes at most `buffer.len()`
    // bytes.
    let peeked = unsafe {
        libc::recv(
            socket.as_fd().as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            libc::MSG_PEEK,
        )
    };
    usize::try_from(peeked).map_err(|_| io::Error::last_os_error())
}

/// A descriptor that becomes readable when the process ends. Its number must be that of a child
/// that was not waited for: then it is no other process's.
#[cfg(target_os = "linux")]
pub(crate) fn descriptor_of_process(number: u32) -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: takes no pointers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) };
    match i32::try_from(descriptor) {
        Ok(descriptor) if descriptor >= 0 => {
            // SAFETY: the kernel has just made it for us.
            Ok(unsafe { std::os::fd::OwnedFd::from_raw_fd(descriptor) })
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// As on Linux, where the kernel can; here it cannot.
#[cfg(not(target_os = "linux"))]
pub(crate) fn descriptor_of_process(_: u32) -> io::Result<std::os::fd::OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Has the kernel kill a command when the thread that starts it ends.
pub(crate) fn end_with_thread(command: &mut std::process::Command) {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt;
        let parent = std::process::id();
        let set = move || {
            // SAFETY: system calls without pointers, which a child of fork may make before it is
            // another program: both are async-signal-safe.
            let gone = unsafe {
                if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) != 0 {
                    return Err(io::Error::last_os_error());
                }
                // The parent may have ended before the kernel knew of it.
                libc::getppid() as u32 != parent
            };
            match gone {
                // No allocation in a child of fork: a plain number.
                true => Err(io::Error::from_raw_os_error(libc::ESRCH)),
                false => Ok(()),
            }
        };
        // SAFETY: the closure allocates nothing and takes no lock.
        unsafe { command.pre_exec(set) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Kills a process, or the group that it leads. The number must be that of a child which was not
/// waited for: then it is no other process's.
pub(crate) fn kill(number: u32, group: bool) {
    let Ok(number) = libc::pid_t::try_from(number) else {
        return;
    };
    let target = if group { -number } else { number };
    // SAFETY: takes no pointers. An error: it has ended.
    unsafe { libc::kill(target, libc::SIGKILL) };
}
