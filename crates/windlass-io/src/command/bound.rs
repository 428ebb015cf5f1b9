//! Commands that do not outlive this program, however it ends.
//!
//! Two things see to that. The kernel kills such a command when the thread that started it ends
//! (`PR_SET_PDEATHSIG`): that holds for SIGKILL, too, and for every thread of a program that ends.
//! The signal follows the thread and not the program, and workers come and go, so all these
//! commands are started by one thread that never ends. And since the kernel kills the command only,
//! and not what it has started itself, an exit that runs no destructors first kills the whole
//! process groups ([`kill_bound`]).
//!
//! # Why no foreign process is killed A number in the list is a command that was not waited for, so
//! no other process has that number. The wait and the list are under one lock ([`reap`]).

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::process::{self, Child, Command, ExitStatus};
use std::sync::Arc;

use windlass_core::sync::{Condvar, Mutex, thread};

use crate::os;

/// The commands that have not been waited for, by number; whether each leads a group of its own.
static RUNNING: Mutex<BTreeMap<u32, bool>> = Mutex::new(BTreeMap::new());

/// The thread that starts commands, and the process that it is in: after `fork` there is none.
static SPAWNER: Mutex<Option<(u32, Arc<Spawner>)>> = Mutex::new(None);

/// What the thread is asked for.
struct Spawner {
    orders: Mutex<VecDeque<Arc<Order>>>,
    more: Condvar,
}

/// A command that is to be started.
struct Order {
    state: Mutex<State>,
    done: Condvar,
}

enum State {
    Asked(Command),
    Taken,
    Started(Command, io::Result<Child>),
}

/// Starts a command on the thread that never ends. `leads`: it has a process group of its own.
pub(super) fn spawn(command: &mut Command, leads: bool) -> io::Result<Child> {
    let spawner = spawner()?;
    let given = std::mem::replace(command, Command::new(""));
    let order = Arc::new(Order {
        state: Mutex::new(State::Asked(given)),
        done: Condvar::new(),
    });
    spawner.orders.lock().push_back(order.clone());
    spawner.more.notify_one();
    let mut state = order.state.lock();
    loop {
        match std::mem::replace(&mut *state, State::Taken) {
            State::Started(given, child) => {
                *command = given;
                let child = child?;
                RUNNING.lock().insert(child.id(), leads);
                return Ok(child);
            }
            other => {
                *state = other;
                state = order.done.wait(state);
            }
        }
    }
}

/// How a command ended, if it has; then its number is forgotten.
pub(super) fn reap(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let mut running = RUNNING.lock();
    let ended = child.try_wait();
    if !matches!(ended, Ok(None)) {
        running.remove(&child.id());
    }
    ended
}

/// Kills all commands that [end with the program](super::Command::end_with_program), and the
/// process groups that they lead. For exits that run no destructors, such as `std::process::exit`.
pub fn kill_bound() {
    for (&number, &leads) in RUNNING.lock().iter() {
        os::kill(number, leads);
    }
}

fn spawner() -> io::Result<Arc<Spawner>> {
    let mut there = SPAWNER.lock();
    if let Some((number, spawner)) = &*there
        && *number == process::id()
    {
        return Ok(spawner.clone());
    }
    let spawner = Arc::new(Spawner {
        orders: Mutex::default(),
        more: Condvar::new(),
    });
    let orders = spawner.clone();
    thread::spawn("windlass-spawner".into(), 0, move || orders.serve())?;
    *there = Some((process::id(), spawner.clone()));
    Ok(spawner)
}

impl Spawner {
    /// Starts one command after another, for ever: the commands end with this thread.
    fn serve(&self) -> ! {
        loop {
            let order = {
                let mut orders = self.orders.lock();
                loop {
                    match orders.pop_front() {
                        Some(order) => break order,
                        None => orders = self.more.wait(orders),
                    }
                }
            };
            let mut state = order.state.lock();
            if let State::Asked(mut command) = std::mem::replace(&mut *state, State::Taken) {
                let child = command.spawn();
                *state = State::Started(command, child);
            }
            drop(state);
            order.done.notify_one();
        }
    }
}
