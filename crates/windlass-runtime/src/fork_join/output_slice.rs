//! Capacity for the results of a parallel map, and the results that are there already.
//!
//! Rules, which the `unsafe` blocks cite:
//!
//! 1. **A capacity is exclusive.** It is made from a vector that no code touches meanwhile, and
//!    split into parts that do not overlap. All pointers come from the vector's, so that neighbours
//!    can be one again.
//! 2. **What is made is owned.** The first `count` places of an [`OutputSlice`] are written, and it
//!    drops them, unless the vector takes them over.

/// A part of a vector's spare capacity.
pub(super) struct Capacity<R> {
    start: *mut R,
    size: usize,
}

/// The results at the start of a capacity.
pub(super) struct OutputSlice<R> {
    capacity: Capacity<R>,
    count: usize,
}

// SAFETY: rule 1: exclusive access to places for `R`, like a `&mut [R]`.
unsafe impl<R: Send> Send for Capacity<R> {}

impl<R> Capacity<R> {
    /// All the capacity of an empty vector, which must be left alone until the results are given to
    /// it.
    pub(super) fn of(vector: &mut Vec<R>) -> Capacity<R> {
        assert!(vector.is_empty());
        Capacity {
            start: vector.as_mut_ptr(),
            size: vector.capacity(),
        }
    }

    /// The first `at` places, and the others.
    pub(super) fn split(self, at: usize) -> (Capacity<R>, Capacity<R>) {
        assert!(at <= self.size);
        // SAFETY: rule 1: within the capacity, or one past its end.
        let middle = unsafe { self.start.add(at) };
        let (left, right) = (at, self.size - at);
        let part = |start, size| Capacity { start, size };
        (part(self.start, left), part(middle, right))
    }
}

impl<R> OutputSlice<R> {
    /// An empty capacity.
    pub(super) fn none(capacity: Capacity<R>) -> OutputSlice<R> {
        OutputSlice { capacity, count: 0 }
    }

    /// Adds a result.
    pub(super) fn push(&mut self, result: R) {
        assert!(self.count < self.capacity.size);
        // SAFETY: rule 1: within the capacity, and not written yet.
        unsafe { self.capacity.start.add(self.count).write(result) };
        self.count += 1;
    }

    /// The results of two rooms that were one.
    pub(super) fn append(mut self, other: OutputSlice<R>) -> OutputSlice<R> {
        let end = self.capacity.start.wrapping_add(self.capacity.size);
        assert!(
            self.count == self.capacity.size && end == other.capacity.start,
            "neighbours, and the first is full"
        );
        self.capacity.size += other.capacity.size;
        self.count += other.count;
        // Rule 2: they are ours now.
        std::mem::forget(other);
        self
    }

    /// The vector that the capacity was made of takes over.
    pub(super) fn give_to(self, vector: &mut Vec<R>) {
        assert!(vector.is_empty() && vector.as_mut_ptr() == self.capacity.start);
        let count = self.count;
        std::mem::forget(self);
        // SAFETY: rule 2: so many are written from its start on, and no other code drops them.
        unsafe { vector.set_len(count) };
    }
}

impl<R> Drop for OutputSlice<R> {
    fn drop(&mut self) {
        let made = std::ptr::slice_from_raw_parts_mut(self.capacity.start, self.count);
        // SAFETY: rule 2.
        unsafe { std::ptr::drop_in_place(made) };
    }
}
