//! `#[windlass::test]` and `#[windlass::main]`.

use std::cell::Cell;
use std::rc::Rc;

use windlass::runtime::Handle;

#[windlass::test]
async fn a_test_may_be_async() {
    let task = windlass::spawn(async { 6 * 7 });
    assert_eq!(task.await.unwrap(), 42);
}

#[windlass::test]
async fn a_test_runs_its_tasks_on_its_thread_by_default() {
    let here = std::thread::current().id();
    let there = windlass::spawn(async { std::thread::current().id() });
    assert_eq!(there.await.unwrap(), here);
}

#[windlass::test(workers = 3)]
async fn a_test_may_choose_its_workers() {
    assert_eq!(Handle::current().snapshot().pool.workers.len(), 3);
}

#[windlass::test]
async fn a_test_may_return_a_result() -> Result<(), Box<dyn std::error::Error>> {
    let number: u32 = "42".parse()?;
    let output = windlass::spawn(async move { number }).await?;
    assert_eq!(output, 42);
    Ok(())
}

#[windlass::test]
#[should_panic(expected = "this attribute stays")]
async fn a_test_keeps_its_other_attributes() {
    panic!("this attribute stays, on purpose");
}

#[windlass::test]
async fn the_body_of_a_test_need_not_be_send() {
    let cell = Rc::new(Cell::new(0));
    windlass::task::yield_now().await;
    cell.set(1);
    assert_eq!(cell.get(), 1);
}

#[windlass::main(workers = 1)]
async fn as_main() -> windlass::Result<usize> {
    let workers = windlass::spawn(async { Handle::current().snapshot().pool.workers.len() });
    Ok(workers.await?)
}

#[windlass::main]
async fn as_failing_main() -> windlass::Result<()> {
    let _: u32 = "no number".parse()?;
    Ok(())
}

#[test]
fn main_runs_its_body_on_a_runtime_and_gives_its_result() {
    assert_eq!(as_main().unwrap(), 1);
    assert!(
        as_failing_main()
            .unwrap_err()
            .to_string()
            .contains("invalid digit")
    );
}

#[windlass::test(flavor = "current_thread")]
async fn a_test_on_one_thread_runs_its_tasks_there() {
    let here = std::thread::current().id();
    let there = windlass::spawn(async { std::thread::current().id() });
    assert_eq!(there.await.unwrap(), here);
}

#[windlass::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_test_with_workers_runs_its_tasks_on_them() {
    let here = std::thread::current().id();
    let there = windlass::spawn(async { std::thread::current().id() });
    assert_ne!(there.await.unwrap(), here);
}
