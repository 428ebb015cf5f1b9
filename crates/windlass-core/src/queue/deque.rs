//! A worker's fork-join jobs: its owner works at the bottom, thieves take from the top.
//!
//! ```text
//!    top                      bottom     (free-running, taken modulo the buffer's size)
//!     |--- oldest ... newest ---|
//!   thieves take here      the owner pushes and pops here
//! ```
//! The deque of Chase and Lev, in the form that Lê, Pop, Cohen and Zappa Nardelli proved for weak
//! memory (PPoPP 2013). *Push* writes the slot at `bottom`, then advances `bottom`. *Pop* first
//! takes `bottom` back, then looks at `top`: if more than one job was there, the newest is the
//! owner's without an exchange; the last one it takes by advancing `top`, as a thief does. *Steal*
//! reads `top`, then `bottom`, then the slot, and advances `top` by an exchange. Thieves take one
//! job at a time: taking half in one exchange would take what the owner pops without one.
//!
//! **The thread that advances `top` from `t` has the job that was pushed at `t`, and no other
//! thread has it.** The slot is read before the exchange, and may be stale then; the exchange
//! decides whether what was read counts. So the two words of a job are two atomics, and a torn read
//! is no undefined behaviour, only thrown away. An index at `top` is not used again before `top`
//! moves on, because the owner takes the last job by moving it.
//!
//! Orderings. The fences in `pop` (**D1**, between its store of `bottom` and its load of `top`) and
//! in `steal_if` (**D2**, between its loads of `top` and `bottom`) are in one order. D1 first: the
//! thief sees that `bottom` was taken back. D2 first: the owner sees the `top` that the thief saw,
//! and takes the job by an exchange. In both cases one of them gets it. `bottom`: the Release
//! stores in `push` and `pop` pair with the Acquire load in `steal_if`: the thief sees the slot,
//! the job behind it, and everything else the owner did before. (In the paper the store in `pop` is
//! relaxed; since C++20 such a store no longer carries on what `push` released.) `top`: the Release
//! of the exchange in `steal_if` pairs with the Acquire load in `push`: the thief has read the slot
//! before the owner writes it again. (No model fails without these two: in loom a load never sees a
//! store that comes later.)
//!
//! A buffer that is full is copied into one of twice the size. Thieves may still read the old one,
//! and what is in it at `top` stays right, so it is kept until the deque is dropped: all old ones
//! together are smaller than the current one.

use crate::sync::Padded;
use crate::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use crate::tuning::FORK_CAPACITY;

const _: () = assert!(FORK_CAPACITY.is_power_of_two());

/// A job that is run once, by the worker that takes it: a data pointer and a function.
#[derive(Debug, Clone, Copy)]
pub struct JobRef {
    data: *const (),
    run: RunJob,
}

// SAFETY: a job is made to be run on another thread; the code that forks one answers for what is in
// it (`Here::fork`).
unsafe impl Send for JobRef {}

/// What runs a job: a function of its data and of its taker.
pub type RunJob = unsafe fn(*const (), Taker);

/// Which worker took a job out of its deque.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    /// The worker that pushed it took it back.
    Owner,
    /// Another worker took it.
    Thief,
}

impl JobRef {
    /// Makes a job. The caller keeps `data` alive until the job has run.
    pub fn new(data: *const (), run: RunJob) -> JobRef {
        JobRef { data, run }
    }

    /// What it was made with: tells one job from another.
    pub fn data(&self) -> *const () {
        self.data
    }

    /// Runs it.
    ///
    /// # Safety
    /// Once, by the worker that took it out of a deque in this way, on a worker of the pool.
    pub unsafe fn run(self, taken: Taker) {
        // SAFETY: says the caller; `data` is what `run` was made for.
        unsafe { (self.run)(self.data, taken) }
    }
}

/// The deque of one worker.
#[derive(Debug)]
pub struct Deque {
    top: Padded<AtomicU64>,
    owned: Padded<Owned>,
}

/// What only the owner writes.
#[derive(Debug)]
struct Owned {
    bottom: AtomicU64,
    buffer: AtomicPtr<Buffer>,
}

