//! Supervisors.

use std::time::Duration;

use windlass_actor::supervisor::{
    Backoff, ChildSpec, Restart, Strategy, Supervisor, SupervisorError,
};
use windlass_actor::{ActorError, Context, ExitReason, Host, Message, SpawnError};
use windlass_runtime::time;

use crate::support::{Count, Log, deaf, eventually, everywhere, expect_panics, idle, simulated};

/// A child that writes down its beginning and its end, has its id as a name, and obeys.
fn child(id: &'static str, log: &Log<String>) -> ChildSpec {
    let log = log.clone();
    ChildSpec::new(id, move |spawn| {
        log.add(format!("+{id}"));
        let log = log.clone();
        let process = spawn
            .name(id)
            .spawn(move |mut ctx: Context<Message>| async move {
                let end = ctx.recv().await;
                log.add(format!("-{id}"));
                match end.as_ref().map(|message| message.topic.as_str()) {
                    Some("fail") => Err(ActorError::new("asked to")),
                    Some("panic") => panic!("on purpose"),
                    _ => Ok(()),
                }
            })?;
        Ok(process.pid())
    })
}

fn at_once() -> Backoff {
    Backoff {
        first: Duration::ZERO,
        ..Backoff::default()
    }
}

async fn say(host: &Host, name: &str, topic: &'static str) {
    host.send_to_name(name, Message::new(topic, ()))
        .expect("it lives");
}

#[test]
fn each_strategy_restarts_those_it_says() {
    for (strategy, expected) in [
        (Strategy::OneForOne, "-b +b"),
        (Strategy::OneForAll, "-b -c -a +a +b +c"),
        (Strategy::RestForOne, "-b -c +b +c"),
    ] {
        everywhere(|host| async move {
            let log = Log::default();
            let supervisor = ["a", "b", "c"]
                .into_iter()
                .fold(
                    Supervisor::new(strategy).backoff(at_once()),
                    |supervisor, id| supervisor.child(child(id, &log)),
                )
                .start(&host)
                .expect("a supervisor");
            supervisor.started().await.expect("all start");
            assert_eq!(log.all().len(), 3);
            say(&host, "b", "fail").await;
            let words = 3 + expected.split(' ').count();
            eventually("they are back", || log.all().len() >= words).await;
            assert_eq!(log.all()[3..].join(" "), expected, "{strategy}");
            supervisor.cancel("enough");
            let reason = supervisor.join().await.reason;
            assert_eq!(reason, ExitReason::Cancelled("enough".into()));
            assert_eq!(log.all()[log.all().len() - 3..].join(" "), "-c -b -a");
            assert_eq!(host.processes(), 0);
        });
    }
}

#[test]
fn kinds_of_children_say_when_they_come_back() {
    expect_panics();
    everywhere(|host| async move {
        let log = Log::default();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .backoff(at_once())
            .child(child("permanent", &log))
            .child(child("transient", &log).transient())
            .child(child("temporary", &log).temporary())
            .start(&host)
            .expect("a supervisor");
        supervisor.started().await.expect("all start");
        let times = |entry: &str| log.all().iter().filter(|there| *there == entry).count();
        for name in ["permanent", "transient"] {
            say(&host, name, "panic").await;
            eventually("it is back", || times(&format!("+{name}")) == 2).await;
            eventually("it has its name", || host.whereis(name).is_some()).await;
        }
        say(&host, "permanent", "end").await;
        eventually("it is back", || times("+permanent") == 3).await;
        say(&host, "transient", "end").await;
        say(&host, "temporary", "fail").await;
        eventually("they end", || {
            host.whereis("transient").is_none() && host.whereis("temporary").is_none()
        })
        .await;
        assert_eq!(host.whereis("transient"), None, "it ended normally");
        assert_eq!(host.whereis("temporary"), None);
        let tree = supervisor.tree().await.expect("it answers");
        let seen: Vec<_> = tree
            .children
            .iter()
            .map(|child| (&*child.id, child.pid.is_some(), child.restarts))
            .collect();
        assert_eq!(
            seen,
            [("permanent", true, 2), ("transient", false, 1)],
            "{tree}"
        );
    });
}

