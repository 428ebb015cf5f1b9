//! Looking names up.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};

use super::address::{Address, ToSocketAddrs};
use crate::net::simulated::Network;
use windlass_runtime::Handle;
use windlass_runtime::driver::Reality;

/// Returns all addresses that a name stands for, in the resolver's order: on a blocking thread, or
/// among the hosts of a simulation. A number stands for itself.
///
/// ```
/// use windlass_runtime::Runtime;
/// use windlass_io::net;
///
/// let found = Runtime::new()?.block_on(net::lookup_host("localhost:80"))?;
/// assert!(found.into_iter().all(|address| address.ip().is_loopback() && address.port() == 80));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// What the resolver says; an address without a port is `InvalidInput`.
pub async fn lookup_host(
    address: impl ToSocketAddrs,
) -> io::Result<impl Iterator<Item = SocketAddr>> {
    let handle = Handle::current_or_default();
    Ok(resolve(&address, &handle).await?.into_iter())
}

/// The addresses, of which there is at least one.
pub(super) async fn resolve(
    address: &(impl ToSocketAddrs + ?Sized),
    handle: &Handle,
) -> io::Result<Vec<SocketAddr>> {
    let address = address.to_address()?;
    if let Reality::Simulated(simulator) = handle.reality() {
        let network = Network::of(simulator);
        return match address {
            Address::Several(addresses) if addresses.is_empty() => Err(no_address()),
            Address::Several(addresses) => addresses
                .into_iter()
                .map(|address| network.resolve(&Address::Socket(address)))
                .collect(),
            address => Ok(vec![network.resolve(&address)?]),
        };
    }
    let (host, port) = match address {
        Address::Socket(address) => return Ok(vec![address]),
        Address::Several(addresses) if addresses.is_empty() => return Err(no_address()),
        Address::Several(addresses) => return Ok(addresses),
        Address::Name { host, port } => (host, port),
    };
    let lookup = handle.try_spawn_blocking(move || -> io::Result<Vec<SocketAddr>> {
        Ok((host.as_str(), port).to_socket_addrs()?.collect())
    });
    let lookup = lookup.map_err(io::Error::other)?;
    let addresses = lookup.await.map_err(io::Error::other)??;
    if addresses.is_empty() {
        return Err(no_address());
    }
    Ok(addresses)
}

/// Tries the addresses in turn; the last error if none will do.
pub(super) fn first_of<R>(
    addresses: &[SocketAddr],
    mut attempt: impl FnMut(SocketAddr) -> io::Result<R>,
) -> io::Result<R> {
    let mut last = no_address();
    for address in addresses {
        match attempt(*address) {
            Ok(result) => return Ok(result),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn no_address() -> io::Error {
    io::Error::new(
        io::ErrorKind::NotFound,
        "the name stands for no address: check its spelling and the resolver",
    )
}
