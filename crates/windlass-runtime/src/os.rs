//! What the operating system does for us, and behind our back: `fork`.
//!
//! A child of `fork` has a copy of the runtime's memory but none of its threads. Using the runtime
//! there would wait for ever, so it panics instead. A handler that runs in the child counts the
//! forks; comparing that count is cheap enough for every spawn from outside.
#![allow(unsafe_code, reason = "system calls; see each block")]

use std::io;
use std::sync::Once;
use std::time::Duration;

use crate::dispatch::Scheduling;
use windlass_core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use windlass_core::sync::{Mutex, thread};

/// The loader calls this before `main`.
#[used]
#[cfg_attr(
    target_vendor = "apple",
    unsafe(link_section = "__DATA,__mod_init_func")
)]
#[cfg_attr(windows, unsafe(link_section = ".CRT$XCU"))]
#[cfg_attr(
    all(unix, not(target_vendor = "apple")),
    unsafe(link_section = ".init_array")
)]
// SAFETY: the section is the platform's list of functions without arguments that the loader calls
// once, on one thread. `install_hooks` stores function pointers: it needs nothing that std sets up in
// `main`, and cannot unwind.
static BEFORE_MAIN: extern "C" fn() = install_hooks;

extern "C" fn install_hooks() {
    crate::hooks::install();
}

static FORKS: AtomicU32 = AtomicU32::new(0);

/// Remembers the process that a runtime was made in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Process(u32);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

impl Process {
    /// This process.
    pub(crate) fn current() -> Process {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            #[cfg(unix)]
            // SAFETY: the handler is async-signal-safe: one atomic addition.
            unsafe {
                libc::pthread_atfork(None, None, Some(count_fork));
            }
        });
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// True in the process the runtime was made in.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.0
    }

    /// # Panics
    /// In a child of `fork`.
    #[inline]
    #[track_caller]
    pub(crate) fn check(self) {
        assert!(
            self.is_here(),
            "this runtime belongs to the parent process: after fork() without exec() its threads \
             do not exist; build a new Runtime in the child"
        );
    }
}

/// Timers of this thread are as fine as the kernel can, from now on: it has no slack.
pub(crate) fn fine_timers() {
    #[cfg(target_os = "linux")]
    {
        thread_local! {
            static FINE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
        }
        if !FINE.with(|fine| fine.replace(true)) {
            // SAFETY: takes no pointers; affects this thread's timers only.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1usize) };
        }
    }
}

/// Sleeps for `time` with the kernel's finest timer, and not a moment less; the thread's timer slack
/// goes with it.
pub(crate) fn nanosleep(time: Duration) {
    fine_timers();
    let request = libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: time.subsec_nanos() as _,
    };
    // SAFETY: the request is valid, and the remainder is not asked for. An interrupted sleep is
    // shorter, and the caller looks at the clock.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &request, std::ptr::null_mut()) };
}

pub(crate) use libc::{
    SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
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

/// From now on `told` is called for `signal`, on a thread of its own. Once per signal; later calls
/// change nothing.
pub(crate) fn watch_signal(signal: i32, told: fn(i32)) -> io::Result<()> {
    static WATCHED: Mutex<Vec<i32>> = Mutex::new(Vec::new());
    let mut watched = WATCHED.lock();
    if watched.contains(&signal) {
        return Ok(());
    }
    if watched.is_empty() && SIGNAL_PIPE.load(Ordering::Relaxed) < 0 {
        start_signal_thread(told)?;
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

fn start_signal_thread(told: fn(i32)) -> io::Result<()> {
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
                told(i32::from(byte));
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
    // SAFETY: the descriptor is borrowed and so open, and the kernel writes at most `length` bytes to
    // `found`, which is as long.
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

/// Receives without taking: the bytes stay for the next receive.
pub(crate) fn peek(socket: &impl std::os::fd::AsFd, buffer: &mut [u8]) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    // SAFETY: the descriptor is borrowed and so open, and the kernel writes at most `buffer.len()` bytes.
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

/// A descriptor that becomes readable when the process ends. Its number must be that of a child that
/// was not waited for: then it is nobody else's.
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
                // The parent may have ended before the kernel was told.
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
/// waited for: then it is nobody else's.
pub(crate) fn kill(number: u32, group: bool) {
    let Ok(number) = libc::pid_t::try_from(number) else {
        return;
    };
    let target = if group { -number } else { number };
    // SAFETY: takes no pointers. An error: it has ended.
    unsafe { libc::kill(target, libc::SIGKILL) };
}

/// The cores that this thread may run on, in order.
#[cfg(target_os = "linux")]
pub(crate) fn affinity() -> io::Result<Vec<usize>> {
    // SAFETY: a set of cores is plain bits; the call fills it.
    let (set, got) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let got = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (set, got)
    };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    let cores = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the index is below the size of the set.
    Ok(cores
        .filter(|core| unsafe { libc::CPU_ISSET(*core, &set) })
        .collect())
}

/// This thread runs on these cores only.
#[cfg(target_os = "linux")]
pub(crate) fn set_affinity(cores: &[usize]) -> io::Result<()> {
    let most = libc::CPU_SETSIZE as usize;
    if cores.is_empty() || cores.iter().any(|core| *core >= most) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a set of cores is plain bits, and every index is below its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cores.iter().for_each(|core| libc::CPU_SET(*core, &mut set));
        set
    };
    // SAFETY: the set is ours; 0 is this thread.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) })
}

/// Keeps all memory of the process where it is.
#[cfg(target_os = "linux")]
pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: takes no pointers.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) })
}

