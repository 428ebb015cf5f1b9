//! Sockets on the same machine: echoed messages, and HTTP under a load generator that is nobody's
//! peer.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::peers::NetPeer;
use crate::process::cpu_time;
use crate::sample::Sample;
use crate::stats;

/// Connections at the same time.
const CONNECTIONS: usize = 64;
/// Bytes of a message.
const MESSAGE: usize = 64;

/// Messages there and back over connections of which both ends are tasks of the peer. The value is
/// the time that all of it took per message; beside it stands the p99 of single round trips, in the
/// same unit.
pub fn echo<P: NetPeer>(messages: u64) -> Sample {
    P::run_on_worker(echo_once::<P>(messages / 10 + 1));
    let mut passes = Vec::new();
    let mut trips = Vec::new();
    for _ in 0..5 {
        let (time, mut measured) = P::run_on_worker(echo_once::<P>(messages));
        passes.push(time.as_nanos() as f64 / 1e3 / (messages * CONNECTIONS as u64) as f64);
        trips.append(&mut measured);
    }
    stats::sort(&mut passes);
    let trips = Sample::latencies(&trips);
    Sample {
        min: passes[0],
        p99: trips.p99,
        ..Sample::of(stats::median(&passes))
    }
    .with("p50 of a trip", trips.value)
}

async fn echo_once<P: NetPeer>(messages: u64) -> (Duration, Vec<Duration>) {
    let (listener, address) = P::bind().await;
    let server = P::spawn(async move {
        let mut echoes = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut stream = P::accept(&listener).await;
            echoes.push(P::spawn(async move {
                let mut message = [0; MESSAGE];
                for _ in 0..messages {
                    P::read_exact(&mut stream, &mut message).await;
                    P::write_all(&mut stream, &message).await;
                }
            }));
        }
        for echo in echoes {
            echo.await;
        }
    });
    let mut streams = Vec::new();
    for _ in 0..CONNECTIONS {
        streams.push(P::connect(address).await);
    }
    let start = Instant::now();
    let clients: Vec<_> = (0u8..)
        .zip(streams)
        .map(|(number, mut stream)| {
            P::spawn(async move {
                let sent = [number; MESSAGE];
                let mut trips = Vec::new();
                for _ in 0..messages {
                    let begun = Instant::now();
                    P::write_all(&mut stream, &sent).await;
                    let mut received = [0; MESSAGE];
                    P::read_exact(&mut stream, &mut received).await;
                    trips.push(begun.elapsed());
                    assert_eq!(sent, received);
                }
                trips
            })
        })
        .collect();
    let mut trips = Vec::new();
    for client in clients {
        trips.append(&mut client.await);
    }
    let time = start.elapsed();
    server.await;
    (time, trips)
}

/// Requests per second that wrk gets answered; beside it the p99 of their latency, in microseconds.
pub fn hello<P: NetPeer>(seconds: u64) -> Sample {
    let address = P::run_on_worker(async {
        let (listener, address) = P::bind().await;
        P::spawn_detached(P::serve_hello(listener));
        address
    });
    let url = format!("http://{address}/");
    let duration = format!("-d{seconds}s");
    let connections = format!("-c{CONNECTIONS}");
    let cpu = cpu_time();
    let output = Command::new("wrk")
        .args(["-t2", "--latency", &connections, &duration, &url])
        .output()
        .expect("this line needs wrk: apt-get install wrk");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "wrk failed: {text}");
    assert!(
        !text.contains("Socket errors") && !text.contains("Non-2xx"),
        "{text}"
    );
    let after = |label: &str| {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(label));
        let value = line.and_then(|line| line.split_whitespace().last());
        value
            .unwrap_or_else(|| panic!("wrk says nothing about {label}: {text}"))
            .to_owned()
    };
    let rate: f64 = after("Requests/sec:").parse().expect("a number");
    let cpu = (cpu_time() - cpu).as_nanos() as f64 / 1e3;
    Sample {
        p99: Some(micros(&after("99%"))),
        ..Sample::of(rate)
    }
    .with("CPU us", cpu / (rate * seconds as f64))
    .with("p50 us", micros(&after("50%")))
}

/// wrk writes 1.23us, 4.56ms or 7.89s.
fn micros(text: &str) -> f64 {
    let (digits, factor) = if let Some(digits) = text.strip_suffix("us") {
        (digits, 1.0)
    } else if let Some(digits) = text.strip_suffix("ms") {
        (digits, 1e3)
    } else {
        (text.trim_end_matches('s'), 1e6)
    };
    digits.parse::<f64>().expect("a time of wrk") * factor
}

#[cfg(test)]
mod tests {
    use super::micros;

    #[test]
    fn times_of_wrk_are_read() {
        assert_eq!(
            [micros("7.50us"), micros("1.20ms"), micros("2.00s")],
            [7.5, 1200.0, 2e6]
        );
    }
}
