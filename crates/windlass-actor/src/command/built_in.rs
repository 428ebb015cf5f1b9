//! The commands that every host knows.

use std::fmt;
use std::future::poll_fn;
use std::marker::Send as ThreadSend;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use windlass_runtime::time::{Instant, sleep, sleep_until};
use windlass_sync::channel::mpmc;
use windlass_value::{Payload, Payloads, Pid};

use super::{Commands, Completer, YieldError};
use crate::error::SpawnError;
use crate::exit::MonitorRef;
use crate::message::{Message, Topic};
use crate::spawn::{ProcessHandle, Spawn};
use crate::step::Process;

/// Completes after a while.
#[derive(Debug, Clone, Copy)]
pub struct Sleep(pub Duration);

/// Completes at once with a number for [`StopTimer`]; after a while the process gets a message.
#[derive(Debug, Clone)]
pub struct Timer {
    /// The delay until the message.
    pub after: Duration,
    /// What the message is about.
    pub topic: Topic,
    /// What it says.
    pub payload: Payload,
}

/// Completes at once with a number for [`StopTimer`]; from then on the process gets a message in
/// every period, until that, its end, or other code. A message that finds the mailbox full is left
/// out.
#[derive(Debug, Clone)]
pub struct Ticker {
    /// The time between two messages.
    pub every: Duration,
    /// What the messages are about.
    pub topic: Topic,
}

/// Stops a timer or ticker; completes with whether it was still running.
#[derive(Debug, Clone, Copy)]
pub struct StopTimer(pub u64);

/// Sends a message; completes when it is in the mailbox, or says why not. It says that it is from
/// this process.
#[derive(Debug, Clone)]
pub struct Send {
    /// The process that gets the message.
    pub to: Pid,
    /// The message that is sent.
    pub message: Message,
}

/// Starts a process; completes with its PID.
pub struct SpawnProcess {
    process: Box<dyn Process>,
    method: String,
    input: Payloads,
    linked: bool,
    monitored: bool,
    name: Option<Arc<str>>,
}

impl SpawnProcess {
    /// A step machine, at its entry point `main`.
    pub fn new(process: impl Process) -> SpawnProcess {
        SpawnProcess {
            process: Box::new(process),
            method: "main".to_owned(),
            input: Payloads::new(),
            linked: false,
            monitored: false,
            name: None,
        }
    }

    /// Another entry point, and what it is given.
    pub fn method(mut self, method: impl Into<String>, input: Payloads) -> SpawnProcess {
        self.method = method.into();
        self.input = input;
        self
    }

    /// Linked to the process that asks.
    pub fn linked(mut self) -> SpawnProcess {
        self.linked = true;
        self
    }

    /// Lets the process that asks monitor it.
    pub fn monitored(mut self) -> SpawnProcess {
        self.monitored = true;
        self
    }

    /// With a name.
    pub fn named(mut self, name: impl Into<Arc<str>>) -> SpawnProcess {
        self.name = Some(name.into());
        self
    }

    fn start(self, completer: &Completer) -> Result<ProcessHandle<Message>, SpawnError> {
        let mut spawn: Spawn = completer.host().process();
        if self.linked {
            spawn = spawn.linked_to(completer.pid());
        }
        if self.monitored {
            spawn = spawn.monitored_by(completer.pid());
        }
        if let Some(name) = self.name {
            spawn = spawn.name(name);
        }
        spawn.step_at(self.process, &self.method, self.input)
    }
}

impl fmt::Debug for SpawnProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnProcess")
            .field("method", &self.method)
            .field("linked", &self.linked)
            .field("monitored", &self.monitored)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Starts a process and completes with what it ends with. If the process that asks ends first, the
/// other is cancelled.
#[derive(Debug)]
pub struct Exec(pub SpawnProcess);

/// Cancels a process.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// The process that is cancelled.
    pub pid: Pid,
    /// The reason of the cancel.
    pub reason: Arc<str>,
}

/// Ends a process at its next step boundary.
#[derive(Debug, Clone, Copy)]
pub struct Terminate(pub Pid);

/// Links the process that asks to another.
#[derive(Debug, Clone, Copy)]
pub struct Link(pub Pid);

/// Undoes a link.
#[derive(Debug, Clone, Copy)]
pub struct Unlink(pub Pid);

/// Lets the process that asks know of the end of another; completes with the number of the monitor.
#[derive(Debug, Clone, Copy)]
pub struct Monitor(pub Pid);

/// Undoes a monitor.
#[derive(Debug, Clone, Copy)]
pub struct Demonitor(pub u64);

