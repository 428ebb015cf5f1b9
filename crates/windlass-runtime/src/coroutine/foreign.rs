//! Sections that nothing unwinds out of.

use super::frame;

/// Runs `f` so that no cancellation unwinds out of it: for C code that calls back, through whose
/// frames nothing may unwind.
///
/// Waits inside suspend the coroutine as usual. A cancellation takes effect at the first suspension
/// point after the section. If the section outlives the time that a shutdown has, the coroutine is
/// leaked with its stack, and named in the report.
///
/// ```
/// use windlass_runtime::{Runtime, coroutine, task};
///
/// extern "C" fn compare(a: *const std::ffi::c_void, b: *const std::ffi::c_void) -> i32 {
///     coroutine::yield_now();
///     // SAFETY: `qsort` passes pointers into the array it was given.
///     let (a, b) = unsafe { (*a.cast::<i32>(), *b.cast::<i32>()) };
///     a.cmp(&b) as i32
/// }
///
/// unsafe extern "C" {
///     fn qsort(
///         base: *mut std::ffi::c_void,
///         count: usize,
///         size: usize,
///         compare: extern "C" fn(*const std::ffi::c_void, *const std::ffi::c_void) -> i32,
///     );
/// }
///
/// let runtime = Runtime::new()?;
/// let _entered = runtime.enter();
/// let sorted = coroutine::spawn(|| {
///     let mut numbers = [3, 1, 2];
///     // SAFETY: three elements of four bytes.
///     coroutine::foreign(|| unsafe { qsort(numbers.as_mut_ptr().cast(), 3, 4, compare) });
///     numbers
/// });
/// assert_eq!(coroutine::wait(sorted)?, [1, 2, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn foreign<T>(f: impl FnOnce() -> T) -> T {
    match frame::running() {
        Some(frame) => frame.in_foreign_code(f),
        None => f(),
    }
}
