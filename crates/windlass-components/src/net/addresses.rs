//! Which addresses components listen at.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use windlass_core::sync::{Arc, Mutex};
use windlass_sync::lock::Notify;

/// The addresses at which components listen, by their ids: for those whose `listen` ends in `:0`,
/// which leaves the port to the system. Clones are of the same.
///
/// ```
/// use windlass_components::{Addresses, register_with};
/// use windlass_graph::component::Registry;
///
/// let addresses = Addresses::new();
/// let mut registry = Registry::built_in();
/// register_with(&mut registry, &addresses);
/// // In a run of a graph with a component `input` of type windlass.tcp.source:
/// // let address = addresses.of("input").await;
/// assert_eq!(addresses.get("input"), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Addresses(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    known: Mutex<BTreeMap<String, SocketAddr>>,
    news: Notify,
}

impl Addresses {
    /// Without any address.
    pub fn new() -> Addresses {
        Addresses::default()
    }

    /// Where this component listens, or listened last; none if it never did.
    pub fn get(&self, component: &str) -> Option<SocketAddr> {
        self.0.known.lock().get(component).copied()
    }

    /// Waits until this component listens. Cancel-safe.
    pub async fn of(&self, component: &str) -> SocketAddr {
        loop {
            let news = self.0.news.notified();
            let mut news = std::pin::pin!(news);
            // From here on no news is missed.
            news.as_mut().enable();
            match self.get(component) {
                Some(address) => return address,
                None => news.await,
            }
        }
    }

    pub(super) fn announce(&self, component: &str, address: SocketAddr) {
        self.0.known.lock().insert(component.to_owned(), address);
        self.0.news.notify_waiters();
    }
}
