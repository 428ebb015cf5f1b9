//! The same for every item: slices and ranges.
//!
//! They are split in two ways. First into a row of pieces, some per worker, each of them a job of
//! its own: a worker that takes part takes one piece, not half of everything, and comes back to its
//! tasks after it. Then each piece by halves, down to the grain, for those that take longer than
//! others.

use std::ops::Range;

use windlass_core::sched::{fork, pool};

use crate::fork_join::injected_call;
use crate::fork_join::join::{join, join_long};
use crate::fork_join::output_slice::{Capacity, OutputSlice};

/// Pieces per worker in the row: a worker that takes part is back after this part of its share.
const PIECES_PER_WORKER: usize = 8;
/// Pieces in the row, at most: each is a frame on the stack of the one who began.
const PIECES: usize = 256;
/// Parts into which a piece may be split: enough to even out that some take longer.
const PARTS_PER_PIECE: usize = 8;

/// What can be split and gone through in parallel: `&[T]`, `&mut [T]` and `Range<usize>`. A vector
/// is given as `&vector[..]` or `&mut vector[..]`.
pub trait Parallel: Send + Sized + private::Sealed {
    /// What the closure gets.
    type Item;

    /// Returns the number of items.
    #[doc(hidden)]
    fn count(&self) -> usize;

    /// The first `at` items, and the others.
    #[doc(hidden)]
    fn split(self, at: usize) -> (Self, Self);

    /// Calls `f` with each, in order.
    #[doc(hidden)]
    fn each(self, f: impl FnMut(Self::Item));
}

mod private {
    pub trait Sealed {}
}

macro_rules! parallel {
    ([$($generics:tt)*] $type:ty, $item:ty, $items:ident, $at:ident, $split:expr) => {
        impl<$($generics)*> private::Sealed for $type {}

        impl<$($generics)*> Parallel for $type {
            type Item = $item;

            fn count(&self) -> usize {
                self.len()
            }

            fn split(self, $at: usize) -> (Self, Self) {
                let $items = self;
                $split
            }

            fn each(self, f: impl FnMut(Self::Item)) {
                self.into_iter().for_each(f);
            }
        }
    };
}

