//! Whole supervision trees in the simulator, with thousands of seeds: children that fail at random, and
//! what must hold all the same.

use std::time::Duration;

use windlass_process::supervisor::{Backoff, ChildSpec, Strategy, Supervisor, Tree};
use windlass_process::{Context, Fault, Host, Message};
use windlass_runtime::time;

use crate::support::{expect_panics, simulated_once};

/// Lives for a random while, then ends in a random way; answers until then.
async fn mortal(mut ctx: Context<Message>) -> Result<(), Fault> {
    let dice = ctx.host().runtime().random();
    let life = Duration::from_millis(dice % 400);
    match time::timeout(life, async { while ctx.recv().await.is_some() {} }).await {
        // It was told to stop.
        Ok(()) => Ok(()),
        Err(_) => match dice >> 32 & 3 {
            0 => Ok(()),
            1 => Err(Fault::new("tired of life")),
            2 => panic!("on purpose"),
            _ => {
                ctx.host().kill(ctx.pid());
                std::future::pending().await
            }
        },
    }
}

fn random_tree(host: &Host, depth: u32) -> Supervisor {
    let dice = host.runtime().random();
    let strategy = [
        Strategy::OneForOne,
        Strategy::OneForAll,
        Strategy::RestForOne,
    ][dice as usize % 3];
    let backoff = Backoff {
        first: Duration::from_millis(dice >> 8 & 15),
        most: Duration::from_millis(200),
        ..Backoff::default()
    };
    let mut supervisor = Supervisor::new(strategy)
        .backoff(backoff)
        .intensity(3 + (dice >> 16 & 3) as usize, Duration::from_secs(1));
    for number in 0..1 + (dice >> 24) % 3 {
        let kind = host.runtime().random();
        let id = format!("{depth}.{number}");
        let spec = if depth > 0 && kind & 1 == 0 {
            ChildSpec::supervisor(id, random_tree(host, depth - 1))
        } else {
            ChildSpec::new(id, |spawn| Ok(spawn.spawn(mortal)?.pid()))
        };
        supervisor = supervisor.child(match kind >> 8 & 3 {
            0 => spec.transient(),
            1 => spec.temporary(),
            _ => spec,
        });
    }
    supervisor
}

fn processes_in(tree: &Tree) -> usize {
    let below = |child: &windlass_process::supervisor::TreeChild| match &child.below {
        Some(tree) => processes_in(tree),
        None => usize::from(child.pid.is_some()),
    };
    1 + tree.children.iter().map(below).sum::<usize>()
}

async fn run_tree(host: Host) {
    let top = random_tree(&host, 2).start(&host).expect("a supervisor");
    for _ in 0..10 {
        time::sleep(Duration::from_millis(100)).await;
        let Ok(tree) = top.tree().await else {
            // It gave up; nothing of it is left.
            break;
        };
        // The tree was asked level by level, and children may have ended or begun meanwhile; what is there
        // when nothing moves is exactly what the trees say.
        assert!(!tree.to_string().is_empty());
        let alive = host.processes();
        let listed = processes_in(&tree);
        assert!(
            listed <= alive + 3 && alive <= listed + 12,
            "{listed} of {alive}\n{tree}"
        );
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
    assert!(host.members("any").is_empty());
}

#[test]
fn random_trees_come_to_their_end_and_leave_nothing() {
    expect_panics();
    let seeds = if std::env::var_os("WINDLASS_SOAK").is_some() {
        20_000
    } else {
        1_500
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
