//! The mailbox, and the process that reads it.

use std::sync::Arc;

use windlass_core::queue::{Inbox, Letter, Mailbox, PushOutcome};
use windlass_core::sync::UnsafeCell;
use windlass_core::task::Class;
use windlass_core::task::state::{Home, Park, Start, State, Wake};

/// A value whose content loom watches: a race between its writer and its reader is reported.
struct Value(UnsafeCell<usize>);

// SAFETY: the mailbox hands it from one owner to the next.
unsafe impl Send for Value {}

fn letter(value: usize) -> Letter<Value> {
    Letter::new(Value(UnsafeCell::new(value)))
}

fn read(value: Value) -> usize {
    // SAFETY: ours.
    value.0.with(|there| unsafe { *there })
}

/// A process as the runner sees it: a state word, two mailboxes, and what belongs to whoever holds
/// it.
struct Process {
    state: State,
    messages: Mailbox<Value>,
    completions: Mailbox<Value>,
    held: UnsafeCell<Held>,
}

#[derive(Default)]
struct Held {
    messages: Inbox<Value>,
    completions: Inbox<Value>,
    seen: Vec<usize>,
}

// SAFETY: `held` is touched by the holder of the state word only.
unsafe impl Sync for Process {}
// SAFETY: as above.
unsafe impl Send for Process {}

impl Process {
    fn new() -> Arc<Process> {
        Arc::new(Process {
            state: State::scheduled(Home::Pool, Class::Normal, true),
            messages: Mailbox::new(),
            completions: Mailbox::new(),
            held: UnsafeCell::new(Held::default()),
        })
    }

    /// Turns until the process is idle.
    fn run(&self) {
        loop {
            assert_eq!(self.state.start(), Start::Poll);
            self.held.with_mut(|held| {
                // SAFETY: we hold the task.
                let held = unsafe { &mut *held };
                held.completions.fetch(&self.completions);
                held.messages.fetch(&self.messages);
                while let Some(value) = held.completions.pop().or_else(|| held.messages.pop()) {
                    held.seen.push(read(value));
                }
            });
            match self.state.park() {
                Park::Idle => return,
                Park::Requeue => {}
                Park::Cancel => unreachable!("nobody cancels"),
            }
        }
    }

    fn post(&self, mailbox: &Mailbox<Value>, value: usize) {
        if mailbox.push(letter(value)).ok() == Some(PushOutcome::First)
            && self.state.wake() == Wake::Submit
        {
            self.run();
        }
    }

    fn seen(&self) -> Vec<usize> {
        assert!(self.state.load().is_idle());
        // SAFETY: all others have ended.
        self.held.with(|held| unsafe { (*held).seen.clone() })
    }
}

#[test]
fn p6_mailbox_messages_and_completions_race_and_none_is_left_behind() {
    loom::model(|| {
        let process = Process::new();
        let sender = {
            let process = process.clone();
            loom::thread::spawn(move || {
                process.post(&process.messages, 10);
                process.post(&process.messages, 11);
            })
        };
        let completer = {
            let process = process.clone();
            loom::thread::spawn(move || process.post(&process.completions, 20))
        };
        process.run();
        sender.join().unwrap();
        completer.join().unwrap();
        let seen = process.seen();
        let place = |value| seen.iter().position(|seen| *seen == value);
        assert!(place(10).is_some() && place(10) < place(11), "{seen:?}");
        assert!(place(20).is_some() && seen.len() == 3, "{seen:?}");
    });
}

#[test]
fn mailbox_two_senders_share_one_wake() {
    loom::model(|| {
        let process = Process::new();
        process.run();
        let senders: Vec<_> = [10, 20]
            .into_iter()
            .map(|value| {
                let process = process.clone();
                loom::thread::spawn(move || process.post(&process.messages, value))
            })
            .collect();
        for sender in senders {
            sender.join().unwrap();
        }
        let mut seen = process.seen();
        seen.sort_unstable();
        assert_eq!(seen, [10, 20]);
    });
}

#[test]
fn mailbox_a_letter_is_read_or_handed_back() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new());
        let other = mailbox.clone();
        let sender = loom::thread::spawn(move || {
            [1, 2].map(|value| match other.push(letter(value)) {
                Ok(_) => 0,
                Err(refused) => read(refused.open()),
            })
        });
        let mut read_by_us = Vec::new();
        let mut inbox = Inbox::new();
        inbox.fetch(&mailbox);
        let mut last = mailbox.close();
        while let Some(value) = inbox.pop().or_else(|| last.pop()) {
            read_by_us.push(read(value));
        }
        let refused = sender.join().unwrap();
        let refused = refused.into_iter().filter(|value| *value != 0);
        let all: Vec<_> = read_by_us.into_iter().chain(refused).collect();
        assert_eq!(all, [1, 2]);
    });
}

#[test]
fn mailbox_it_may_be_closed_by_another_than_its_reader() {
    loom::model(|| {
        let mailbox = Arc::new(Mailbox::new());
        let (reader, closer) = (mailbox.clone(), mailbox.clone());
        let fetched = loom::thread::spawn(move || {
            let mut inbox = Inbox::new();
            inbox.fetch(&reader);
            std::iter::from_fn(|| inbox.pop()).map(read).count()
        });
        let left = loom::thread::spawn(move || {
            let mut inbox = closer.close();
            std::iter::from_fn(|| inbox.pop()).map(read).count()
        });
        let sent = mailbox.push(letter(1)).is_ok();
        let read = fetched.join().unwrap() + left.join().unwrap();
        assert_eq!(read, usize::from(sent));
        assert!(mailbox.push(letter(2)).is_err(), "it stays closed");
    });
}
