//! Task blocks: ordinary allocations, with a cache in front.
//!
//! malloc is half of a spawn when hot and most of it when another thread frees the block. So each
//! thread keeps two magazines of free blocks per size class, and full magazines travel through a
//! depot: one lock per 64 blocks. What exceeds the depot's bound goes back to malloc, and so does
//! everything a thread has when it ends.
//!
//! Size classes are a cache line apart. All but the first are whole cache lines: recycled blocks of
//! neighbouring tasks end up on different workers, and two tasks that share a line then cost twice
//! as much to resume (28 -> 15 ns a yield). The first, for tasks that hold next to nothing, stays
//! unaligned: its 56 bytes and malloc's own word are the size of a line, and aligned it would take
//! two. Larger or over-aligned bodies go to malloc directly. The cache is off
//! under the model checkers, Miri, and with `--cfg windlass_plain_alloc` (for sanitizers).

use std::alloc::{Layout, handle_alloc_error};
use std::ptr::NonNull;

/// Takes a block.
#[inline]
pub(crate) fn alloc(layout: Layout) -> NonNull<u8> {
    imp::alloc(layout)
}

/// Gives a block back.
///
/// # Safety
/// `block` came from `alloc` with the same layout and is not used any more.
#[inline]
pub(crate) unsafe fn free(block: NonNull<u8>, layout: Layout) {
    // SAFETY: passed on.
    unsafe { imp::free(block, layout) }
}

/// The state of the block cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BlockCache {
    /// Bytes in the shared depot.
    pub depot_bytes: usize,
}

/// Returns the state of the block cache.
pub fn block_cache() -> BlockCache {
    imp::stats()
}

