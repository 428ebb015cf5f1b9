//! Where idle tasks are found at shutdown.
//!
//! A task that is queued is found in its queue and a running one on its worker; only idle tasks
//! need a register. So a task enters it when it is about to be idle for the first time, and leaves
//! it just before COMPLETE: a task that ends in its first poll never comes here.
//!
//! Each worker has a shard, a growing table of slots. Only the worker fills slots (a plain store
//! into a free one); the thread that completes a task empties its slot. To look at a task from
//! outside, claim its slot: `ptr -> BUSY`, take a reference, put `ptr` back. The completer waits
//! out that moment, so the task cannot be freed in it.
//!
//! Rejected: an intrusive list per shard under a lock (two locks per task, 70 ns in a prototype),
//! and walking the allocator's slabs (blocks would have to belong to one runtime).

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;

use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::{Arc, Mutex, hint, thread};
use crate::task::header::{Header, TaskRef};

/// One place in the register: empty, a task, or BUSY while a thread takes a reference.
#[derive(Debug)]
pub(crate) struct Slot(AtomicPtr<Header>);

const FIRST_CHUNK: usize = if cfg!(any(windlass_loom, windlass_shuttle)) {
    2
} else {
    64
};
const LARGEST_CHUNK: usize = 1 << 16;

fn busy() -> *mut Header {
    std::ptr::without_provenance_mut(1)
}

/// The tables of one shard, for walking.
#[derive(Debug)]
pub struct Registry {
    chunks: Mutex<Vec<Arc<[Slot]>>>,
}

/// The owner's side of a shard.
#[derive(Debug)]
pub struct Shard {
    registry: Arc<Registry>,
    chunks: RefCell<Vec<Arc<[Slot]>>>,
    chunk: Cell<usize>,
    position: Cell<usize>,
    capacity: Cell<usize>,
    /// Free slots found since the last wrap-around.
    found: Cell<usize>,
}

impl Registry {
    /// An empty shard.
    pub fn new() -> Arc<Registry> {
        Arc::new(Registry {
            chunks: Mutex::new(Vec::new()),
        })
    }

    /// The owner's side; one per shard at a time. A later owner goes on with the same tables.
    pub fn owner(self: &Arc<Registry>) -> Shard {
        let chunks = self.chunks.lock().clone();
        Shard {
            registry: self.clone(),
            chunk: Cell::new(0),
            position: Cell::new(0),
            capacity: Cell::new(chunks.iter().map(|chunk| chunk.len()).sum()),
            found: Cell::new(0),
            chunks: RefCell::new(chunks),
        }
    }

    /// Calls `visit` with each task that is registered now, until it says false.
    pub fn walk(&self, visit: impl FnMut(TaskRef) -> bool) {
        self.walk_from(0, visit);
    }

    /// As [`walk`](Registry::walk), from a slot on. Returns the slot behind the one at which
    /// `visit` said false; none after the last.
    pub fn walk_from(&self, first: usize, mut visit: impl FnMut(TaskRef) -> bool) -> Option<usize> {
        let chunks = self.chunks.lock().clone();
        let mut end = 0;
        for chunk in chunks.iter() {
            let begin = end;
            end += chunk.len();
            for slot in first.clamp(begin, end)..end {
                if let Some(task) = chunk[slot - begin].look()
                    && !visit(task)
                {
                    return Some(slot + 1);
                }
            }
        }
        None
    }

    /// True if no task is registered.
    pub fn is_empty(&self) -> bool {
        let chunks = self.chunks.lock().clone();
        // Acquire: pairs with the Release exchange in `deregister`.
        chunks
            .iter()
            .flat_map(|chunk| chunk.iter())
            .all(|slot| slot.0.load(Ordering::Acquire).is_null())
    }

    /// Tasks registered now.
    pub fn len(&self) -> usize {
        let chunks = self.chunks.lock().clone();
        chunks
            .iter()
            .flat_map(|chunk| chunk.iter())
            .filter(|slot| !slot.0.load(Ordering::Relaxed).is_null())
            .count()
    }
}

