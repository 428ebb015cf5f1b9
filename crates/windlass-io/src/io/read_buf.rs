//! A buffer that is read into and may have memory without a value.
//!
//! # The rules that `unsafe` blocks cite
//! 1. **Order.** `filled <= initialized <= memory.len()`, and the first `initialized` bytes of
//!    `memory` hold a value.
//! 2. **Values stay.** Code that is given the memory as `MaybeUninit` never writes an uninitialised
//!    byte into it. `u8` and `MaybeUninit<u8>` have one layout, so memory with values can then be
//!    seen as either.
//! 3. **Same memory.** A reader may replace the `ReadBuf` that it was lent by another one. Whoever
//!    counts the filled bytes as its own compares the address of the memory first, and its length:
//!    memory without a byte may end where another allocation begins.
//!
//! The functions below that are private to this crate keep these rules for their callers, so that
//! vectors, `bytes::BufMut` and parts of a buffer are filled without `unsafe` elsewhere.
#![allow(unsafe_code, reason = "memory without a value; see the rules above")]

use std::fmt;
use std::mem::MaybeUninit;

use bytes::BufMut;
use bytes::buf::UninitSlice;

/// A byte buffer that is filled from the front, and of which a further part may be initialised.
///
/// The memory has three parts: bytes that were read (*filled*), bytes that hold some value, and
/// bytes that hold none. A reader appends to the filled part, which never shrinks the initialised
/// one, so a buffer that is used again is not set to zero again.
///
/// ```
/// use windlass_io::io::ReadBuf;
///
/// let mut memory = [0; 8];
/// let mut buffer = ReadBuf::new(&mut memory);
/// buffer.put_slice(b"abc");
/// assert_eq!(buffer.filled(), b"abc");
/// assert_eq!((buffer.remaining(), buffer.capacity()), (5, 8));
/// ```
pub struct ReadBuf<'a> {
    memory: &'a mut [MaybeUninit<u8>],
    filled: usize,
    initialized: usize,
}

impl<'a> ReadBuf<'a> {
    /// Makes an empty buffer over memory that holds values throughout.
    #[inline]
    pub fn new(buf: &'a mut [u8]) -> ReadBuf<'a> {
        let initialized = buf.len();
        let memory = std::ptr::from_mut(buf) as *mut [MaybeUninit<u8>];
        ReadBuf {
            // SAFETY: rule 2: one layout, and this type lets nobody take the values away.
            memory: unsafe { &mut *memory },
            filled: 0,
            initialized,
        }
    }

    /// Makes an empty buffer over memory that need not hold values.
    #[inline]
    pub fn uninit(buf: &'a mut [MaybeUninit<u8>]) -> ReadBuf<'a> {
        ReadBuf {
            memory: buf,
            filled: 0,
            initialized: 0,
        }
    }

    /// Returns the length of the whole memory.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }

    /// Returns the bytes that were filled.
    #[inline]
    pub fn filled(&self) -> &[u8] {
        // SAFETY: rule 1: what is filled is initialised.
        unsafe { self.memory[..self.filled].assume_init_ref() }
    }

    /// Returns the bytes that were filled, to be changed.
    #[inline]
    pub fn filled_mut(&mut self) -> &mut [u8] {
        // SAFETY: rule 1: what is filled is initialised.
        unsafe { self.memory[..self.filled].assume_init_mut() }
    }

    /// Borrows the first `n` bytes that are not filled (or all, if they are fewer) as a buffer.
    ///
    /// The new buffer counts its memory as uninitialised. What is filled there is not filled here:
    /// follow it with [`assume_init`](ReadBuf::assume_init) and [`advance`](ReadBuf::advance).
    #[inline]
    pub fn take(&mut self, n: usize) -> ReadBuf<'_> {
        let most = self.remaining().min(n);
        ReadBuf::uninit(&mut self.memory[self.filled..][..most])
    }

    /// Returns the bytes that hold a value, filled or not.
    #[inline]
    pub fn initialized(&self) -> &[u8] {
        // SAFETY: rule 1.
        unsafe { self.memory[..self.initialized].assume_init_ref() }
    }

    /// Returns the bytes that hold a value, filled or not, to be changed.
    #[inline]
    pub fn initialized_mut(&mut self) -> &mut [u8] {
        // SAFETY: rule 1.
        unsafe { self.memory[..self.initialized].assume_init_mut() }
    }

    /// Returns the whole memory, whatever it holds.
    ///
    /// # Safety
    /// The caller must not write uninitialised bytes into the part that is initialised.
    #[inline]
    pub unsafe fn inner_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        self.memory
    }

