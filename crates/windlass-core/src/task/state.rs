//! The state word of a task: every bit, every legal combination, every transition.
//!
//! ```text
//!  63          40 39        32 31      16 15                            0
//! | references   | shields    | pinned to | flags                        |
//! ```
//!
//! | flag | meaning |
//! |---|---|
//! | HELD | a queue or a worker owns the body; the thread that clears it gives the body back to the registry |
//! | NOTIFIED | a wake came while HELD; cleared when the next poll starts |
//! | COMPLETE | the body is gone and the output is in the join cell; final |
//! | CANCELLED | cancellation was asked for; it applies when no shield is up |
//! | JOIN_INTEREST | a join handle exists |
//! | JOIN_WAKER | the join cell's waker is readable by the completer |
//! | LOCAL | the task belongs to a local set, not to a pool (constant) |
//! | DETACHED_HOME | the task runs on a blocking thread: a wake has nowhere to go (constant) |
//! | CLASS | two bits, the priority class (constant) |
//! | LOCAL and DETACHED_HOME | the task belongs to an external executor, which is no pool (constant) |
//! | ANYWHERE | the task is unconfined: it goes on where it is woken (constant) |
//! | IN_ORDER | the task takes no short cut through a worker's own queues (constant) |
//! | HELD_OPEN | the body is a coroutine inside a section that nothing may unwind out of |
//! | PINNED | the body has begun on the thread whose index stands beside it, and goes on nowhere else |
//!
//! The four lifecycles, and what each may be combined with:
//!
//! | lifecycle | HELD | COMPLETE | NOTIFIED | CANCELLED | JOIN_WAKER |
//! |---|---|---|---|---|---|
//! | IDLE | 0 | 0 | 0 | only while shielded | any |
//! | SCHEDULED (a queue holds it) | 1 | 0 | any | any | any |
//! | RUNNING (a worker holds it) | 1 | 0 | any | any | any |
//! | COMPLETE | 0 | 1 | 0 | any | until the completer has woken the joiner |
//!
//! SCHEDULED and RUNNING share one encoding on purpose. Only the holder needs to tell them
//! apart (a wake, an abort and a join do the same thing to both), the holder knows, and with one
//! encoding the start of a poll is a load and a yield changes nothing: no read-modify-write on
//! either. A wake of a held task is always a read-modify-write, because the poll that follows has
//! to see what the waker wrote.
//!
//! Orderings. Every successful change is `AcqRel`: it publishes the writer's past and takes over
//! the last owner's. The `Acquire` load in `start` pairs with the exchange in `wake`/`cancel` that
//! set HELD or NOTIFIED. The `Acquire` loads that find `references == 1` pair with the `AcqRel`
//! subtraction in `release`.

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::task::Class;

const HELD: u64 = 1 << 0;
const NOTIFIED: u64 = 1 << 1;
const COMPLETE: u64 = 1 << 2;
const CANCELLED: u64 = 1 << 3;
const JOIN_INTEREST: u64 = 1 << 4;
const JOIN_WAKER: u64 = 1 << 5;
const LOCAL: u64 = 1 << 6;
const DETACHED_HOME: u64 = 1 << 7;
const CLASS_SHIFT: u32 = 8;
const CLASS_MASK: u64 = 0b11 << CLASS_SHIFT;
const PINNED: u64 = 1 << 10;
const ANYWHERE: u64 = 1 << 11;
const IN_ORDER: u64 = 1 << 12;
const HELD_OPEN: u64 = 1 << 13;
const PIN_SHIFT: u32 = 16;
const PIN_MASK: u64 = 0xFFFF << PIN_SHIFT;
const SHIELD_ONE: u64 = 1 << 32;
const SHIELD_MASK: u64 = 0xFF << 32;
/// What holds a cancellation back.
const SHIELDED: u64 = SHIELD_MASK | HELD_OPEN;
const REF_ONE: u64 = 1 << 40;
/// Half the range: far above any honest use, far below an overflow.
const REF_LIMIT: u64 = 1 << 63;