/// Ends `lock_memory`.
#[cfg(target_os = "linux")]
pub(crate) fn unlock_memory() {
    // SAFETY: takes no pointers. It fails only where locking did.
    unsafe { libc::munlockall() };
}

/// How nice this thread is.
#[cfg(target_os = "linux")]
pub(crate) fn nice() -> io::Result<i32> {
    // SAFETY: no memory is involved but the thread's own errno, which has to be cleared: -1 is a value.
    let nice = unsafe {
        *libc::__errno_location() = 0;
        libc::getpriority(libc::PRIO_PROCESS, 0)
    };
    match io::Error::last_os_error().raw_os_error() {
        Some(0) | None => Ok(nice),
        Some(_) if nice == -1 => Err(io::Error::last_os_error()),
        Some(_) => Ok(nice),
    }
}

/// This thread is so nice from now on.
#[cfg(target_os = "linux")]
pub(crate) fn set_nice(nice: i32) -> io::Result<()> {
    // SAFETY: no memory is involved. On Linux, 0 is this thread, not the process.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) })
}

/// The kernel's own layout (`sched_setattr`).
#[cfg(target_os = "linux")]
#[repr(C)]
#[derive(Default)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// How the kernel schedules this thread.
#[cfg(target_os = "linux")]
pub(crate) fn scheduling() -> io::Result<Scheduling> {
    let mut attr = SchedAttr::default();
    // SAFETY: the structure is ours and as large as we say; 0 is this thread.
    let got = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            0,
            &raw mut attr,
            size_of::<SchedAttr>(),
            0,
        )
    };
    if got != 0 {
        return Err(io::Error::last_os_error());
    }
    let priority = attr.priority;
    Ok(match attr.policy as i32 {
        libc::SCHED_FIFO => Scheduling::Fifo { priority },
        libc::SCHED_RR => Scheduling::RoundRobin { priority },
        libc::SCHED_DEADLINE => Scheduling::Deadline {
            runtime: Duration::from_nanos(attr.runtime),
            deadline: Duration::from_nanos(attr.deadline),
            period: Duration::from_nanos(attr.period),
        },
        _ => Scheduling::Other,
    })
}

/// The kernel schedules this thread so from now on.
#[cfg(target_os = "linux")]
pub(crate) fn set_scheduling(scheduling: Scheduling) -> io::Result<()> {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let mut attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        nice: nice().unwrap_or(0),
        ..SchedAttr::default()
    };
    match scheduling {
        Scheduling::Other => attr.policy = libc::SCHED_OTHER as u32,
        Scheduling::Fifo { priority } => {
            attr.policy = libc::SCHED_FIFO as u32;
            attr.priority = priority;
        }
        Scheduling::RoundRobin { priority } => {
            attr.policy = libc::SCHED_RR as u32;
            attr.priority = priority;
        }
        Scheduling::Deadline {
            runtime,
            deadline,
            period,
        } => {
            attr.policy = libc::SCHED_DEADLINE as u32;
            attr.runtime = nanos(runtime);
            attr.deadline = nanos(deadline);
            attr.period = nanos(period);
        }
    }
    // SAFETY: the structure is ours and says its size; 0 is this thread.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    check(set as libc::c_int)
}

#[cfg(target_os = "linux")]
fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// True if a word among this thread's thread-locals satisfies `wanted`: those of the program itself and
/// of the libraries that were loaded with it.
#[cfg(target_os = "linux")]
pub(crate) fn any_thread_local(mut wanted: impl FnMut(usize) -> bool) -> bool {
    struct Search<'a> {
        wanted: &'a mut dyn FnMut(usize) -> bool,
        found: bool,
    }
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        search: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: `dl_iterate_phdr` passes a valid description, and what it was given.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<'_>>()) };
        if info.dlpi_tls_data.is_null() || info.dlpi_phdr.is_null() {
            return 0;
        }
        // SAFETY: the description says so.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let size = headers.iter().find(|header| header.p_type == libc::PT_TLS);
        let words = size.map_or(0, |header| header.p_memsz as usize / size_of::<usize>());
        let first = info.dlpi_tls_data.cast_const().cast::<usize>();
        for index in 0..words {
            // SAFETY: the block is this thread's, of that size and aligned to words. It may have no
            // Rust type and may hold padding: it is read as the processor would.
            let word = unsafe { first.wrapping_add(index).read_volatile() };
            search.found |= (search.wanted)(word);
        }
        i32::from(search.found)
    }
    let mut search = Search {
        wanted: &mut wanted,
        found: false,
    };
    // SAFETY: `look` does not keep the pointer, and nobody else has it.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// There is no way to look at thread-locals here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn any_thread_local(_wanted: impl FnMut(usize) -> bool) -> bool {
    false
}
