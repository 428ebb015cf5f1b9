//! Who a task is: id, name, spawn location.

use std::fmt;
use std::num::NonZeroU64;
use std::panic::Location;
use std::ptr::NonNull;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{World, with_world};
use crate::task::{Class, Options};

/// A task's name.
pub type Name = std::sync::Arc<str>;

/// Tells a task from every other that is alive at the same time.
///
/// A task with a name or a class has a number that is never used twice. For all others it is the
/// address of the task's block, which costs neither a counter nor space, and which a later task
/// may have again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(NonZeroU64);

/// By the name under which users know the type.
impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Id").field(&self.0).finish()
    }
}

impl TaskId {
    /// The `count`-th task of a maker: a worker's index plus one, or one of the `u16`'s last
    /// values.
    pub(crate) fn numbered(maker: u16, count: u64) -> TaskId {
        let id = ((maker as u64) << 48) | (count & ((1 << 48) - 1));
        TaskId(NonZeroU64::new(id).unwrap_or(NonZeroU64::MIN))
    }

    pub(crate) fn of_block(address: usize) -> TaskId {
        TaskId(NonZeroU64::new(address as u64).unwrap_or(NonZeroU64::MIN))
    }

    /// The id whose number this is; see [`get`](TaskId::get).
    pub fn from_number(number: u64) -> Option<TaskId> {
        NonZeroU64::new(number).map(TaskId)
    }

    /// The number, for traces.
    pub fn get(self) -> u64 {
        self.0.get()
    }
}

impl std::fmt::Display for TaskId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.get() >> 48 {
            0 => write!(f, "@{:x}", self.get()),
            maker => write!(f, "{maker}.{}", self.get() & ((1 << 48) - 1)),
        }
    }
}

/// Name and location in one word: most tasks have no name, and then the word is the location.
#[derive(Debug)]
pub struct Meta(NonNull<()>);

/// What a task with a name or a class other than normal carries on the side.
#[derive(Debug)]
#[repr(align(8))]
struct Extra {
    id: TaskId,
    location: &'static Location<'static>,
    name: Option<Name>,
    /// The node of a simulated world that it was spawned on.
    node: usize,
    /// When the task entered its class queue, on the coarse clock.
    queued_at: AtomicU64,
}

const TAG: usize = 1;
const _: () = assert!(align_of::<Location<'static>>() >= 2);

// SAFETY: the word is either a reference to a static or a box of Send + Sync parts that only
// `drop` takes back.
unsafe impl Send for Meta {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Meta {}

impl Meta {
    /// Says who a task is. The task gets an id of its own if it has a name or a class, or if its
    /// options or its executor (`numbered`) want one.
    #[inline(always)]
    pub(crate) fn new(options: Options, numbered: bool, id: impl FnOnce() -> TaskId) -> Meta {
        let Options {
            name,
            class,
            location,
            numbered: asked,
        } = options;
        match name {
            None if class == Class::Normal && !asked && !numbered => {
                Meta(NonNull::from(location).cast())
            }
            name => Meta::with_extra(id(), location, name),
        }
    }

    #[inline(never)]
    fn with_extra(id: TaskId, location: &'static Location<'static>, name: Option<Name>) -> Meta {
        let extra = Box::new(Extra {
            id,
            location,
            name,
            node: with_world(|world| world.map_or(0, World::node)),
            queued_at: AtomicU64::new(0),
        });
        let tagged = NonNull::from(Box::leak(extra)).map_addr(|a| a | TAG);
        Meta(tagged.cast())
    }

    fn extra(&self) -> Option<&Extra> {
        let addr = self.0.addr().get();
        if addr & TAG == 0 {
            return None;
        }
        let untagged = self.0.as_ptr().map_addr(|a| a & !TAG).cast::<Extra>();
        // SAFETY: a tagged word is a leaked box that lives as long as `self`.
        Some(unsafe { &*untagged })
    }

    /// The location of a task that has nothing else, without a branch on what else there is.
    #[inline(always)]
    pub(crate) fn plain_location(&self) -> Option<*const Location<'static>> {
        let plain = self.0.addr().get() & TAG == 0;
        plain.then_some(self.0.as_ptr().cast_const().cast())
    }

    pub(crate) fn id(&self) -> Option<TaskId> {
        Some(self.extra()?.id)
    }

    /// Where the task was spawned.
    pub fn location(&self) -> &'static Location<'static> {
        match self.extra() {
            Some(extra) => extra.location,
            // SAFETY: an untagged word was made from a `&'static Location` in `new`.
            None => unsafe { &*self.0.as_ptr().cast() },
        }
    }

    /// The task's name.
    pub fn name(&self) -> Option<&Name> {
        self.extra()?.name.as_ref()
    }

    /// The node of a simulated world that the task was spawned on.
    pub(crate) fn node(&self) -> usize {
        self.extra().map_or(0, |extra| extra.node)
    }

    pub(crate) fn set_queued_at(&self, now: u64) {
        if let Some(extra) = self.extra() {
            extra.queued_at.store(now, Ordering::Relaxed);
        }
    }

    pub(crate) fn queued_at(&self) -> u64 {
        self.extra()
            .map_or(0, |extra| extra.queued_at.load(Ordering::Relaxed))
    }
}

impl Drop for Meta {
    fn drop(&mut self) {
        if self.0.addr().get() & TAG != 0 {
            let untagged = self.0.as_ptr().map_addr(|a| a & !TAG).cast::<Extra>();
            // SAFETY: a tagged word is a leaked box, and this is the only place that takes it back.
            drop(unsafe { Box::from_raw(untagged) });
        }
    }
}
