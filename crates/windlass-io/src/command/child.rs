//! A command that runs.
//!
//! The kernel gives a descriptor for it (pidfd) that becomes readable at its end. A task that waits
//! waits for that; then the command is reaped, once. A child that is dropped before is given to a
//! task that does the same, so no zombie is left while the runtime lives.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::process::{ExitStatus, Output};

use mio::event::Source as MioSource;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

use super::bound;
use super::pipe::{ChildStderr, ChildStdin, ChildStdout};
use crate::io::{AsyncRead, AsyncReadExt};
use crate::os;
use windlass_runtime::Handle;
use windlass_runtime::driver::Reality;
use windlass_runtime::driver::{Direction, Registered, unsupported};
use windlass_runtime::join_all;

/// A command that runs; dropped, it goes on running, unless `kill_on_drop` was asked for.
#[derive(Debug)]
pub struct Child {
    /// The child's input, if that is piped. Dropping it ends the input; [`wait`](Child::wait) does
    /// that.
    pub stdin: Option<ChildStdin>,
    /// The child's output, if that is piped.
    pub stdout: Option<ChildStdout>,
    /// The child's error output, if that is piped.
    pub stderr: Option<ChildStderr>,
    /// None only while it is dropped.
    running: Option<Running>,
    kill_on_drop: bool,
}

/// What is needed to wait for it and to end it.
#[derive(Debug)]
struct Running {
    child: std::process::Child,
    /// Whether it ends with the program.
    is_bound: bool,
    /// Whether it was waited for: its id may be that of another by now.
    is_reaped: bool,
    end: Registered<Descriptor>,
    /// Where the child is reaped if it is not waited for.
    runtime: Handle,
}

/// A descriptor that can be registered.
#[derive(Debug)]
struct Descriptor(OwnedFd);

impl MioSource for Descriptor {
    fn register(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        // Nothing can be written to it.
        let readable = interest.remove(Interest::WRITABLE).unwrap_or(interest);
        SourceFd(&self.0.as_raw_fd()).register(to, token, readable)
    }

    fn reregister(&mut self, to: &Registry, token: Token, interest: Interest) -> io::Result<()> {
        SourceFd(&self.0.as_raw_fd()).reregister(to, token, interest)
    }

    fn deregister(&mut self, from: &Registry) -> io::Result<()> {
        SourceFd(&self.0.as_raw_fd()).deregister(from)
    }
}

impl Child {
    pub(super) fn spawn(
        command: &mut std::process::Command,
        kill_on_drop: bool,
        // Some: it ends with the program; whether it leads a process group.
        bound: Option<bool>,
    ) -> io::Result<Child> {
        let handle = Handle::current_or_default();
        let Reality::Real(driver) = handle.reality() else {
            return Err(unsupported(
                "a simulation starts no commands: what they do could not be replayed",
            ));
        };
        let mut child = match bound {
            Some(leads) => bound::spawn(command, leads)?,
            None => command.spawn()?,
        };
        let is_bound = bound.is_some();
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let end = os::descriptor_of_process(child.id())
            .and_then(|descriptor| Registered::new(driver, Descriptor(descriptor)));
        let end = match end {
            Ok(end) => end,
            Err(error) => {
                // We could not tell when it ends. It was killed: the wait is short.
                let _ = child.kill();
                let _ = child.wait();
                if is_bound {
                    let _ = bound::reap(&mut child);
                }
                return Err(error);
            }
        };
        // From here on the drop takes care of it.
        let mut child = Child {
            stdin: None,
            stdout: None,
            stderr: None,
            running: Some(Running {
                child,
                is_bound,
                is_reaped: false,
                end,
                runtime: handle.clone(),
            }),
            kill_on_drop: true,
        };
        child.stdin = stdin
            .map(|pipe| ChildStdin::new(driver, pipe))
            .transpose()?;
        child.stdout = stdout
            .map(|pipe| ChildStdout::new(driver, pipe))
            .transpose()?;
        child.stderr = stderr
            .map(|pipe| ChildStderr::new(driver, pipe))
            .transpose()?;
        child.kill_on_drop = kill_on_drop;
        Ok(child)
    }

    fn running(&mut self) -> &mut Running {
        match &mut self.running {
            Some(running) => running,
            None => unreachable!("only the drop takes it away"),
        }
    }

    /// Returns the process id, as long as that is the child's own: until it was waited for.
    pub fn id(&self) -> Option<u32> {
        let running = self.running.as_ref().filter(|running| !running.is_reaped);
        running.map(|running| running.child.id())
    }

    /// Returns the exit status, or none if the child still runs.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.running().try_wait()
    }

    /// Ends its input and waits for its end; gives the same again if it had ended before. If the
    /// runtime that it was started in has ended, this waits on the one it is called in.
    /// Cancel-safe.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        self.running().wait().await
    }

    /// Collects the rest of its output and complaints, as far as they are piped, and waits for its
    /// end. Both are read at the same time: it cannot get stuck on one of them.
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let read = [
            Box::pin(read_all(stdout)) as Pin<Box<dyn Future<Output = _> + Send>>,
            Box::pin(read_all(stderr)),
        ];
        let mut both = join_all(read).await.into_iter();
        let mut next = || both.next().unwrap_or_else(|| Ok(Vec::new()));
        let (stdout, stderr) = (next()?, next()?);
        Ok(Output {
            status: self.wait().await?,
            stdout,
            stderr,
        })
    }

    /// Kills it, without waiting for its end.
    ///
    /// # Errors
    /// What the operating system says; that it has ended already is none.
    pub fn start_kill(&mut self) -> io::Result<()> {
        self.running().child.kill()
    }

    /// Kills it and waits for its end.
    pub async fn kill(&mut self) -> io::Result<()> {
        self.start_kill()?;
        self.wait().await.map(drop)
    }
}

/// Reads a pipe, if there is one, up to its end.
async fn read_all(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// How a command ended, if it has.
fn reap(child: &mut std::process::Child, is_bound: bool) -> io::Result<Option<ExitStatus>> {
    match is_bound {
        true => bound::reap(child),
        false => child.try_wait(),
    }
}

impl Running {
    fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = reap(&mut self.child, self.is_bound)?;
        self.is_reaped |= status.is_some();
        Ok(status)
    }

    async fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            let Running {
                child,
                is_bound,
                is_reaped,
                end,
                ..
            } = self;
            let ended = end.source().io(Direction::Read, || {
                let status = reap(child, *is_bound)?;
                status.ok_or_else(|| io::ErrorKind::WouldBlock.into())
            });
            match ended.await {
                Err(_) if end.source().state().is_shut() => self.move_here()?,
                ended => {
                    *is_reaped |= ended.is_ok();
                    return ended;
                }
            }
        }
    }

    /// The runtime of the child has ended: from now on it is the one that this is called in.
    fn move_here(&mut self) -> io::Result<()> {
        let descriptor = self.end.socket().0.try_clone()?;
        self.end = Registered::here(Descriptor(descriptor))?;
        self.runtime = Handle::current_or_default();
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let Some(mut running) = self.running.take() else {
            return;
        };
        if self.kill_on_drop {
            // An error: it has ended.
            let _ = running.child.kill();
        }
        if matches!(running.try_wait(), Ok(None)) {
            // Refused by a runtime that shuts down: then the end of the program reaps it.
            let runtime = running.runtime.clone();
            drop(runtime.try_spawn(async move { running.wait().await }));
        }
    }
}
