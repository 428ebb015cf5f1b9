//! The table of processes: from the number of a PID to its process.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use windlass_core::sync::{Mutex, Padded};
use windlass_value::Pid;

use crate::shell::Resident;

/// The number of shards: enough that two workers seldom want the same one.
const SHARDS: usize = 16;

/// The processes of a host, in shards that are locked one by one.
pub(super) struct Residents {
    shards: Vec<Padded<Mutex<Shard>>>,
}

/// A set by number, so that the number is not stored a second time: there can be very many.
type Shard = HashSet<ByNumber, BuildHasherDefault<NumberHasher>>;

impl Residents {
    pub(super) fn new() -> Residents {
        let shards = std::iter::repeat_with(Padded::default).take(SHARDS);
        Residents {
            shards: shards.collect(),
        }
    }

    fn shard(&self, pid: Pid) -> &Mutex<Shard> {
        &self.shards[pid.number() as usize % SHARDS]
    }

    pub(super) fn insert(&self, process: Arc<dyn Resident>) {
        let pid = process.shell().pid;
        self.shard(pid).lock().insert(ByNumber(process));
    }

    pub(super) fn remove(&self, pid: Pid) {
        let process = self.shard(pid).lock().take(pid.number_ref());
        // Not under the lock: this may be the last reference.
        drop(process);
    }

    /// Returns the process with the number of this PID, which has to be one of this host.
    pub(super) fn get(&self, pid: Pid) -> Option<Arc<dyn Resident>> {
        let shard = self.shard(pid).lock();
        shard.get(pid.number_ref()).map(|found| found.0.clone())
    }

    /// Returns all processes, the oldest first.
    pub(super) fn all(&self) -> Vec<Arc<dyn Resident>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.lock().iter().map(|found| found.0.clone()));
        }
        all.sort_unstable_by_key(|process| process.shell().pid);
        all
    }

    /// Returns the processes of each shard from the shard `first` on, with the number of the shard.
    /// The lock of a shard is held only while its processes are copied.
    pub(super) fn shards_from(
        &self,
        first: u64,
    ) -> impl Iterator<Item = (u64, Vec<Arc<dyn Resident>>)> {
        let shards = self.shards.iter().zip(0_u64..).skip(first as usize);
        shards.map(|(shard, number)| {
            let residents = shard.lock().iter().map(|found| found.0.clone()).collect();
            (number, residents)
        })
    }
}

/// A process that is found by the number of its PID.
struct ByNumber(Arc<dyn Resident>);

impl Borrow<u64> for ByNumber {
    fn borrow(&self) -> &u64 {
        self.0.shell().pid.number_ref()
    }
}

impl Hash for ByNumber {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Borrow::<u64>::borrow(self).hash(state);
    }
}

impl PartialEq for ByNumber {
    fn eq(&self, other: &ByNumber) -> bool {
        self.0.shell().pid == other.0.shell().pid
    }
}

impl Eq for ByNumber {}

/// Hashes with one multiplication, which is enough for numbers that were counted; and the order of
/// a table does not depend on chance.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
