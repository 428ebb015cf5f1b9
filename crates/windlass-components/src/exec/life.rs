//! One life of a command, from its start to its end.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use windlass_core::sync::{Arc, Mutex};
use windlass_graph::component::Failure;
use windlass_io::command::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use windlass_io::io::{AsyncReadExt, AsyncWriteExt};
use windlass_runtime::time::timeout;
use windlass_runtime::{race, spawn};
use windlass_sync::CancellationToken;

use super::Order;
use super::plan::{Plan, Reply};
use super::protocol::{CommandMessage, Publication, STOP, read};
use super::tail::Tail;
use crate::format::refused;
use crate::inlet::{Feed, InletClosed};
use crate::outlet::{Completions, Orders};
use crate::splitter::{Line, Splitter};

/// How much is read at once.
const CHUNK: usize = 16 << 10;
/// How long the rest of what it said is waited for after its end.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What a life needs.
pub(super) struct Life<'a> {
    pub(super) plan: &'a Plan,
    pub(super) feed: &'a Feed<Publication>,
    pub(super) tail: &'a Tail,
}

/// How a life ended.
pub(super) enum LifeEnd {
    /// It was asked to.
    Stopped,
    /// By itself, and well.
    Finished,
    NotStarted(io::Error),
    Died(String),
}

/// Messages by their numbers.
pub(super) type Messages = BTreeMap<u64, Order>;
/// Those that the command has, and has not said to be done with.
type Unanswered = Arc<Mutex<Messages>>;

/// What happened first.
enum EndCause {
    /// The run ends: it was asked to stop.
    Stop,
    /// It says nothing any more, or takes nothing.
    Silence,
    Exit,
}

impl Life<'_> {
    /// Runs the command. `left` are the messages that are to be handed to it, and afterwards those
    /// that it was not done with.
    pub(super) async fn run(&self, orders: &mut Orders<Order>, left: &mut Messages) -> LifeEnd {
        let (mut leader, pipes) = match self.start() {
            Ok(started) => started,
            Err(error) => return LifeEnd::NotStarted(error),
        };
        // Cancelled when it says nothing any more, and when this is dropped.
        let over = CancellationToken::new();
        let _ends_with_this = over.clone().drop_guard();
        let unanswered = Unanswered::default();
        let listener = Listener::new(self, orders, &unanswered);
        let token = over.clone();
        drop(spawn(async move {
            token
                .run_until_cancelled(listener.listen(pipes.stdout))
                .await;
            token.cancel();
        }));
        let complaints = self.tail.clone().read(pipes.stderr, self.plan.id.clone());
        let token = over.clone();
        let complaints = spawn(async move {
            within_after(&token, LAST_WORDS, complaints).await;
        });

        let first = {
            let talk = self.talk(pipes.stdin, orders, left, &unanswered, &over);
            let exit = async {
                // How it ended is asked for below.
                let _ = leader.child.wait().await;
                EndCause::Exit
            };
            let both: [Pin<Box<dyn Future<Output = EndCause> + Send + '_>>; 2] =
                [Box::pin(talk), Box::pin(exit)];
            race(both).await.unwrap_or(EndCause::Exit)
        };
        let status = leader.end(self.plan.stop).await;
        // What the command said last is still in the pipe, however it ended; another process may
        // hold the pipe open.
        let _ = timeout(LAST_WORDS, over.cancelled()).await;
        over.cancel();
        let _ = timeout(LAST_WORDS, complaints).await;
        left.append(&mut unanswered.lock());
        judge(&first, status, left.len())
    }

    fn start(&self) -> io::Result<(Leader, Pipes)> {
        let mut child = self.plan.command().spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        let pipes = Pipes {
            stdin,
            stdout,
            stderr,
        };
        Ok((Leader { child }, pipes))
    }

    /// Hands messages over, for as long as it takes them.
    async fn talk(
        &self,
        mut stdin: ChildStdin,
        orders: &mut Orders<Order>,
        left: &mut Messages,
        unanswered: &Unanswered,
        over: &CancellationToken,
    ) -> EndCause {
        let answers = self.plan.reply == Reply::PerMessage;
        loop {
            let Some(order) = left.first_entry().map(|entry| entry.get().clone()) else {
                match over.run_until_cancelled(orders.next()).await {
                    None => return EndCause::Silence,
                    Some(Some(order)) => {
                        left.insert(order.seq, order);
                        continue;
                    }
                    Some(None) => {
                        // It ends in any case; if it does not read this, later.
                        let _ = timeout(self.plan.stop, stdin.write_all(STOP)).await;
                        return EndCause::Stop;
                    }
                }
            };
            let seq = order.seq;
            let line = order.line.clone();
            if answers {
                // Before it is written: the answer may be quick.
                unanswered.lock().insert(seq, order);
            }
            let write = within_after(&orders.ending, self.plan.stop, stdin.write_all(&line));
            match over.run_until_cancelled(write).await {
                Some(Some(Ok(()))) => {}
                Some(None) => return EndCause::Stop,
                Some(Some(Err(_))) | None => return EndCause::Silence,
            }
            left.remove(&seq);
            if !answers {
                orders.completions.done();
            }
        }
    }
}

