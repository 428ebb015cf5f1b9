//! What AddressSanitizer has to know about stacks that are switched (`cargo xtask san`).
//!
//! It keeps an idea of which stack a thread is on, for frames that it moves to the heap and for
//! code that unwinds. Every switch is announced on the side that leaves and confirmed on the side
//! that arrives. In every other build all of this is nothing.

#[cfg(windlass_asan)]
pub(super) use annotated::{Side, unpoison};
#[cfg(not(windlass_asan))]
pub(super) use plain::{Side, unpoison};

#[cfg(windlass_asan)]
mod annotated {
    use std::cell::Cell;
    use std::ffi::c_void;
    use std::ptr::null;

    use super::super::frame::Bounds;

    unsafe extern "C" {
        fn __sanitizer_start_switch_fiber(
            save: *mut *mut c_void,
            bottom: *const c_void,
            size: usize,
        );
        fn __sanitizer_finish_switch_fiber(
            saved: *mut c_void,
            old_bottom: *mut *const c_void,
            old_size: *mut usize,
        );
        fn __asan_unpoison_memory_region(address: *const c_void, size: usize);
    }

    /// A stack is used again: marks that frames have left on it mean nothing any more.
    pub(in super::super) fn unpoison(bounds: Bounds) {
        // SAFETY: only marks are changed, and no frame is on the stack.
        unsafe { __asan_unpoison_memory_region(bounds.lowest.cast(), size(bounds)) };
    }

    fn size(bounds: Bounds) -> usize {
        bounds.top - bounds.lowest.addr()
    }

    /// One side of a switch.
    #[derive(Debug)]
    pub(in super::super) struct Side {
        /// What the sanitizer keeps for the stack while it is left.
        saved: Cell<*mut c_void>,
        /// Where the switch came from: the bottom and the size of that stack.
        other: Cell<(*const c_void, usize)>,
    }

    impl Default for Side {
        fn default() -> Side {
            Side {
                saved: Cell::new(std::ptr::null_mut()),
                other: Cell::new((null(), 0)),
            }
        }
    }

    impl Side {
        /// This side is about to be left for the stack with these bounds.
        pub(in super::super) fn leave_for(&self, bounds: Bounds) {
            // SAFETY: the switch follows at once.
            unsafe {
                __sanitizer_start_switch_fiber(
                    self.saved.as_ptr(),
                    bounds.lowest.cast_const().cast(),
                    size(bounds),
                );
            }
        }

        /// This side is about to be left for the stack that it was entered from; `for_good`:
        /// nothing comes back to it.
        pub(in super::super) fn leave(&self, for_good: bool) {
            let (bottom, size) = self.other.get();
            let save = match for_good {
                true => std::ptr::null_mut(),
                false => self.saved.as_ptr(),
            };
            // SAFETY: the switch follows at once.
            unsafe { __sanitizer_start_switch_fiber(save, bottom, size) };
        }

        /// This side has been entered.
        pub(in super::super) fn arrive(&self) {
            let (mut bottom, mut size) = (null(), 0);
            // SAFETY: what was saved when this side was left; null the first time.
            unsafe {
                __sanitizer_finish_switch_fiber(self.saved.get(), &raw mut bottom, &raw mut size);
            }
            self.other.set((bottom, size));
        }
    }
}

#[cfg(not(windlass_asan))]
mod plain {
    use super::super::frame::Bounds;

    #[inline(always)]
    pub(in super::super) fn unpoison(_bounds: Bounds) {}

    /// One side of a switch.
    #[derive(Debug, Default)]
    pub(in super::super) struct Side(());

    impl Side {
        #[inline(always)]
        pub(in super::super) fn leave_for(&self, _bounds: Bounds) {}
        #[inline(always)]
        pub(in super::super) fn leave(&self, _for_good: bool) {}
        #[inline(always)]
        pub(in super::super) fn arrive(&self) {}
    }
}
