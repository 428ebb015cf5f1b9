//! Two hosts with a wire between them.

use std::sync::{Arc, OnceLock};

use windlass_actor::{
    ActorEvent, Bond, Context, ExitReason, Host, Message, Pid, Relay, RemoteSignal, SendError,
    SendErrorKind,
};
use windlass_value::Payload;

use crate::support::{everywhere, idle, waits};

/// A wire to another host in the same program.
#[derive(Clone, Default)]
struct Wire(Arc<OnceLock<Host>>);

impl Relay for Wire {
    fn route(&self, to: Pid, message: Message) -> Result<(), SendError<Message>> {
        match self.0.get() {
            Some(host) => host.receive(to, message),
            None => Err(SendError {
                message,
                kind: SendErrorKind::NoConnection,
            }),
        }
    }

    fn route_signal(&self, to: Pid, signal: RemoteSignal) -> Result<(), SendError<RemoteSignal>> {
        match self.0.get() {
            Some(host) => {
                host.receive_signal(to, signal);
                Ok(())
            }
            None => Err(SendError {
                message: signal,
                kind: SendErrorKind::NoConnection,
            }),
        }
    }
}

fn two_nodes(base: &Host) -> (Host, Host) {
    let (to_paris, to_rome) = (Wire::default(), Wire::default());
    let node = |name: &str, wire: &Wire| {
        Host::builder()
            .node(name)
            .name("shop")
            .relay(Arc::new(wire.clone()))
            .build(base.runtime())
            .expect("a host")
    };
    let (rome, paris) = (node("rome", &to_paris), node("paris", &to_rome));
    assert!(to_paris.0.set(paris.clone()).is_ok() && to_rome.0.set(rome.clone()).is_ok());
    (rome, paris)
}

#[test]
fn messages_cross_in_order_and_name_their_sender() {
    everywhere(|base| async move {
        let (rome, paris) = two_nodes(&base);
        let receiver = paris
            .spawn(|mut ctx: Context<Message>| async move {
                for number in 0..100_i64 {
                    let message = ctx.recv().await.expect("it comes");
                    assert_eq!(message.payload, number.into());
                    if number == 99 {
                        let back = Message::new("done", number);
                        ctx.send(message.from.expect("it says"), back)
                            .expect("it lives");
                    }
                }
            })
            .expect("a process");
        let to: Pid = receiver.pid().to_string().parse().expect("what it prints");
        assert_eq!(to.node().as_deref(), Some("paris"));
        let sender = rome
            .spawn(move |mut ctx: Context<Message>| async move {
                for number in 0..100_i64 {
                    ctx.send(to, Message::new("n", number))
                        .expect("there is room");
                }
                ctx.recv()
                    .await
                    .map_or(Payload::Nil, |message| message.payload)
            })
            .expect("a process");
        assert_eq!(sender.join().await.value, 99_i64.into());
        assert_eq!(receiver.join().await.reason, ExitReason::Normal);
    });
}

#[test]
fn links_and_monitors_cross_too() {
    everywhere(|base| async move {
        let (rome, paris) = two_nodes(&base);
        let far = paris.spawn(idle).expect("a process");
        let pid = far.pid();
        let linked = rome
            .spawn(move |mut ctx: Context<Message>| async move {
                ctx.link(pid);
                ctx.recv().await;
            })
            .expect("a process");
        let watches = rome
            .spawn(move |mut ctx: Context<Message>| async move {
                let monitor = ctx.monitor(pid);
                let ActorEvent::Exit(exited) = ctx.event().await else {
                    panic!("an end was expected");
                };
                assert_eq!((exited.pid, exited.by), (pid, Bond::Monitor(monitor)));
                assert_eq!(exited.reason, ExitReason::Killed);
                let dead = ctx.monitor(pid);
                let ActorEvent::Exit(exited) = ctx.event().await else {
                    panic!("an end was expected");
                };
                assert_eq!(exited.reason, ExitReason::NoProcess);
                assert_eq!(exited.by, Bond::Monitor(dead));
            })
            .expect("a process");
        for process in [linked.pid(), watches.pid()] {
            waits(&rome, process).await;
        }
        rome.kill(pid);
        assert_eq!(far.join().await.reason, ExitReason::Killed);
        assert_eq!(linked.join().await.reason, ExitReason::Killed);
        assert_eq!(watches.join().await.reason, ExitReason::Normal);
    });
}

