//! What can be bound and connected to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

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
    /// Several of them, to be tried in turn.
    Several(Vec<SocketAddr>),
}

/// Something that says where to bind or connect.
pub trait ToSocketAddrs {
    /// The address it stands for.
    fn to_address(&self) -> io::Result<Address>;
}

impl ToSocketAddrs for Address {
    fn to_address(&self) -> io::Result<Address> {
        Ok(self.clone())
    }
}

impl ToSocketAddrs for SocketAddr {
    fn to_address(&self) -> io::Result<Address> {
        Ok(Address::Socket(*self))
    }
}

/// What is a socket address in another form.
macro_rules! is_an_address {
    ($($type:ty),+) => { $(
        impl ToSocketAddrs for $type {
            fn to_address(&self) -> io::Result<Address> {
                Ok(Address::Socket((*self).into()))
            }
        }
    )+ };
}

is_an_address!(
    SocketAddrV4,
    SocketAddrV6,
    (IpAddr, u16),
    (Ipv4Addr, u16),
    (Ipv6Addr, u16)
);

impl ToSocketAddrs for &[SocketAddr] {
    fn to_address(&self) -> io::Result<Address> {
        Ok(Address::Several(self.to_vec()))
    }
}

impl ToSocketAddrs for (String, u16) {
    fn to_address(&self) -> io::Result<Address> {
        (self.0.as_str(), self.1).to_address()
    }
}

impl ToSocketAddrs for (&str, u16) {
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

impl ToSocketAddrs for str {
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

impl ToSocketAddrs for String {
    fn to_address(&self) -> io::Result<Address> {
        self.as_str().to_address()
    }
}

impl<A: ToSocketAddrs + ?Sized> ToSocketAddrs for &A {
    fn to_address(&self) -> io::Result<Address> {
        (**self).to_address()
    }
}
