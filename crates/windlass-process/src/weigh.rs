//! How many bytes the messages of a mailbox take, so that these are bounded, too.
//!
//! Light messages (up to [`LIGHT`] bytes) are not weighed against the bound: the number of messages
//! bounds them already, and most are light. So a send of a plain number costs a comparison. The
//! type of most mailboxes cannot have heavy messages at all; those have no scales.

use std::any::{Any, TypeId};
use std::collections::HashSet;
use std::sync::Arc;

use windlass_core::sync::Mutex;
use windlass_runtime::sync::Notify;

use crate::message::Message;
use crate::payload::Payload;

/// How many bytes of heavy messages a mailbox holds, unless one says otherwise.
pub(crate) const MAILBOX_BYTES: usize = 64 << 20;

/// Messages of up to so many bytes count by their number only.
const LIGHT: usize = 1024;

/// How many bytes a message takes in a mailbox. Without it, a typed message counts as its
/// [`size_of`], and what it points to is not seen.
///
/// ```
/// use windlass_process::{Context, Weigh};
///
/// struct Frame { pixels: Vec<u8> }
///
/// impl Weigh for Frame {
///     fn weigh(&self) -> usize {
///         size_of::<Frame>() + self.pixels.len()
///     }
/// }
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// let host = windlass_process::Host::current()?;
/// let camera = host
///     .process()
///     .weighed::<Frame>()
///     .mailbox_bytes(10_000)
///     .spawn(|_: Context<Frame>| std::future::pending::<()>())?;
/// camera.tell(Frame { pixels: vec![0; 6_000] })?;
/// assert!(camera.tell(Frame { pixels: vec![0; 6_000] }).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Weigh {
    /// The bytes. They must not change while the message is in a mailbox.
    fn weigh(&self) -> usize;
}

impl Weigh for Payload {
    /// What it takes in memory; parts that are in several places count once.
    fn weigh(&self) -> usize {
        match self {
            Payload::List(_) | Payload::Map(_) => {
                let mut seen = HashSet::new();
                size_of::<Payload>().saturating_add(behind(self, &mut seen))
            }
            leaf => size_of::<Payload>().saturating_add(behind(leaf, &mut HashSet::new())),
        }
    }
}

/// What a payload has elsewhere, as far as it was not seen.
fn behind(payload: &Payload, seen: &mut HashSet<*const ()>) -> usize {
    match payload {
        Payload::Text(text) => text.len(),
        Payload::Bytes(bytes) => bytes.len(),
        Payload::List(values) => match seen.insert(Arc::as_ptr(values).cast()) {
            false => 0,
            true => values.iter().fold(0, |bytes, value| {
                let value = size_of::<Payload>().saturating_add(behind(value, seen));
                bytes.saturating_add(value)
            }),
        },
        Payload::Map(entries) => match seen.insert(Arc::as_ptr(entries).cast()) {
            false => 0,
            true => entries.iter().fold(0, |bytes, (key, value)| {
                let entry = size_of::<(Arc<str>, Payload)>() + key.len();
                let value = behind(value, seen);
                bytes.saturating_add(entry).saturating_add(value)
            }),
        },
        _ => 0,
    }
}

impl Weigh for Message {
    fn weigh(&self) -> usize {
        size_of::<Message>()
            .saturating_add(self.topic.as_str().len())
            .saturating_add(self.payload.weigh())
    }
}

/// How a message of some type is weighed.
pub(crate) type Weigher<M> = fn(&M) -> usize;

/// What weighs the messages of one mailbox.
pub(crate) struct Scales<M> {
    weigher: Weigher<M>,
    most: usize,
    /// The bytes of heavy messages that are not read yet.
    held: Mutex<usize>,
    /// Some were read, or nobody reads any more.
    pub(crate) freed: Notify,
}

/// Why a message finds no room.
pub(crate) enum Heavy {
    /// There is less room left than it takes.
    Full,
    /// It takes more than there ever is.
    TooLarge,
}

impl<M: 'static> Scales<M> {
    /// For messages of this type; none if all of them are light.
    pub(crate) fn new(most: usize, given: Option<&(dyn Any + Send + Sync)>) -> Option<Scales<M>> {
        let own: Weigher<M> = match given.and_then(|given| given.downcast_ref::<Weigher<M>>()) {
            Some(weigher) => *weigher,
            None if TypeId::of::<M>() == TypeId::of::<Message>() => |message| {
                let message = (message as &dyn Any).downcast_ref::<Message>();
                message.map_or(size_of::<M>(), Weigh::weigh)
            },
            None if size_of::<M>() <= LIGHT => return None,
            None => |_| size_of::<M>(),
        };
        Some(Scales {
            weigher: own,
            most,
            held: Mutex::new(0),
            freed: Notify::new(),
        })
    }
}

impl<M> Scales<M> {
    /// The weight of a message; 0 if it is light.
    pub(crate) fn weigh(&self, message: &M) -> usize {
        match (self.weigher)(message) {
            light if light <= LIGHT => 0,
            heavy => heavy,
        }
    }

    /// Takes room for so many bytes.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), Heavy> {
        if bytes == 0 {
            return Ok(());
        }
        if bytes > self.most {
            return Err(Heavy::TooLarge);
        }
        let mut held = self.held.lock();
        match held.checked_add(bytes).filter(|held| *held <= self.most) {
            Some(all) => {
                *held = all;
                Ok(())
            }
            None => Err(Heavy::Full),
        }
    }

    /// Gives it back, and tells those who wait for it.
    pub(crate) fn release(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        {
            let mut held = self.held.lock();
            *held = held.saturating_sub(bytes);
        }
        self.freed.notify_waiters();
    }

    /// Nobody reads any more: whoever waits looks again, and is told by the mailbox.
    pub(crate) fn close(&self) {
        *self.held.lock() = 0;
        self.freed.notify_waiters();
    }
}
