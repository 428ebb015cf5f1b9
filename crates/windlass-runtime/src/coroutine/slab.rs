//! Memory for stacks: large mappings, cut into stacks with a guard page below each.
//!
//! A mapping per stack would run into the kernel's limit on mappings at 32,750 of them (each guard
//! page splits one). Slabs of doubling size need about thirty mappings for 100,000 stacks, because
//! `MADV_GUARD_INSTALL` (Linux 6.13) makes guards that split nothing. An older kernel gets
//! `mprotect` and with it the limit, which is reported as an error.
//!
//! Slabs stay mapped for the life of the process, so that any thread may look at a slot of one:
//! what is bounded by the most coroutines there ever were is address space. Memory goes back when a
//! stack does (see `stack.rs`).

use std::fmt;
use std::io;
use std::panic::Location;
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use windlass_core::task::TaskId;

/// The smallest stack; sizes are this times a power of two.
const SMALLEST: usize = 16 << 10;
/// Number of sizes; the largest is 1 GiB.
const SIZES: usize = 17;
const FIRST_STACKS: usize = 32;
const MOST_STACKS: usize = 4096;
const MOST_BYTES: usize = 512 << 20;

/// There is no memory for a coroutine's stack.
#[derive(Debug)]
#[non_exhaustive]
pub enum StackError {
    /// More than a gibibyte was asked for.
    TooLarge(usize),
    /// The memory could not be mapped.
    Map(io::Error),
    /// The guard page could not be made.
    Guard(io::Error),
}

impl fmt::Display for StackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StackError::TooLarge(size) => write!(
                f,
                "a coroutine's stack of {size} bytes is too large; the most is 1 GiB"
            ),
            StackError::Map(error) => write!(
                f,
                "no memory could be mapped for a coroutine's stack ({error}); use smaller stacks or \
                 fewer coroutines, or raise the limit on address space"
            ),
            StackError::Guard(error) => write!(
                f,
                "a coroutine's stack could not get its guard page ({error}); before Linux 6.13 each is \
                 a mapping of its own: raise vm.max_map_count, or use fewer coroutines"
            ),
        }
    }
}

impl std::error::Error for StackError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StackError::TooLarge(_) => None,
            StackError::Map(error) | StackError::Guard(error) => Some(error),
        }
    }
}

/// Which of the sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SizeClass(usize);

impl SizeClass {
    /// The smallest that has `size` usable bytes.
    pub(super) fn for_size(size: usize) -> Result<SizeClass, StackError> {
        let class = (size.max(SMALLEST).div_ceil(SMALLEST))
            .next_power_of_two()
            .trailing_zeros() as usize;
        if class < SIZES {
            Ok(SizeClass(class))
        } else {
            Err(StackError::TooLarge(size))
        }
    }

    pub(super) fn index(self) -> usize {
        self.0
    }

    /// Returns the usable bytes of a stack.
    pub(super) fn size(self) -> usize {
        SMALLEST << self.0
    }
}

pub(super) const CLASSES: usize = SIZES;

/// One mapping of stacks.
struct Slab {
    base: NonNull<u8>,
    class: SizeClass,
    slots: Box<[Slot]>,
    /// The slab that was made before this one. Constant once it can be seen.
    older: AtomicPtr<Slab>,
}

// SAFETY: the mapping is only touched through the stacks cut from it, each of which has one owner.
unsafe impl Send for Slab {}
// SAFETY: as above.
unsafe impl Sync for Slab {}

/// What is known of one stack, for dumps and for the handler of overflows.
#[derive(Debug)]
pub(super) struct Slot {
    /// The task whose stack it is; 0 if it is free.
    task: AtomicU64,
    location: AtomicPtr<Location<'static>>,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            task: AtomicU64::new(0),
            location: AtomicPtr::new(null_mut()),
        }
    }

    pub(super) fn set_owner(&self, task: u64, location: &'static Location<'static>) {
        self.location
            .store(std::ptr::from_ref(location).cast_mut(), Ordering::Relaxed);
        self.task.store(task, Ordering::Relaxed);
    }

    pub(super) fn clear_owner(&self) {
        self.task.store(0, Ordering::Relaxed);
    }
}

/// The newest slab; the others hang on it. Nothing is ever taken away.
static NEWEST: AtomicPtr<Slab> = AtomicPtr::new(null_mut());

/// A piece of a slab, owned.
#[derive(Debug)]
pub(super) struct Piece {
    /// The lowest address, which is the guard's.
    pub(super) bottom: NonNull<u8>,
    pub(super) class: SizeClass,
    pub(super) slot: &'static Slot,
}

