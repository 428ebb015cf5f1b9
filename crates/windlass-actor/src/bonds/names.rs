//! The names, groups and subscriptions of a process.

use std::sync::{Arc, Weak};

use windlass_core::task::contain;

use super::Ties;
use crate::pub_sub::Departure;
use crate::shell::Shell;

impl Shell {
    /// Notes a name or group, unless the process is on its way out.
    pub(crate) fn note_name(&self, name: &Arc<str>) -> bool {
        self.note(|ties| ties.names.push(name.clone()))
    }

    pub(crate) fn note_group(&self, group: &Arc<str>) -> bool {
        self.note(|ties| ties.groups.push(group.clone()))
    }

    /// Notes a subscription, unless the process is on its way out.
    pub(crate) fn note_subscription(&self, subscription: Weak<dyn Departure>) -> bool {
        self.note(|ties| {
            // Those of publishers that are gone make room.
            if ties.subscriptions.len().is_power_of_two() {
                ties.subscriptions.retain(|there| there.strong_count() > 0);
            }
            ties.subscriptions.push(subscription);
        })
    }

    pub(crate) fn forget_subscription(&self, subscription: &Weak<dyn Departure>) {
        self.with_ties(|ties| {
            ties.subscriptions
                .retain(|there| !Weak::ptr_eq(there, subscription));
        });
    }

    /// Ends all subscriptions: the process is on its way out.
    pub(crate) fn end_subscriptions(&self) {
        let mut bonds = self.bonds.lock();
        let ties = bonds.ties_if_any();
        let subscriptions = ties.map(|ties| std::mem::take(&mut ties.subscriptions));
        drop(bonds);
        for subscription in subscriptions.into_iter().flatten() {
            if let Some(subscription) = subscription.upgrade() {
                // A mapping function may own anything, and be dropped here.
                contain(|| subscription.depart(self.pid));
            }
        }
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
