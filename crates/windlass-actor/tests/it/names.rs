//! Names.

use std::time::Duration;

use windlass_actor::{
    Context, Host, Message, RegisterError, SendErrorKind, SignalError, SpawnError,
};
use windlass_runtime::{join_all, time};
use windlass_value::Payload;

use crate::support::{Count, everywhere, idle};

#[test]
fn a_name_belongs_to_one_process_until_it_ends() {
    everywhere(|host| async move {
        let first = host.process().name("clerk").spawn(idle).expect("free");
        assert_eq!(host.whereis("clerk"), Some(first.pid()));
        let taken = host.process().name("clerk").spawn(idle).expect_err("taken");
        let owner = first.pid();
        assert_eq!(
            taken,
            SpawnError::NameTaken {
                name: "clerk".into(),
                owner
            }
        );
        let second = host.spawn(idle).expect("a process");
        let taken = host.register("clerk", second.pid());
        assert_eq!(taken, Err(RegisterError::Taken { owner }));
        assert_eq!(host.register("clerk", first.pid()), Ok(()), "it has it");
        host.send_to_name("clerk", Message::new("x", ()))
            .expect("it lives");
        first.kill();
        first.join().await;
        assert_eq!(host.whereis("clerk"), None);
        assert_eq!(
            host.register("clerk", first.pid()),
            Err(RegisterError::NoProcess)
        );
        let refused = host
            .send_to_name("clerk", Message::new("x", 1))
            .expect_err("nobody");
        assert_eq!(
            (refused.kind, refused.message.payload),
            (SendErrorKind::NoProcess, 1.into())
        );
        host.register("clerk", second.pid()).expect("free again");
        assert_eq!(host.unregister("clerk"), Some(second.pid()));
        assert_eq!(host.unregister("clerk"), None);
        assert_eq!(host.processes(), 1, "those that failed to start are gone");
    });
}

#[test]
fn spawn_or_signal_starts_one_and_reaches_it() {
    everywhere(|host| async move {
        let starts = Count::default();
        let signal = |number: i64| {
            let starts = starts.clone();
            host.spawn_or_signal("counter", Message::new("n", number), move |spawn| {
                starts.up();
                let process = spawn.spawn(|mut ctx: Context<Message>| async move {
                    let mut sum = 0;
                    while sum < 10 {
                        let message = ctx.recv().await.expect("nobody stops it");
                        sum += message.payload.as_i64().unwrap_or(0);
                    }
                    Payload::Int(sum)
                })?;
                Ok(process.pid())
            })
        };
        let pids: Vec<_> = (1..=4)
            .map(|number| signal(number).expect("it lives"))
            .collect();
        assert!(pids.iter().all(|pid| *pid == pids[0]));
        host.ended(pids[0]).await;
        assert_eq!(starts.get(), 1);
        let next = signal(1).expect("a new one");
        assert_ne!(next, pids[0]);
        host.kill(next);
        host.ended(next).await;
        let fails =
            host.spawn_or_signal("none", Message::new("n", 1), |_| Err(SpawnError::Stopping));
        assert_eq!(fails, Err(SignalError::Spawn(SpawnError::Stopping)));
    });
}

#[test]
fn two_that_want_a_name_at_the_same_time_do_not_both_get_it() {
    everywhere(|host| async move {
        for _ in 0..20 {
            let spawn = |host: Host| {
                host.clone()
                    .runtime()
                    .spawn(async move { host.process().name("one").spawn(idle) })
            };
            let both = join_all(vec![spawn(host.clone()), spawn(host.clone())]).await;
            let got: Vec<_> = both
                .into_iter()
                .filter_map(|spawned| spawned.expect("no panic").ok())
                .collect();
            assert_eq!(got.len(), 1);
            got[0].kill();
            got[0].join().await;
            time::sleep(Duration::from_micros(10)).await;
            assert_eq!((host.whereis("one"), host.processes()), (None, 0));
        }
    });
}
