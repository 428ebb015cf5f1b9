//! The guests of a VM, as entities.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use windlass_core::sync::Mutex;
use windlass_core::sync::Padded;
use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_runtime::observe::{Cursor, Entity, Observe, Page, Sample};

use crate::guest_shared::GuestShared;
use crate::vm::VmShared;

/// Guests start and end on every worker, so the table has several locks.
const SHARDS: u64 = 16;

type Shard = BTreeMap<u64, Weak<GuestShared>>;

/// The guests of a VM that have not ended, by their number in this table.
pub(crate) struct GuestTable {
    next: AtomicU64,
    shards: [Padded<Mutex<Shard>>; SHARDS as usize],
}

impl GuestTable {
    pub(crate) fn new() -> GuestTable {
        GuestTable {
            next: AtomicU64::new(0),
            shards: Default::default(),
        }
    }

    /// Returns the number of a guest that is about to be added.
    pub(crate) fn next_number(&self) -> u64 {
        // Relaxed: only that no two are the same counts.
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn add(&self, number: u64, guest: &Arc<GuestShared>) {
        let mut shard = self.shards[(number % SHARDS) as usize].lock();
        shard.insert(number, Arc::downgrade(guest));
    }

    pub(crate) fn remove(&self, number: u64) {
        self.shards[(number % SHARDS) as usize]
            .lock()
            .remove(&number);
    }
}

impl Observe for VmShared {
    fn source(&self) -> &'static str {
        "guests"
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        let snapshot = self.snapshot();
        take(Sample::gauge("in_step", snapshot.active_vm_tasks));
        take(Sample::gauge("ready_or_running", snapshot.ready_or_running));
        take(Sample::gauge("stuck", snapshot.stuck.len()));
        take(Sample::counter("steps", snapshot.steps));
        take(Sample::counter(
            "preemptions_requested",
            snapshot.preemptions_requested,
        ));
        take(Sample::counter(
            "preemptions_taken",
            snapshot.preemptions_taken,
        ));
        for (kind, parked) in snapshot.parked {
            take(Sample::gauge("parked", parked).label("reason", kind.name()));
        }
    }

    /// A position is a shard of the table and a number in it.
    fn entities(&self, page: &mut Page<'_>) -> Option<Cursor> {
        let after = page.after();
        for (shard, part) in self.guests.shards.iter().zip(0..).skip(after.part as usize) {
            let first = if part == after.part {
                after.position
            } else {
                0
            };
            let mut position = first;
            loop {
                // One at a time: without the lock while it is shown, and while it may be dropped.
                let next = {
                    let shard = shard.lock();
                    let next = shard.range(position..).next();
                    next.map(|(number, guest)| (*number, guest.upgrade()))
                };
                let Some((number, guest)) = next else {
                    break;
                };
                if page.is_full() {
                    let position = number;
                    return Some(Cursor { part, position });
                }
                position = number + 1;
                if let Some(entity) = guest.and_then(|guest| entity(&guest)) {
                    page.take(entity);
                }
            }
        }
        None
    }
}

/// Returns a guest as an entity; none before its process is made, and after its end.
fn entity(guest: &GuestShared) -> Option<Entity> {
    let context = guest.context().filter(|_| !guest.is_over())?;
    let waits: Vec<&str> = guest.waits_for().iter().map(|kind| kind.name()).collect();
    let state = if waits.is_empty() { "ready" } else { "parked" };
    let entity = Entity::new("guest", context.pid().to_string(), state)
        .named(guest.name().map(|name| name.to_string()))
        .child_of(guest.parent_pid().map(|pid| pid.to_string()))
        .waiting_for((!waits.is_empty()).then(|| waits.join(", ")))
        .count("cpu_ns", guest.cpu.load(Ordering::Relaxed));
    Some(entity)
}
