//! What a run did in which order, and how long its epochs took, as far as the options ask for it.

use crate::run::options::RunOptions;
use crate::run::sinks::sink::{CallEnd, EpochEnd, Sink};

/// The invocations of a run in their order, and the durations of its epochs.
#[derive(Debug)]
pub(crate) struct History {
    /// The components in the order of their invocations.
    order: Vec<u32>,
    /// What each epoch took, if the options ask for it.
    epoch_times: Option<Vec<u64>>,
    /// How much of each is kept.
    capacity: usize,
}

impl History {
    pub(crate) fn new(options: &RunOptions) -> History {
        History {
            order: Vec::new(),
            epoch_times: options.epoch_times.then(Vec::new),
            capacity: options.order_capacity,
        }
    }

    /// Returns the history of a part of the run that runs beside it.
    pub(crate) fn beside(&self) -> History {
        History {
            order: Vec::new(),
            epoch_times: None,
            capacity: self.capacity,
        }
    }

    /// Takes in the history of such a part.
    pub(crate) fn merge(&mut self, other: History) {
        let room = self.capacity.saturating_sub(self.order.len());
        self.order.extend(other.order.into_iter().take(room));
    }

    /// Returns the components in the order of their invocations.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// Returns what each epoch took.
    pub(crate) fn into_epoch_times(self) -> Vec<u64> {
        self.epoch_times.unwrap_or_default()
    }
}

impl Sink for History {
    #[inline]
    fn call_end(&mut self, event: &CallEnd<'_>) {
        if self.order.len() < self.capacity {
            self.order.push(event.component as u32);
        }
    }

    fn epoch_end(&mut self, event: &EpochEnd) {
        if let Some(times) = &mut self.epoch_times
            && times.len() < self.capacity
        {
            times.push(event.end - event.start);
        }
    }
}
