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
use windlass_core::sync::atomic::{AtomicU32, Ordering};

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
// once, on one thread. `install_hooks` stores function pointers: it needs nothing that std sets up
// in `main`, and cannot unwind.
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
    /// Returns the process that runs this.
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

/// Sleeps for `time` with the kernel's finest timer, and not a moment less; the thread's timer
/// slack goes with it.
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

/// Ends the effect of `lock_memory`.
#[cfg(target_os = "linux")]
pub(crate) fn unlock_memory() {
    // SAFETY: takes no pointers. It fails only where locking did.
    unsafe { libc::munlockall() };
}

/// How nice this thread is.
#[cfg(target_os = "linux")]
pub(crate) fn nice() -> io::Result<i32> {
    // SAFETY: no memory is involved but the thread's own errno, which has to be cleared: -1 is a
    // value.
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

/// True if a word among this thread's thread-locals satisfies `wanted`: those of the program itself
/// and of the libraries that were loaded with it.
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
    // SAFETY: `look` does not keep the pointer, and no other code has it.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.found
}

/// There is no way to look at thread-locals here.
#[cfg(not(target_os = "linux"))]
pub(crate) fn any_thread_local(_wanted: impl FnMut(usize) -> bool) -> bool {
    false
}
