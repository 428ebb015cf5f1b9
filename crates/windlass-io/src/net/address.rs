//! What can be bound and connected to.

use std::io;
use std::net::{IpAddr, SocketAddr};

/// A host, by name or number, and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// A name, to be looked up.
    Name {
        /// The name of the host.
        host: String,
        /// The number of the port.
        port: u16,
    },
    /// A numeric address and port.
    Socket(SocketAddr),
}

/// Something that says where to bind or connect.
pub trait ToAddress {
    /// The address it stands for.
    fn to_address(&self) -> io::Result<Address>;
}

impl ToAddress for Address {
    fn to_address(&self) -> io::Result<Address> {
        Ok(self.clone())
    }
}

impl ToAddress for SocketAddr {
    fn to_address(&self) -> io::Result<Address> {
        Ok(Address::Socket(*self))
    }
}

impl ToAddress for (IpAddr, u16) {
    fn to_address(&self) -> io::Result<Address> {
        Ok(Address::Socket((*self).into()))
    }
}

impl ToAddress for (&str, u16) {
    fn to_address(&self) -> io::Result<Address> {
        let (host, port) = *self;
        Ok(match host.parse::<IpAddr>() {
            Ok(number) => Address::Socket((number, port).into()),
            Err(_) => Address::Name {
                host: host.to_owned(),
                port,
            },
        })
    }
}

impl ToAddress for str {
    fn to_address(&self) -> io::Result<Address> {
        if let Ok(number) = self.parse() {
            return Ok(Address::Socket(number));
        }
        let parts = self.rsplit_once(':');
        match parts.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
            Some((host, port)) if !host.is_empty() => (host, port).to_address(),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{self:?} is no address: write host:port, as in localhost:8080"),
            )),
        }
    }
}

impl ToAddress for String {
    fn to_address(&self) -> io::Result<Address> {
        self.as_str().to_address()
    }
}

impl<A: ToAddress + ?Sized> ToAddress for &A {
    fn to_address(&self) -> io::Result<Address> {
        (**self).to_address()
    }
}
