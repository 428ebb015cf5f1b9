//! The mailbox of one process: room for so many messages, and a policy for one more.
//!
//! Messages are letters in the core's mailbox queue; the room is a semaphore: a permit for each
//! message that is not read yet. The reader gives permits back in small batches, and all of them
//! when its turn ends, so no sender sleeps for room that is there. A mailbox that drops its oldest
//! message is a ring behind a lock instead: only the reader can take letters out of the queue.
//!
//! Heavy messages need room in bytes, too (`weigh.rs`). A sender takes the bytes first and then its
//! permit, so that permits are held by messages alone: a sender that waits for bytes is no unread
//! message, and keeps no light message out. No sender waits for bytes with a permit, so those that
//! have bytes and wait for a permit get one as soon as the process reads.
//!
//! A ring keeps the weight of each message beside it, and counts its bytes under its own lock: a
//! message and its bytes leave at the same moment. No code of users (weights, destructors, wakers)
//! runs under that lock.

mod capacity;
mod policy;
mod reader;
mod ring;

use std::collections::VecDeque;
use std::fmt;

use windlass_core::queue::{Inbox, Letter, Mailbox, PushOutcome};
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicU32, Ordering};
use windlass_core::task::contain;
use windlass_sync::lock::{Semaphore, TryAcquireError};

use self::capacity::Capacity;
pub(crate) use self::capacity::Reservation;
pub use self::policy::MailboxPolicy;
pub(crate) use self::reader::{ReadBy, Reader};
use self::ring::Ring;
use crate::error::SendErrorKind;
use crate::weigh::Scales;

/// Permits that the reader keeps at most before it gives them back.
const LARGEST_BATCH: u32 = 32;

pub(crate) struct Mail<M> {
    storage: Storage<M>,
    dropped: AtomicU32,
    /// Permits of messages that were read in this turn of the process, to be given back together.
    /// Only that turn touches it.
    taken: AtomicU32,
    /// None: its messages are light, or there may be any number of them.
    scales: Option<Box<Scales<M>>>,
}

enum Storage<M> {
    Queue {
        letters: Mailbox<M>,
        room: Option<Capacity>,
    },
    /// Boxed: few are like this, and all are as large as the largest kind.
    Ring(Box<Mutex<Ring<M>>>),
}

/// What was in a mailbox when it was closed. Dropping it drops the messages; a destructor that
/// panics ends neither the program nor the drop of the others.
pub(crate) enum Unread<M> {
    Letters(#[allow(dead_code, reason = "held for its drop")] Inbox<M>),
    Ring(VecDeque<(M, usize)>),
}

impl<M> Drop for Unread<M> {
    fn drop(&mut self) {
        if let Unread::Ring(messages) = self {
            for message in messages.drain(..) {
                contain(|| drop(message));
            }
        }
    }
}

/// A letter that did not get into a mailbox, and why.
pub(crate) type RefusedLetter<M> = (Letter<M>, SendErrorKind);

/// What one more message came to.
pub(crate) enum PostOutcome {
    /// The reader has to be woken.
    First,
    /// The reader knows.
    Behind,
    /// The policy dropped it.
    Dropped,
}

impl From<PushOutcome> for PostOutcome {
    fn from(pushed: PushOutcome) -> PostOutcome {
        match pushed {
            PushOutcome::First => PostOutcome::First,
            PushOutcome::Behind => PostOutcome::Behind,
        }
    }
}

impl<M> Mail<M> {
    pub(crate) fn new(policy: MailboxPolicy, scales: Option<Scales<M>>) -> Mail<M> {
        let scales = scales
            .filter(|_| policy != MailboxPolicy::Unbounded)
            .map(Box::new);
        let room = |capacity, drops_newest| Capacity {
            free: Semaphore::new(capacity),
            // At most MOST: a spawn checks `is_possible` first.
            capacity: u32::try_from(capacity).unwrap_or(u32::MAX),
            drops_newest,
        };
        let room = match policy {
            MailboxPolicy::DropOldest(capacity) => {
                let ring = Ring {
                    messages: VecDeque::new(),
                    bytes: 0,
                    capacity,
                    closed: false,
                };
                return Mail {
                    storage: Storage::Ring(Box::new(Mutex::new(ring))),
                    dropped: AtomicU32::new(0),
                    taken: AtomicU32::new(0),
                    scales,
                };
            }
            MailboxPolicy::Unbounded => None,
            MailboxPolicy::Bounded(capacity) => Some(room(capacity, false)),
            MailboxPolicy::DropNewest(capacity) => Some(room(capacity, true)),
        };
        Mail {
            storage: Storage::Queue {
                letters: Mailbox::new(),
                room,
            },
            dropped: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            scales,
        }
    }

