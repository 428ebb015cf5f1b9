//! Whole supervision trees in the simulator, with thousands of seeds: children that fail at random,
//! and what must hold all the same.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use windlass_actor::supervisor::{Backoff, ChildSpec, Strategy, Supervisor};
use windlass_actor::{ActorError, Context, Host, Message};
use windlass_runtime::time;

use crate::support::{expect_panics, simulated_once};

/// The children that are there: none is started before the one it replaces is gone.
#[derive(Clone, Default)]
struct Alive(Arc<Mutex<BTreeSet<u64>>>);

struct Life(Alive, u64);

impl Alive {
    fn begin(&self, child: u64) -> Life {
        let is_new = self.0.lock().expect("no panic").insert(child);
        assert!(is_new, "child {child} was started twice");
        Life(self.clone(), child)
    }

    fn count(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.0.lock().expect("no panic").remove(&self.1);
    }
}

/// Lives for a random while, then ends in a random way; answers until then.
async fn mortal(mut ctx: Context<Message>, _life: Life) -> Result<(), ActorError> {
    let dice = ctx.host().runtime().random();
    let life = Duration::from_millis(dice % 400);
    match time::timeout(life, async { while ctx.recv().await.is_some() {} }).await {
        // It was cancelled, and takes its time.
        Ok(()) => {
            time::sleep(Duration::from_millis(dice >> 40 & 15)).await;
            Ok(())
        }
        Err(_) => match dice >> 32 & 3 {
            0 => Ok(()),
            1 => Err(ActorError::new("tired of life")),
            2 => panic!("on purpose"),
            _ => {
                ctx.host().kill(ctx.pid());
                std::future::pending().await
            }
        },
    }
}

fn random_tree(host: &Host, depth: u32, alive: &Alive) -> Supervisor {
    let dice = host.runtime().random();
    let strategies = [
        Strategy::OneForOne,
        Strategy::OneForAll,
        Strategy::RestForOne,
    ];
    let strategy = strategies[dice as usize % 3];
    let backoff = Backoff {
        first: Duration::from_millis(dice >> 8 & 15),
        most: Duration::from_millis(200),
        ..Backoff::default()
    };
    let mut supervisor = Supervisor::new(strategy)
        .backoff(backoff)
        .intensity(3 + (dice >> 16 & 3) as usize, Duration::from_secs(1));
    for number in 0..1 + (dice >> 24) % 3 {
        let child = host.runtime().random();
        let id = format!("{depth}.{number}");
        let spec = if depth > 0 && child & 1 == 0 {
            ChildSpec::supervisor(id, random_tree(host, depth - 1, alive))
        } else {
            let alive = alive.clone();
            ChildSpec::new(id, move |spawn| {
                let life = alive.begin(child);
                Ok(spawn.spawn(|ctx| mortal(ctx, life))?.pid())
            })
        };
        supervisor = supervisor.child(match child >> 8 & 3 {
            0 => spec.transient(),
            1 => spec.temporary(),
            _ => spec,
        });
    }
    supervisor
}

async fn run_tree(host: Host) {
    let alive = Alive::default();
    let top = random_tree(&host, 2, &alive)
        .start(&host)
        .expect("a supervisor");
    for _ in 0..10 {
        time::sleep(Duration::from_millis(100)).await;
        let Ok(tree) = top.tree().await else {
            // It gave up.
            break;
        };
        assert!(tree.to_string().lines().count() > tree.children.len());
    }
    top.cancel("enough");
    let exit = time::timeout(Duration::from_secs(30), top.join()).await;
    exit.expect("a supervisor always comes to its end");
    time::timeout(Duration::from_secs(30), async {
        while host.processes() > 0 {
            time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await
    .unwrap_or_else(|_| panic!("left behind: {:?}", host.list()));
    assert_eq!(alive.count(), 0);
}

#[test]
fn random_trees_come_to_their_end_and_leave_nothing() {
    expect_panics();
    let seeds = if std::env::var_os("WINDLASS_SOAK").is_some() {
        20_000
    } else {
        2_000
    };
    for seed in 0..seeds {
        simulated_once(seed, run_tree);
    }
}

#[test]
fn a_seed_is_a_history() {
    expect_panics();
    for seed in 0..100 {
        assert_eq!(
            simulated_once(seed, run_tree),
            simulated_once(seed, run_tree),
            "seed {seed}"
        );
    }
}