    /// Returns the memory that is not filled, whatever it holds.
    ///
    /// # Safety
    /// The caller must not write uninitialised bytes into the part that is initialised.
    #[inline]
    pub unsafe fn unfilled_mut(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.memory[self.filled..]
    }

    /// Returns all memory that is not filled; what held no value is set to zero first.
    #[inline]
    pub fn initialize_unfilled(&mut self) -> &mut [u8] {
        self.initialize_unfilled_to(self.remaining())
    }

    /// Returns the next `n` bytes that are not filled; what held no value is set to zero first.
    ///
    /// # Panics
    /// If fewer than `n` bytes remain.
    #[inline]
    #[track_caller]
    pub fn initialize_unfilled_to(&mut self, n: usize) -> &mut [u8] {
        assert!(n <= self.remaining(), "n overflows remaining");
        let end = self.filled + n;
        if let Some(fresh) = self.memory.get_mut(self.initialized..end) {
            fresh.iter_mut().for_each(|byte| _ = byte.write(0));
            self.initialized = end;
        }
        // SAFETY: rule 1: everything before `end` was initialised before or just now.
        unsafe { self.memory[self.filled..end].assume_init_mut() }
    }

    /// Returns how many bytes can still be filled.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.memory.len() - self.filled
    }

    /// Counts nothing as filled any more; what is initialised stays so.
    #[inline]
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Counts the next `n` bytes as filled.
    ///
    /// # Panics
    /// If they were not initialised.
    #[inline]
    #[track_caller]
    pub fn advance(&mut self, n: usize) {
        self.set_filled(self.filled.checked_add(n).expect("filled overflow"));
    }

    /// Counts the first `n` bytes as filled, and no others.
    ///
    /// # Panics
    /// If they were not initialised.
    #[inline]
    #[track_caller]
    pub fn set_filled(&mut self, n: usize) {
        assert!(
            n <= self.initialized,
            "filled must not become larger than initialized"
        );
        self.filled = n;
    }

    /// Counts the next `n` bytes that are not filled as initialised.
    ///
    /// # Safety
    /// The caller has written a value to each of them.
    #[inline]
    pub unsafe fn assume_init(&mut self, n: usize) {
        self.initialized = self.initialized.max(self.filled + n);
    }

    /// Appends `buf` to what is filled.
    ///
    /// # Panics
    /// If fewer than `buf.len()` bytes remain.
    #[inline]
    #[track_caller]
    pub fn put_slice(&mut self, buf: &[u8]) {
        assert!(
            buf.len() <= self.remaining(),
            "buf.len() must fit in remaining(); buf.len() = {}, remaining() = {}",
            buf.len(),
            self.remaining()
        );
        let end = self.filled + buf.len();
        self.memory[self.filled..end].write_copy_of_slice(buf);
        self.initialized = self.initialized.max(end);
        self.filled = end;
    }

    /// Lends the next bytes, at most `n`, to `fill`, and counts what that filled as filled here.
    /// Gives their number with the answer of `fill`.
    pub(crate) fn fill_part<T>(
        &mut self,
        n: usize,
        fill: impl FnOnce(&mut ReadBuf<'_>) -> T,
    ) -> (usize, T) {
        let mut part = self.take(n);
        let memory: *const [MaybeUninit<u8>] = part.memory;
        let answer = fill(&mut part);
        let count = part.filled_of(memory);
        // SAFETY: rule 3 was checked, and by rule 1 of the part `count` bytes hold a value.
        unsafe { self.assume_init(count) };
        self.advance(count);
        (count, answer)
    }

    /// Returns how much is filled, of a buffer that was lent as one over `memory` (rule 3).
    fn filled_of(&self, memory: *const [MaybeUninit<u8>]) -> usize {
        assert!(
            std::ptr::eq(self.memory, memory),
            "a reader must fill the buffer it was given, and not replace it by another"
        );
        self.filled
    }
}

