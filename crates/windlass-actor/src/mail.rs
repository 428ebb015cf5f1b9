//! The mailbox of one process: room for so many messages, and a policy for one more.
//!
//! Messages are letters in the core's mailbox queue; the room is a semaphore: a permit for each message
//! that is not read yet. The reader gives permits back in small batches, and all of them when its turn ends, so
//! nobody sleeps for room that is there. A mailbox that drops its oldest message is a ring
//! behind a lock instead: only the reader can take letters out of the queue.
//!
//! Heavy messages need room in bytes, too (`weigh.rs`). A sender takes the bytes first and then its
//! permit, so that permits are held by messages alone: a sender that waits for bytes is no unread
//! message, and keeps no light message out. No sender waits for bytes with a permit, so those that
//! have bytes and wait for a permit get one as soon as the process reads.
//!
//! A ring keeps the weight of each message beside it, and counts its bytes under its own lock: a
//! message and its bytes leave at the same moment. No code of users (weights, destructors, wakers)
//! runs under that lock.

use std::collections::VecDeque;
use std::fmt;

use windlass_core::queue::{Inbox, Letter, Mailbox, Pushed};
use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicU32, Ordering};
use windlass_core::task::contain;
use windlass_sync::lock::{Semaphore, SemaphorePermit, TryAcquireError};

use crate::error::SendErrorKind;
use crate::weigh::Scales;

/// How many messages may wait in a mailbox, and what happens to one more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MailboxPolicy {
    /// So many; senders wait for room, or are told that there is none.
    Bounded(usize),
    /// So many; the oldest makes room for the newest, and is counted.
    DropOldest(usize),
    /// So many; what comes then is dropped and counted.
    DropNewest(usize),
    /// Any number: whoever sends decides how much memory this takes.
    Unbounded,
}

impl Default for MailboxPolicy {
    fn default() -> Self {
        MailboxPolicy::Bounded(1024)
    }
}

impl MailboxPolicy {
    /// Whether a mailbox can be like this.
    pub(crate) fn is_possible(self) -> bool {
        match self {
            MailboxPolicy::Bounded(most)
            | MailboxPolicy::DropOldest(most)
            | MailboxPolicy::DropNewest(most) => (1..=MOST).contains(&most),
            MailboxPolicy::Unbounded => true,
        }
    }
}

/// More than anybody reads.
const MOST: usize = u32::MAX as usize;
/// Permits that the reader keeps at most before it gives them back.
const LARGEST_BATCH: u32 = 32;

pub(crate) struct Mail<M> {
    kind: Kind<M>,
    dropped: AtomicU32,
    /// Permits of messages that were read in this turn of the process, to be given back together. Only that
    /// turn touches it.
    taken: AtomicU32,
    /// None: its messages are light, or there may be any number of them.
    scales: Option<Box<Scales<M>>>,
}

enum Kind<M> {
    Queue {
        letters: Mailbox<M>,
        room: Option<Room>,
    },
    /// Boxed: few are like this, and all are as large as the largest kind.
    Ring(Box<Mutex<Ring<M>>>),
}

struct Room {
    free: Semaphore,
    capacity: u32,
    drops_newest: bool,
}

struct Ring<M> {
    /// Each with its bytes; 0 if it is light.
    messages: VecDeque<(M, usize)>,
    /// The bytes of all of them.
    bytes: usize,
    capacity: usize,
    closed: bool,
}

impl<M> Ring<M> {
    /// Takes the message at this place out, with its bytes.
    fn take(&mut self, place: usize) -> Option<M> {
        let (message, bytes) = self.messages.remove(place)?;
        self.bytes -= bytes;
        Some(message)
    }
}

/// The room for one message in a queue, in bytes and in messages. It goes back if it is not used.
pub(crate) struct Reserved<'a> {
    bytes: Option<SemaphorePermit<'a>>,
    message: Option<SemaphorePermit<'a>>,
}

