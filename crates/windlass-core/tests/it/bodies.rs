//! Bodies of any kind run on the same pool.

use std::pin::Pin;
use std::task::{Context, Poll};

use windlass_core::sched::pool::{Config, Hooks, Pool};
use windlass_core::task::{Body, Closure, FutureBody, Options, SpawnRequest};

/// A body that is neither a future nor a closure: it counts its turns.
struct Turns(u32);

impl Body for Turns {
    type Output = u32;

    fn resume(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<u32> {
        self.0 += 1;
        if self.0 == 5 {
            return Poll::Ready(self.0);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[test]
fn futures_closures_and_other_bodies_share_a_pool() {
    let config = Config {
        workers: 2,
        ..Config::default()
    };
    let pool = Pool::start(config, Hooks::default(), None).expect("it starts");
    let future = pool.spawn(SpawnRequest::new(FutureBody(async { 1 }), Options::here()));
    let closure = pool.spawn(SpawnRequest::new(Closure(Some(|| 2)), Options::here()));
    let turns = pool.spawn(SpawnRequest::new(Turns(0), Options::here()));
    assert_eq!(windlass_core::block_on(future).expect("runs"), 1);
    assert_eq!(windlass_core::block_on(closure).expect("runs"), 2);
    assert_eq!(windlass_core::block_on(turns).expect("runs"), 5);
    assert!(pool.shutdown(None).stuck.is_empty());
}

#[test]
fn a_body_of_many_pages_and_one_with_a_large_alignment_are_fine() {
    #[repr(align(256))]
    struct Aligned(u8);
    let config = Config {
        workers: 1,
        ..Config::default()
    };
    let pool = Pool::start(config, Hooks::default(), None).expect("it starts");
    let large = [7u8; 100_000];
    let sum = pool.spawn(SpawnRequest::new(
        FutureBody(async move { large.iter().map(|byte| u64::from(*byte)).sum::<u64>() }),
        Options::here(),
    ));
    let aligned = Aligned(3);
    let address = pool.spawn(SpawnRequest::new(
        FutureBody(async move {
            let there = &aligned;
            (std::ptr::from_ref(there).addr() % 256, there.0)
        }),
        Options::here(),
    ));
    assert_eq!(windlass_core::block_on(sum).expect("runs"), 700_000);
    assert_eq!(windlass_core::block_on(address).expect("runs"), (0, 3));
    assert!(pool.shutdown(None).stuck.is_empty());
}
