//! The hosts of a simulation, and what can be done to the network between them.

use std::future::Future;
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use windlass_core::sync::Arc;

use super::{DroppedDatagrams, Network};
use windlass_runtime::driver::Reality;

/// The network between the hosts of a simulation: where code runs, how long messages take, and what
/// is cut.
///
/// ```
/// use std::time::Duration;
/// use windlass_runtime::{Runtime, time};
/// use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
/// use windlass_io::{net::{TcpListener, TcpStream}, simulated::Net};
///
/// Runtime::simulated(1).block_on(async {
///     let net = Net::current();
///     net.latency(Duration::from_millis(10)..=Duration::from_millis(10));
///     let server = net.on("server", async {
///         let listener = TcpListener::bind("server:80").await?;
///         let (mut stream, _) = listener.accept().await?;
///         stream.write_all(b"hi").await
///     });
///     let server = windlass_runtime::spawn(server);
///     windlass_runtime::task::yield_now().await;
///
///     let began = time::Instant::now();
///     let client = net.on("client", async {
///         let mut stream = loop {
///             match TcpStream::connect("server:80").await {
///                 Ok(stream) => break stream,
///                 Err(_) => time::sleep(Duration::from_millis(1)).await,
///             }
///         };
///         let mut hi = [0; 2];
///         stream.read_exact(&mut hi).await
///     });
///     client.await.unwrap();
///     assert!(began.elapsed() >= Duration::from_millis(20), "a round trip");
///     server.await.unwrap().unwrap();
/// });
/// ```
#[derive(Debug, Clone)]
pub struct Net(Arc<Network>);

impl Net {
    /// The network of the simulation this runs in.
    ///
    /// # Panics
    /// Outside of a simulation.
    #[track_caller]
    pub fn current() -> Net {
        let handle = windlass_runtime::Handle::current();
        match handle.reality() {
            Reality::Simulated(simulator) => Net(Network::of(simulator)),
            Reality::Real(_) => {
                panic!("Net::current outside of a simulation: see Runtime::simulated")
            }
        }
    }

    /// Runs `future` on the host `name`: what it binds is there, and what it connects comes from
    /// there. Tasks that it spawns are there, too; others are on `localhost`.
    pub fn on<F: Future>(&self, name: &str, future: F) -> OnHost<F> {
        OnHost {
            future,
            host: self.0.state.lock().host(name),
            network: self.0.clone(),
        }
    }

    /// Sets how long a message takes between two hosts: each one anything in the range. Order is
    /// kept within a connection; datagrams overtake each other. Within a host it takes no time.
    pub fn latency(&self, range: RangeInclusive<Duration>) {
        self.0.state.lock().latency = range;
    }

    /// Cuts the link between two hosts. On connections what is sent waits, and they stay open and
    /// silent; datagrams are dropped.
    pub fn partition(&self, a: &str, b: &str) {
        let mut state = self.0.state.lock();
        let (a, b) = (state.host(a), state.host(b));
        state.cut.insert((a.min(b), a.max(b)));
    }

    /// Restores the link between two hosts: what waited is sent.
    pub fn heal(&self, a: &str, b: &str) {
        let mut state = self.0.state.lock();
        let (a, b) = (state.host(a), state.host(b));
        state.cut.remove(&(a.min(b), a.max(b)));
        state.send_held(a, b, &self.0.world);
    }

    /// Breaks every connection between two hosts: both ends see a reset, what was on its way is
    /// lost. With the same host twice: those within it, Unix sockets included. Datagram sockets
    /// have no connections.
    pub fn break_connections(&self, a: &str, b: &str) {
        self.0.change(|state, wakes| {
            let (a, b) = (state.host(a), state.host(b));
            state.reset_between(a, b, wakes);
        });
    }

    /// Loses each datagram between two hosts with this probability, from 0 (none, as at the
    /// beginning) to 1 (all). Connections lose nothing.
    ///
    /// # Panics
    /// If it is no probability.
    #[track_caller]
    pub fn loss(&self, probability: f64) {
        assert!(
            (0.0..=1.0).contains(&probability),
            "{probability} is no probability: give a number from 0 to 1"
        );
        self.0.state.lock().loss = probability;
    }

    /// Returns how many datagrams were dropped so far, and why.
    pub fn dropped_datagrams(&self) -> DroppedDatagrams {
        self.0.state.lock().dropped
    }
}

pin_project! {
    /// The future of [`Net::on`].
    #[must_use = "futures do nothing unless awaited"]
    pub struct OnHost<F> {
        #[pin]
        future: F,
        // Its number, which is the place in the simulated world.
        host: usize,
        network: Arc<Network>,
    }
}

impl<F: Future> Future for OnHost<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let (future, host) = (this.future, *this.host);
        this.network.world.at_node(host, || future.poll(cx))
    }
}

impl<F> std::fmt::Debug for OnHost<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnHost")
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}