impl Slot {
    /// Takes a reference to the task in this slot.
    fn look(&self) -> Option<TaskRef> {
        let there = self.0.load(Ordering::Relaxed);
        if there == busy() {
            // Another walker looks at the task, which is not lost to us for long.
            return self.wait_and_look();
        }
        let task = NonNull::new(there)?;
        // Acquire: pairs with the Release store in `register`, so that the header is seen whole.
        let claimed = self
            .0
            .compare_exchange(there, busy(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if !claimed {
            // Completed meanwhile, or claimed by another walker.
            return self.wait_and_look();
        }
        // SAFETY: rule 5: while we hold the slot its completer waits in `deregister`.
        let task_ref = unsafe { TaskRef::retain(task) };
        // Release: pairs with the Acquire exchange in `deregister`.
        self.0.store(there, Ordering::Release);
        Some(task_ref)
    }

    #[cold]
    fn wait_and_look(&self) -> Option<TaskRef> {
        while self.0.load(Ordering::Relaxed) == busy() {
            hint::spin_loop();
            thread::yield_now();
        }
        if self.0.load(Ordering::Relaxed).is_null() {
            None
        } else {
            self.look()
        }
    }
}

impl Shard {
    /// Enters a task. The caller owns its entry (rule 5).
    pub fn register(&self, header: &Header) {
        let chunks = self.chunks.borrow();
        while let Some(chunk) = chunks.get(self.chunk.get()) {
            for position in self.position.get()..chunk.len() {
                let slot = &chunk[position];
                // Relaxed: only we fill slots, and an empty one says nothing but that.
                if slot.0.load(Ordering::Relaxed).is_null() {
                    self.position.set(position + 1);
                    self.found.set(self.found.get() + 1);
                    return fill(slot, header);
                }
            }
            self.position.set(0);
            self.chunk.set(self.chunk.get() + 1);
        }
        drop(chunks);
        self.wrap_around();
        self.register(header);
    }

    /// After a full round: start over, or grow if less than a quarter of the slots were free.
    #[cold]
    fn wrap_around(&self) {
        let capacity = self.capacity.get();
        self.chunk.set(0);
        if self.found.replace(0) * 4 >= capacity.max(1) {
            return;
        }
        let size = (capacity / 2).clamp(FIRST_CHUNK, LARGEST_CHUNK);
        let chunk: Arc<[Slot]> = (0..size)
            .map(|_| Slot(AtomicPtr::new(std::ptr::null_mut())))
            .collect::<Vec<_>>()
            .into();
        let mut chunks = self.chunks.borrow_mut();
        self.registry.chunks.lock().push(chunk.clone());
        chunks.push(chunk);
        self.chunk.set(chunks.len() - 1);
        self.capacity.set(capacity + size);
        self.found.set(size);
    }

    /// The shared side.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }
}

fn fill(slot: &Slot, header: &Header) {
    header
        .slot
        .store(std::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
    // Release: pairs with the Acquire exchange in `Slot::look`.
    slot.0
        .store(std::ptr::from_ref(header).cast_mut(), Ordering::Release);
}

/// Removes a task from its shard. The caller owns its entry (rule 5).
pub(crate) fn deregister(header: &Header) {
    let this = std::ptr::from_ref(header).cast_mut();
    let slot = header.slot.load(Ordering::Relaxed);
    // SAFETY: rule 5: the slot is in a table of the task's shard, which its pool keeps until every
    // registered task is complete.
    let slot = unsafe { &*slot };
    // AcqRel: acquires what a walker did under its claim (pairs with the Release store in
    // `Slot::look`), releases the completion to `Registry::is_empty`.
    while slot
        .0
        .compare_exchange(
            this,
            std::ptr::null_mut(),
            Ordering::AcqRel,
            Ordering::Relaxed,
        )
        .is_err()
    {
        // A walker takes its reference at this very moment.
        hint::spin_loop();
        thread::yield_now();
    }
}