parallel!(['a, T: Sync] &'a [T], &'a T, items, at, items.split_at(at));
parallel!(['a, T: Send] &'a mut [T], &'a mut T, items, at, items.split_at_mut(at));
parallel!([] Range<usize>, usize, items, at, {
    let middle = items.start + at;
    (items.start..middle, middle..items.end)
});

/// Calls `f` with every item, in parallel. Within a piece the order is that of the items.
///
/// ```
/// use windlass_runtime::fork_join::par_for_each;
///
/// let mut numbers = vec![1, 2, 3, 4];
/// par_for_each(&mut numbers[..], |number| *number *= 10);
/// assert_eq!(numbers, [10, 20, 30, 40]);
///
/// let text = ["one", "two", "three"];
/// par_for_each(&text[..], |word: &&str| assert!(word.len() >= 3));
/// par_for_each(0..text.len(), |index| assert!(!text[index].is_empty()));
/// ```
/// # Panics
/// With the panic of the first piece that panicked; all have ended by then. The rest of that piece
/// is left out.
pub fn par_for_each<P, F>(items: P, f: F)
where
    P: Parallel,
    F: Fn(P::Item) + Sync,
{
    Grain::default().par_for_each(items, f);
}

/// Calls `f` with every item, in parallel, and returns the results in the order of the items.
///
/// ```
/// use windlass_runtime::fork_join::par_map;
///
/// let words = ["fork", "and", "join"];
/// assert_eq!(par_map(&words[..], |word| word.len()), [4, 3, 4]);
/// assert_eq!(par_map(0..4, |index| index * index), [0, 1, 4, 9]);
/// ```
/// # Panics
/// As [`par_for_each`]; the results there are by then are dropped.
pub fn par_map<P, R, F>(items: P, f: F) -> Vec<R>
where
    P: Parallel,
    R: Send,
    F: Fn(P::Item) -> R + Sync,
{
    Grain::default().par_map(items, f)
}

/// As the functions of this module, with pieces of at least so many items: for items so short that
/// the default, some pieces per worker however few items there are, would be too small.
///
/// ```
/// use windlass_runtime::fork_join::with_grain;
///
/// let squares = with_grain(1_000).par_map(0..10_000, |number| number * number);
/// assert_eq!(squares[99], 9_801);
/// ```
pub fn with_grain(least: usize) -> Grain {
    Grain {
        least: least.max(1),
    }
}

/// How small pieces may be. Made by [`with_grain`].
#[derive(Debug, Clone, Copy)]
pub struct Grain {
    least: usize,
}

impl Default for Grain {
    fn default() -> Self {
        Grain { least: 1 }
    }
}

impl Grain {
    /// Does what [`par_for_each`] does, with this grain.
    pub fn par_for_each<P, F>(self, items: P, f: F)
    where
        P: Parallel,
        F: Fn(P::Item) + Sync,
    {
        let work = |items: P| items.each(&f);
        on_worker(|| self.split(items, &work, &|(), ()| ())).unwrap_or(());
    }

    /// Does what [`par_map`] does, with this grain.
    pub fn par_map<P, R, F>(self, items: P, f: F) -> Vec<R>
    where
        P: Parallel,
        R: Send,
        F: Fn(P::Item) -> R + Sync,
    {
        let count = items.count();
        let mut results = Vec::with_capacity(count);
        let both = Both {
            items,
            capacity: Capacity::of(&mut results),
        };
        let fill = |both: Both<P, R>| {
            let mut made = OutputSlice::none(both.capacity);
            both.items.each(|item| made.push(f(item)));
            made
        };
        let made = on_worker(|| self.split(both, &fill, &OutputSlice::append));
        if let Some(made) = made {
            made.give_to(&mut results);
        }
        results
    }

    /// `work` for each part, and `merge` for two that are neighbours. None: there is nothing.
    fn split<H, R>(
        self,
        items: H,
        work: &(impl Fn(H) -> R + Sync),
        merge: &(impl Fn(R, R) -> R + Sync),
    ) -> Option<R>
    where
        H: Halves,
        R: Send,
    {
        let size = items.size();
        if size == 0 {
            return None;
        }
        let workers = fork::here(|here| here.map_or(1, |here| here.workers()));
        let most = (workers * PIECES_PER_WORKER).min(PIECES);
        let pieces = (size / self.least).clamp(1, most);
        let part = self.least.max(size / pieces / PARTS_PER_PIECE);
        Some(row(items, pieces, part, work, merge))
    }
}

/// Runs `f` where its forks are taken by others: here if this is a worker.
fn on_worker<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    if pool::on_worker() {
        return f();
    }
    match injected_call::destination() {
        Some(runtime) => injected_call::on_pool(&runtime, f),
        None => f(),
    }
}

/// What can be halved.
trait Halves: Send + Sized {
    fn size(&self) -> usize;
    fn halves(self, at: usize) -> (Self, Self);
}

impl<P: Parallel> Halves for P {
    fn size(&self) -> usize {
        self.count()
    }

    fn halves(self, at: usize) -> (Self, Self) {
        self.split(at)
    }
}

/// Items, and capacity for as many results.
struct Both<P, R> {
    items: P,
    capacity: Capacity<R>,
}

impl<P: Parallel, R: Send> Halves for Both<P, R> {
    fn size(&self) -> usize {
        self.items.count()
    }

    fn halves(self, at: usize) -> (Self, Self) {
        let (items, capacity) = (self.items.split(at), self.capacity.split(at));
        let both = |items, capacity| Both { items, capacity };
        (both(items.0, capacity.0), both(items.1, capacity.1))
    }
}

/// So many pieces: the first here, and each of the others a job.
fn row<H, R>(
    items: H,
    pieces: usize,
    part: usize,
    work: &(impl Fn(H) -> R + Sync),
    merge: &(impl Fn(R, R) -> R + Sync),
) -> R
where
    H: Halves,
    R: Send,
{
    if pieces == 1 {
        return piece(items, part, work, merge);
    }
    let size = items.size();
    let (rest, last) = items.halves(size - size / pieces);
    let (rest, last) = join_long(
        || row(rest, pieces - 1, part, work, merge),
        || piece(last, part, work, merge),
    );
    merge(rest, last)
}

/// One piece, by halves.
fn piece<H, R>(
    items: H,
    part: usize,
    work: &(impl Fn(H) -> R + Sync),
    merge: &(impl Fn(R, R) -> R + Sync),
) -> R
where
    H: Halves,
    R: Send,
{
    let size = items.size();
    if size < 2 || size < 2 * part {
        return work(items);
    }
    let (left, right) = items.halves(size / 2);
    let (left, right) = join(
        || piece(left, part, work, merge),
        || piece(right, part, work, merge),
    );
    merge(left, right)
}