#[test]
fn a_tree_is_drawn() {
    simulated(|host| async move {
        let log = Log::default();
        let inner = Supervisor::new(Strategy::OneForAll)
            .child(child("c", &log))
            .child(child("d", &log).transient());
        let top = Supervisor::new(Strategy::OneForOne)
            .child(child("a", &log))
            .child(ChildSpec::supervisor("inner", inner))
            .child(child("z", &log).temporary())
            .start(&host)
            .expect("a supervisor");
        let tree = top.tree().await.expect("it answers");
        let below = tree.children[1].below.as_ref().expect("a supervisor");
        assert_eq!(below.children.len(), 2);
        let text = tree.to_string();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].ends_with("one_for_one"), "{text}");
        assert!(
            lines[1].starts_with("├─ a {local|") && lines[1].ends_with("permanent"),
            "{text}"
        );
        assert!(
            lines[2].starts_with("├─ inner {") && lines[2].ends_with("one_for_all"),
            "{text}"
        );
        assert!(lines[3].starts_with("│  ├─ c {"), "{text}");
        assert!(
            lines[4].starts_with("│  └─ d {") && lines[4].ends_with("transient"),
            "{text}"
        );
        assert!(
            lines[5].starts_with("└─ z {") && lines[5].ends_with("temporary"),
            "{text}"
        );
    });
}

#[test]
fn children_come_and_go_while_it_runs() {
    everywhere(|host| async move {
        let log = Log::default();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .backoff(at_once())
            .start(&host)
            .expect("a supervisor");
        let pid = supervisor
            .start_child(child("a", &log))
            .await
            .expect("it starts");
        assert_eq!(host.whereis("a"), Some(pid));
        let twice = supervisor.start_child(child("a", &log)).await;
        assert_eq!(twice, Err(SupervisorError::Exists("a".into())));
        let fails = ChildSpec::new("x", |_| Err(SpawnError::NoRoom));
        let error = supervisor.start_child(fails).await;
        assert_eq!(error, Err(SupervisorError::Spawn(SpawnError::NoRoom)));
        say(&host, "a", "fail").await;
        let times = || log.all().iter().filter(|there| *there == "+a").count();
        eventually("it is back", || times() == 2).await;
        supervisor.stop_child("a").await.expect("it is there");
        assert_eq!(host.whereis("a"), None);
        let gone = supervisor.stop_child("a").await;
        assert_eq!(gone, Err(SupervisorError::NoChild("a".into())));
        supervisor.kill();
        assert_eq!(supervisor.join().await.reason, ExitReason::Killed);
        let over = supervisor.tree().await;
        assert!(matches!(over, Err(SupervisorError::Ask(_))), "{over:?}");
    });
}

#[test]
fn a_killed_supervisor_takes_its_children_along() {
    everywhere(|host| async move {
        let log = Log::default();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(child("a", &log))
            .child(child("b", &log))
            .start(&host)
            .expect("a supervisor");
        supervisor.started().await.expect("all start");
        supervisor.kill();
        supervisor.join().await;
        eventually("they go, too", || host.processes() == 0).await;
    });
}

#[test]
fn a_child_that_does_not_stop_is_killed_at_its_own_deadline() {
    simulated(|host| async move {
        let stubborn = |id: &'static str, millis| {
            ChildSpec::new(id, |spawn| Ok(spawn.step(deaf())?.pid()))
                .stop_within(Duration::from_millis(millis))
        };
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(stubborn("a", 30))
            .child(stubborn("b", 50))
            .start(&host)
            .expect("a supervisor");
        supervisor.started().await.expect("all start");
        let began = time::Instant::now();
        supervisor.cancel("enough");
        supervisor.join().await;
        assert_eq!(began.elapsed(), Duration::from_millis(80));
        assert_eq!(host.processes(), 0);
    });
}

#[test]
fn a_first_child_that_does_not_start_fails_the_supervisor() {
    expect_panics();
    everywhere(|host| async move {
        let log = Log::default();
        let panics = ChildSpec::new("c", |_| panic!("on purpose"));
        for broken in [
            ChildSpec::new("b", |_| Err(SpawnError::NoRoom)),
            panics,
            child("a", &log),
        ] {
            let supervisor = Supervisor::new(Strategy::OneForOne)
                .child(child("a", &log))
                .child(broken)
                .start(&host)
                .expect("a supervisor");
            let error = supervisor.started().await.expect_err("it does not start");
            assert!(
                matches!(&error, SupervisorError::Ended(ExitReason::Error(_))),
                "{error}"
            );
            assert_eq!(host.processes(), 0, "what was started is stopped");
        }
    });
}

