//! `windlass.udp.source` and `windlass.udp.sink`.

use std::io;
use std::net::SocketAddr;

use windlass_graph::Payload;
use windlass_graph::component::{
    Component, ConfigField, ConfigKind, Descriptor, Drain, Failure, Invocation, Output, Outside,
    Setup,
};
use windlass_graph::model::{BoundaryRole, Config};
use windlass_runtime::net::{UdpSocket, lookup_host};

use super::{Addresses, needed_address, queue, queue_of};
use crate::file::{records, records_of};
use crate::format::{Format, refused};
use crate::inlet::{Feed, Inlet};
use crate::outlet::{Orders, Outlet};
use crate::settings::{Settings, fixed};

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
pub(crate) struct Source {
    addresses: Addresses,
    start: Option<(Outside, usize, usize, Reading)>,
    inlet: Option<Inlet<Payload>>,
    output: Output<Payload>,
}

#[derive(Debug)]
struct Reading {
    id: String,
    address: String,
    format: Format,
    addresses: Addresses,
}

impl Source {
    pub(crate) fn new(addresses: &Addresses) -> Source {
        Source {
            addresses: addresses.clone(),
            start: None,
            inlet: None,
            output: Output::default(),
        }
    }

    pub(crate) fn describe() -> Descriptor {
        Descriptor::new()
            .output("out")
            .boundary(BoundaryRole::Input)
            .field(ConfigField::new("listen", ConfigKind::String).required())
            .field(format())
            .field(queue())
            .field(records())
            .about("Publishes the datagrams that come over UDP.")
    }
}

impl Component for Source {
    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        let work = Reading {
            id: setup.id().to_owned(),
            address: needed_address(settings, "listen")?,
            format: settings.choice("format", &Format::OF_DATAGRAMS)?,
            addresses: self.addresses.clone(),
        };
        let (queue, records) = (queue_of(settings)?, records_of(settings)?);
        self.output = setup.output("out")?;
        self.start = Some((setup.outside(), queue, records, work));
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        if let Some((outside, queue, records, work)) = self.start.take() {
            let inlet = Inlet::start(outside, queue, records, |feed, _| work.run(feed));
            self.inlet = Some(inlet);
        }
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let output = self.output;
        match &mut self.inlet {
            Some(inlet) => inlet.run(invocation, |invocation, payload| {
                invocation.publish(output, payload.clone())
            }),
            None => Ok(()),
        }
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.inlet = None;
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

impl Reading {
    async fn run(self, feed: Feed<Payload>) {
        if let Err(failure) = self.read(&feed).await {
            // If it is gone, nobody wants to know.
            let _ = feed.tell(failure).await;
        }
    }

    async fn read(&self, feed: &Feed<Payload>) -> Result<(), Failure> {
        let Reading { address, id, .. } = self;
        let failed = |error| Failure::new(format!("cannot receive at {address}: {error}"));
        let socket = UdpSocket::bind(address.as_str()).await.map_err(failed)?;
        self.addresses
            .tell(id, socket.local_addr().map_err(failed)?);
        let mut datagram = vec![0; LONGEST];
        loop {
            let (count, _) = socket.recv_from(&mut datagram).await.map_err(failed)?;
            let handed = match self.format.decode(&datagram[..count]) {
                Ok(payload) => feed.give(payload).await,
                Err(failure) => feed.tell(failure).await,
            };
            if handed.is_err() {
                return Ok(());
            }
        }
    }
}

/// Sends each message as a datagram.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    start: Option<(Outside, usize, String)>,
    format: Format,
    outlet: Option<Outlet<Vec<u8>>>,
}

impl Component for Sink {
    fn describe() -> Descriptor {
        Descriptor::new()
            .input("in")
            .boundary(BoundaryRole::Output)
            .field(ConfigField::new("to", ConfigKind::String).required())
            .field(format())
            .field(queue())
            .about("Sends each message over UDP, as a datagram.")
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        let to = needed_address(settings, "to")?;
        self.format = settings.choice("format", &Format::OF_DATAGRAMS)?;
        let queue = queue_of(settings)?;
        self.start = Some((setup.outside(), queue, to));
        Ok(())
    }

    fn activate(&mut self) -> Result<(), Failure> {
        if let Some((outside, queue, to)) = self.start.take() {
            let outlet = Outlet::start(&outside.downgrade(), queue, |orders, _| {
                send_all(to, orders)
            });
            self.outlet = Some(outlet);
        }
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        let Some(outlet) = &self.outlet else {
            return Ok(());
        };
        let mut datagrams = Vec::new();
        let mut encoded = Ok(());
        for message in invocation.inputs() {
            let mut datagram = Vec::new();
            let made = self.format.encode(message.payload(), &mut datagram);
            let made = made.and_then(|()| match datagram.len() > LONGEST_SENT {
                true => Err(refused(
                    &datagram,
                    "is too long for a datagram: 65,507 bytes fit",
                )),
                false => Ok(()),
            });
            match made {
                Ok(()) => datagrams.push(datagram),
                Err(failure) => encoded = encoded.and(Err(failure)),
            }
        }
        outlet.put(datagrams).and(encoded)
    }

    fn drain(&mut self) -> Option<Drain> {
        self.outlet.as_mut()?.drain()
    }

    fn deactivate(&mut self) -> Result<(), Failure> {
        self.outlet = None;
        Ok(())
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}

/// A socket, and where it sends to.
struct Way {
    socket: UdpSocket,
    to: SocketAddr,
}

async fn send_all(to: String, mut orders: Orders<Vec<u8>>) {
    let mut way = None;
    while let Some(datagram) = orders.next().await {
        if let Err(error) = send(&mut way, &to, &datagram).await {
            orders
                .desk
                .fail(Failure::new(format!("cannot send to {to}: {error}")));
        }
        orders.desk.done();
    }
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
            // That nobody listened to an earlier one is told now.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.socket.send_to(datagram, self.to).await.map(drop)
            }
            sent => sent.map(drop),
        }
    }
}