/// Where a task's wakes go. Constant for the life of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Home {
    /// The pool that spawned it.
    Pool,
    /// A local set.
    Local,
    /// A thread of the blocking pool, which runs it to its end in one go.
    Blocking,
    /// Threads of another kind.
    External,
    /// Wherever it is woken.
    Anywhere,
}

/// The state word of a task.
#[derive(Debug)]
pub struct State(AtomicU64);

/// A moment's copy of the word.
#[derive(Clone, Copy)]
pub struct Snapshot(u64);

/// What to do with a task that came out of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Start {
    /// Resume the body.
    Poll,
    /// Drop the body: it was cancelled.
    Cancel,
}

/// What a wake or a cancellation asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Wake {
    /// The caller took the idle task and now puts it into a queue.
    Submit,
    /// The holder will see it, or the task is complete.
    Nothing,
}

/// What to do with a body that reported pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Park {
    /// The task is idle; the caller may not touch it any more.
    Idle,
    /// A wake came during the poll: back to the queue.
    Requeue,
    /// A cancellation applies: drop the body.
    Cancel,
}

/// What the completer has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Completion {
    /// The completer holds the only reference. From `complete`: drop the output, which may make
    /// new references, and call `complete_without_output`. From there: free the block.
    Alone,
    /// The output waits for the join handle; the scheduler's reference is gone.
    Handed,
    /// Wake the joiner, then call `end_join_wake` and `release`.
    WakeJoiner,
    /// The output is not wanted: drop it, then complete again.
    DropOutput,
}

/// What a join handle that goes away owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Forget {
    /// The output is in the cell and is the handle's to drop.
    pub output: bool,
    /// The join waker is the handle's to drop.
    pub waker: bool,
}

/// What lowering a shield brought about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Lower {
    /// Nothing more to do.
    Done,
    /// A deferred cancellation applies and the task was idle: the caller queues it.
    Submit,
}

/// The shield counter is full (255 sections are nested already).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShieldOverflow;

impl State {
    /// A task that is about to enter its first queue: the queue entry's reference, and one for the
    /// join handle where there is one.
    pub fn scheduled(home: Home, class: Class, joinable: bool) -> State {
        let home = match home {
            Home::Pool => 0,
            Home::Local => LOCAL,
            Home::Blocking => DETACHED_HOME,
            Home::External => LOCAL | DETACHED_HOME,
            Home::Anywhere => ANYWHERE,
        };
        let (interest, references) = if joinable { (JOIN_INTEREST, 2) } else { (0, 1) };
        let class = (class as u64) << CLASS_SHIFT;
        State(AtomicU64::new(
            HELD | (references * REF_ONE) | interest | home | class,
        ))
    }

    /// A new task that goes through the pool's shared queue always.
    pub fn in_order(self) -> State {
        // Relaxed: no other thread has it yet.
        self.0.fetch_or(IN_ORDER, Ordering::Relaxed);
        self
    }

    /// A copy for looking at. `Acquire`, so that COMPLETE shows the output.
    #[inline]
    pub fn load(&self) -> Snapshot {
        Snapshot(self.0.load(Ordering::Acquire))
    }

    /// The holder is about to resume the body.
    #[inline]
    pub fn start(&self) -> Start {
        // Acquire: pairs with the exchange in `wake` and `cancel`.
        let mut now = self.0.load(Ordering::Acquire);
        if now & NOTIFIED != 0 {
            // A read-modify-write: a wake that comes after it sets NOTIFIED again and causes one
            // more poll; one that came before it is seen by this poll.
            now = self.0.fetch_and(!NOTIFIED, Ordering::AcqRel);
        }
        if Snapshot(now).cancel_applies() {
            Start::Cancel
        } else {
            Start::Poll
        }
    }