// SAFETY: a piece is memory that only its owner uses.
unsafe impl Send for Piece {}

/// Where the next fresh stack of one size comes from.
#[derive(Default)]
struct Fresh {
    slab: Option<&'static Slab>,
    used: usize,
    stacks: usize,
}

static FRESH: [Mutex<Fresh>; SIZES] = [const {
    Mutex::new(Fresh {
        slab: None,
        used: 0,
        stacks: FIRST_STACKS,
    })
}; SIZES];

/// A stack that was never used.
pub(super) fn cut(class: SizeClass) -> Result<Piece, StackError> {
    let mut fresh = FRESH[class.0].lock();
    let slab = match fresh.slab {
        Some(slab) if fresh.used < slab.slots.len() => slab,
        _ => {
            let slab = map_slab(class, fresh.stacks)?;
            fresh.slab = Some(slab);
            fresh.used = 0;
            fresh.stacks = (fresh.stacks * 2).min(MOST_STACKS);
            slab
        }
    };
    let index = fresh.used;
    let bottom = slab.stack(index);
    install_guard(bottom)?;
    fresh.used += 1;
    Ok(Piece {
        bottom,
        class,
        slot: &slab.slots[index],
    })
}

impl Slab {
    fn stride(&self) -> usize {
        self.class.size() + page()
    }

    fn stack(&self, index: usize) -> NonNull<u8> {
        // SAFETY: `index` is below the number of slots, so this stays within the mapping.
        unsafe { self.base.add(index * self.stride()) }
    }

    fn all() -> impl Iterator<Item = &'static Slab> {
        // Acquire: pairs with the Release in `map_slab`.
        let newest = NEWEST.load(Ordering::Acquire);
        std::iter::successors(
            // SAFETY: slabs are leaked, and whole when they are published.
            unsafe { newest.as_ref::<'static>() },
            // SAFETY: as above.
            |slab| unsafe { slab.older.load(Ordering::Relaxed).as_ref() },
        )
    }
}

/// As many stacks as wanted, or as many as there is room for.
fn map_slab(class: SizeClass, wanted: usize) -> Result<&'static Slab, StackError> {
    let stride = class.size() + page();
    let mut stacks = wanted.min(MOST_BYTES / stride).max(1);
    let base = loop {
        match map(stride * stacks) {
            Err(_) if stacks > 1 => stacks /= 2,
            mapped => break mapped?,
        }
    };
    let slab = Box::leak(Box::new(Slab {
        base,
        class,
        slots: (0..stacks).map(|_| Slot::new()).collect(),
        older: AtomicPtr::new(null_mut()),
    }));
    publish(slab);
    Ok(slab)
}

fn map(bytes: usize) -> Result<NonNull<u8>, StackError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    // SAFETY: a new anonymous mapping touches no memory that exists.
    let base = unsafe {
        libc::mmap(
            null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    let base = match NonNull::new(base.cast::<u8>()) {
        Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => base,
        _ => return Err(StackError::Map(io::Error::last_os_error())),
    };
    // A huge page would make the first touch of a stack cost 2 MiB. Advice only: a kernel without
    // huge pages refuses it.
    // SAFETY: the whole range is the mapping just made.
    unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
    Ok(base)
}

fn publish(slab: &'static Slab) {
    let this = std::ptr::from_ref(slab).cast_mut();
    let mut newest = NEWEST.load(Ordering::Relaxed);
    loop {
        slab.older.store(newest, Ordering::Relaxed);
        // Release: pairs with the Acquire in `Slab::all`.
        match NEWEST.compare_exchange_weak(newest, this, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(changed) => newest = changed,
        }
    }
}

/// Since Linux 6.13; not in every version of the C library's headers.
const MADV_GUARD_INSTALL: libc::c_int = 102;

fn install_guard(bottom: NonNull<u8>) -> Result<(), StackError> {
    /// The kernel does not know guards.
    static OLD_KERNEL: AtomicBool = AtomicBool::new(false);
    let page = page();
    if !OLD_KERNEL.load(Ordering::Relaxed) {
        // SAFETY: the page is the lowest of a stack that no coroutine uses yet.
        let made = unsafe { libc::madvise(bottom.as_ptr().cast(), page, MADV_GUARD_INSTALL) };
        if made == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINVAL) {
            return Err(StackError::Guard(error));
        }
        OLD_KERNEL.store(true, Ordering::Relaxed);
    }
    // SAFETY: as above.
    match unsafe { libc::mprotect(bottom.as_ptr().cast(), page, libc::PROT_NONE) } {
        0 => Ok(()),
        _ => Err(StackError::Guard(io::Error::last_os_error())),
    }
}

