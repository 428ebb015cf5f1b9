//! What UDP and Unix datagram sockets have in common.

/// The methods of a datagram socket whose addresses are `$address`. It has `source`, `send_now`,
/// `receive_now` and `receive_from_now`.
macro_rules! datagram_methods {
    ($address:ty) => {
        /// Sends a datagram to the peer that this socket is connected to. Cancel-safe: it is sent
        /// as a whole or not at all.
        ///
        /// # Errors
        /// `NotConnected` (or `EDESTADDRREQ`) without a peer: `connect` first, or use `send_to`.
        pub async fn send(&self, bytes: &[u8]) -> io::Result<usize> {
            let sent = self.source().io(Direction::Write, || self.send_now(bytes));
            sent.await
        }

        /// Sends as `send` does if there is room now; otherwise fails with `WouldBlock`: wait for
        /// `writable`.
        pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
            self.source()
                .try_io(Direction::Write, || self.send_now(bytes))
        }

        /// Polls for what `send` awaits: the last task that polled is woken.
        pub fn poll_send(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.source()
                .poll_io(Direction::Write, cx, || self.send_now(bytes))
        }

        /// The next datagram. What does not fit into the buffer is lost. Cancel-safe: a dropped
        /// wait loses none.
        pub async fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
            let received = self
                .source()
                .io(Direction::Read, || self.receive_now(buffer));
            received.await
        }

        /// Receives as `recv` does if there is a datagram now; otherwise fails with `WouldBlock`:
        /// wait for `readable`.
        pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
            self.source()
                .try_io(Direction::Read, || self.receive_now(buffer))
        }

        /// Polls for what `recv` awaits: the last task that polled is woken.
        pub fn poll_recv(
            &self,
            cx: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<usize>> {
            self.source()
                .poll_io(Direction::Read, cx, || self.receive_now(buffer))
        }

        /// The next datagram, and where it comes from. What does not fit into the buffer is lost.
        /// Any number of tasks may wait. Cancel-safe: a dropped wait loses none.
        pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, $address)> {
            let received = self
                .source()
                .io(Direction::Read, || self.receive_from_now(buffer));
            received.await
        }

        /// Receives as `recv_from` does if there is a datagram now; otherwise fails with
        /// `WouldBlock`: wait for `readable`.
        pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, $address)> {
            self.source()
                .try_io(Direction::Read, || self.receive_from_now(buffer))
        }

        /// Polls for what `recv_from` awaits: the last task that polled is woken.
        pub fn poll_recv_from(
            &self,
            cx: &mut Context<'_>,
            buffer: &mut [u8],
        ) -> Poll<io::Result<(usize, $address)>> {
            self.source()
                .poll_io(Direction::Read, cx, || self.receive_from_now(buffer))
        }

        /// Waits until there is something to receive, or an error. It may be a false alarm: follow
        /// it with a `try_` method. Cancel-safe.
        pub async fn readable(&self) -> io::Result<()> {
            ready(self.source(), Direction::Read).await
        }

        /// Waits until there is room to send, or an error. It may be a false alarm: follow it with
        /// a `try_` method. Cancel-safe.
        pub async fn writable(&self) -> io::Result<()> {
            ready(self.source(), Direction::Write).await
        }
    };
}

pub(super) use datagram_methods;