impl Reserved<'_> {
    /// The message is in the mailbox: the process gives the room back when it reads it.
    fn keep(self) {
        self.bytes.into_iter().for_each(SemaphorePermit::forget);
        self.message.into_iter().for_each(SemaphorePermit::forget);
    }
}

/// What one more message came to.
pub(crate) enum Posted {
    /// The reader has to be woken.
    First,
    /// The reader knows.
    Behind,
    /// The policy dropped it.
    Dropped,
}

impl From<Pushed> for Posted {
    fn from(pushed: Pushed) -> Posted {
        match pushed {
            Pushed::First => Posted::First,
            Pushed::Behind => Posted::Behind,
        }
    }
}

impl<M> Mail<M> {
    pub(crate) fn new(policy: MailboxPolicy, scales: Option<Scales<M>>) -> Mail<M> {
        let scales = scales
            .filter(|_| policy != MailboxPolicy::Unbounded)
            .map(Box::new);
        let room = |capacity, drops_newest| Room {
            free: Semaphore::new(capacity),
            // At most MOST: whoever makes a mailbox asks `is_possible` first.
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
                    kind: Kind::Ring(Box::new(Mutex::new(ring))),
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
            kind: Kind::Queue {
                letters: Mailbox::new(),
                room,
            },
            dropped: AtomicU32::new(0),
            taken: AtomicU32::new(0),
            scales,
        }
    }

    /// Puts a message in, if the policy lets it in now.
    ///
    /// Inlined all the way: the answer holds a message, and is not to be built where it is not needed.
    #[inline(always)]
    pub(crate) fn try_post(&self, message: M) -> Result<Posted, (M, SendErrorKind)> {
        let (letters, room) = match &self.kind {
            Kind::Queue { letters, room } => (letters, room),
            Kind::Ring(ring) => return self.post_to_ring(ring, message),
        };
        if let Some(scales) = &self.scales {
            let bytes = scales.weigh(&message);
            if bytes > 0 {
                return self.post_heavy(scales, bytes, message);
            }
        }
        if let Some(room) = room {
            match room.free.try_acquire() {
                Ok(permit) => permit.forget(),
                Err(error) => return self.refuse(room, message, error),
            }
        }
        push(letters, message)
    }

    /// As `try_post`, for a message of so many bytes into a queue.
    #[cold]
    fn post_heavy(
        &self,
        scales: &Scales<M>,
        bytes: usize,
        message: M,
    ) -> Result<Posted, (M, SendErrorKind)> {
        let Kind::Queue { letters, room } = &self.kind else {
            return Err((message, SendErrorKind::Full));
        };
        let drops = room.as_ref().is_some_and(|room| room.drops_newest);
        let bytes = match scales.try_reserve(bytes) {
            Ok(bytes) => Some(bytes),
            Err(SendErrorKind::Full) if drops => {
                self.count_dropped();
                return Ok(Posted::Dropped);
            }
            Err(kind) => return Err((message, kind)),
        };
        let permit = match room.as_ref().map(|room| (room, room.free.try_acquire())) {
            None => None,
            Some((_, Ok(permit))) => Some(permit),
            Some((room, Err(error))) => return self.refuse(room, message, error),
        };
        let reserved = Reserved {
            bytes,
            message: permit,
        };
        push_reserved(letters, message, reserved)
    }

    #[cold]
    fn refuse(
        &self,
        room: &Room,
        message: M,
        error: TryAcquireError,
    ) -> Result<Posted, (M, SendErrorKind)> {
        match error {
            TryAcquireError::Closed => Err((message, SendErrorKind::NoProcess)),
            TryAcquireError::NoPermits if room.drops_newest => {
                self.count_dropped();
                Ok(Posted::Dropped)
            }
            TryAcquireError::NoPermits => Err((message, SendErrorKind::Full)),
        }
    }

