//! Pairs of tasks that send a message back and forth over tokio's `mpsc::channel(1)`.
//!
//! That channel runs on any executor, so only the scheduler differs.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::peers::AsyncPeer;
use crate::sample::Sample;

/// Round trips of each pair in [`pairs`].
pub const ROUND_TRIPS: u64 = 1_000;

/// A round trip is a message there and one back.
pub const MESSAGES: u64 = 2;

/// Many pairs at once.
pub fn pairs<P: AsyncPeer>(pairs: u64) -> Sample {
    Sample::per_operation(pairs * ROUND_TRIPS * MESSAGES, || {
        P::run_on_worker(play::<P>(pairs, ROUND_TRIPS))
    })
}

/// One pair alone.
pub fn one<P: AsyncPeer>(round_trips: u64) -> Sample {
    Sample::per_operation(round_trips * MESSAGES, || {
        P::run_on_worker(play::<P>(1, round_trips))
    })
}

async fn play<P: AsyncPeer>(pairs: u64, round_trips: u64) -> Duration {
    let start = Instant::now();
    let mut players = Vec::with_capacity(2 * pairs as usize);
    for _ in 0..pairs {
        let (server, returner) = table();
        players.push(P::spawn(server.serve(round_trips)));
        players.push(P::spawn(returner.give_back()));
    }
    for player in players {
        assert_eq!(player.await, round_trips);
    }
    start.elapsed()
}

/// One side of a pair.
pub struct Player {
    send: Sender<u64>,
    receive: Receiver<u64>,
}

/// The two sides of a pair.
pub fn table() -> (Player, Player) {
    let (there, here) = channel(1);
    let (back, again) = channel(1);
    (
        Player {
            send: there,
            receive: again,
        },
        Player {
            send: back,
            receive: here,
        },
    )
}

impl Player {
    /// Sends the ball and waits for it, again and again. Returns how often it came back.
    pub async fn serve(mut self, round_trips: u64) -> u64 {
        for ball in 0..round_trips {
            self.send.send(ball).await.expect("the other side plays on");
            assert_eq!(self.receive.recv().await, Some(ball));
        }
        round_trips
    }

    /// Gives every ball back until the other side ends the game. Returns how many there were.
    pub async fn give_back(mut self) -> u64 {
        let mut balls = 0;
        while let Some(ball) = self.receive.recv().await {
            balls += 1;
            self.send
                .send(ball)
                .await
                .expect("the other side waits for its ball");
        }
        balls
    }
}