#[test]
fn a_lost_node_ends_what_leads_there() {
    everywhere(|base| async move {
        let (rome, paris) = two_nodes(&base);
        let pid = paris.spawn(idle).expect("a process").pid();
        let linked = rome
            .spawn(move |mut ctx: Context<Message>| async move {
                ctx.link(pid);
                ctx.recv().await;
            })
            .expect("a process");
        let stays = rome
            .spawn(move |mut ctx: Context<Message>| async move {
                let _ = ctx.monitor(pid);
                matches!(ctx.event().await, ActorEvent::Exit(exited)
                    if exited.reason == ExitReason::NoConnection)
                .then_some(())
                .ok_or(windlass_actor::ActorError::new("another event"))
            })
            .expect("a process");
        for process in [linked.pid(), stays.pid()] {
            waits(&rome, process).await;
        }
        rome.lose_node("paris");
        assert_eq!(linked.join().await.reason, ExitReason::NoConnection);
        assert_eq!(stays.join().await.reason, ExitReason::Normal);
        assert!(paris.is_alive(pid), "nobody knows that from here");
    });
}

#[test]
fn without_a_relay_nothing_leads_elsewhere() {
    everywhere(|host| async move {
        let far: Pid = "{mars@shop|1.1}".parse().expect("a PID");
        let refused = host.send(far, Message::new("x", 7)).expect_err("no way");
        assert_eq!(
            (refused.kind, refused.message.payload),
            (SendErrorKind::NoConnection, 7.into())
        );
        let process = host
            .spawn(move |mut ctx: Context<Message>| async move {
                ctx.trap_links(true);
                let monitor = ctx.monitor(far);
                ctx.link(far);
                for by in [Bond::Monitor(monitor), Bond::Link] {
                    let ActorEvent::Exit(exited) = ctx.event().await else {
                        panic!("an end was expected");
                    };
                    assert_eq!((exited.by, exited.reason), (by, ExitReason::NoConnection));
                }
            })
            .expect("a process");
        assert_eq!(process.join().await.reason, ExitReason::Normal);
        // A PID of an earlier incarnation names no process.
        let old: Pid = "{local|1.1}".parse().expect("a PID");
        let refused = host.send(old, Message::new("x", 7)).expect_err("nobody");
        assert_eq!(refused.kind, SendErrorKind::NoProcess);
    });
}

/// Each host counts its monitors for itself: the first of both has the same number.
#[test]
fn monitors_of_two_hosts_do_not_take_each_others_place() {
    everywhere(|base| async move {
        let (rome, paris) = two_nodes(&base);
        let target = paris.spawn(idle).expect("a process");
        let pid = target.pid();
        let watches = |host: &Host| {
            host.spawn(move |mut ctx: Context<Message>| async move {
                let monitor = ctx.monitor(pid);
                let ActorEvent::Exit(exited) = ctx.event().await else {
                    panic!("an end was expected");
                };
                assert_eq!(exited.by, Bond::Monitor(monitor));
                Payload::Int(monitor.number() as i64)
            })
            .expect("a process")
        };
        let (near, far) = (watches(&paris), watches(&rome));
        waits(&paris, near.pid()).await;
        waits(&rome, far.pid()).await;
        target.kill();
        for watcher in [near, far] {
            assert_eq!(watcher.join().await.value, Payload::Int(1));
        }
    });
}
