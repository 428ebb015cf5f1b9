//! What tasks do to each other, and what the process does to all of them.

use std::sync::Arc;

use windlass_vm::Budget;

use super::wait::{Wait, WaitKind};
use super::{LuaTask, TaskInput, TaskSet, cancelled};

impl TaskSet {
    pub(super) fn read_notes(&mut self, budget: &Budget<'_>) {
        let pending = self.pending.clone();
        let (born, woken, stopped, exits) = pending.with(|state| {
            (
                std::mem::take(&mut state.born),
                std::mem::take(&mut state.woken),
                std::mem::take(&mut state.cancelled),
                state.wants_exits,
            )
        });
        for (id, thread) in born {
            let task = LuaTask {
                thread,
                tag: None,
                parked: false,
                cancelled: None,
            };
            self.tasks.insert(id, task);
            self.ready.push_back((id, TaskInput::Go));
        }
        for id in woken {
            self.serve(budget, id);
        }
        for (id, reason) in stopped {
            self.cancel(budget, id, &reason);
        }
        if exits && !self.hears_exits {
            self.hears_exits = true;
            self.begin_exits(budget);
        }
    }

    fn serve(&mut self, budget: &Budget<'_>, id: u64) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        // It may have been resumed with something else a moment ago; it checks itself whether it
        // was served.
        if std::mem::take(&mut task.parked) {
            let tag = task.tag.take();
            self.withdraw(budget, tag);
            self.ready.push_back((id, TaskInput::Served));
        }
    }

    pub(super) fn withdraw(&mut self, budget: &Budget<'_>, tag: Option<u64>) {
        if let Some(tag) = tag {
            self.waits.remove(&tag);
            budget.withdraw(tag);
        }
    }

    fn cancel(&mut self, budget: &Budget<'_>, id: u64, reason: &Arc<str>) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let waits = std::mem::take(&mut task.parked) | task.tag.is_some();
        let tag = task.tag.take();
        if !waits {
            task.cancelled = Some(reason.clone());
            return;
        }
        self.withdraw(budget, tag);
        self.ready.push_back((id, cancelled(reason)));
    }

    /// Removes a wait that ended because the process is cancelled. Its task stays parked until it
    /// is cancelled, too.
    pub(super) fn forget_wait(&mut self, tag: u64) {
        let Some(wait) = self.waits.remove(&tag) else {
            return;
        };
        if let Some(task) = self.tasks.get_mut(&wait.task) {
            task.tag = None;
            task.parked = true;
        }
    }

    /// The process shall stop: so shall each task.
    pub(super) fn cancel_all(&mut self, budget: &Budget<'_>, reason: &Arc<str>) {
        let own = |kind: fn(&WaitKind) -> bool| move |wait: &Wait| kind(&wait.kind);
        let changed = own(|kind| matches!(kind, WaitKind::Changed));
        if !self.waits.values().any(changed) {
            self.begin_changed(budget);
        }
        let exits = own(|kind| matches!(kind, WaitKind::Exits));
        if self.hears_exits && !self.waits.values().any(exits) {
            self.begin_exits(budget);
        }
        // In the same order each time.
        let ids: Vec<u64> = self.tasks.keys().copied().collect();
        for id in ids {
            self.cancel(budget, id, reason);
        }
    }
}