#[derive(Debug)]
struct Buffer {
    mask: u64,
    slots: Box<[Slot]>,
    /// The one before; null for the first.
    older: *mut Buffer,
}

#[derive(Debug)]
struct Slot {
    data: AtomicPtr<()>,
    run: AtomicPtr<()>,
}

// SAFETY: jobs are made to be taken by other threads; buffers are shared through atomics, written
// by the owner alone and freed in `drop` alone.
unsafe impl Send for Deque {}
// SAFETY: as above.
unsafe impl Sync for Deque {}

impl Buffer {
    fn allocate(capacity: usize, older: *mut Buffer) -> *mut Buffer {
        let slots = (0..capacity).map(|_| Slot {
            data: AtomicPtr::new(std::ptr::null_mut()),
            run: AtomicPtr::new(std::ptr::null_mut()),
        });
        Box::into_raw(Box::new(Buffer {
            mask: capacity as u64 - 1,
            slots: slots.collect(),
            older,
        }))
    }

    #[inline]
    fn slot(&self, index: u64) -> &Slot {
        &self.slots[(index & self.mask) as usize]
    }

    #[inline]
    fn write(&self, index: u64, job: JobRef) {
        let slot = self.slot(index);
        // Relaxed: the store of `bottom` in `push` publishes them.
        slot.data.store(job.data.cast_mut(), Ordering::Relaxed);
        slot.run.store(job.run as *mut (), Ordering::Relaxed);
    }

    /// The two words at `index`, which may be of different jobs if others write meanwhile.
    #[inline]
    fn read(&self, index: u64) -> (*mut (), *mut ()) {
        let slot = self.slot(index);
        // Relaxed: the load of `bottom` came before, and the exchange of `top` decides.
        let data = slot.data.load(Ordering::Relaxed);
        (data, slot.run.load(Ordering::Relaxed))
    }
}

/// # Safety
/// The words are those of one job: they were read at an index that the reader has taken.
#[inline]
unsafe fn job((data, run): (*mut (), *mut ())) -> JobRef {
    // SAFETY: `write` stored a function of this type there, says the caller.
    let run = unsafe { std::mem::transmute::<*mut (), RunJob>(run) };
    JobRef { data, run }
}

impl Default for Deque {
    fn default() -> Self {
        Self::new()
    }
}

impl Deque {
    /// An empty deque.
    pub fn new() -> Deque {
        Deque {
            top: Padded(AtomicU64::new(0)),
            owned: Padded(Owned {
                bottom: AtomicU64::new(0),
                buffer: AtomicPtr::new(Buffer::allocate(FORK_CAPACITY, std::ptr::null_mut())),
            }),
        }
    }

    /// Returns the number of jobs; it may be outdated at once. For the owner: not more than that.
    #[inline(always)]
    pub fn len(&self) -> usize {
        let bottom = self.owned.bottom.load(Ordering::Relaxed);
        length(self.top.load(Ordering::Relaxed), bottom).max(0) as usize
    }

    /// Returns true if there is no job; it may be outdated at once. For the owner: true stays true.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Owner: where the next job goes. What is pushed from now on is above this mark.
    #[inline]
    pub fn mark(&self) -> u64 {
        self.owned.bottom.load(Ordering::Relaxed)
    }

    /// Owner: adds the newest.
    #[inline]
    pub fn push(&self, job: JobRef) {
        let bottom = self.mark();
        // Acquire: pairs with the Release exchange of a thief, who has read the slot that is
        // written now.
        let top = self.top.load(Ordering::Acquire);
        let buffer = self.buffer();
        let buffer = if length(top, bottom) > buffer.mask as i64 {
            self.grow(top, bottom)
        } else {
            buffer
        };
        buffer.write(bottom, job);
        // Release: pairs with the Acquire load in `steal_if`.
        self.owned
            .bottom
            .store(bottom.wrapping_add(1), Ordering::Release);
    }

