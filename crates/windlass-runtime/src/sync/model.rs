//! What the loom models of a resource's readiness need to see of it.

use std::task::{Context, Poll};

use super::readiness::{Direction, Readiness, Ready};

/// The readiness of a resource that is only read.
#[derive(Default)]
pub struct Model(Readiness);

/// The state in which the resource was found ready.
#[derive(Debug, Clone, Copy)]
pub struct Found(Ready);

impl Model {
    /// An event has come.
    pub fn set_ready(&self) {
        self.0.set_ready(Direction::Read);
    }

    /// The driver has ended.
    pub fn shut(&self) {
        self.0.shut();
    }

    /// Waits as a future does.
    pub async fn ready(&self) -> Found {
        Found(self.0.ready(Direction::Read).await)
    }

    /// Waits as a poll function does.
    pub fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<Found> {
        self.0.poll_ready(Direction::Read, cx).map(Found)
    }

    /// The resource was not ready after all.
    pub fn clear(&self, found: Found) {
        self.0.clear(Direction::Read, found.0);
    }
}

impl Found {
    /// True if the driver has ended.
    pub fn is_shut(self) -> bool {
        self.0.is_shut()
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.debug("Model", f)
    }
}