    /// Asks for a poll of the task.
    #[inline]
    pub fn wake(&self) -> Wake {
        self.change(|now| {
            if now & COMPLETE != 0 {
                // Nothing can follow, so nothing needs publishing.
                (None, Wake::Nothing)
            } else if now & HELD == 0 {
                (Some(now | HELD), Wake::Submit)
            } else {
                // Also when NOTIFIED is set already: the exchange is what publishes this waker's
                // writes to the poll that will clear it.
                (Some(now | NOTIFIED), Wake::Nothing)
            }
        })
    }

    /// As `wake`, and gives up the waker's reference in the same step. None: the task is complete,
    /// nothing was changed, and the reference is still to be released.
    #[inline]
    pub fn wake_by_value(&self) -> Option<Wake> {
        self.change(|now| {
            // The entry's reference stays, so this one is not the last.
            if now & COMPLETE != 0 {
                (None, None)
            } else if now & HELD == 0 {
                (Some((now | HELD) - REF_ONE), Some(Wake::Submit))
            } else {
                (Some((now | NOTIFIED) - REF_ONE), Some(Wake::Nothing))
            }
        })
    }

    /// Asks for the end of the task.
    pub fn cancel(&self) -> Wake {
        self.change(|now| {
            if now & (COMPLETE | CANCELLED) != 0 {
                (None, Wake::Nothing)
            } else if now & HELD != 0 {
                (Some(now | CANCELLED | NOTIFIED), Wake::Nothing)
            } else if now & SHIELDED != 0 {
                // The section goes on; lowering the shield brings the cancellation back.
                (Some(now | CANCELLED), Wake::Nothing)
            } else {
                (Some(now | CANCELLED | HELD), Wake::Submit)
            }
        })
    }

    /// Ends every shield and cancels: shutdown past its deadline.
    pub fn cancel_by_force(&self) -> Wake {
        self.change(|now| {
            if now & COMPLETE != 0 {
                (None, Wake::Nothing)
            } else if now & HELD != 0 {
                (
                    Some((now | CANCELLED | NOTIFIED) & !SHIELDED),
                    Wake::Nothing,
                )
            } else {
                (Some((now | CANCELLED | HELD) & !SHIELDED), Wake::Submit)
            }
        })
    }

    /// The body reported pending.
    #[inline]
    pub fn park(&self) -> Park {
        self.change(|now| {
            if Snapshot(now).cancel_applies() {
                (None, Park::Cancel)
            } else if now & NOTIFIED != 0 {
                (None, Park::Requeue)
            } else {
                (Some(now & !HELD), Park::Idle)
            }
        })
    }

    /// The body is gone and its output is in the cell.
    #[inline]
    pub fn complete(&self) -> Completion {
        self.change(|now| {
            let done = (now | COMPLETE) & !(HELD | NOTIFIED);
            if now / REF_ONE == 1 {
                // Acquire (of the load): the last other holder's `release` is in our past. Only
                // this thread can make new references, so the word needs no write yet.
                (None, Completion::Alone)
            } else if now & JOIN_WAKER != 0 {
                (Some(done), Completion::WakeJoiner)
            } else if now & JOIN_INTEREST != 0 {
                (Some(done - REF_ONE), Completion::Handed)
            } else {
                (None, Completion::DropOutput)
            }
        })
    }

    /// Completes a task whose output has been dropped because it was not wanted.
    pub fn complete_without_output(&self) -> Completion {
        self.change(|now| {
            if now / REF_ONE == 1 {
                (None, Completion::Alone)
            } else {
                let done = (now | COMPLETE) & !(HELD | NOTIFIED);
                (Some(done - REF_ONE), Completion::Handed)
            }
        })
    }

    /// The completer has woken the joiner. True: the handle is gone, the waker is the completer's.
    pub fn end_join_wake(&self) -> bool {
        // AcqRel: pairs with `forget_join`, which looks at JOIN_WAKER to learn who drops it.
        self.0.fetch_and(!JOIN_WAKER, Ordering::AcqRel) & JOIN_INTEREST == 0
    }