    /// Owner: takes the newest.
    #[inline]
    pub fn pop(&self) -> Option<JobRef> {
        if self.is_empty() {
            return None;
        }
        let bottom = self.mark().wrapping_sub(1);
        // Release: pairs with the Acquire load in `steal_if`, as in `push`: a thief that sees this
        // value takes what was pushed below it.
        self.owned.bottom.store(bottom, Ordering::Release);
        // D1: pairs with D2 in `steal_if`.
        fence(Ordering::SeqCst);
        let top = self.top.load(Ordering::Relaxed);
        let left = length(top, bottom);
        if left > 0 {
            // SAFETY: more than one was there: no thief gets to this one before it sees `bottom`.
            return Some(unsafe { job(self.buffer().read(bottom)) });
        }
        // Relaxed: what the owner pushed it has seen, and it reads nothing of a thief's.
        let won = left == 0
            && self
                .top
                .compare_exchange(
                    top,
                    top.wrapping_add(1),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok();
        // Relaxed: nothing is below it that a thief could still take.
        self.owned
            .bottom
            .store(bottom.wrapping_add(1), Ordering::Relaxed);
        // SAFETY: the exchange made the job at `top`, which is `bottom`, ours.
        won.then(|| unsafe { job(self.buffer().read(bottom)) })
    }

    /// Thief: takes the oldest. Returns none also if another thief was faster.
    pub fn steal(&self) -> Option<JobRef> {
        self.steal_if(|| true)
    }

    /// Thief: takes the oldest if `still` holds *after* the job was seen.
    ///
    /// What the owner did before it pushed the job that is taken, `still` can see: a thief that may
    /// only take what was pushed before some moment asks there whether that moment has come.
    pub fn steal_if(&self, still: impl FnOnce() -> bool) -> Option<JobRef> {
        let top = self.top.load(Ordering::Relaxed);
        // D2: pairs with D1 in `pop`.
        fence(Ordering::SeqCst);
        // Acquire: pairs with the Release store in `push`.
        let bottom = self.owned.bottom.load(Ordering::Acquire);
        if length(top, bottom) <= 0 {
            return None;
        }
        // Acquire: pairs with the Release store in `grow`.
        let buffer = self.owned.buffer.load(Ordering::Acquire);
        // SAFETY: buffers live as long as the deque.
        let words = unsafe { &*buffer }.read(top);
        if !still() {
            return None;
        }
        // Release: pairs with the Acquire load in `push`.
        self.top
            .compare_exchange(
                top,
                top.wrapping_add(1),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .ok()?;
        // SAFETY: the exchange made the job at `top` ours, and so what was read there was that job.
        Some(unsafe { job(words) })
    }

    /// Owner: the buffer that is written to.
    #[inline]
    fn buffer(&self) -> &Buffer {
        // SAFETY: buffers live as long as the deque. Relaxed: only the owner stores it.
        unsafe { &*self.owned.buffer.load(Ordering::Relaxed) }
    }

    /// Owner: doubles the buffer.
    #[cold]
    fn grow(&self, top: u64, bottom: u64) -> &Buffer {
        let old = self.buffer();
        let new = Buffer::allocate(old.slots.len() * 2, std::ptr::from_ref(old).cast_mut());
        // SAFETY: just made, and no other code has it.
        let larger = unsafe { &*new };
        for index in (0..length(top, bottom) as u64).map(|offset| top.wrapping_add(offset)) {
            let (data, run) = old.read(index);
            let slot = larger.slot(index);
            slot.data.store(data, Ordering::Relaxed);
            slot.run.store(run, Ordering::Relaxed);
        }
        // Release: pairs with the Acquire load in `steal_if`.
        self.owned.buffer.store(new, Ordering::Release);
        larger
    }
}

/// Jobs between the two; negative while the owner takes the last one.
#[inline(always)]
fn length(top: u64, bottom: u64) -> i64 {
    bottom.wrapping_sub(top) as i64
}

impl Drop for Deque {
    fn drop(&mut self) {
        let mut buffer = self.owned.buffer.load(Ordering::Relaxed);
        while !buffer.is_null() {
            // SAFETY: no other thread is left, and each buffer is in the chain once.
            let owned = unsafe { Box::from_raw(buffer) };
            buffer = owned.older;
        }
    }
}