    /// Puts a letter in, if the policy lets it in now.
    ///
    /// Inlined all the way. A letter is a pointer: a message that went from call to call by itself
    /// was copied at each of them, and the processor waited for every copy.
    #[inline(always)]
    pub(crate) fn try_post(&self, letter: Letter<M>) -> Result<PostOutcome, RefusedLetter<M>> {
        let (letters, room) = match &self.storage {
            Storage::Queue { letters, room } => (letters, room),
            Storage::Ring(ring) => return self.post_to_ring(ring, letter),
        };
        if let Some(scales) = &self.scales {
            let bytes = scales.weigh(letter.value());
            if bytes > 0 {
                return self.post_heavy(scales, bytes, letter);
            }
        }
        if let Some(room) = room {
            match room.free.try_acquire() {
                Ok(permit) => permit.forget(),
                Err(error) => return self.refuse(room, letter, error),
            }
        }
        push(letters, letter)
    }

    /// As `try_post`, for a message of so many bytes into a queue.
    #[cold]
    fn post_heavy(
        &self,
        scales: &Scales<M>,
        bytes: usize,
        letter: Letter<M>,
    ) -> Result<PostOutcome, RefusedLetter<M>> {
        let Storage::Queue { letters, room } = &self.storage else {
            return Err((letter, SendErrorKind::Full));
        };
        let drops = room.as_ref().is_some_and(|room| room.drops_newest);
        let bytes = match scales.try_reserve(bytes) {
            Ok(bytes) => Some(bytes),
            Err(SendErrorKind::Full) if drops => {
                self.count_dropped();
                return Ok(PostOutcome::Dropped);
            }
            Err(kind) => return Err((letter, kind)),
        };
        let permit = match room.as_ref().map(|room| (room, room.free.try_acquire())) {
            None => None,
            Some((_, Ok(permit))) => Some(permit),
            Some((room, Err(error))) => return self.refuse(room, letter, error),
        };
        let reserved = Reservation {
            bytes,
            message: permit,
        };
        push_reserved(letters, letter, reserved)
    }

    #[cold]
    fn refuse(
        &self,
        room: &Capacity,
        letter: Letter<M>,
        error: TryAcquireError,
    ) -> Result<PostOutcome, RefusedLetter<M>> {
        match error {
            TryAcquireError::Closed => Err((letter, SendErrorKind::NoProcess)),
            TryAcquireError::NoPermits if room.drops_newest => {
                self.count_dropped();
                Ok(PostOutcome::Dropped)
            }
            TryAcquireError::NoPermits => Err((letter, SendErrorKind::Full)),
        }
    }

    /// Returns the bytes that a message takes in a queue; 0 if it is light.
    pub(crate) fn weigh(&self, message: &M) -> usize {
        let scales = self.scales.as_ref();
        scales.map_or(0, |scales| scales.weigh(message))
    }

    /// Waits for room for a message of so many bytes, in the order of coming. A wait that is
    /// dropped gives its place up, and what it has.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<Reservation<'_>, SendErrorKind> {
        let bytes = match &self.scales {
            Some(scales) if bytes > 0 => Some(scales.reserve(bytes).await?),
            _ => None,
        };
        let message = match self.room() {
            Some(room) => Some(room.acquire().await.map_err(|_| SendErrorKind::NoProcess)?),
            None => None,
        };
        Ok(Reservation { bytes, message })
    }

    /// Puts a message in for which there is room.
    pub(crate) fn post_reserved(
        &self,
        letter: Letter<M>,
        reserved: Reservation<'_>,
    ) -> Result<PostOutcome, RefusedLetter<M>> {
        match &self.storage {
            Storage::Queue { letters, .. } => push_reserved(letters, letter, reserved),
            // It makes room by itself.
            Storage::Ring(ring) => self.post_to_ring(ring, letter),
        }
    }

    /// A message was read: its bytes are given back.
    #[inline]
    fn lighten(&self, message: &M) {
        if let Some(scales) = &self.scales {
            scales.release(scales.weigh(message));
        }
    }

    /// Returns the semaphore that senders wait for; none for mailboxes that never make a sender
    /// wait.
    pub(crate) fn room(&self) -> Option<&Semaphore> {
        match &self.storage {
            Storage::Queue { room, .. } => room.as_ref().map(|room| &room.free),
            Storage::Ring(_) => None,
        }
    }

