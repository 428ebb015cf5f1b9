//! `windlass.udp.source` and `windlass.udp.sink`.

use std::io;
use std::net::SocketAddr;

use windlass_graph::component::{ConfigField, ConfigKind, Descriptor, Failure, Setup};
use windlass_graph::model::BoundaryRole;
use windlass_io::net::{UdpSocket, lookup_host};
use windlass_sync::CancellationToken;
use windlass_value::Payload;

use super::sink::SinkTask;
use super::source::SourceTask;
use super::{Addresses, needed_address, queue};
use crate::file::records;
use crate::format::{Format, refused};
use crate::inlet::Feed;
use crate::outlet::Orders;
use crate::settings::Settings;

/// The longest datagram.
const LONGEST: usize = 65_535;
/// The longest that can be sent: without the headers.
const LONGEST_SENT: usize = 65_507;

fn format() -> ConfigField {
    let formats = Format::OF_DATAGRAMS.map(|format| format.0);
    ConfigField::new("format", ConfigKind::String).one_of(formats)
}

/// Publishes the datagrams that come.
#[derive(Debug)]
pub(crate) struct UdpReader {
    id: String,
    address: String,
    format: Format,
    addresses: Addresses,
}

impl SourceTask for UdpReader {
    fn describe() -> Descriptor {
        Descriptor::new()
            .output("out")
            .boundary(BoundaryRole::Input)
            .field(ConfigField::new("listen", ConfigKind::String).required())
            .field(format())
            .field(queue())
            .field(records())
            .about("Publishes the datagrams that come over UDP.")
    }

    fn read(setup: &Setup<'_>, addresses: &Addresses) -> Result<UdpReader, Failure> {
        let settings = Settings(setup.config());
        Ok(UdpReader {
            id: setup.id().to_owned(),
            address: needed_address(settings, "listen")?,
            format: settings.choice("format", &Format::OF_DATAGRAMS)?,
            addresses: addresses.clone(),
        })
    }

    async fn run(self, feed: Feed<Payload>, _: CancellationToken) {
        if let Err(failure) = self.receive(&feed).await {
            // If the component has ended, there is no reader for the failure.
            let _ = feed.report(failure).await;
        }
    }
}

impl UdpReader {
    async fn receive(&self, feed: &Feed<Payload>) -> Result<(), Failure> {
        let UdpReader { address, id, .. } = self;
        let failed = |error| Failure::new(format!("cannot receive at {address}: {error}"));
        let socket = UdpSocket::bind(address.as_str()).await.map_err(failed)?;
        self.addresses
            .announce(id, socket.local_addr().map_err(failed)?);
        let mut datagram = vec![0; LONGEST];
        loop {
            let (count, _) = socket.recv_from(&mut datagram).await.map_err(failed)?;
            let handed = match self.format.decode(&datagram[..count]) {
                Ok(payload) => feed.give(payload).await,
                Err(failure) => feed.report(failure).await,
            };
            if handed.is_err() {
                return Ok(());
            }
        }
    }
}

/// Sends each message as a datagram, to this address.
#[derive(Debug)]
pub(crate) struct UdpSender(String);

impl SinkTask for UdpSender {
    fn describe() -> Descriptor {
        Descriptor::new()
            .input("in")
            .boundary(BoundaryRole::Output)
            .field(ConfigField::new("to", ConfigKind::String).required())
            .field(format())
            .field(queue())
            .about("Sends each message over UDP, as a datagram.")
    }

    fn read(setup: &Setup<'_>, _: &Addresses) -> Result<(UdpSender, Format), Failure> {
        let settings = Settings(setup.config());
        let to = needed_address(settings, "to")?;
        Ok((
            UdpSender(to),
            settings.choice("format", &Format::OF_DATAGRAMS)?,
        ))
    }

    fn encode(format: Format, payload: &Payload, to: &mut Vec<u8>) -> Result<(), Failure> {
        format.encode(payload, to)?;
        match to.len() > LONGEST_SENT {
            true => Err(refused(to, "is too long for a datagram: 65,507 bytes fit")),
            false => Ok(()),
        }
    }

    async fn run(self, mut orders: Orders<Vec<u8>>) {
        let UdpSender(to) = self;
        let mut way = None;
        while let Some(datagram) = orders.next().await {
            if let Err(error) = send(&mut way, &to, &datagram).await {
                orders
                    .completions
                    .fail(Failure::new(format!("cannot send to {to}: {error}")));
            }
            orders.completions.done();
        }
    }
}

/// A socket, and where it sends to.
struct Way {
    socket: UdpSocket,
    to: SocketAddr,
}

/// Sends; after an error the address is looked up again.
async fn send(way: &mut Option<Way>, to: &str, datagram: &[u8]) -> io::Result<()> {
    let known = match way.take() {
        Some(known) => known,
        None => Way::find(to).await?,
    };
    known.send(datagram).await?;
    *way = Some(known);
    Ok(())
}

impl Way {
    async fn find(to: &str) -> io::Result<Way> {
        let to = lookup_host(to).await?.next();
        let to = to.ok_or_else(|| io::Error::other("it has no address"))?;
        // Of the same family as the other side.
        let socket = match to.is_ipv6() {
            true => UdpSocket::bind("[::]:0").await?,
            false => UdpSocket::bind("0.0.0.0:0").await?,
        };
        Ok(Way { socket, to })
    }

    async fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self.socket.send_to(datagram, self.to).await {
            // The kernel reports here that an earlier datagram found no listener.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.socket.send_to(datagram, self.to).await.map(drop)
            }
            sent => sent.map(drop),
        }
    }
}
