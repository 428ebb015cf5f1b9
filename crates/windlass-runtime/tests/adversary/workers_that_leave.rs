//! Timers and sockets when the worker that sleeps in the driver leaves.

use std::io::{Read, Write};
use std::time::Duration;

use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_io::net::TcpListener;
use windlass_runtime::task::block_in_place;
use windlass_runtime::{Runtime, coroutine, time};

use crate::support::{join, ms, runtime};

/// No worker had to be sent to the driver by the watchdog.
fn assert_no_rescue(runtime: &Runtime) {
    assert_eq!(runtime.snapshot().pool.driver_rescues, 0);
}

#[test]
fn a_timer_fires_after_a_worker_was_replaced_for_a_moment() {
    for _ in 0..20 {
        let runtime = runtime(1);
        let slept = coroutine::Builder::new().spawn_on(runtime.handle(), || {
            block_in_place(|| std::thread::sleep(ms(2)));
            coroutine::wait(time::sleep(ms(20)));
        });
        join("a sleep after block_in_place", slept);
        let slept = runtime.spawn(async {
            block_in_place(|| std::thread::sleep(ms(2)));
            time::sleep(ms(20)).await;
        });
        join("a sleep after block_in_place, in a task", slept);
        assert_no_rescue(&runtime);
    }
}

#[test]
fn a_timer_fires_after_the_pool_was_made_smaller() {
    for _ in 0..20 {
        let runtime = runtime(4);
        let slept: Vec<_> = (0..2).map(|_| runtime.spawn(time::sleep(ms(30)))).collect();
        let waited = coroutine::Builder::new()
            .spawn_on(runtime.handle(), || coroutine::wait(time::sleep(ms(30))));
        std::thread::sleep(ms(5));
        runtime.resize(1).expect("one worker is enough");
        slept
            .into_iter()
            .for_each(|handle| join("a sleep across a resize", handle));
        join("a coroutine's sleep across a resize", waited);
        assert_no_rescue(&runtime);
    }
}

#[test]
fn a_server_listens_after_the_pool_was_made_smaller() {
    for _ in 0..10 {
        let runtime = runtime(4);
        let (sender, receiver) = std::sync::mpsc::channel();
        coroutine::Builder::new()
            .stack_size(256 << 10)
            .spawn_on(runtime.handle(), move || {
                let listener = coroutine::wait(TcpListener::bind("127.0.0.1:0")).unwrap();
                sender.send(listener.local_addr().unwrap()).unwrap();
                let (mut stream, _) = coroutine::wait(listener.accept()).unwrap();
                let mut bytes = [0; 4];
                let read = coroutine::wait(stream.read(&mut bytes)).unwrap();
                coroutine::wait(stream.write_all(&bytes[..read])).unwrap();
            })
            .detach();
        let address = receiver.recv().unwrap();
        std::thread::sleep(ms(3));
        runtime.resize(1).expect("one worker is enough");
        std::thread::sleep(ms(10));
        let mut client = std::net::TcpStream::connect(address).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        client.write_all(b"ping").unwrap();
        let mut bytes = [0; 4];
        client.read_exact(&mut bytes).expect("the server answers");
        assert_no_rescue(&runtime);
    }
}