/// Lends the next chunk of `target` to `fill`, and advances it by what that filled. Gives the
/// number of bytes with the answer of `fill`.
pub(crate) fn fill_chunk<B: BufMut + ?Sized, T>(
    target: &mut B,
    fill: impl FnOnce(&mut ReadBuf<'_>) -> T,
) -> (usize, T) {
    // SAFETY: rule 2: `ReadBuf` takes no values away.
    let chunk = unsafe { target.chunk_mut().as_uninit_slice_mut() };
    let memory: *const [MaybeUninit<u8>] = chunk;
    let mut buffer = ReadBuf::uninit(chunk);
    let answer = fill(&mut buffer);
    let count = buffer.filled_of(memory);
    // SAFETY: rule 3 was checked, and by rule 1 the first `count` bytes of the chunk hold a value.
    unsafe { target.advance_mut(count) };
    (count, answer)
}

/// Lends the free capacity of `vec` to `fill`, and lengthens the vector by what that filled. Gives
/// the number of bytes with the answer of `fill`.
///
/// `initialized` is how many bytes of the free capacity hold a value from an earlier call; it is
/// brought up to date. A caller that lets the vector move to other memory sets it to 0.
///
/// # Safety
/// `initialized` is 0, or as an earlier call left it, and the vector was not changed since.
unsafe fn fill_spare<T>(
    vec: &mut Vec<u8>,
    initialized: &mut usize,
    fill: impl FnOnce(&mut ReadBuf<'_>) -> T,
) -> (usize, T) {
    let length = vec.len();
    let mut buffer = ReadBuf::uninit(vec.spare_capacity_mut());
    let memory: *const [MaybeUninit<u8>] = buffer.memory;
    // SAFETY: the caller's promise.
    unsafe { buffer.assume_init(*initialized) };
    let answer = fill(&mut buffer);
    let count = buffer.filled_of(memory);
    *initialized = buffer.initialized - count;
    // SAFETY: rule 3 was checked, and by rule 1 the next `count` bytes hold a value.
    unsafe { vec.set_len(length + count) };
    (count, answer)
}

/// A vector that grows while it is read into, and remembers which of its free capacity was set to
/// zero: a reader that needs values there pays for each byte once.
#[derive(Debug)]
pub(crate) struct GrowingVec<V> {
    vec: V,
    /// Bytes after the end of the vector that hold a value. Nothing else changes the vector while
    /// this type has it.
    initialized: usize,
    /// The capacity that the caller had chosen.
    first_capacity: usize,
}

/// The least room that a read is offered.
const LEAST_ROOM: usize = 32;

impl<V: std::borrow::BorrowMut<Vec<u8>>> GrowingVec<V> {
    pub(crate) fn new(vec: V) -> GrowingVec<V> {
        let first_capacity = vec.borrow().capacity();
        GrowingVec {
            vec,
            initialized: 0,
            first_capacity,
        }
    }

    /// Appends what `fill` fills; gives the number of bytes with the answer of `fill`.
    pub(crate) fn fill<T>(&mut self, fill: impl FnOnce(&mut ReadBuf<'_>) -> T) -> (usize, T) {
        let vec = self.vec.borrow_mut();
        if vec.capacity() - vec.len() < LEAST_ROOM {
            if vec.capacity() == self.first_capacity && self.first_capacity >= LEAST_ROOM {
                // The caller may have chosen exactly what comes: look for the end before the vector
                // doubles.
                let mut probe = [0; LEAST_ROOM];
                let mut probe = ReadBuf::new(&mut probe);
                let answer = fill(&mut probe);
                vec.extend_from_slice(probe.filled());
                self.initialized = 0;
                return (probe.filled().len(), answer);
            }
            vec.reserve(LEAST_ROOM);
            self.initialized = 0;
        }
        // SAFETY: only this function changes the vector, and both places that let it move set
        // `initialized` to 0.
        unsafe { fill_spare(vec, &mut self.initialized, fill) }
    }
}

impl GrowingVec<Vec<u8>> {
    /// Takes the vector out; an empty one is left.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.initialized = 0;
        std::mem::take(&mut self.vec)
    }
}

// SAFETY: `chunk_mut` is the memory that is not filled, and `advance_mut` moves its beginning by as
// much as it is told.
unsafe impl BufMut for ReadBuf<'_> {
    fn remaining_mut(&self) -> usize {
        self.remaining()
    }

    unsafe fn advance_mut(&mut self, cnt: usize) {
        // SAFETY: the caller of `advance_mut` has written `cnt` bytes.
        unsafe { self.assume_init(cnt) };
        self.advance(cnt);
    }

    fn chunk_mut(&mut self) -> &mut UninitSlice {
        let unfilled = &mut self.memory[self.filled..];
        let (memory, length) = (unfilled.as_mut_ptr().cast(), unfilled.len());
        // SAFETY: both are of one slice; and rule 2: `UninitSlice` lets only values be written.
        unsafe { UninitSlice::from_raw_parts_mut(memory, length) }
    }
}

impl fmt::Debug for ReadBuf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadBuf")
            .field("filled", &self.filled)
            .field("initialized", &self.initialized)
            .field("capacity", &self.capacity())
            .finish()
    }
}
