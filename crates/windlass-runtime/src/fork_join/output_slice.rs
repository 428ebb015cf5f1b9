//! Capacity for the results of a parallel map, and the results that are there already.
//!
//! Rules, which the `unsafe` blocks cite:
//!
//! 1. **A room is exclusive.** It is made from a vector that nobody touches meanwhile, and split into parts
//!    that do not overlap. All pointers come from the vector's, so that neighbours can be one again.
//! 2. **What is made is owned.** The first `count` places of a [`OutputSlice`] are written, and it drops them,
//!    unless the vector takes them over.

/// A part of a vector's spare capacity.
pub(super) struct Capacity<R> {
    start: *mut R,
    size: usize,
}

/// Results at the start of a room.
pub(super) struct OutputSlice<R> {
    room: Capacity<R>,
    count: usize,
}

// SAFETY: rule 1: exclusive access to places for `R`, like a `&mut [R]`.
unsafe impl<R: Send> Send for Capacity<R> {}

impl<R> Capacity<R> {
    /// All the capacity of an empty vector, which must be left alone until the results are given to it.
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
        // SAFETY: rule 1: within the room, or one past its end.
        let middle = unsafe { self.start.add(at) };
        let (left, right) = (at, self.size - at);
        let part = |start, size| Capacity { start, size };
        (part(self.start, left), part(middle, right))
    }
}

impl<R> OutputSlice<R> {
    /// An empty room.
    pub(super) fn none(room: Capacity<R>) -> OutputSlice<R> {
        OutputSlice { room, count: 0 }
    }

    /// Adds a result.
    pub(super) fn push(&mut self, result: R) {
        assert!(self.count < self.room.size);
        // SAFETY: rule 1: within the room, and not written yet.
        unsafe { self.room.start.add(self.count).write(result) };
        self.count += 1;
    }

    /// The results of two rooms that were one.
    pub(super) fn append(mut self, other: OutputSlice<R>) -> OutputSlice<R> {
        let end = self.room.start.wrapping_add(self.room.size);
        assert!(
            self.count == self.room.size && end == other.room.start,
            "neighbours, and the first is full"
        );
        self.room.size += other.room.size;
        self.count += other.count;
        // Rule 2: they are ours now.
        std::mem::forget(other);
        self
    }

    /// The vector that the room was made of takes over.
    pub(super) fn give_to(self, vector: &mut Vec<R>) {
        assert!(vector.is_empty() && vector.as_mut_ptr() == self.room.start);
        let count = self.count;
        std::mem::forget(self);
        // SAFETY: rule 2: so many are written from its start on, and nobody else drops them.
        unsafe { vector.set_len(count) };
    }
}

impl<R> Drop for OutputSlice<R> {
    fn drop(&mut self) {
        let made = std::ptr::slice_from_raw_parts_mut(self.room.start, self.count);
        // SAFETY: rule 2.
        unsafe { std::ptr::drop_in_place(made) };
    }
}