    /// Returns the bytes that a message takes in a queue; 0 if it is light.
    pub(crate) fn weigh(&self, message: &M) -> usize {
        let scales = self.scales.as_ref();
        scales.map_or(0, |scales| scales.weigh(message))
    }

    /// Waits for room for a message of so many bytes, in the order of coming. A wait that is
    /// dropped gives its place up, and what it has.
    pub(crate) async fn reserve(&self, bytes: usize) -> Result<Reserved<'_>, SendErrorKind> {
        let bytes = match &self.scales {
            Some(scales) if bytes > 0 => Some(scales.reserve(bytes).await?),
            _ => None,
        };
        let message = match self.room() {
            Some(room) => Some(room.acquire().await.map_err(|_| SendErrorKind::NoProcess)?),
            None => None,
        };
        Ok(Reserved { bytes, message })
    }

    /// Puts a message in for which there is room.
    pub(crate) fn post_reserved(
        &self,
        message: M,
        reserved: Reserved<'_>,
    ) -> Result<Posted, (M, SendErrorKind)> {
        match &self.kind {
            Kind::Queue { letters, .. } => push_reserved(letters, message, reserved),
            // It makes room by itself.
            Kind::Ring(ring) => self.post_to_ring(ring, message),
        }
    }

    /// A message was read: its bytes are given back.
    #[inline]
    fn lighten(&self, message: &M) {
        if let Some(scales) = &self.scales {
            scales.release(scales.weigh(message));
        }
    }

    /// Where to wait for room; none: nobody ever waits here.
    pub(crate) fn room(&self) -> Option<&Semaphore> {
        match &self.kind {
            Kind::Queue { room, .. } => room.as_ref().map(|room| &room.free),
            Kind::Ring(_) => None,
        }
    }

    #[cold]
    fn post_to_ring(
        &self,
        ring: &Mutex<Ring<M>>,
        message: M,
    ) -> Result<Posted, (M, SendErrorKind)> {
        // Before the lock: this is code of users.
        let bytes = self.weigh(&message);
        let most = self.scales.as_ref().map_or(0, |scales| scales.most);
        let mut oldest = Vec::new();
        let mut ring = ring.lock();
        if ring.closed {
            return Err((message, SendErrorKind::NoProcess));
        }
        if bytes > most {
            return Err((message, SendErrorKind::TooLarge));
        }
        // Nothing is in an empty ring that could be in the way of this message.
        while ring.messages.len() >= ring.capacity || ring.bytes > most - bytes {
            let Some(message) = ring.take(0) else { break };
            oldest.push(message);
        }
        ring.bytes += bytes;
        ring.messages.push_back((message, bytes));
        drop(ring);
        // After the lock, and contained: the reader has to be woken all the same, and a destructor
        // that panics is not the sender's.
        for message in oldest {
            self.count_dropped();
            contain(|| drop(message));
        }
        // Also where one made room: the reader may have gone to sleep over those that it did not want.
        Ok(Posted::First)
    }

    fn count_dropped(&self) {
        // Relaxed: a count for display.
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// A message was read: there is room for one more.
    #[inline]
    fn took_one(&self, by: ReadBy) {
        let Kind::Queue {
            room: Some(room), ..
        } = &self.kind
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

    /// Messages that are not read yet; none: nobody counts them.
    pub(crate) fn unread(&self) -> Option<usize> {
        match &self.kind {
            Kind::Queue { room, .. } => room.as_ref().map(|room| {
                let taken = self.taken.load(Ordering::Relaxed) as usize;
                let free = room.free.available_permits() + taken;
                (room.capacity as usize).saturating_sub(free)
            }),
            Kind::Ring(ring) => Some(ring.lock().messages.len()),
        }
    }

    /// Refuses messages from now on, and tells those who wait for room. What was in it is dropped with the
    /// answer.
    pub(crate) fn close(&self) -> impl Sized + use<M> {
        let unread = self.close_kind();
        if let Some(scales) = &self.scales {
            scales.close();
        }
        unread
    }

    fn close_kind(&self) -> (Inbox<M>, VecDeque<(M, usize)>) {
        match &self.kind {
            Kind::Queue { letters, room } => {
                if let Some(room) = room {
                    room.free.close();
                }
                (letters.close(), VecDeque::new())
            }
            Kind::Ring(ring) => {
                let mut ring = ring.lock();
                ring.closed = true;
                ring.bytes = 0;
                (Inbox::new(), std::mem::take(&mut ring.messages))
            }
        }
    }
}

#[inline(always)]
fn push<M>(letters: &Mailbox<M>, message: M) -> Result<Posted, (M, SendErrorKind)> {
    match letters.push(Letter::new(message)) {
        Ok(pushed) => Ok(pushed.into()),
        Err(letter) => Err((letter.open(), SendErrorKind::NoProcess)),
    }
}

/// As `push`, with room that goes back if the mailbox is closed.
fn push_reserved<M>(
    letters: &Mailbox<M>,
    message: M,
    reserved: Reserved<'_>,
) -> Result<Posted, (M, SendErrorKind)> {
    let posted = push(letters, message);
    if posted.is_ok() {
        reserved.keep();
    }
    posted
}

/// Who reads: the process in its own turn, which gives room back when that ends, or whoever was given its
/// context, and gives it back at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadBy {
    OwnTurn,
    Another,
}

