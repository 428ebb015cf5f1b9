//! A tiny VM: bytecode with locals, a stack, exceptions, and an instruction for everything a guest
//! may wait for. `docs/guests.md` explains the trait on it.

use std::sync::Arc;
use std::time::Duration;

use windlass_actor::{ActorError, Message, Pattern, Pid};
use windlass_value::Payload;
use windlass_vm::{
    Answer, Budget, Channel, Ending, Exception, Guest, Mutex, Reason, Resume, Semaphore, Step, Task,
};

/// One instruction of the tiny VM.
#[derive(Clone)]
pub(crate) enum Code {
    /// Pushes a value.
    Push(Payload),
    Pop,
    /// Adds two numbers.
    Add,
    /// Pushes a local.
    Load(usize),
    /// Pops into a local.
    Store(usize),
    Jump(usize),
    /// Counts a local down; jumps while it is not 0.
    Loop(usize, usize),
    /// Starts another program; its task goes into a local.
    Spawn(Program, usize),
    /// Waits for the task in a local; pushes its value.
    Await(usize),
    /// Tells the task in a local to stop.
    Cancel(usize),
    Sleep(Duration),
    Lock(Mutex),
    Unlock(Mutex),
    Acquire(Semaphore, usize),
    Release(Semaphore, usize),
    /// Sends what is popped.
    Send(Channel),
    /// Pushes what is received.
    Receive(Channel),
    Close(Channel),
    /// Pushes what blocking work gives.
    Block(fn() -> Result<Payload, Exception>),
    /// Asks the host for a command; pushes what that gives.
    Command(fn() -> Reason),
    /// Sends what is popped to a process, which is a local.
    Tell(usize, &'static str),
    /// Waits for a message; pushes its payload.
    Hear(&'static str, Option<Duration>),
    /// Pushes the end of another process.
    Exit,
    Now,
    Random,
    Own,
    Yield,
    /// Calls something of the host.
    Native(Arc<Native>),
    /// From here on an exception goes there, with its text pushed.
    Try(usize),
    EndTry,
    Throw(&'static str),
    Panic,
    /// Ends with what is popped.
    Return,
}

/// A function of the host, on the stack.
type Native = dyn Fn(&mut Vec<Payload>) + Send + Sync;

pub(crate) type Program = Arc<Vec<Code>>;

pub(crate) fn program(code: impl IntoIterator<Item = Code>) -> Program {
    Arc::new(code.into_iter().collect())
}

/// A program that runs.
pub(crate) struct Machine {
    program: Program,
    next: usize,
    stack: Vec<Payload>,
    locals: Vec<Payload>,
    tasks: Vec<Option<Task>>,
    /// Where exceptions go.
    handlers: Vec<usize>,
    /// What is pushed when the wait is over.
    pushes: bool,
}

impl Machine {
    pub(crate) fn new(program: &Program) -> Machine {
        Machine {
            program: program.clone(),
            next: 0,
            stack: Vec::new(),
            locals: vec![Payload::Nil; 8],
            tasks: vec![None; 8],
            handlers: Vec::new(),
            pushes: false,
        }
    }

    /// With a process in the first local.
    pub(crate) fn with(program: &Program, first: Pid) -> Machine {
        let mut machine = Machine::new(program);
        machine.locals[0] = first.into();
        machine
    }

    fn pop(&mut self) -> Payload {
        self.stack.pop().unwrap_or_default()
    }

    fn number(&self, local: usize) -> i64 {
        self.locals[local].as_i64().unwrap_or(0)
    }

    /// What a wait gave, or an exception that the code may catch.
    fn resume(&mut self, ending: Ending) -> Result<(), ActorError> {
        match ending {
            Ok(answer) if self.pushes => {
                self.stack.push(match answer {
                    Answer::Exited(exited) => exited.reason.to_string().into(),
                    other => other.into_value(),
                });
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(exception) => self.raise(exception),
        }
    }

    fn raise(&mut self, exception: Exception) -> Result<(), ActorError> {
        match self.handlers.pop() {
            Some(handler) => {
                self.stack.push(exception.to_string().into());
                self.next = handler;
                Ok(())
            }
            None => Err(exception.into_actor_error()),
        }
    }

    fn wait(&mut self, reason: Reason, pushes: bool) -> Result<Option<Step>, ActorError> {
        self.pushes = pushes;
        Ok(Some(Step::Suspend(reason)))
    }

    /// Executes one instruction; gives how the step ends, if it does.
    fn execute(&mut self, code: Code, budget: &Budget<'_>) -> Result<Option<Step>, ActorError> {
        match code {
            Code::Push(value) => self.stack.push(value),
            Code::Pop => drop(self.pop()),
            Code::Add => {
                let (b, a) = (self.pop(), self.pop());
                let sum = a
                    .as_i64()
                    .unwrap_or(0)
                    .wrapping_add(b.as_i64().unwrap_or(0));
                self.stack.push(sum.into());
            }
            Code::Load(local) => self.stack.push(self.locals[local].clone()),
            Code::Store(local) => self.locals[local] = self.pop(),
            Code::Jump(to) => self.next = to,
            Code::Loop(local, to) => {
                let left = self.number(local) - 1;
                self.locals[local] = left.into();
                if left > 0 {
                    self.next = to;
                }
            }
            Code::Spawn(program, local) => match budget.spawn(Machine::new(&program)) {
                Ok(task) => {
                    self.locals[local] = task.pid().into();
                    self.tasks[local] = Some(task);
                }
                Err(error) => self.raise(Exception::Failed(error.to_string().into()))?,
            },
            Code::Await(local) => {
                let task = self.tasks[local].clone().expect("a task is there");
                return self.wait(Reason::AwaitTask(task), true);
            }
            Code::Cancel(local) => {
                let task = self.tasks[local].clone().expect("a task is there");
                budget.cancel(&task, "the program says so");
            }
            Code::Sleep(time) => return self.wait(Reason::Sleep(time), false),
            Code::Lock(mutex) => return self.wait(Reason::MutexLock(mutex), false),
            Code::Unlock(mutex) => {
                if let Err(exception) = budget.unlock(&mutex) {
                    self.raise(exception)?;
                }
            }
            Code::Acquire(semaphore, permits) => {
                return self.wait(Reason::SemaphoreAcquire(semaphore, permits), false);
            }
            Code::Release(semaphore, permits) => {
                if let Err(exception) = budget.release(&semaphore, permits) {
                    self.raise(exception)?;
                }
            }
            Code::Send(channel) => {
                let value = self.pop();
                return self.wait(Reason::ChannelSend(channel, value), false);
            }
            Code::Receive(channel) => return self.wait(Reason::ChannelReceive(channel), true),
            Code::Close(channel) => budget.close(&channel),
            Code::Block(work) => return self.wait(Reason::blocking(work), true),
            Code::Command(make) => return self.wait(make(), true),
            Code::Tell(local, topic) => {
                let (value, to) = (self.pop(), self.locals[local].as_pid());
                let to: Pid = to.expect("a PID is there");
                if let Err(why) = budget.send(to, Message::new(topic, value)) {
                    self.raise(Exception::Failed(why.to_string().into()))?;
                }
            }
            Code::Hear(topic, timeout) => {
                let pattern = Pattern::glob(topic);
                return self.wait(Reason::Receive { pattern, timeout }, true);
            }
            Code::Exit => return self.wait(Reason::Exit, true),
            Code::Now => self.stack.push((budget.now() as i64).into()),
            Code::Random => self.stack.push((budget.random() as i64).into()),
            Code::Own => self.stack.push(budget.pid().into()),
            Code::Yield => return Ok(Some(Step::Yield)),
            Code::Native(function) => function(&mut self.stack),
            Code::Try(handler) => self.handlers.push(handler),
            Code::EndTry => drop(self.handlers.pop()),
            Code::Throw(text) => self.raise(Exception::Failed(text.into()))?,
            Code::Panic => panic!("the guest panics on purpose"),
            Code::Return => return Ok(Some(Step::Done(self.pop()))),
        }
        Ok(None)
    }
}

impl Guest for Machine {
    fn step(&mut self, budget: &Budget<'_>, resume: Resume) -> Step {
        if let Resume::Ended(ending) = resume
            && let Err(error) = self.resume(ending)
        {
            return Step::Failed(error);
        }
        loop {
            let Some(code) = self.program.get(self.next).cloned() else {
                return Step::Done(self.pop());
            };
            self.next += 1;
            match self.execute(code, budget) {
                Ok(None) => {}
                Ok(Some(step)) => return step,
                Err(error) => return Step::Failed(error),
            }
            if budget.spend(1) {
                return Step::Yield;
            }
        }
    }
}
