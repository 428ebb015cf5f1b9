//! Lines over TCP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use windlass_graph::{RunOptions, StopReason};

use crate::stage::{LIMIT, Scratch, Stage, contains, told, until_idle};

fn connect(address: std::net::SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

/// A listener and its address.
fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

fn read_to_end(mut stream: TcpStream) -> String {
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_source_that_listens_publishes_the_lines_of_all_clients() {
    let stage = Stage::source("windlass.tcp.source", "listen: '127.0.0.1:0'");
    let live = stage.start();
    let address = live.address("in");
    let mut first = connect(address);
    first.write_all(b"one\ntw").unwrap();
    live.log.wait_for(1);
    let mut second = connect(address);
    second.write_all(b"other\r\n").unwrap();
    live.log.wait_for(2);
    // A client that goes away in the middle of a line has said it all the same.
    first.write_all(b"o\nrest").unwrap();
    drop(first);
    let seen = live.log.wait_for(4);
    assert_eq!(
        seen,
        [
            r#"in="one""#,
            r#"in="other""#,
            r#"in="two""#,
            r#"in="rest""#
        ]
    );
    // The others are still served.
    second.write_all(b"last\n").unwrap();
    live.log.wait_for(5);
    live.stop_well();
}

#[test]
fn a_source_that_connects_ends_with_the_connection() {
    let (listener, address) = listener();
    let stage = Stage::source(
        "windlass.tcp.source",
        &format!("connect: '{address}', format: jsonl, records: 2"),
    );
    let live = stage.start();
    let (mut stream, _) = listener.accept().unwrap();
    stream.write_all(b"1\n{\"a\": 2}\n\"x\"").unwrap();
    drop(stream);
    let result = live.ended();
    assert!(result.is_ok(), "{:?}", result.errors);
    assert_eq!(result.stop_reason, StopReason::Idle);
    assert_eq!(stage.log.take(), ["in=1", r#"in={"a":2}"#, r#"in="x""#]);
}

#[test]
fn a_source_that_reconnects_goes_on_with_the_next_connection() {
    let (listener, address) = listener();
    let config = format!("connect: '{address}', reconnect: true");
    let stage = Stage::source("windlass.tcp.source", &config);
    let live = stage.start();
    for round in 0..2 {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(format!("{round}\n").as_bytes()).unwrap();
    }
    assert_eq!(live.log.wait_for(2), [r#"in="0""#, r#"in="1""#]);
    live.stop_well();
}

#[test]
fn nobody_there_is_told_with_the_address() {
    let (listener, address) = listener();
    drop(listener);
    let config = format!("connect: '{address}'");
    let result = Stage::source("windlass.tcp.source", &config).run();
    contains(
        &told(&result),
        &["no connection to", &address, "config.reconnect"],
    );
    let (_listener, address) = self::listener();
    let config = format!("listen: '{address}'");
    let result = Stage::source("windlass.tcp.source", &config).run();
    contains(&told(&result), &["cannot listen at", &address]);
    let result = Stage::sink("windlass.tcp.sink", &config, "[[1]]").run();
    contains(&told(&result), &["cannot listen at", &address]);
}

#[test]
fn wrong_settings_are_told() {
    for kind in ["source", "sink"] {
        for (config, what) in [
            ("", "either config.listen or config.connect"),
            (
                "listen: '127.0.0.1:0', connect: '127.0.0.1:1'",
                "either config.listen",
            ),
            (
                "listen: localhost",
                "config.listen is \"localhost\": write host:port",
            ),
            ("connect: ':80'", "config.connect is \":80\""),
            ("connect: 'a:99999'", "write host:port"),
            ("listen: 'a:1', format: xml", "allowed are lines, jsonl"),
            (
                "listen: 'a:1', queue: 0",
                "config.queue has to be a whole number from 1",
            ),
        ] {
            let name = format!("windlass.tcp.{kind}");
            let stage = match kind {
                "source" => Stage::source(&name, config),
                _ => Stage::sink(&name, config, "[]"),
            };
            contains(&stage.fails(), &[what]);
        }
    }
}

#[test]
fn a_line_that_is_wrong_is_told_and_the_client_goes_on() {
    let config = "listen: '127.0.0.1:0', format: jsonl, max_line_bytes: 100";
    let stage = Stage::source("windlass.tcp.source", config).forgiving("in");
    let live = stage.start();
    let mut client = connect(live.address("in"));
    let huge = "9".repeat(100_000);
    let text = format!("1\nnot json\n2\n{huge}\n3\n");
    client.write_all(text.as_bytes()).unwrap();
    assert_eq!(live.log.wait_for(3), ["in=1", "in=2", "in=3"]);
    let result = live.stop();
    let told = told(&result);
    contains(
        &told,
        &[
            "\"not json\" is not JSON",
            "longer than config.max_line_bytes",
        ],
    );
    assert_eq!(result.errors.len(), 2, "{told}");
}

#[test]
fn a_slow_graph_makes_the_sender_wait() {
    let stage = Stage::source("windlass.tcp.source", "listen: '127.0.0.1:0', queue: 2")
        .with("test.Sink", "test.Gate");
    let live = stage.start();
    let mut client = connect(live.address("in"));
    client.set_nonblocking(true).unwrap();
    let line = [vec![b'x'; 65_535], vec![b'\n']].concat();
    let mut sent = Vec::new();
    // Until the kernel's buffers are full, which they would never be if the source read on.
    loop {
        match client.write(&line) {
            Ok(count) => sent.push(count),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                let total: usize = sent.iter().sum();
                if total > 0 && live.log.wait_for(1).len() == 1 {
                    break;
                }
            }
            Err(error) => panic!("{error}"),
        }
        assert!(
            sent.iter().sum::<usize>() < 256 << 20,
            "nobody makes it wait"
        );
    }
    stage.gate.open();
    drop(client);
    live.stop_well();
}

#[test]
fn a_sink_that_connects_sends_every_line_in_order() {
    let (listener, address) = listener();
    let config = format!("connect: '{address}', queue: 2");
    let stage = Stage::sink("windlass.tcp.sink", &config, "[[a, b, 1], [{k: 2}], [c]]");
    let live = stage.start();
    let (stream, _) = listener.accept().unwrap();
    assert_eq!(read_to_end(stream), "a\nb\n1\n{\"k\":2}\nc\n");
    let result = live.ended();
    assert!(result.is_ok(), "{:?}", result.errors);
}

#[test]
fn a_sink_connects_again_when_the_other_side_goes_away() {
    let (listener, address) = listener();
    let numbers: Vec<String> = (0..400).map(|n| format!("[{n}]")).collect();
    let config = format!("connect: '{address}', queue: 1");
    let stage = Stage::sink(
        "windlass.tcp.sink",
        &config,
        &format!("[{}]", numbers.join(", ")),
    );
    let live = stage.start();
    // The first connection ends after a line.
    let (stream, _) = listener.accept().unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    assert_eq!(line, "0\n");
    let (stream, _) = listener.accept().unwrap();
    let rest = read_to_end(stream);
    let rest: Vec<u32> = rest.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(rest.last(), Some(&399));
    assert!(rest.is_sorted());
    let result = live.ended();
    assert!(result.is_ok(), "{:?}", result.errors);
}

#[test]
fn a_sink_that_finds_nobody_is_told_at_the_end() {
    let (listener, address) = listener();
    drop(listener);
    let config = format!("connect: '{address}'");
    let stage = Stage::sink("windlass.tcp.sink", &config, "[[1]]");
    let result = stage.run_with(RunOptions {
        drain: Duration::from_millis(200),
        ..until_idle()
    });
    contains(&told(&result), &["did not come to its end within"]);
}

#[test]
fn a_sink_that_listens_serves_all_who_connect() {
    let config = "listen: '127.0.0.1:0', wait_for: 2, format: jsonl";
    let stage = Stage::sink("windlass.tcp.sink", config, "[[a], [1, 2], [b]]");
    let live = stage.start();
    let address = live.address("out");
    let (first, second) = (connect(address), connect(address));
    // A client that has closed its writing half can still listen.
    second.shutdown(Shutdown::Write).unwrap();
    let expected = "\"a\"\n1\n2\n\"b\"\n";
    assert_eq!(read_to_end(first), expected);
    assert_eq!(read_to_end(second), expected);
    let result = live.ended();
    assert!(result.is_ok(), "{:?}", result.errors);
}

#[test]
fn a_client_that_does_not_read_does_not_stop_the_others() {
    // More than the kernel keeps for a client that does not read.
    const LINES: usize = 1600;
    let file = Scratch::new(format!("{}\n", "x".repeat(10_000)).repeat(LINES));
    let stage = Stage::new(&format!(
        "
components:
  - {{id: in, type: windlass.lines.source, config: {{{}}}, execution: {{lane: main}}}}
  - {{id: out, type: windlass.tcp.sink, config: {{listen: '127.0.0.1:0', wait_for: 2, stall_ms: 50}}, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: in.out, to: out.in, kind: immediate, policy: {{mode: queue, capacity: 2000, overflow: reject}}}}
",
        file.config()
    ));
    let live = stage.start();
    let address = live.address("out");
    let _silent = connect(address);
    let reader = connect(address);
    assert_eq!(read_to_end(reader).lines().count(), LINES);
    let result = live.ended();
    assert!(result.is_ok(), "{:?}", result.errors);
}

#[test]
fn what_goes_in_over_tcp_is_in_the_file_once_and_in_order() {
    const LINES: usize = 5000;
    let (listener, address) = listener();
    let file = Scratch::missing();
    let text = format!(
        "
components:
  - {{id: in, type: windlass.tcp.source, config: {{connect: '{address}', queue: 16}}, execution: {{lane: main}}}}
  - {{id: out, type: windlass.lines.sink, config: {{{}}}, trigger_policy: {{type: any_input, input: in}}, execution: {{lane: main}}}}
edges:
  - {{id: e, from: in.out, to: out.in, kind: immediate, QUEUE}}
",
        file.config()
    );
    for records in ["queue: 16", "queue: 3, records: 7"] {
        let live = Stage::new(&text.replace("queue: 16", records)).start();
        let (mut stream, _) = listener.accept().unwrap();
        let mut expected = String::new();
        for number in 0..LINES {
            expected.push_str(&format!("line {number} {}\n", "y".repeat(number % 50)));
        }
        // In pieces that do not care for lines.
        for piece in expected.as_bytes().chunks(777) {
            stream.write_all(piece).unwrap();
        }
        drop(stream);
        let result = live.ended();
        assert!(result.is_ok(), "{:?}", result.errors);
        assert_eq!(result.stop_reason, StopReason::Idle);
        assert!(file.text() == expected, "{}", file.text().len());
    }
}

#[test]
fn sockets_are_the_same_in_a_simulation() {
    let stage = Stage::new(
        "
components:
  - {id: play, type: test.Source, config: {epochs: [[a, b], [c]]}, execution: {lane: main}}
  - {id: send, type: windlass.tcp.sink, config: {connect: '127.0.0.1:700'}, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
  - {id: hear, type: windlass.tcp.source, config: {listen: '127.0.0.1:700'}, execution: {lane: main}}
  - {id: out, type: test.Sink, trigger_policy: {type: any_input, input: in}, execution: {lane: main}}
edges:
  - {id: e1, from: play.out, to: send.in, kind: immediate, QUEUE}
  - {id: e2, from: hear.out, to: out.in, kind: immediate, QUEUE}
",
    );
    let result = stage.simulate();
    assert_eq!(
        result.stop_reason,
        StopReason::DurationBound,
        "{:?}",
        result.errors
    );
    assert_eq!(stage.log.take(), [r#"in="a""#, r#"in="b""#, r#"in="c""#]);
}