    /// The handle has written its waker. False: the task completed first, take it back.
    #[inline]
    pub fn set_join_waker(&self) -> bool {
        self.change(|now| {
            if now & COMPLETE != 0 {
                (None, false)
            } else {
                (Some(now | JOIN_WAKER), true)
            }
        })
    }

    /// The handle wants to replace its waker. False: the task completed first.
    pub fn unset_join_waker(&self) -> bool {
        self.change(|now| {
            if now & COMPLETE != 0 {
                (None, false)
            } else {
                (Some(now & !JOIN_WAKER), true)
            }
        })
    }

    /// The join handle goes away; what it now owns is in the answer. Its reference stays.
    pub fn forget_join(&self) -> Forget {
        self.change(|now| {
            if now & COMPLETE != 0 {
                let waker = now & JOIN_WAKER == 0;
                (
                    Some(now & !JOIN_INTEREST),
                    Forget {
                        output: true,
                        waker,
                    },
                )
            } else {
                let next = now & !(JOIN_INTEREST | JOIN_WAKER);
                (
                    Some(next),
                    Forget {
                        output: false,
                        waker: true,
                    },
                )
            }
        })
    }

    /// The common case of a handle dropped before anything happened: no waker was set and the task
    /// is not complete. Gives up interest and reference in one step; false: take the long way.
    #[inline]
    pub fn detach(&self) -> bool {
        self.change(|now| {
            if now & (COMPLETE | JOIN_WAKER) != 0 || now / REF_ONE == 1 {
                (None, false)
            } else {
                (Some((now & !JOIN_INTEREST) - REF_ONE), true)
            }
        })
    }

    /// Raises a shield around the running section.
    pub fn raise_shield(&self) -> Result<(), ShieldOverflow> {
        self.change(|now| {
            if now & SHIELD_MASK == SHIELD_MASK {
                (None, Err(ShieldOverflow))
            } else {
                (Some(now + SHIELD_ONE), Ok(()))
            }
        })
    }

    /// Lowers a shield.
    pub fn lower_shield(&self) -> Lower {
        self.change(|now| {
            if now & SHIELD_MASK == 0 {
                // A shutdown past its deadline ended them all.
                return (None, Lower::Done);
            }
            let next = now - SHIELD_ONE;
            if Snapshot(next).cancel_applies() && next & (HELD | COMPLETE) == 0 {
                (Some(next | HELD), Lower::Submit)
            } else {
                (Some(next), Lower::Done)
            }
        })
    }

    /// The running body enters a section that nothing may unwind out of. It counts such sections
    /// itself, so one bit is enough, and there is no limit that it could reach.
    pub fn hold_open(&self) {
        // Relaxed: the body is HELD by this thread, which looks at it again before it gives it
        // back.
        self.0.fetch_or(HELD_OPEN, Ordering::Relaxed);
    }

    /// The running body leaves the last such section. A cancellation that came meanwhile is seen at
    /// the body's next look.
    pub fn close(&self) {
        // Relaxed: as in `hold_open`.
        self.0.fetch_and(!HELD_OPEN, Ordering::Relaxed);
    }

    /// The holder is about to begin a body that must stay on its thread from then on.
    pub fn pin(&self, thread: u16) {
        // Relaxed: the thread that queues the task has moved it to HELD after the holder gave it
        // back, and that exchange shows the bits.
        self.0
            .fetch_or(PINNED | (u64::from(thread) << PIN_SHIFT), Ordering::Relaxed);
    }

    /// Adds one reference.
    #[inline]
    pub fn retain(&self) {
        // Relaxed: a new reference is made from one that exists.
        if self.0.fetch_add(REF_ONE, Ordering::Relaxed) >= REF_LIMIT {
            // As Arc does: `Waker::clone` cannot fail, and a wrapped count would free a live task.
            std::process::abort();
        }
    }

