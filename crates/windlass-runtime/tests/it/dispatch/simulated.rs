//! The same programs in a simulation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass_runtime::dispatch::{Dispatcher, with_dispatcher};
use windlass_runtime::{coroutine, time};

#[test]
fn every_dispatcher_runs_in_a_simulation() {
    windlass_runtime::simulator::explore(30, || async {
        let began = time::Instant::now();
        let all = [
            Dispatcher::default(),
            Dispatcher::io(),
            Dispatcher::custom(4).expect("no threads are needed"),
            Dispatcher::single().expect("no threads are needed"),
            Dispatcher::unconfined(),
        ];
        let mut handles = Vec::new();
        for (number, dispatcher) in all.iter().enumerate() {
            handles.push(dispatcher.spawn(async move {
                time::sleep(Duration::from_secs(10)).await;
                number
            }));
            handles.push(dispatcher.spawn_coroutine(move || {
                coroutine::wait(time::sleep(Duration::from_secs(20)));
                number
            }));
            let section = with_dispatcher(dispatcher, async move { number });
            assert_eq!(section.await.expect("no panic"), number);
        }
        for (index, handle) in handles.into_iter().enumerate() {
            assert_eq!(handle.await.expect("no panic"), index / 2);
        }
        assert_eq!(began.elapsed(), Duration::from_secs(20));
    });
}

#[test]
fn a_single_one_keeps_its_order_in_a_simulation() {
    windlass_runtime::simulator::explore(30, || async {
        let single = Dispatcher::single().expect("no threads are needed");
        let order: Arc<Mutex<Vec<u32>>> = Arc::default();
        let handles: Vec<_> = (0..100)
            .map(|number| {
                let order = order.clone();
                single.spawn(async move {
                    order.lock().expect("no panic").push(number);
                    windlass_runtime::task::yield_now().await;
                    order.lock().expect("no panic").push(number + 100);
                })
            })
            .collect();
        for handle in handles {
            handle.await.expect("no panic");
        }
        let order = order.lock().expect("no panic").clone();
        assert_eq!(order, (0..200).collect::<Vec<_>>());
    });
}