/// Gives the memory of an unused stack back to the system; the guard stays.
pub(super) fn release_memory(piece: &Piece) {
    // SAFETY: the range is the usable part of a stack that its owner has given up.
    unsafe {
        let usable = piece.bottom.add(page());
        libc::madvise(
            usable.as_ptr().cast(),
            piece.class.size(),
            libc::MADV_DONTNEED,
        );
    }
}

/// The size of a page.
pub(super) fn page() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    *PAGE.get_or_init(|| {
        // SAFETY: no memory is involved.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
    })
}

/// True if `address` lies in the guard page of one of our stacks. Async-signal-safe.
pub(super) fn is_guard(address: usize) -> bool {
    Slab::all().any(|slab| {
        let offset = address.wrapping_sub(slab.base.addr().get());
        offset < slab.stride() * slab.slots.len() && offset % slab.stride() < page()
    })
}

/// A stack that is in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackUse {
    /// The id of the task whose stack it is.
    pub(crate) task: u64,
    /// Where that was spawned.
    pub(crate) location: &'static Location<'static>,
    /// Usable bytes of the stack.
    pub(crate) size: usize,
    /// How many of them were ever touched, in whole pages, since the stack's memory was new.
    pub(crate) peak: usize,
}

impl StackUse {
    /// The task as dumps show it.
    pub(crate) fn id(&self) -> String {
        TaskId::from_number(self.task).map_or_else(String::new, |id| id.to_string())
    }
}

/// Returns how many stacks are in use.
pub(crate) fn count_stacks_in_use() -> usize {
    let slots = Slab::all().flat_map(|slab| slab.slots.iter());
    slots
        .filter(|slot| slot.task.load(Ordering::Relaxed) != 0)
        .count()
}

/// Returns the next stack that is in use from this position on, and moves the position behind it.
pub(crate) fn next_stack_in_use(position: &mut usize) -> Option<StackUse> {
    let mut first = 0;
    for slab in Slab::all() {
        let end = first + slab.slots.len();
        while (first..end).contains(position) {
            let index = *position - first;
            *position += 1;
            let slot = &slab.slots[index];
            let task = slot.task.load(Ordering::Relaxed);
            // SAFETY: only references to statics are stored, or null.
            let location = unsafe { slot.location.load(Ordering::Relaxed).as_ref() };
            if let Some(location) = location.filter(|_| task != 0) {
                return Some(StackUse {
                    task,
                    location,
                    size: slab.class.size(),
                    peak: peak(slab.stack(index), slab.class),
                });
            }
        }
        first = end;
    }
    None
}

/// How far down the pages of a stack are there.
fn peak(bottom: NonNull<u8>, class: SizeClass) -> usize {
    let page = page();
    let mut there = vec![0u8; class.size() / page];
    // SAFETY: the range is mapped for ever, and the vector has a byte for each of its pages.
    let looked = unsafe {
        libc::mincore(
            bottom.add(page).as_ptr().cast(),
            class.size(),
            there.as_mut_ptr(),
        )
    };
    if looked != 0 {
        return 0;
    }
    let lowest = there.iter().position(|page| page & 1 == 1);
    lowest.map_or(0, |lowest| (there.len() - lowest) * page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_from_16_kib_to_a_gibibyte() {
        let class = |size| SizeClass::for_size(size).map(SizeClass::size).ok();
        assert_eq!(class(0), Some(16 << 10));
        assert_eq!(class(16 << 10), Some(16 << 10));
        assert_eq!(class((16 << 10) + 1), Some(32 << 10));
        assert_eq!(class(60_000), Some(64 << 10));
        assert_eq!(class(1 << 30), Some(1 << 30));
        assert_eq!(class((1 << 30) + 1), None);
        assert_eq!(class(usize::MAX), None);
    }

    #[test]
    fn the_page_below_a_stack_is_its_guard() {
        let class = SizeClass::for_size(64 << 10).expect("a size");
        let (one, two) = (cut(class).expect("memory"), cut(class).expect("memory"));
        for piece in [&one, &two] {
            let bottom = piece.bottom.addr().get();
            assert!(is_guard(bottom) && is_guard(bottom + page() - 1));
            assert!(!is_guard(bottom + page()));
            assert!(!is_guard(bottom + page() + class.size() - 1));
        }
        assert!(!is_guard(0) && !is_guard(usize::MAX));
    }
}