/// Gives the process that asks a name.
#[derive(Debug, Clone)]
pub struct Register(pub Arc<str>);

/// Completes with the PID of the process with this name, or nil.
#[derive(Debug, Clone)]
pub struct Whereis(pub Arc<str>);

/// Adds the process that asks to a group.
#[derive(Debug, Clone)]
pub struct Join(pub Arc<str>);

/// Takes it out again; completes with whether it was a member.
#[derive(Debug, Clone)]
pub struct Leave(pub Arc<str>);

/// Sends a message to all members of a group; completes with how many got it.
#[derive(Debug, Clone)]
pub struct Broadcast {
    /// The group that gets the message.
    pub group: Arc<str>,
    /// The message that is sent.
    pub message: Message,
}

type Job = Box<dyn FnOnce() -> Result<Payload, YieldError> + ThreadSend>;

/// Runs a closure that may block, on a thread of the blocking pool; completes with its result.
pub struct Blocking(Job);

impl Blocking {
    /// Makes the command from a closure.
    pub fn new<F>(f: F) -> Blocking
    where
        F: FnOnce() -> Result<Payload, YieldError> + ThreadSend + 'static,
    {
        Blocking(Box::new(f))
    }
}

impl fmt::Debug for Blocking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking").finish_non_exhaustive()
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<Payload, YieldError>> + ThreadSend>>;

/// Runs a future; completes with its result. It is dropped if the process ends first.
pub struct Run(Answer);

impl Run {
    /// Makes the command from a future.
    pub fn new<F>(future: F) -> Run
    where
        F: Future<Output = Result<Payload, YieldError>> + ThreadSend + 'static,
    {
        Run(Box::pin(future))
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").finish_non_exhaustive()
    }
}

/// Sends a value into a channel; completes when it is in, or fails with the value if the channel
/// has no receiver.
#[derive(Debug)]
pub struct ChannelSend {
    /// The channel that gets the value.
    pub sender: mpmc::Sender<Payload>,
    /// The value that is sent.
    pub value: Payload,
}

/// Receives a value from a channel; completes with it, or fails if the channel is closed.
#[derive(Debug)]
pub struct ChannelReceive(pub mpmc::Receiver<Payload>);

/// Receives a value from whichever channel has one first; completes with the list of its place and
/// the value, or fails when all are closed. Those that lose give nothing away.
#[derive(Debug)]
pub struct Select(pub Vec<mpmc::Receiver<Payload>>);

pub(super) fn add_to(commands: &mut Commands) {
    add_time(commands);
    add_processes(commands);
    add_names(commands);
    add_channels(commands);
    commands.add(|Blocking(job): Blocking, completer: Completer| completer.spawn_blocking(job));
    commands.add(|Run(future): Run, completer: Completer| completer.spawn(future));
}

fn add_time(commands: &mut Commands) {
    commands.add(|Sleep(time): Sleep, completer: Completer| {
        completer.spawn(async move {
            sleep(time).await;
            Ok(Payload::Nil)
        });
    });
    commands.add(|timer: Timer, completer: Completer| {
        let (host, pid) = (completer.host(), completer.pid());
        let task = host.clone().0.runtime.spawn(async move {
            sleep(timer.after).await;
            // A process that has ended needs no timer.
            let _ = host.send(pid, Message::new(timer.topic, timer.payload));
        });
        let number = completer.process().shell().add_timer(task.abort_handle());
        completer.complete(number as i64);
    });
    commands.add(|ticker: Ticker, completer: Completer| {
        let (host, pid) = (completer.host(), completer.pid());
        let task = host.clone().0.runtime.spawn(async move {
            let mut next = Instant::now();
            for number in 1_i64.. {
                next += ticker.every.max(Duration::from_millis(1));
                sleep_until(next).await;
                let _ = host.send(pid, Message::new(ticker.topic.clone(), number));
            }
        });
        let number = completer.process().shell().add_timer(task.abort_handle());
        completer.complete(number as i64);
    });
    commands.add(|StopTimer(number): StopTimer, completer: Completer| {
        let stopped = completer.process().shell().stop_timer(number);
        completer.complete(stopped);
    });
}