    /// Removes one reference. Returns true if it was the last: free the block.
    #[inline]
    #[must_use]
    pub fn release(&self) -> bool {
        // Acquire: pairs with the AcqRel subtraction of the previous owner.
        if self.0.load(Ordering::Acquire) / REF_ONE == 1 {
            return true;
        }
        self.0.fetch_sub(REF_ONE, Ordering::AcqRel) / REF_ONE == 1
    }

    /// The only compare-exchange loop of the task layer. `step` gives the next word (none: leave
    /// it as it is, having only acquired it) and the answer.
    #[inline(always)]
    fn change<R>(&self, step: impl Fn(u64) -> (Option<u64>, R)) -> R {
        let mut now = self.0.load(Ordering::Acquire);
        loop {
            let (next, answer) = step(now);
            let Some(next) = next else { return answer };
            match self
                .0
                .compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => return answer,
                Err(changed) => now = changed,
            }
        }
    }
}

impl Snapshot {
    /// The body is gone and the output can be read.
    #[inline]
    pub fn is_complete(self) -> bool {
        self.0 & COMPLETE != 0
    }

    /// No queue and no worker holds the task.
    pub fn is_idle(self) -> bool {
        self.0 & (HELD | COMPLETE) == 0
    }

    /// Cancellation was asked for, shielded or not.
    pub fn is_cancelled(self) -> bool {
        self.0 & CANCELLED != 0
    }

    /// Cancellation was asked for and no shield holds it back.
    #[inline]
    pub fn cancel_applies(self) -> bool {
        self.0 & (CANCELLED | SHIELDED) == CANCELLED
    }

    /// A join handle exists.
    pub fn has_join_interest(self) -> bool {
        self.0 & JOIN_INTEREST != 0
    }

    /// The join cell's waker is shared with the completer.
    #[inline]
    pub fn has_join_waker(self) -> bool {
        self.0 & JOIN_WAKER != 0
    }

    /// Returns how many shields are nested.
    pub fn shields(self) -> u8 {
        ((self.0 & SHIELD_MASK) >> 32) as u8
    }

    /// Returns how many references there are.
    pub fn references(self) -> u64 {
        self.0 / REF_ONE
    }

    /// Returns where the task's wakes go.
    #[inline]
    pub fn home(self) -> Home {
        match self.0 & (LOCAL | DETACHED_HOME | ANYWHERE) {
            0 => Home::Pool,
            LOCAL => Home::Local,
            DETACHED_HOME => Home::Blocking,
            ANYWHERE => Home::Anywhere,
            _ => Home::External,
        }
    }

    /// The index of the thread that the body stays on.
    #[inline]
    pub fn pinned_to(self) -> Option<usize> {
        (self.0 & PINNED != 0).then_some(((self.0 & PIN_MASK) >> PIN_SHIFT) as usize)
    }

    /// Normal class and not pinned: any worker may run it in any order.
    #[inline]
    pub fn is_ordinary(self) -> bool {
        self.0 & (CLASS_MASK | PINNED | IN_ORDER) == 0
    }

    /// The priority class.
    #[inline]
    pub fn class(self) -> Class {
        match (self.0 & CLASS_MASK) >> CLASS_SHIFT {
            0 => Class::Normal,
            1 => Class::High,
            2 => Class::Low,
            _ => Class::Background,
        }
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lifecycle = if self.is_complete() {
            "COMPLETE"
        } else if self.is_idle() {
            "IDLE"
        } else {
            "SCHEDULED|RUNNING"
        };
        write!(
            f,
            "{lifecycle} refs={} shields={}",
            self.references(),
            self.shields()
        )?;
        if self.is_cancelled() {
            f.write_str(" CANCELLED")?;
        }
        Ok(())
    }
}