/// The ends of its pipes.
struct Pipes {
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
}

/// What comes of a future, if it comes soon enough after the token was cancelled.
async fn within_after<F: Future>(
    token: &CancellationToken,
    time: Duration,
    future: F,
) -> Option<F::Output> {
    let mut future = pin!(future);
    match token.run_until_cancelled(future.as_mut()).await {
        Some(output) => Some(output),
        None => timeout(time, future).await.ok(),
    }
}

fn judge(first: &EndCause, status: io::Result<ExitStatus>, left: usize) -> LifeEnd {
    let how = match status {
        _ if matches!(first, EndCause::Stop) => return LifeEnd::Stopped,
        Ok(status) if status.success() && left == 0 => return LifeEnd::Finished,
        Ok(status) => format!("ended with {status}"),
        Err(error) => format!("ended, and how is not known ({error})"),
    };
    LifeEnd::Died(match left {
        0 => how,
        left => format!("{how} before it was done with {left} messages"),
    })
}

/// The command, which leads a process group of its own. It does not outlive this.
struct Leader {
    child: Child,
}

impl Leader {
    /// Waits for its end; what does not end is asked to, and then made to.
    async fn end(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        for signal in [Signal::TERM, Signal::KILL] {
            if let Ok(status) = timeout(patience, self.child.wait()).await {
                return status;
            }
            self.signal(signal);
        }
        self.child.wait().await
    }

    fn signal(&mut self, signal: Signal) {
        let id = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(group) = id {
            // An error: all have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// Hears what the command says.
struct Listener {
    outputs: Vec<String>,
    id: String,
    reply: Reply,
    most: usize,
    unanswered: Unanswered,
    completions: Completions,
    ending: CancellationToken,
    feed: Feed<Publication>,
}

impl Listener {
    fn new(life: &Life<'_>, orders: &Orders<Order>, unanswered: &Unanswered) -> Listener {
        let plan = life.plan;
        Listener {
            outputs: plan.outputs.clone(),
            id: plan.id.clone(),
            reply: plan.reply,
            most: plan.most,
            unanswered: unanswered.clone(),
            completions: orders.completions.clone(),
            ending: orders.ending.clone(),
            feed: life.feed.clone(),
        }
    }

    async fn listen(self, mut stdout: ChildStdout) {
        let mut splitter = Splitter::new(self.most);
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = stdout.read(&mut chunk).await.unwrap_or(0);
            splitter.push(&chunk[..count]);
            while let Some(line) = splitter.next() {
                if self.take(line).await.is_err() {
                    return;
                }
            }
            if count == 0 {
                if let Some(line) = splitter.rest() {
                    let _ = self.take(line).await;
                }
                return;
            }
        }
    }

    async fn take(&self, line: Line) -> Result<(), InletClosed> {
        let word = match line {
            Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => return Ok(()),
            Line::Whole(line) => read(&line, &self.outputs),
            Line::TooLong(start) => {
                let what = "came from the command, and is longer than config.max_line_bytes";
                Err(refused(&start, what))
            }
        };
        match word {
            Ok(CommandMessage::Publish(said)) => self.hand(Ok(said)).await,
            Ok(CommandMessage::Log(level, text)) => {
                level.log(&self.id, &text);
                Ok(())
            }
            Ok(CommandMessage::Done(_)) if self.reply == Reply::Free => Ok(()),
            Ok(CommandMessage::Done(seq)) => {
                let answered = self.unanswered.lock().remove(&seq);
                match answered {
                    Some(_) => {
                        self.completions.done();
                        Ok(())
                    }
                    None => {
                        let what = format!(
                            "the command is done with message {seq}, which it does not have"
                        );
                        self.hand(Err(Failure::new(what))).await
                    }
                }
            }
            Err(failure) => self.hand(Err(failure)).await,
        }
    }

    /// Hands something over. Once the run ends the component no longer takes it: that is reported,
    /// and the command goes on.
    async fn hand(&self, word: Result<Publication, Failure>) -> Result<(), InletClosed> {
        let handed = async {
            match word {
                Ok(said) => self.feed.give(said).await,
                Err(failure) => self.feed.report(failure).await,
            }
        };
        match self.ending.run_until_cancelled(handed).await {
            Some(handed) => handed,
            None => {
                tracing::warn!(target: "windlass::graph", component = self.id, "what the command said after the end of the run is lost");
                Ok(())
            }
        }
    }
}
