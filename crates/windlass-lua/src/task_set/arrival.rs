//! Waits that have ended.

use windlass_actor::command::YieldError;
use windlass_actor::{Bond, ExitReason, Exited, Message, Topic};
use windlass_value::Payload;
use windlass_vm::{Answer, Budget, Ending, Exception};

use super::wait::{Wait, WaitKind, take};
use super::{NewCode, TaskInput, TaskSet, cancelled};
use crate::interpreter::{Level, Printed};
use crate::op::{self};

impl TaskSet {
    /// A wait of the guest has ended. Gives what the process goes on with, if that is other code.
    pub(super) fn arrive(
        &mut self,
        budget: &Budget<'_>,
        tag: u64,
        ending: Ending,
    ) -> Option<NewCode> {
        let Some(wait) = self.waits.remove(&tag) else {
            // It was over already: a message is kept for the next who wants it.
            match ending {
                Ok(Answer::Message(message)) => self.give_back(budget, message),
                Ok(Answer::Exited(exited)) => self.keep(budget, exit_message(&exited)),
                _ => {}
            }
            return None;
        };
        if let Some(task) = self.tasks.get_mut(&wait.task) {
            task.tag = None;
            task.parked = false;
        }
        let input = match (wait.kind, ending) {
            (WaitKind::Changed, ending) => {
                self.begin_changed(budget);
                if ending.is_ok() {
                    self.changed(budget);
                }
                return None;
            }
            (WaitKind::Exits, ending) => {
                self.begin_exits(budget);
                if let Ok(Answer::Exited(exited)) = ending {
                    self.keep(budget, exit_message(&exited));
                }
                return None;
            }
            (WaitKind::Upgrade(state), Ok(answer)) => {
                match self.upgraded(budget, &state, &answer.into_value()) {
                    Ok(new) => return Some(new),
                    // No task asked for the upgrade, so the problem is logged.
                    Err(problem) if wait.task == 0 => {
                        let text = &format!("the new code is not used: {problem}");
                        let (pid, level) = (Some(budget.pid()), Some(Level::Error));
                        self.inner.print(Printed { pid, level, text });
                        return None;
                    }
                    Err(problem) => TaskInput::Error("upgrade", problem),
                }
            }
            (WaitKind::Look(pattern), Err(Exception::TimedOut)) => {
                match take(&mut self.kept, &pattern) {
                    Some(message) => TaskInput::Answer(Answer::Message(message)),
                    None => TaskInput::Error("timeout", "timed out".to_owned()),
                }
            }
            (WaitKind::Parked, Ok(_)) => TaskInput::Error("timeout", "timed out".to_owned()),
            (_, Ok(answer)) => TaskInput::Answer(answer),
            (_, Err(exception)) => error_of(&exception),
        };
        self.ready.push_back((wait.task, input));
        None
    }

    /// Gives the end of another process to the longest waiter, or keeps it.
    fn keep(&mut self, budget: &Budget<'_>, message: Message) {
        self.hand_out(budget, message, |task_set, message| {
            task_set.kept.push_back(message);
        });
    }

    /// Gives a message to the task that has waited longest for one like it, or keeps it.
    fn hand_out(
        &mut self,
        budget: &Budget<'_>,
        message: Message,
        keep: impl FnOnce(&mut TaskSet, Message),
    ) {
        let topic = message.topic.clone();
        let fits = |wait: &Wait| match &wait.kind {
            WaitKind::Receive(pattern) => pattern.matches(topic.as_str()),
            _ => false,
        };
        let waits = self.waits.iter().filter(|(_, wait)| fits(wait));
        let oldest = waits.map(|(tag, wait)| (*tag, wait.task)).next();
        let Some((tag, id)) = oldest else {
            return keep(self, message);
        };
        self.withdraw(budget, Some(tag));
        if let Some(task) = self.tasks.get_mut(&id) {
            task.tag = None;
        }
        let answer = TaskInput::Answer(Answer::Message(message));
        self.ready.push_back((id, answer));
    }

    /// Takes a message back that was taken for a task that no longer wants it.
    fn give_back(&mut self, budget: &Budget<'_>, message: Message) {
        self.hand_out(budget, message, |task_set, message| {
            task_set.returned.push_back(message);
        });
    }
}

/// The error that a script gets for a wait that failed.
fn error_of(exception: &Exception) -> TaskInput {
    let kind = match exception {
        Exception::Cancelled(reason) => return cancelled(reason),
        Exception::TimedOut => "timeout",
        Exception::TaskFailed { .. } => "exit",
        Exception::Panicked(_) | Exception::Command(YieldError::Panicked(_)) => "panic",
        Exception::Failed(value) if value.get(op::SANDBOX).is_some() => {
            let problem = value.get(op::SANDBOX).and_then(Payload::as_str);
            return TaskInput::Error("sandbox", problem.unwrap_or_default().to_owned());
        }
        _ => "failed",
    };
    TaskInput::Error(kind, exception.to_string())
}

/// The message that an end of another process is for scripts.
const EXIT: &str = "exit";

/// The end of another process, as a message.
fn exit_message(exited: &Exited) -> Message {
    let kind = match &exited.reason {
        ExitReason::Normal => "normal",
        ExitReason::Error(_) => "error",
        ExitReason::Panic(_) => "panic",
        ExitReason::Cancelled(_) => "cancelled",
        ExitReason::Killed => "killed",
        ExitReason::NoConnection => "no_connection",
        _ => "no_process",
    };
    let monitor = match exited.by {
        Bond::Monitor(monitor) => Payload::Int(monitor.number() as i64),
        Bond::Link => Payload::Nil,
    };
    let payload = Payload::map([
        ("pid", Payload::Pid(exited.pid)),
        ("kind", kind.into()),
        ("reason", exited.reason.to_string().into()),
        ("monitor", monitor),
    ]);
    Message::new(Topic::from(EXIT), payload).from(exited.pid)
}
