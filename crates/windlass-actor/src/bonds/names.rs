//! The names and groups of a process.

use std::sync::Arc;

use super::Ties;
use crate::shell::Shell;

impl Shell {
    /// Notes a name or group, unless the process is on its way out.
    pub(crate) fn note_name(&self, name: &Arc<str>) -> bool {
        self.note(|ties| ties.names.push(name.clone()))
    }

    pub(crate) fn note_group(&self, group: &Arc<str>) -> bool {
        self.note(|ties| ties.groups.push(group.clone()))
    }

    fn note(&self, note: impl FnOnce(&mut Ties)) -> bool {
        let noted = self.with_ties(|ties| {
            let stays = !self.is_leaving();
            if stays {
                note(ties);
            }
            stays
        });
        noted == Some(true)
    }

    pub(crate) fn forget_name(&self, name: &str) {
        self.with_ties(|ties| ties.names.retain(|there| **there != *name));
    }

    pub(crate) fn forget_group(&self, group: &str) {
        self.with_ties(|ties| ties.groups.retain(|there| **there != *group));
    }

    pub(crate) fn names(&self) -> Vec<Arc<str>> {
        let mut bonds = self.bonds.lock();
        bonds
            .ties_if_any()
            .map_or(Vec::new(), |ties| ties.names.clone())
    }

    pub(crate) fn names_and_groups(&self) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let mut bonds = self.bonds.lock();
        let take = |ties: &mut Ties| {
            let (names, groups) = (&mut ties.names, &mut ties.groups);
            (std::mem::take(names), std::mem::take(groups))
        };
        bonds.ties_if_any().map(take).unwrap_or_default()
    }
}
