//! Messages that were taken out of their channels and wait for their trigger to fire.

use std::collections::VecDeque;

use crate::component::Received;
use crate::run::state::triggers::TriggerCounts;

/// Messages that wait for a trigger. Inputs that need each other wait port by port, others in one
/// line. How many may wait is bounded; the oldest give way, and are counted.
#[derive(Debug, Default)]
pub(crate) struct WaitingMessages {
    /// The inputs that the trigger waits for, by name.
    ports: Vec<Port>,
    /// What waits in one line.
    line: VecDeque<Received>,
    /// Whether messages wait at their ports rather than in one line.
    by_port: bool,
    bound: usize,
    /// Only the newest of each input counts.
    coalesces: bool,
    last_arrival: u64,
}

#[derive(Debug)]
struct Port {
    edges: Vec<usize>,
    waiting: VecDeque<Received>,
}

impl WaitingMessages {
    /// `ports` has the edges of each port.
    pub(crate) fn new(
        ports: Vec<Vec<usize>>,
        by_port: bool,
        bound: usize,
        coalesces: bool,
    ) -> WaitingMessages {
        let port = |edges| Port {
            edges,
            waiting: VecDeque::new(),
        };
        WaitingMessages {
            ports: ports.into_iter().map(port).collect(),
            by_port,
            bound,
            coalesces,
            ..WaitingMessages::default()
        }
    }

    /// Returns how many ports there are.
    pub(crate) fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Returns the edges of a port.
    pub(crate) fn edges(&self, port: usize) -> &[usize] {
        &self.ports[port].edges
    }

    /// Returns the edges of all ports, in their order.
    pub(crate) fn all_edges(&self) -> impl Iterator<Item = usize> {
        self.ports
            .iter()
            .flat_map(|port| port.edges.iter().copied())
    }

    /// Returns how many messages wait.
    pub(crate) fn len(&self) -> usize {
        let by_port: usize = self.ports.iter().map(|port| port.waiting.len()).sum();
        by_port + self.line.len()
    }

    /// Returns when the oldest of the messages became visible; none without messages.
    pub(crate) fn oldest_arrival(&self) -> Option<u64> {
        let fronts = self.ports.iter().filter_map(|port| port.waiting.front());
        fronts.chain(self.line.front()).map(|m| m.arrived).min()
    }

    /// Returns when the newest message that ever came became visible.
    pub(crate) fn last_arrival(&self) -> u64 {
        self.last_arrival
    }

    /// Remembers when a message became visible, whether it may wait or not.
    pub(crate) fn note_arrival(&mut self, arrived: u64) {
        self.last_arrival = self.last_arrival.max(arrived);
    }

    /// Whether another message of this port would make an older one give way. Where only the newest
    /// counts, that is what is wanted.
    pub(crate) fn is_full(&self, port: usize) -> bool {
        let line = match self.by_port {
            true => &self.ports[port].waiting,
            false => &self.line,
        };
        !self.coalesces && line.len() >= self.bound
    }

    /// Puts a message where it waits.
    pub(crate) fn push(&mut self, port: usize, message: Received, counts: &mut TriggerCounts) {
        let line = match self.by_port {
            true => &mut self.ports[port].waiting,
            false => &mut self.line,
        };
        if line.len() >= self.bound {
            line.pop_front();
            match self.coalesces {
                true => counts.coalesced += 1,
                false => counts.pending_drop += 1,
            }
        }
        line.push_back(message);
    }

    /// Drops what has waited longer than this; returns how many messages.
    pub(crate) fn expire(&mut self, now: u64, limit: u64) -> u64 {
        let mut dropped = 0;
        let lines = self.ports.iter_mut().map(|port| &mut port.waiting);
        for line in lines.chain([&mut self.line]) {
            while line
                .front()
                .is_some_and(|m| now.saturating_sub(m.arrived) > limit)
            {
                line.pop_front();
                dropped += 1;
            }
        }
        dropped
    }

    /// Returns the messages that wait in one line.
    pub(crate) fn line(&self) -> &VecDeque<Received> {
        &self.line
    }

    /// Takes the oldest messages out of the line.
    pub(crate) fn drain_line(&mut self, count: usize) -> impl Iterator<Item = Received> {
        self.line.drain(..count)
    }

    /// Whether a message waits at every port.
    pub(crate) fn has_one_of_each(&self) -> bool {
        self.ports.iter().all(|port| !port.waiting.is_empty())
    }

    /// Returns the oldest message of a port.
    pub(crate) fn front(&self, port: usize) -> Option<&Received> {
        self.ports[port].waiting.front()
    }

    /// Drops the oldest message of a port.
    pub(crate) fn drop_front(&mut self, port: usize) {
        self.ports[port].waiting.pop_front();
    }

    /// Takes the oldest message of every port that has one.
    pub(crate) fn take_fronts(&mut self) -> impl Iterator<Item = Received> {
        let ports = self.ports.iter_mut();
        ports.filter_map(|port| port.waiting.pop_front())
    }
}