    #[cold]
    fn post_to_ring(
        &self,
        ring: &Mutex<Ring<M>>,
        letter: Letter<M>,
    ) -> Result<PostOutcome, RefusedLetter<M>> {
        // Before the lock: this is code of users.
        let bytes = self.weigh(letter.value());
        let most = self.scales.as_ref().map_or(0, |scales| scales.most);
        let mut oldest = Vec::new();
        let mut ring = ring.lock();
        if ring.closed {
            return Err((letter, SendErrorKind::NoProcess));
        }
        if bytes > most {
            return Err((letter, SendErrorKind::TooLarge));
        }
        // Nothing is in an empty ring that could be in the way of this message.
        while ring.messages.len() >= ring.capacity || ring.bytes > most - bytes {
            let Some(message) = ring.take(0) else { break };
            oldest.push(message);
        }
        ring.bytes += bytes;
        ring.messages.push_back((letter.open(), bytes));
        drop(ring);
        // After the lock, and contained: the reader has to be woken all the same, and a destructor
        // that panics is not the sender's.
        for message in oldest {
            self.count_dropped();
            contain(|| drop(message));
        }
        // Also where one made room: the reader may have gone to sleep over those that it did not
        // want.
        Ok(PostOutcome::First)
    }

    /// Counts a message that was not put in and is handed back to no sender.
    pub(crate) fn count_dropped(&self) {
        // Relaxed: a count for display.
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// A message was read: there is room for one more.
    #[inline]
    fn took_one(&self, by: ReadBy) {
        let Storage::Queue {
            room: Some(room), ..
        } = &self.storage
        else {
            return;
        };
        if by == ReadBy::Another {
            return room.free.add_permits(1);
        }
        let taken = self.taken.load(Ordering::Relaxed) + 1;
        // Of a small mailbox each one counts.
        if taken >= (room.capacity / LARGEST_BATCH).clamp(1, LARGEST_BATCH) {
            self.taken.store(0, Ordering::Relaxed);
            room.free.add_permits(taken as usize);
        } else {
            self.taken.store(taken, Ordering::Relaxed);
        }
    }

    /// The turn of the process ends: senders get to know of all the room there is.
    #[inline]
    pub(crate) fn give_room(&self) {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken > 0
            && let Some(room) = self.room()
        {
            self.taken.store(0, Ordering::Relaxed);
            room.add_permits(taken as usize);
        }
    }

    /// Messages that the policy has dropped.
    pub(crate) fn dropped(&self) -> u64 {
        u64::from(self.dropped.load(Ordering::Relaxed))
    }

    /// Returns the number of unread messages; none for a mailbox that does not count them.
    pub(crate) fn unread(&self) -> Option<usize> {
        match &self.storage {
            Storage::Queue { room, .. } => room.as_ref().map(|room| {
                let taken = self.taken.load(Ordering::Relaxed) as usize;
                let free = room.free.available_permits() + taken;
                (room.capacity as usize).saturating_sub(free)
            }),
            Storage::Ring(ring) => Some(ring.lock().messages.len()),
        }
    }

    /// Refuses messages from now on, and notifies senders that wait for room. What was in it is
    /// dropped with the answer.
    pub(crate) fn close(&self) -> Unread<M> {
        let unread = self.close_storage();
        if let Some(scales) = &self.scales {
            scales.close();
        }
        unread
    }

    fn close_storage(&self) -> Unread<M> {
        match &self.storage {
            Storage::Queue { letters, room } => {
                if let Some(room) = room {
                    room.free.close();
                }
                Unread::Letters(letters.close())
            }
            Storage::Ring(ring) => {
                let mut ring = ring.lock();
                ring.closed = true;
                ring.bytes = 0;
                Unread::Ring(std::mem::take(&mut ring.messages))
            }
        }
    }
}

#[inline(always)]
fn push<M>(letters: &Mailbox<M>, letter: Letter<M>) -> Result<PostOutcome, RefusedLetter<M>> {
    match letters.push(letter) {
        Ok(pushed) => Ok(pushed.into()),
        Err(letter) => Err((letter, SendErrorKind::NoProcess)),
    }
}

/// As `push`, with room that goes back if the mailbox is closed.
fn push_reserved<M>(
    letters: &Mailbox<M>,
    letter: Letter<M>,
    reserved: Reservation<'_>,
) -> Result<PostOutcome, RefusedLetter<M>> {
    let posted = push(letters, letter);
    if posted.is_ok() {
        reserved.keep();
    }
    posted
}

impl<M> fmt::Debug for Mail<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail")
            .field("unread", &self.unread())
            .field("dropped", &self.dropped())
            .finish()
    }
}