#[test]
fn a_child_that_does_not_come_back_is_tried_again() {
    simulated(|host| async move {
        let starts = Count::default();
        let counted = starts.clone();
        let child = ChildSpec::new("a", move |spawn| match counted.up() {
            2 | 3 => Err(SpawnError::NoRoom),
            _ => Ok(spawn.name("a").spawn(idle)?.pid()),
        });
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(child)
            .start(&host);
        let supervisor = supervisor.expect("a supervisor");
        supervisor.started().await.expect("it starts");
        let first = host.whereis("a").expect("it runs");
        host.kill(first);
        host.ended(first).await;
        let tree = supervisor.tree().await.expect("it answers");
        assert!(
            tree.children[0].waits.is_some() && tree.children[0].pid.is_none(),
            "{tree}"
        );
        assert!(tree.to_string().contains("again in"), "{tree}");
        time::sleep(Duration::from_secs(2)).await;
        assert_eq!(starts.get(), 4);
        assert!(host.whereis("a").is_some());
    });
}

#[test]
fn a_stable_child_begins_anew_with_the_first_pause() {
    simulated(|host| async move {
        let log = Log::default();
        let backoff = Backoff {
            first: Duration::from_millis(100),
            jitter: 0.0,
            reset_after: Duration::from_secs(10),
            ..Backoff::default()
        };
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .backoff(backoff)
            .child(child("a", &log))
            .start(&host)
            .expect("a supervisor");
        supervisor.started().await.expect("it starts");
        let pause = || async {
            let pid = host.whereis("a").expect("it runs");
            host.kill(pid);
            host.ended(pid).await;
            let began = time::Instant::now();
            while host.whereis("a").is_none() {
                time::sleep(Duration::from_millis(1)).await;
            }
            began.elapsed().as_millis() as u64
        };
        let about =
            |pause: u64, wanted: u64| assert!(pause.abs_diff(wanted) <= 1, "{pause} for {wanted}");
        about(pause().await, 100);
        about(pause().await, 200);
        time::sleep(Duration::from_secs(11)).await;
        about(pause().await, 100);
        assert_eq!(
            Restart::Permanent,
            supervisor.tree().await.expect("it answers").children[0].restart
        );
    });
}

#[test]
fn by_default_a_child_that_keeps_failing_escalates() {
    simulated(|host| async move {
        let broken = |spawn: windlass_actor::Spawn| {
            let process =
                spawn.spawn(|_: Context<()>| async { Err::<(), _>(ActorError::new("broken")) })?;
            Ok(process.pid())
        };
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(ChildSpec::new("a", broken))
            .start(&host)
            .expect("a supervisor");
        let ended = time::timeout(Duration::from_secs(60), supervisor.join()).await;
        let reason = ended.expect("it gives up").reason;
        assert!(
            reason.to_string().contains("more than 5 restarts"),
            "{reason}"
        );
    });
}

#[test]
fn a_child_finds_its_supervisor_and_the_tree_says_how_children_ended() {
    simulated(|host| async move {
        let log = Log::default();
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .name("top")
            .backoff(at_once())
            .child(child("a", &log))
            .start(&host)
            .expect("a supervisor");
        let found = host.whereis("top").and_then(|pid| host.supervisor(pid));
        let found = found.expect("it is a supervisor");
        found
            .start_child(child("b", &log))
            .await
            .expect("it starts");
        let b = host.address_of::<Message>("b").expect("it takes messages");
        assert!(host.supervisor(b.pid()).is_none());
        b.tell(Message::new("fail", ())).expect("room");
        time::sleep(Duration::from_millis(5)).await;
        let tree = supervisor.tree().await.expect("it answers");
        assert_eq!(tree.children[0].last_end, None);
        let last = ExitReason::Error("asked to".into());
        assert_eq!(tree.children[1].last_end, Some(last));
        assert!(
            tree.to_string()
                .ends_with("restarted once (last: error: asked to)"),
            "{tree}"
        );
    });
}
