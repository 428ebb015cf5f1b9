//! A graceful end, and a report of what did not stop: `cargo run --example shutdown`.

use std::sync::mpsc;
use std::time::Duration;

use windlass::task::{self, shield, yield_now};
use windlass::{CancellationToken, Runtime};

struct Says(&'static str);

impl Drop for Says {
    fn drop(&mut self) {
        println!("  {}", self.0);
    }
}

fn main() -> windlass::Result<()> {
    println!("a clean end:");
    let runtime = Runtime::builder().workers(2).build()?;
    let token = CancellationToken::new();
    let stop = token.clone();
    let service = runtime.spawn(async move {
        // Asked to stop, it finishes in its own time.
        stop.cancelled().await;
        println!("  the service ends by itself");
    });
    runtime
        .spawn(async {
            let _says = Says("a task that waits for ever is dropped");
            std::future::pending::<()>().await;
        })
        .detach();
    let (began, begins) = mpsc::channel();
    runtime
        .spawn(async move {
            shield(async {
                began.send(()).ok();
                for _ in 0..1000 {
                    yield_now().await;
                }
                println!("  a shielded section runs to its end");
            })
            .await;
        })
        .detach();
    begins.recv()?;
    token.cancel();
    runtime.block_on(service)?;
    println!("  {}", runtime.shutdown(Duration::from_secs(5)));

    println!("an end with something stuck:");
    let runtime = Runtime::builder().workers(1).build()?;
    let (release, held) = mpsc::channel::<()>();
    let (began, begins) = mpsc::channel();
    let job = task::Builder::new()
        .name("a call that hangs")
        .spawn_blocking_on(runtime.handle(), move || {
            began.send(()).ok();
            held.recv().ok();
        })?;
    begins.recv()?;
    let report = runtime.shutdown(Duration::from_millis(200));
    println!("  {report}");
    release.send(())?;
    windlass::block_on(job)?;
    Ok(())
}
