//! How many bytes the messages of a mailbox take, so that these are bounded, too.
//!
//! Light messages (up to [`LIGHT`] bytes) are not weighed against the bound: the number of messages
//! bounds them already, and most are light. So a send of a plain number costs a comparison. The
//! type of most mailboxes cannot have heavy messages at all; those have no scales.
//!
//! The bytes are permits of a semaphore, so senders that wait for bytes are served in the order of
//! coming: neither a later `send` nor a `tell` of a heavy message overtakes them. A closed mailbox
//! closes the semaphore, which notifies all of them at once.
//!
//! Rejected: a count behind a lock and a notification that bytes are free. Each reading wakes all
//! waiting senders, and the lightest of them always wins.

use std::any::{Any, TypeId};
use std::collections::HashSet;
use std::sync::Arc;

use windlass_sync::lock::{Semaphore, SemaphorePermit, TryAcquireError};
use windlass_value::Payload;

use crate::error::SendErrorKind;
use crate::message::Message;

/// How many bytes of heavy messages a mailbox holds, unless one says otherwise.
pub(crate) const MAILBOX_BYTES: usize = 64 << 20;

/// Messages of up to so many bytes count by their number only.
const LIGHT: usize = 1024;

/// How many bytes a message takes in a mailbox. Without it, a typed message counts as its
/// [`size_of`], and what it points to is not seen.
///
/// ```
/// use windlass_actor::{Context, Weigh};
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
/// let host = windlass_actor::Host::current()?;
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
        let behind = match self {
            // The whole of it is in one place.
            Payload::Text(text) => text.len(),
            Payload::Bytes(bytes) => bytes.len(),
            Payload::List(_) | Payload::Map(_) => weigh_parts(self),
            _ => 0,
        };
        size_of::<Payload>().saturating_add(behind)
    }
}

/// What a list or map has elsewhere. The lists and maps inside of it wait in a vector, not on the
/// stack: there may be any number of levels.
fn weigh_parts(payload: &Payload) -> usize {
    let mut seen = HashSet::new();
    // A part with one holder is in one place, so most parts need no look into the set.
    let mut is_new = |is_shared: bool, part: *const ()| !is_shared || seen.insert(part);
    let mut bytes = 0_usize;
    let mut waiting = vec![payload];
    while let Some(payload) = waiting.pop() {
        let more = match payload {
            Payload::Text(text) if is_new(is_shared(text), Arc::as_ptr(text).cast()) => text.len(),
            Payload::Bytes(part) if is_new(is_shared(part), Arc::as_ptr(part).cast()) => part.len(),
            Payload::List(values) if is_new(values.is_shared(), values.address()) => {
                waiting.extend(values.iter().filter(has_parts));
                size_of_val(&**values)
            }
            Payload::Map(entries) if is_new(entries.is_shared(), entries.address()) => {
                let mut keys = 0_usize;
                for (key, value) in entries.iter() {
                    if is_new(is_shared(key), Arc::as_ptr(key).cast()) {
                        keys = keys.saturating_add(key.len());
                    }
                    waiting.extend(Some(value).filter(has_parts));
                }
                let entries = entries.len() * size_of::<(Arc<str>, Payload)>();
                entries.saturating_add(keys)
            }
            _ => 0,
        };
        bytes = bytes.saturating_add(more);
    }
    bytes
}

fn has_parts(payload: &&Payload) -> bool {
    matches!(
        payload,
        Payload::Text(_) | Payload::Bytes(_) | Payload::List(_) | Payload::Map(_)
    )
}

fn is_shared<T: ?Sized>(part: &Arc<T>) -> bool {
    Arc::strong_count(part) > 1
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
    pub(crate) most: usize,
    /// The bytes that are free: `most` less those of heavy messages that are not read yet, and of
    /// senders that have their bytes and wait for room for one more message. A ring counts its
    /// bytes behind its own lock instead.
    free: Semaphore,
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
        // More than a program can have in memory.
        let most = most.min(Semaphore::MAX_PERMITS);
        Some(Scales {
            weigher: own,
            most,
            free: Semaphore::new(most),
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

    /// Takes room for the bytes of a heavy message if it is free and no other sender waits for it.
    pub(crate) fn try_reserve(&self, bytes: usize) -> Result<SemaphorePermit<'_>, SendErrorKind> {
        self.check(bytes)?;
        self.free
            .try_acquire_weight(bytes)
            .map_err(|error| match error {
                TryAcquireError::Closed => SendErrorKind::NoProcess,
                TryAcquireError::NoPermits => SendErrorKind::Full,
            })
    }

    /// Waits for room for the bytes of a heavy message, behind all senders that came before.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<SemaphorePermit<'_>, SendErrorKind> {
        self.check(bytes)?;
        let reserved = self.free.acquire_weight(bytes).await;
        reserved.map_err(|_| SendErrorKind::NoProcess)
    }

    /// Refuses a message that takes more bytes than there ever are.
    fn check(&self, bytes: usize) -> Result<(), SendErrorKind> {
        if bytes <= self.most {
            return Ok(());
        }
        match self.free.is_closed() {
            true => Err(SendErrorKind::NoProcess),
            false => Err(SendErrorKind::TooLarge),
        }
    }

    /// Gives back the bytes of a message that was read, to those who wait first.
    pub(crate) fn release(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        // A weight that has grown since the message was sent must not free more than is taken.
        let taken = self.most.saturating_sub(self.free.available_permits());
        self.free.add_permits(bytes.min(taken));
    }

    /// The process has ended: refuses every sender, those that wait included.
    pub(crate) fn close(&self) {
        self.free.close();
    }
}