fn system_alloc(layout: Layout) -> NonNull<u8> {
    // SAFETY: a task's layout is never empty: it holds a header.
    let block = unsafe { std::alloc::alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}

#[cfg(any(windlass_loom, windlass_shuttle, windlass_plain_alloc, miri))]
mod imp {
    use super::*;

    pub(super) fn alloc(layout: Layout) -> NonNull<u8> {
        system_alloc(layout)
    }

    pub(super) unsafe fn free(block: NonNull<u8>, layout: Layout) {
        // SAFETY: passed on.
        unsafe { std::alloc::dealloc(block.as_ptr(), layout) }
    }

    pub(super) fn stats() -> BlockCache {
        BlockCache::default()
    }
}

#[cfg(not(any(windlass_loom, windlass_shuttle, windlass_plain_alloc, miri)))]
mod imp {
    use super::*;
    use crate::sync::{Mutex, Padded, UnsafeCell};
    use crate::tuning::{DEPOT_MAGAZINES, MAGAZINE};

    const FIRST: usize = 56;
    const CLASSES: usize = 9;
    const ALIGN: usize = 16;
    const LINE: usize = 64;

    /// The class that a layout falls into, and the layout all blocks of the class have. The last 8
    /// bytes of a block are not used, so that the class is a subtraction and a shift.
    #[inline(always)]
    fn class_of(layout: Layout) -> Option<usize> {
        if layout.align() > ALIGN {
            return None;
        }
        let class = layout.size().saturating_sub(FIRST).div_ceil(LINE);
        (class < CLASSES).then_some(class)
    }

    fn layout_of(class: usize) -> Layout {
        let size = FIRST + class * LINE;
        let (size, align) = match class {
            0 => (size, ALIGN),
            _ => (size.next_multiple_of(LINE), LINE),
        };
        Layout::from_size_align(size, align).expect("class sizes are small")
    }

    /// Free blocks, linked through their first word.
    struct Magazine {
        head: *mut u8,
        count: usize,
    }

    // SAFETY: free blocks belong to the holder of the magazine.
    unsafe impl Send for Magazine {}

    impl Magazine {
        const EMPTY: Magazine = Magazine {
            head: std::ptr::null_mut(),
            count: 0,
        };

        #[inline(always)]
        fn pop(&mut self) -> Option<NonNull<u8>> {
            let block = NonNull::new(self.head)?;
            // SAFETY: a free block of ours; `push` wrote the link into its first word.
            self.head = unsafe { block.cast::<*mut u8>().read() };
            self.count -= 1;
            Some(block)
        }

        #[inline(always)]
        fn push(&mut self, block: NonNull<u8>) {
            // SAFETY: the block is free and ours, aligned to 16 and larger than a word.
            unsafe { block.cast::<*mut u8>().write(self.head) };
            self.head = block.as_ptr();
            self.count += 1;
        }

        fn give_back(&mut self, class: usize) {
            while let Some(block) = self.pop() {
                // SAFETY: every block of a class was allocated with the class's layout.
                unsafe { std::alloc::dealloc(block.as_ptr(), layout_of(class)) };
            }
        }
    }

    struct Pair {
        loaded: Magazine,
        spare: Magazine,
    }

    struct ThreadCache([Pair; CLASSES]);

    static DEPOT: [Padded<Mutex<Vec<Magazine>>>; CLASSES] =
        [const { Padded(Mutex::new(Vec::new())) }; CLASSES];

    std::thread_local! {
        static CACHE: UnsafeCell<ThreadCache> = const {
            UnsafeCell::new(ThreadCache(
                [const { Pair { loaded: Magazine::EMPTY, spare: Magazine::EMPTY } }; CLASSES],
            ))
        };
    }

    #[inline]
    pub(super) fn alloc(layout: Layout) -> NonNull<u8> {
        let Some(class) = class_of(layout) else {
            return system_alloc(layout);
        };
        CACHE
            .try_with(|cache| {
                // SAFETY: the cell is this thread's, and nothing below runs user code or comes
                // back here.
                cache.with_mut(|cache| unsafe { (*cache).0[class].take(class) })
            })
            .unwrap_or_else(|_| system_alloc(layout_of(class)))
    }

    #[inline]
    pub(super) unsafe fn free(block: NonNull<u8>, layout: Layout) {
        let Some(class) = class_of(layout) else {
            // SAFETY: such blocks came from `system_alloc` with this layout.
            return unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
        };
        let cached = CACHE.try_with(|cache| {
            // SAFETY: as in `alloc`.
            cache.with_mut(|cache| unsafe { (*cache).0[class].put(class, block) });
        });
        if cached.is_err() {
            // SAFETY: every block of a class was allocated with the class's layout.
            unsafe { std::alloc::dealloc(block.as_ptr(), layout_of(class)) };
        }
    }

    pub(super) fn stats() -> BlockCache {
        let bytes = |(class, depot): (usize, &Padded<Mutex<Vec<Magazine>>>)| {
            depot.lock().len() * MAGAZINE * layout_of(class).size()
        };
        BlockCache {
            depot_bytes: DEPOT.iter().enumerate().map(bytes).sum(),
        }
    }

    impl Pair {
        #[inline(always)]
        fn take(&mut self, class: usize) -> NonNull<u8> {
            match self.loaded.pop() {
                Some(block) => block,
                None => self.refill(class),
            }
        }

        #[cold]
        fn refill(&mut self, class: usize) -> NonNull<u8> {
            std::mem::swap(&mut self.loaded, &mut self.spare);
            if self.loaded.count == 0
                && let Some(full) = DEPOT[class].lock().pop()
            {
                self.loaded = full;
            }
            self.loaded
                .pop()
                .unwrap_or_else(|| system_alloc(layout_of(class)))
        }

        #[inline(always)]
        fn put(&mut self, class: usize, block: NonNull<u8>) {
            if self.loaded.count == MAGAZINE {
                self.exchange(class);
            }
            self.loaded.push(block);
        }

        #[cold]
        fn exchange(&mut self, class: usize) {
            std::mem::swap(&mut self.loaded, &mut self.spare);
            if self.loaded.count < MAGAZINE {
                return;
            }
            let full = std::mem::replace(&mut self.loaded, Magazine::EMPTY);
            store(class, full);
        }
    }

    fn store(class: usize, mut magazine: Magazine) {
        let mut depot = DEPOT[class].lock();
        if depot.len() < DEPOT_MAGAZINES {
            depot.push(magazine);
        } else {
            drop(depot);
            magazine.give_back(class);
        }
    }

    impl Drop for ThreadCache {
        fn drop(&mut self) {
            for (class, pair) in self.0.iter_mut().enumerate() {
                for magazine in [&mut pair.loaded, &mut pair.spare] {
                    if magazine.count == MAGAZINE {
                        store(class, std::mem::replace(magazine, Magazine::EMPTY));
                    } else {
                        magazine.give_back(class);
                    }
                }
            }
        }
    }
}

#[cfg(all(
    test,
    not(any(windlass_loom, windlass_shuttle, windlass_plain_alloc, miri))
))]
mod tests {
    use super::*;

    #[test]
    fn a_freed_block_is_the_next_one_given_out() {
        let layout = Layout::from_size_align(100, 8).expect("valid");
        let first = alloc(layout);
        // SAFETY: just allocated with this layout.
        unsafe { free(first, layout) };
        let second = alloc(layout);
        assert_eq!(first, second);
        // SAFETY: as above.
        unsafe { free(second, layout) };
    }

    #[test]
    fn blocks_freed_by_another_thread_come_back_through_the_depot() {
        let layout = Layout::from_size_align(500, 8).expect("valid");
        let blocks: Vec<usize> = (0..1000).map(|_| alloc(layout).as_ptr() as usize).collect();
        let there = blocks.clone();
        let freer = crate::sync::thread::spawn("freer".into(), 0, move || {
            for block in there {
                let block = NonNull::new(block as *mut u8).expect("not null");
                // SAFETY: allocated above with this layout and handed over.
                unsafe { free(block, layout) };
            }
        });
        freer.expect("thread").join().expect("no panic");
        let again = alloc(layout);
        assert!(blocks.contains(&(again.as_ptr() as usize)));
        // SAFETY: as above.
        unsafe { free(again, layout) };
    }
}
