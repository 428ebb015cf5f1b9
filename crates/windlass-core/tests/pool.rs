//! smoke
use windlass_core::sched::pool::{Config, Hooks, Pool};
use windlass_core::task::{FutureBody, Options};

#[test]
fn smoke() {
    let pool = Pool::start(Config { workers: 2, ..Config::default() }, Hooks::default(), None).unwrap();
    let p2 = pool.clone();
    let h = pool.spawn(FutureBody(async move {
        let hs: Vec<_> = (0..100_000u64).map(|i| p2.spawn(FutureBody(async move { i }), Options::here())).collect();
        let mut s = 0;
        for h in hs { s += h.await.unwrap(); }
        s
    }), Options::here());
    assert_eq!(windlass_core::block_on(h).unwrap(), 99_999 * 100_000 / 2);
    let pend = pool.spawn(FutureBody(std::future::pending::<()>()), Options::here());
    let r = pool.shutdown(None);
    assert!(r.stuck.is_empty());
    assert!(windlass_core::block_on(pend).unwrap_err().is_cancelled());
}