fn add_processes(commands: &mut Commands) {
    commands.add(|send: Send, completer: Completer| {
        let message = send.message.from(completer.pid());
        let sent = completer.host().send(send.to, message);
        completer.answer(match sent {
            Ok(()) => Ok(Payload::Nil),
            Err(error) => Err(YieldError::Failed(error.kind.to_string().into())),
        });
    });
    commands.add(|spawn: SpawnProcess, completer: Completer| {
        let started = spawn.start(&completer);
        completer.answer(match started {
            Ok(process) => Ok(process.pid().into()),
            Err(error) => Err(YieldError::Spawn(error)),
        });
    });
    commands.add(|Exec(spawn): Exec, completer: Completer| {
        let process = match spawn.start(&completer) {
            Ok(process) => process,
            Err(error) => return completer.fail(YieldError::Spawn(error)),
        };
        struct CancelOnDrop(ProcessHandle<Message>);
        impl Drop for CancelOnDrop {
            fn drop(&mut self) {
                self.0.cancel("whoever asked for its result is gone");
            }
        }
        completer.spawn(async move {
            let process = CancelOnDrop(process);
            let exit = process.0.join().await;
            match exit.reason.is_normal() {
                true => Ok(exit.value),
                false => Err(YieldError::Exit(exit.reason)),
            }
        });
    });
    commands.add(|cancel: Cancel, completer: Completer| {
        completer.host().cancel(cancel.pid, cancel.reason);
        completer.complete(());
    });
    commands.add(|Terminate(pid): Terminate, completer: Completer| {
        completer.host().kill(pid);
        completer.complete(());
    });
    commands.add(|Link(pid): Link, completer: Completer| {
        completer.host().0.link(&completer.process(), pid);
        completer.complete(());
    });
    commands.add(|Unlink(pid): Unlink, completer: Completer| {
        completer.host().0.unlink(&*completer.process(), pid);
        completer.complete(());
    });
    commands.add(|Monitor(pid): Monitor, completer: Completer| {
        let MonitorRef(number) = completer.host().0.monitor(&completer.process(), pid);
        completer.complete(number as i64);
    });
    commands.add(|Demonitor(number): Demonitor, completer: Completer| {
        let monitor = MonitorRef(number);
        completer.host().0.demonitor(&*completer.process(), monitor);
        completer.complete(());
    });
}

fn add_names(commands: &mut Commands) {
    commands.add(|Register(name): Register, completer: Completer| {
        let registered = completer
            .host()
            .0
            .names
            .register(name, &completer.process());
        completer.answer(match registered {
            Ok(()) => Ok(Payload::Nil),
            Err(error) => Err(YieldError::Failed(error.to_string().into())),
        });
    });
    commands.add(|Whereis(name): Whereis, completer: Completer| {
        let owner = completer.host().whereis(&name);
        completer.complete(owner.map_or(Payload::Nil, Payload::Pid));
    });
    commands.add(|Join(group): Join, completer: Completer| {
        let joined = completer.host().join(group, completer.pid());
        completer.answer(match joined {
            Ok(()) => Ok(Payload::Nil),
            Err(error) => Err(YieldError::Failed(error.to_string().into())),
        });
    });
    commands.add(|Leave(group): Leave, completer: Completer| {
        let left = completer.host().leave(&group, completer.pid());
        completer.complete(left);
    });
    commands.add(|broadcast: Broadcast, completer: Completer| {
        let message = broadcast.message.from(completer.pid());
        let notified = completer.host().broadcast(&broadcast.group, &message);
        completer.complete(notified as i64);
    });
}

fn closed() -> YieldError {
    YieldError::Failed("the channel is closed".into())
}

fn add_channels(commands: &mut Commands) {
    commands.add(|send: ChannelSend, completer: Completer| {
        completer.spawn(async move {
            match send.sender.send(send.value).await {
                Ok(()) => Ok(Payload::Nil),
                Err(error) => Err(YieldError::Failed(error.0)),
            }
        });
    });
    commands.add(
        |ChannelReceive(receiver): ChannelReceive, completer: Completer| {
            completer.spawn(async move { receiver.recv().await.ok_or_else(closed) });
        },
    );
    commands.add(|Select(receivers): Select, completer: Completer| {
        completer.spawn(async move { select(&receivers).await });
    });
}

async fn select(receivers: &[mpmc::Receiver<Payload>]) -> Result<Payload, YieldError> {
    let mut open: Vec<_> = receivers
        .iter()
        .map(|receiver| Some(Box::pin(receiver.recv())))
        .collect();
    poll_fn(|cx| {
        for (place, slot) in open.iter_mut().enumerate() {
            let Some(receive) = slot else {
                continue;
            };
            match Pin::new(receive).poll(cx) {
                Poll::Ready(Some(value)) => {
                    let place = Payload::Int(place as i64);
                    return Poll::Ready(Ok(vec![place, value].into()));
                }
                Poll::Ready(None) => *slot = None,
                Poll::Pending => {}
            }
        }
        match open.iter().all(Option::is_none) {
            true => Poll::Ready(Err(closed())),
            false => Poll::Pending,
        }
    })
    .await
}
