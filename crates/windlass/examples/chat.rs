//! A supervised chat server: a room, an acceptor, and a process for each connection.
//!
//! `/crash` makes the room panic: the supervisor starts another, and the connections join that.
//! `cargo run --example chat`, then `nc localhost 7008`; ctrl-c stops it. With an argument
//! (`-- demo`) it talks to itself and ends.

use std::io::{self, BufRead, BufReader, Write};
use std::{collections::BTreeMap, convert::Infallible, net, sync::Arc, time::Duration};

use windlass::actor::supervisor::{ChildSpec, Strategy, Supervisor};
use windlass::actor::{Actor, ActorError, ActorEvent, Address, Context, Exited};
use windlass::actor::{Host, MailboxPolicy, Pid, Spawn};
use windlass::io::{AsyncReadExt, AsyncWriteExt};
use windlass::net::{TcpListener, TcpStream};
use windlass::{select, time};

enum ToRoom {
    Join(Address<String>),
    Say(u16, String),
}

/// Its members, who take lines.
#[derive(Default)]
struct Room(BTreeMap<Pid, Address<String>>);

impl Room {
    /// Never waits: the mailbox of a slow member drops its oldest line.
    fn tell_all(&self, line: &str) -> Result<(), ActorError> {
        let tell = |member: &Address<String>| drop(member.tell(format!("{line}\n")));
        self.0.values().for_each(tell);
        Ok(())
    }
}

impl Actor for Room {
    type Message = ToRoom;

    async fn handle(
        &mut self,
        message: ToRoom,
        ctx: &mut Context<ToRoom>,
    ) -> Result<(), ActorError> {
        match message {
            ToRoom::Say(port, line) if line == "/crash" => panic!("{port} typed /crash"),
            ToRoom::Say(port, line) => self.tell_all(&format!("{port}: {line}")),
            ToRoom::Join(member) => {
                ctx.monitor(member.pid());
                self.0.insert(member.pid(), member);
                self.tell_all(&format!("* {} here", self.0.len()))
            }
        }
    }

    async fn exited(&mut self, member: Exited, _: &mut Context<ToRoom>) -> Result<(), ActorError> {
        self.0.remove(&member.pid);
        self.tell_all(&format!("* {} here", self.0.len()))
    }
}

/// Joins whoever is called `room` now. After a crash it takes a moment until somebody is.
async fn join(ctx: &Context<String>) -> Result<Address<ToRoom>, ActorError> {
    let host = ctx.host();
    while !ctx.is_cancelled() {
        if let Some(room) = host.address_of::<ToRoom>("room")
            && room.send(ToRoom::Join(ctx.address())).await.is_ok()
        {
            ctx.monitor(room.pid());
            return Ok(room);
        }
        time::sleep(Duration::from_millis(10)).await;
    }
    Err(ActorError::cancelled(ctx.cancel_reason()))
}

/// What the client says goes to the room, and what the room says goes to the client.
async fn connection(mut ctx: Context<String>, mut client: TcpStream) -> Result<(), ActorError> {
    let port = client.peer_addr()?.port();
    let (mut text, mut more) = (Vec::new(), [0; 512]);
    let mut room = join(&ctx).await?;
    loop {
        select! {
            read = client.read(&mut more) => {
                let count = read?;
                if count == 0 || text.len() > 4096 {
                    return Ok(());
                }
                text.extend_from_slice(&more[..count]);
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = text.drain(..=end).collect();
                    let line = String::from_utf8_lossy(&line).trim_end().to_owned();
                    // Lost if the room has just ended, which is the next event.
                    let _ = room.send(ToRoom::Say(port, line)).await;
                }
            }
            event = ctx.event() => match event {
                ActorEvent::Message(line) => client.write_all(line.as_bytes()).await?,
                ActorEvent::Exit(_) => room = join(&ctx).await?,
                _ => return Ok(()),
            },
        }
    }
}

/// Starts a process for each connection, which lives on if this one fails.
async fn accept(
    mut ctx: Context<Infallible>,
    listener: Arc<TcpListener>,
) -> Result<(), ActorError> {
    loop {
        select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                let spawn = ctx.host().process().mailbox(MailboxPolicy::DropOldest(256));
                spawn.spawn(|ctx| connection(ctx, stream))?;
            }
            _ = ctx.recv() => return Ok(()),
        }
    }
}

/// Two clients. They block, as other programs might.
fn demo(address: net::SocketAddr) -> io::Result<()> {
    // No backtrace for a panic that is wanted.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    let connect = || {
        let stream = net::TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        Ok::<_, io::Error>(BufReader::new(stream))
    };
    let mut clients = [connect()?, connect()?];
    // When both have heard the first, one says the second.
    for (both_hear, who, says) in [
        ("* 2 here", 0, "hello"),
        (": hello", 1, "hello, too"),
        (": hello, too", 0, "/crash"),
        // Only now both are in the new room.
        ("* 2 here", 1, "what was that?"),
        (": what was that?", 0, "goodbye"),
    ] {
        for client in &mut clients {
            let mut lines = client.lines().map_while(Result::ok);
            let heard = lines.find(|line| line.ends_with(both_hear));
            println!("heard {:?}", heard.ok_or(io::ErrorKind::TimedOut)?);
        }
        writeln!(clients[who].get_mut(), "{says}")?;
    }
    Ok(())
}

#[windlass::main]
async fn main() -> windlass::Result<()> {
    let is_demo = std::env::args().nth(1).is_some();
    let port = if is_demo { 0 } else { 7008 };
    let listener = Arc::new(TcpListener::bind(("localhost", port)).await?);
    let address = listener.local_addr()?;
    println!("listening on {address}");
    let room = |spawn: Spawn| Ok(spawn.name("room").actor(Room::default())?.pid());
    let acceptor = move |spawn: Spawn| {
        let listener = listener.clone();
        Ok(spawn.spawn(|ctx| accept(ctx, listener))?.pid())
    };
    let host = Host::current()?;
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .child(ChildSpec::new("room", room))
        .child(ChildSpec::new("acceptor", acceptor))
        .start(&host)?;
    if is_demo {
        windlass::spawn_blocking(move || demo(address)).await??;
        let tree = supervisor.tree().await?;
        println!("{tree}");
        assert_eq!(tree.children[0].restarts, 1);
    } else {
        select! {
            pressed = windlass::signal::ctrl_c() => pressed?,
            exit = supervisor.join() => println!("too many crashes: {}", exit.reason),
        }
    }
    // Also ends the connections, which no supervisor knows.
    let report = host.shutdown(Duration::from_secs(5)).await;
    assert!(report.stuck.is_empty(), "{report:?}");
    Ok(())
}