/// The reading end: there is one for each mailbox.
pub(crate) struct Reader<M> {
    inbox: Inbox<M>,
}

impl<M> Reader<M> {
    pub(crate) const fn new() -> Reader<M> {
        Reader {
            inbox: Inbox::new(),
        }
    }

    /// Takes the oldest message.
    #[inline]
    pub(crate) fn take(&mut self, mail: &Mail<M>, by: ReadBy) -> Option<M> {
        let letters = match &mail.kind {
            Kind::Queue { letters, .. } => letters,
            Kind::Ring(ring) => return ring.lock().take(0),
        };
        let message = self.inbox.pop().or_else(|| {
            self.inbox.fetch(letters);
            self.inbox.pop()
        })?;
        mail.lighten(&message);
        mail.took_one(by);
        Some(message)
    }

    /// Takes the oldest message that `wanted` says yes to.
    pub(crate) fn take_where(
        &mut self,
        mail: &Mail<M>,
        by: ReadBy,
        mut wanted: impl FnMut(&M) -> bool,
    ) -> Option<M> {
        let letters = match &mail.kind {
            Kind::Queue { letters, .. } => letters,
            Kind::Ring(ring) => {
                let mut ring = ring.lock();
                let mut messages = ring.messages.iter();
                let place = messages.position(|(message, _)| wanted(message))?;
                return ring.take(place);
            }
        };
        self.inbox.fetch(letters);
        let message = self.inbox.pop_where(&mut wanted)?;
        mail.lighten(&message);
        mail.took_one(by);
        Some(message)
    }

    /// Looks for mail that has come since; true if there is some. Nobody wakes the reader for what it has
    /// not fetched. A ring does not tell old from new; there each message wakes.
    pub(crate) fn has_news(&mut self, mail: &Mail<M>) -> bool {
        match &mail.kind {
            Kind::Queue { letters, .. } => self.inbox.fetch(letters),
            Kind::Ring(ring) => !ring.lock().messages.is_empty(),
        }
    }

    /// Whether nothing is here that could be taken.
    pub(crate) fn is_empty(&self, mail: &Mail<M>) -> bool {
        match &mail.kind {
            Kind::Queue { .. } => self.inbox.is_empty(),
            Kind::Ring(ring) => ring.lock().messages.is_empty(),
        }
    }
}

impl<M> fmt::Debug for Mail<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail")
            .field("unread", &self.unread())
            .field("dropped", &self.dropped())
            .finish()
    }
}
