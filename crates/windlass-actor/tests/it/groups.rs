//! Groups.

use windlass_actor::{GroupChange, MailboxPolicy, Message, RegisterError};

use crate::support::{Log, everywhere, idle, recorder, waits};

#[test]
fn members_join_leave_and_are_spoken_to() {
    everywhere(|host| async move {
        let log = Log::default();
        let members: Vec<_> = (0..3)
            .map(|_| host.step(recorder(&log)).expect("a process"))
            .collect();
        let pids: Vec<_> = members.iter().map(|member| member.pid()).collect();
        for pid in [pids[2], pids[0], pids[1], pids[0]] {
            host.join("team", pid).expect("it lives");
        }
        assert_eq!(
            host.members("team"),
            [pids[2], pids[0], pids[1]],
            "in order, once"
        );
        assert_eq!(host.broadcast("team", &Message::new("hello", 1)), 3);
        assert!(host.leave("team", pids[0]));
        assert!(!host.leave("team", pids[0]));
        members[1].kill();
        members[1].join().await;
        assert_eq!(host.members("team"), [pids[2]]);
        assert_eq!(host.broadcast("team", &Message::new("again", 2)), 1);
        assert_eq!(host.broadcast("nobody", &Message::new("again", 2)), 0);
        for pid in [pids[0], pids[2]] {
            waits(&host, pid).await;
        }
        let mut told = log.all();
        told.sort();
        let hello = "message hello 1";
        assert_eq!(told[0], "message again 2");
        assert_eq!(
            told.iter().filter(|told| *told == hello).count(),
            told.len() - 1
        );
        let gone = host.join("team", pids[1]);
        assert_eq!(gone, Err(RegisterError::NoProcess));
    });
}

#[test]
fn a_subscription_begins_with_a_snapshot_and_misses_nothing() {
    everywhere(|host| async move {
        let one = host.spawn(idle).expect("a process");
        let two = host.spawn(idle).expect("a process");
        host.join("team", one.pid()).expect("it lives");
        let mut team = host.subscribe("team");
        assert_eq!(team.members(), [one.pid()]);
        host.join("team", two.pid()).expect("it lives");
        one.kill();
        one.join().await;
        host.leave("team", two.pid());
        host.join("team", two.pid()).expect("it lives");
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(team.changed().await.expect("nothing is missed"));
        }
        let expected = [
            GroupChange::Joined(two.pid()),
            GroupChange::Left(one.pid()),
            GroupChange::Left(two.pid()),
            GroupChange::Joined(two.pid()),
        ];
        assert_eq!(seen, expected);
    });
}

#[test]
fn a_full_member_is_passed_over() {
    everywhere(|host| async move {
        let full = host
            .process()
            .mailbox(MailboxPolicy::Bounded(1))
            .spawn(|_: windlass_actor::Context<Message>| std::future::pending::<()>())
            .expect("a process");
        host.join("team", full.pid()).expect("it lives");
        assert_eq!(host.broadcast("team", &Message::new("x", 1)), 1);
        assert_eq!(host.broadcast("team", &Message::new("x", 2)), 0);
    });
}
