//! The processes of a host, as entities.

use windlass_core::sync::atomic::Ordering;
use windlass_runtime::observe::{Cursor, Entity, Observe, Page, Sample};

use super::HostShared;
use super::info::info;
use crate::shell::Resident;

impl Observe for HostShared {
    fn source(&self) -> &'static str {
        "processes"
    }

    fn label(&self) -> Option<String> {
        Some(format!("host {}", self.name()))
    }

    fn samples(&self, take: &mut dyn FnMut(Sample)) {
        let live = self.population.live();
        take(Sample::gauge("live", live));
        let spawned = self.population.spawned();
        take(Sample::counter("spawned", spawned));
        let unread = self.unread_at_exit.load(Ordering::Relaxed);
        take(Sample::counter("unread_at_exit", unread));
        take(Sample::gauge("names", self.names.len()));
    }

    /// A position is a shard of the table and the number of a PID in it.
    fn entities(&self, page: &mut Page<'_>) -> Option<Cursor> {
        let after = page.after();
        for (part, mut residents) in self.residents.shards_from(after.part) {
            let first = if part == after.part {
                after.position
            } else {
                0
            };
            // Without the lock of the shard: what is shown of a process may run code of its
            // mailbox.
            residents.retain(|resident| resident.shell().pid.number() >= first);
            residents.sort_unstable_by_key(|resident| resident.shell().pid.number());
            for resident in residents {
                if page.is_full() {
                    let position = resident.shell().pid.number();
                    return Some(Cursor { part, position });
                }
                page.take(entity(&*resident));
            }
        }
        None
    }
}

fn entity(resident: &dyn Resident) -> Entity {
    let info = info(resident);
    let meta = resident.shell().task().map(|task| task.header().meta());
    let names: Vec<&str> = info.names.iter().map(|name| &**name).collect();
    let name = match names.is_empty() {
        false => Some(names.join(", ")),
        true => meta.and_then(|meta| meta.name().map(|name| name.to_string())),
    };
    let state = format!("{:?}", info.state).to_lowercase();
    let mut entity = Entity::new("process", info.pid.to_string(), state)
        .named(name)
        .spawned_at(meta.map(|meta| meta.location()));
    if let Some(unread) = info.unread {
        entity = entity.count("unread", unread as u64);
    }
    match info.dropped {
        0 => entity,
        dropped => entity.count("dropped", dropped),
    }
}
