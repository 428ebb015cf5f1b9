//! Datagrams.

use std::net::UdpSocket;

use crate::stage::{LIMIT, Stage, contains, told};

#[test]
fn a_source_publishes_datagrams_in_its_format() {
    for (format, sent, expected) in [
        ("text", &b"hello"[..], r#"in="hello""#),
        ("json", b"{\"a\": [1]}", r#"in={"a":[1]}"#),
        ("bytes", b"\xff\x00\x01", r#"in={"$bytes":"/wAB"}"#),
        ("text", b"", r#"in="""#),
    ] {
        let config = format!("listen: '127.0.0.1:0', format: {format}");
        let live = Stage::source("windlass.udp.source", &config).start();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(sent, live.address("in")).unwrap();
        assert_eq!(live.log.wait_for(1), [expected]);
        live.stop_well();
    }
}

#[test]
fn a_datagram_that_is_wrong_is_told_and_the_next_is_published() {
    let config = "listen: '127.0.0.1:0', format: json";
    let live = Stage::source("windlass.udp.source", config)
        .forgiving("in")
        .start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = live.address("in");
    socket.send_to(b"{", address).unwrap();
    socket.send_to(b"7", address).unwrap();
    assert_eq!(live.log.wait_for(1), ["in=7"]);
    contains(&told(&live.stop()), &["\"{\" is not JSON"]);
}

#[test]
fn a_sink_sends_each_message_as_a_datagram() {
    for (format, expected) in [
        ("text", [&b"a"[..], b"1", b"{\"k\":2}"]),
        ("json", [b"\"a\"", b"1", b"{\"k\":2}"]),
    ] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(LIMIT)).unwrap();
        let to = socket.local_addr().unwrap();
        let config = format!("to: '{to}', format: {format}, queue: 1");
        let result = Stage::sink("windlass.udp.sink", &config, "[[a, 1], [{k: 2}]]").run();
        assert!(result.is_ok(), "{:?}", result.errors);
        for datagram in expected {
            let mut buffer = [0; 100];
            let (count, _) = socket.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], datagram);
        }
    }
}

#[test]
fn what_does_not_fit_into_a_datagram_is_told() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = format!("to: '{}'", socket.local_addr().unwrap());
    let epochs = format!("[['{}']]", "x".repeat(3000));
    let stage = Stage::through(
        "windlass.map",
        "expr: 'join(split(value, \"\"), \"----------------------\")'",
        &["out"],
        &epochs,
    )
    .with(
        "type: test.Sink",
        &format!("type: windlass.udp.sink, config: {{{config}}}"),
    )
    .with("to: out.out", "to: out.in")
    .with("inputs: [out]", "inputs: [in]");
    contains(&told(&stage.run()), &["too long for a datagram"]);
}

#[test]
fn wrong_settings_are_told() {
    for (config, what) in [
        ("", "config.listen is missing"),
        ("listen: here", "write host:port"),
        (
            "listen: 'a:1', format: xml",
            "allowed are text, json, bytes",
        ),
    ] {
        contains(
            &Stage::source("windlass.udp.source", config).fails(),
            &[what],
        );
    }
    for (config, what) in [
        ("", "config.to is missing"),
        ("to: 5", "config.to has to be a text"),
    ] {
        contains(
            &Stage::sink("windlass.udp.sink", config, "[]").fails(),
            &[what],
        );
    }
}
