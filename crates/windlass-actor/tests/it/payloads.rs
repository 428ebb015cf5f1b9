//! Payloads of many levels: no call on them overflows a stack, however small the stack is.

use windlass_actor::{Context, Message};
use windlass_runtime::coroutine;
use windlass_value::Payload;

use crate::support::real;

const LEVELS: usize = 100_000;

/// Lists and maps in turn, one in the other.
fn deep(innermost: impl Into<Payload>) -> Payload {
    (0..LEVELS).fold(innermost.into(), |inner, level| match level % 2 {
        0 => Payload::from(vec![inner]),
        _ => Payload::map([("inner", inner)]),
    })
}

/// Each level holds the level below twice: 2^n values in the memory of n.
fn doubled(innermost: impl Into<Payload>) -> Payload {
    (0..LEVELS).fold(innermost.into(), |inner, _| {
        Payload::from(vec![inner.clone(), inner])
    })
}

/// Runs a test where stacks are small: in a coroutine.
fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    real(1, |_| async {
        coroutine::spawn(test).await.expect("it does not panic");
    });
}

#[test]
fn a_payload_of_many_levels_is_dropped() {
    drop(deep(1));
    drop(doubled(1));
    on_a_small_stack(|| drop((deep(1), doubled(1))));
}

/// Each is one level for a destructor of its own.
#[test]
fn a_payload_inside_an_opaque_one_is_dropped_too() {
    on_a_small_stack(|| {
        let nested = (0..10_000).fold(Payload::Nil, |inner, _| {
            Payload::from(vec![Payload::opaque(inner)])
        });
        drop(nested);
    });
}

/// The last two holders of the same levels let go at the same time.
#[test]
fn a_payload_of_many_levels_is_dropped_by_two_threads() {
    for _ in 0..4 {
        let payload = deep(1);
        let shared = payload.clone();
        let other = std::thread::spawn(move || drop(shared));
        drop(payload);
        other.join().expect("it does not panic");
    }
}

#[test]
fn a_payload_of_many_levels_is_told() {
    real(2, |host| async move {
        let process = host.spawn(|mut ctx: Context<Message>| async move {
            for _ in 0..4 {
                ctx.recv().await;
            }
        });
        let process = process.expect("a process");
        let address = process.address();
        let task = host.runtime().spawn(async move {
            address.tell(Message::new("deep", deep(1))).expect("room");
            let doubled = Message::new("doubled", doubled(1));
            address.tell(doubled).expect("room");
            address
        });
        let address = task.await.expect("it ends");
        let coroutine = coroutine::spawn(move || {
            address.tell(Message::new("deep", deep(1))).expect("room");
            let doubled = Message::new("doubled", doubled(1));
            address.tell(doubled).expect("room");
        });
        coroutine.await.expect("it ends");
        assert!(process.join().await.reason.is_normal());
    });
}

#[test]
fn payloads_of_many_levels_are_compared() {
    on_a_small_stack(|| {
        assert_eq!(deep(1), deep(1));
        assert!(deep(1) != deep(2));
        let list = || Payload::from(vec![deep(1), Payload::Int(7)]);
        assert!(list() != Payload::from(vec![deep(1), Payload::Int(8)]));
        assert_eq!(list(), list());
    });
}

/// There are more pairs of values than could be compared in any time.
#[test]
fn payloads_that_share_parts_are_compared_part_by_part() {
    on_a_small_stack(|| {
        assert_eq!(doubled(1), doubled(1));
        assert!(doubled(1) != doubled(2));
    });
}

#[test]
fn payloads_of_many_levels_are_shown_in_part() {
    on_a_small_stack(|| {
        for payload in [deep(1), doubled(1)] {
            let shown = format!("{payload:?}");
            assert!(shown.len() < 20_000 && shown.contains("..."), "{shown}");
        }
        let payload = Payload::map([
            ("empty", Payload::from(Vec::<Payload>::new())),
            (
                "list",
                Payload::from(vec![Payload::Int(1), "two".into(), Payload::Nil]),
            ),
            ("map", Payload::map([("key", Payload::Bool(true))])),
        ]);
        let shown = r#"{"empty": [], "list": [1, "two", nil], "map": {"key": true}}"#;
        assert_eq!(format!("{payload:?}"), shown);
    });
}
