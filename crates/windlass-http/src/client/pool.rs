//! Connections that wait for their next request.
//!
//! A connection comes here as soon as its response has begun, and is taken out again only when that
//! is over. Over HTTP/2 one connection serves many requests at a time and stays here. A connection
//! that is not taken for the idle time is closed by the sweeper, which runs only while there is
//! something to sweep.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use windlass_core::sync::Mutex;
use windlass_runtime::time::Instant;

use super::response::ResponseEnd;
use crate::body::AnyBody;

/// Where connections lead to: scheme and authority.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    pub(super) tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) enum Sender {
    Http1(http1::SendRequest<AnyBody>),
    Http2(http2::SendRequest<AnyBody>),
}

impl Sender {
    fn is_closed(&self) -> bool {
        match self {
            Sender::Http1(sender) => sender.is_closed(),
            Sender::Http2(sender) => sender.is_closed(),
        }
    }

    /// Waits until it takes a request; false: it is closed.
    pub(super) async fn ready(&mut self) -> bool {
        let ready = match self {
            Sender::Http1(sender) => sender.ready().await,
            Sender::Http2(sender) => sender.ready().await,
        };
        ready.is_ok()
    }
}

#[derive(Debug)]
struct Idle {
    sender: Sender,
    /// Its last response.
    over: ResponseEnd,
    since: Instant,
}

#[derive(Debug)]
pub(super) struct Pool {
    most_per_origin: usize,
    idle_time: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    idle: BTreeMap<Origin, Vec<Idle>>,
    /// A sweeper runs.
    swept: bool,
}

impl Pool {
    pub(super) fn new(most_per_origin: usize, idle_time: Duration) -> Pool {
        Pool {
            most_per_origin,
            idle_time,
            state: Mutex::default(),
        }
    }

    /// A connection that is ready for a request, or will be in a moment, or is closed.
    pub(super) fn take(&self, origin: &Origin) -> Option<Sender> {
        let mut state = self.state.lock();
        let connections = state.idle.get_mut(origin)?;
        connections.retain(|idle| !idle.sender.is_closed());
        // The one used last: the others may grow old and be closed.
        let free = |idle: &Idle| matches!(idle.sender, Sender::Http2(_)) || idle.over.is_set();
        let index = connections.iter().rposition(free)?;
        let idle = &mut connections[index];
        if let Sender::Http2(sender) = &idle.sender {
            idle.since = Instant::now();
            return Some(Sender::Http2(sender.clone()));
        }
        Some(connections.remove(index).sender)
    }

    /// Keeps a connection for the time after its response. True: the caller is to start a sweeper.
    #[must_use]
    pub(super) fn put(&self, origin: &Origin, sender: Sender, over: ResponseEnd) -> bool {
        let mut state = self.state.lock();
        let connections = state.idle.entry(origin.clone()).or_default();
        connections.retain(|idle| !idle.sender.is_closed());
        if let Sender::Http2(_) = sender
            && connections
                .iter()
                .any(|idle| matches!(idle.sender, Sender::Http2(_)))
        {
            // It is a clone of the one that is there, or one is enough.
            return false;
        }
        if connections.len() >= self.most_per_origin {
            // The oldest has to go.
            connections.remove(0);
        }
        connections.push(Idle {
            sender,
            over,
            since: Instant::now(),
        });
        !std::mem::replace(&mut state.swept, true)
    }

    /// Closes connections that were not used for the idle time. Returns when to sweep again;
    /// `None`: no connection is left, and the sweeper ends.
    pub(super) fn sweep(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.idle.retain(|_, connections| {
            connections
                .retain(|idle| !idle.sender.is_closed() && idle.since + self.idle_time > now);
            !connections.is_empty()
        });
        let oldest = state.idle.values().flatten().map(|idle| idle.since).min();
        state.swept = oldest.is_some();
        oldest.map(|since| since + self.idle_time)
    }

    /// Connections that wait.
    pub(super) fn len(&self) -> usize {
        self.state.lock().idle.values().map(Vec::len).sum()
    }
}
