//! Values of one type, published to all processes that subscribe to them.
//!
//! The members are a list that is copied when it changes: a publish takes the list under the lock
//! and delivers without it, so neither a subscriber nor a mapping function holds up others. A
//! member leaves when its process leaves its groups and names, by the same note in its bonds.
//!
//! A publish offers the value to all members first and waits afterwards, for all full mailboxes at
//! once. Rejected: a queue and a task per member, so that a publisher never waits. It doubles the
//! mailbox, hides how far behind a subscriber is, and a subscriber that may lag drops better.

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};

use windlass_core::sync::Mutex;
use windlass_core::sync::atomic::{AtomicU64, Ordering};
use windlass_core::task::{contain, spend};
use windlass_runtime::join_all;
use windlass_value::Pid;

use crate::address::Address;
use crate::error::{RegisterError, SendErrorKind};

/// What happens to a value that a subscriber's mailbox has no room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// It is dropped for this subscriber, and counted.
    Drop,
    /// The publisher waits for room, after all others have the value.
    Wait,
}

/// Publishes values of type `T` to processes of any message type. Cheap to clone; clones are the
/// same.
///
/// ```
/// use windlass_actor::{Context, PubSub, WhenFull};
///
/// #[derive(Debug, Clone, PartialEq)]
/// struct Price(u32);
///
/// enum Shop { Price(Price), Close }
///
/// # let runtime = windlass_runtime::Runtime::new()?;
/// # runtime.block_on(async {
/// let prices = PubSub::new();
/// let board = windlass_actor::spawn(|mut ctx: Context<Price>| async move {
///     assert_eq!(ctx.recv().await, Some(Price(7)));
/// })?;
/// let shop = windlass_actor::spawn(|mut ctx: Context<Shop>| async move {
///     while let Some(Shop::Price(price)) = ctx.recv().await {
///         assert_eq!(price, Price(7));
///     }
/// })?;
/// prices.subscribe(&board, WhenFull::Drop)?;
/// prices.subscribe_with(&shop, WhenFull::Wait, Shop::Price)?;
/// let published = prices.publish(Price(7)).await;
/// assert_eq!((published.delivered, published.dropped), (2, 0));
/// board.join().await;
/// assert_eq!(prices.subscribers(), [shop.pid()]);
/// # shop.send(Shop::Close).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PubSub<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    members: Mutex<Members<T>>,
    published: AtomicU64,
    /// Those of members that have left are included.
    delivered: AtomicU64,
    dropped: AtomicU64,
}

/// In the order of subscribing. Copied when it changes.
type Members<T> = Arc<Vec<Arc<Member<T>>>>;

struct Member<T> {
    pid: Pid,
    when_full: WhenFull,
    target: Box<dyn Target<T>>,
    delivered: AtomicU64,
    dropped: AtomicU64,
}

/// A subscriber with messages of any type.
trait Target<T>: Send + Sync {
    fn offer(&self, value: T, when_full: WhenFull) -> Offer;
}

enum Offer {
    Delivered,
    Dropped,
    /// The process has ended.
    Gone,
    /// Resolves when there was room.
    Waits(WaitForRoom),
}

type WaitForRoom = Pin<Box<dyn Future<Output = Offer> + Send>>;

/// A member that is to be waited for.
type Waiting<T> = (Arc<Member<T>>, WaitForRoom);

/// What one publish came to. A subscriber that has ended is in neither number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The number of mailboxes that have the value.
    pub delivered: usize,
    /// The number of subscribers that it was dropped for.
    pub dropped: usize,
}

/// What a [`PubSub`] has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PubSubCounts {
    /// The number of subscribers now.
    pub subscribers: usize,
    /// Values that were published.
    pub published: u64,
    /// Values that were put into mailboxes, each of them counted for itself.
    pub delivered: u64,
    /// Values that were dropped, for each subscriber that did not get them.
    pub dropped: u64,
}

/// What one subscriber got so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberCounts {
    /// The PID of the process.
    pub pid: Pid,
    /// Values that its mailbox took.
    pub delivered: u64,
    /// Values that were dropped for it.
    pub dropped: u64,
}

/// What a process takes back when it ends.
pub(crate) trait Departure: Send + Sync {
    fn depart(&self, pid: Pid);
}

impl<T: Clone + Send + 'static> PubSub<T> {
    /// Makes one without subscribers.
    pub fn new() -> PubSub<T> {
        PubSub {
            shared: Arc::new(Shared {
                members: Mutex::default(),
                published: AtomicU64::new(0),
                delivered: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
            }),
        }
    }

    /// From now on this process gets the values as its messages. It leaves when it ends. A process
    /// that has subscribed already keeps its place and its counts begin anew.
    pub fn subscribe(
        &self,
        process: &Address<T>,
        when_full: WhenFull,
    ) -> Result<(), RegisterError> {
        self.subscribe_with(process, when_full, |value| value)
    }

    /// As [`subscribe`](PubSub::subscribe), for a process with other messages: `message` makes one
    /// of a value. It runs in the task that publishes; a panic in it kills the subscriber.
    pub fn subscribe_with<M, F>(
        &self,
        process: &Address<M>,
        when_full: WhenFull,
        message: F,
    ) -> Result<(), RegisterError>
    where
        M: Send + 'static,
        F: Fn(T) -> M + Send + Sync + 'static,
    {
        let member = Arc::new(Member {
            pid: process.pid(),
            when_full,
            target: Box::new(Subscriber {
                address: process.clone(),
                message,
            }),
            delivered: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
        });
        let shared: Weak<Shared<T>> = Arc::downgrade(&self.shared);
        let mut members = self.shared.members.lock();
        // Under the lock of the members: the process leaves what it has noted when it ends.
        let there = members.iter().position(|there| there.pid == member.pid);
        if there.is_none() && !process.core.shell.note_subscription(shared) {
            return Err(RegisterError::NoProcess);
        }
        let mut changed = Vec::clone(&members);
        let left = match there {
            Some(place) => Some(std::mem::replace(&mut changed[place], member)),
            None => {
                changed.push(member);
                None
            }
        };
        let before = std::mem::replace(&mut *members, Arc::new(changed));
        drop(members);
        // After the lock: a mapping function may own anything.
        drop((before, left));
        Ok(())
    }

    /// Ends the subscription of a process; false: it had none.
    pub fn unsubscribe<M: Send + 'static>(&self, process: &Address<M>) -> bool {
        let shared: Weak<Shared<T>> = Arc::downgrade(&self.shared);
        process
            .core
            .shell
            .forget_subscription(&(shared as Weak<dyn Departure>));
        self.shared.remove(process.pid())
    }

    /// Publishes a value to all subscribers, in the order of their subscribing. Those with room
    /// have it at once; then this waits for those that are full and to be waited for, all at the
    /// same time. A process that publishes to itself does not wait for itself: it subscribes with
    /// [`WhenFull::Drop`].
    ///
    /// A dropped wait takes nothing back: those that it waited for do not get the value.
    pub async fn publish(&self, value: T) -> Published {
        // A publisher that never has to wait gives way all the same.
        poll_fn(spend).await.made_progress();
        let (mut published, waits) = self.offer(value, |member| member.when_full);
        // No closure: the compiler does not find the future of one to be Send.
        let mut settled = Vec::with_capacity(waits.len());
        for (member, wait) in waits {
            settled.push(settle(member, wait));
        }
        for (member, offer) in join_all(settled).await {
            self.shared.note(&member, &offer, &mut published);
        }
        published
    }

    /// Publishes a value without waiting: it is dropped for each subscriber that has no room now,
    /// and counted.
    pub fn publish_now(&self, value: T) -> Published {
        self.offer(value, |_| WhenFull::Drop).0
    }

    /// Offers a value to all members. Returns what that came to, and those that are to be waited
    /// for.
    fn offer(
        &self,
        value: T,
        when_full: impl Fn(&Member<T>) -> WhenFull,
    ) -> (Published, Vec<Waiting<T>>) {
        let shared = &self.shared;
        // Relaxed, as all counts here: they are for people.
        shared.published.fetch_add(1, Ordering::Relaxed);
        let members = shared.members.lock().clone();
        let (mut published, mut waits) = (Published::default(), Vec::new());
        for member in members.iter() {
            match member.target.offer(value.clone(), when_full(member)) {
                Offer::Waits(wait) => waits.push((member.clone(), wait)),
                offer => shared.note(member, &offer, &mut published),
            }
        }
        (published, waits)
    }

    /// The processes that have subscribed, in the order of their subscribing.
    pub fn subscribers(&self) -> Vec<Pid> {
        let members = self.shared.members.lock();
        members.iter().map(|member| member.pid).collect()
    }

    /// What each subscriber got so far.
    pub fn subscriber_counts(&self) -> Vec<SubscriberCounts> {
        let members = self.shared.members.lock();
        let counts = |member: &Arc<Member<T>>| SubscriberCounts {
            pid: member.pid,
            delivered: member.delivered.load(Ordering::Relaxed),
            dropped: member.dropped.load(Ordering::Relaxed),
        };
        members.iter().map(counts).collect()
    }

    /// What all of it came to so far.
    pub fn counts(&self) -> PubSubCounts {
        PubSubCounts {
            subscribers: self.shared.members.lock().len(),
            published: self.shared.published.load(Ordering::Relaxed),
            delivered: self.shared.delivered.load(Ordering::Relaxed),
            dropped: self.shared.dropped.load(Ordering::Relaxed),
        }
    }
}

async fn settle<T>(member: Arc<Member<T>>, wait: WaitForRoom) -> (Arc<Member<T>>, Offer) {
    let offer = wait.await;
    (member, offer)
}

impl<T> Shared<T> {
    fn note(&self, member: &Member<T>, offer: &Offer, published: &mut Published) {
        match offer {
            Offer::Delivered => {
                published.delivered += 1;
                self.delivered.fetch_add(1, Ordering::Relaxed);
                member.delivered.fetch_add(1, Ordering::Relaxed);
            }
            Offer::Dropped => {
                published.dropped += 1;
                self.dropped.fetch_add(1, Ordering::Relaxed);
                member.dropped.fetch_add(1, Ordering::Relaxed);
            }
            // It leaves by itself.
            Offer::Gone | Offer::Waits(_) => {}
        }
    }

    fn remove(&self, pid: Pid) -> bool {
        let mut members = self.members.lock();
        let Some(place) = members.iter().position(|member| member.pid == pid) else {
            return false;
        };
        let mut changed = Vec::clone(&members);
        let left = changed.remove(place);
        let before = std::mem::replace(&mut *members, Arc::new(changed));
        drop(members);
        // After the lock: a mapping function may own anything.
        drop((before, left));
        true
    }
}

impl<T: Send + 'static> Departure for Shared<T> {
    fn depart(&self, pid: Pid) {
        self.remove(pid);
    }
}

struct Subscriber<M, F> {
    address: Address<M>,
    message: F,
}

impl<T, M, F> Target<T> for Subscriber<M, F>
where
    M: Send + 'static,
    F: Fn(T) -> M + Send + Sync,
{
    fn offer(&self, value: T, when_full: WhenFull) -> Offer {
        let message = match catch_unwind(AssertUnwindSafe(|| (self.message)(value))) {
            Ok(message) => message,
            Err(panic) => {
                contain(|| drop(panic));
                self.address.kill();
                return Offer::Gone;
            }
        };
        let Err(error) = self.address.tell(message) else {
            return Offer::Delivered;
        };
        match (error.kind, when_full) {
            (SendErrorKind::NoProcess, _) => Offer::Gone,
            (SendErrorKind::Full, WhenFull::Wait) => {
                let address = self.address.clone();
                Offer::Waits(Box::pin(async move {
                    match address.send(error.message).await {
                        Ok(()) => Offer::Delivered,
                        Err(_) => Offer::Gone,
                    }
                }))
            }
            _ => Offer::Dropped,
        }
    }
}

impl<T> Clone for PubSub<T> {
    fn clone(&self) -> Self {
        PubSub {
            shared: self.shared.clone(),
        }
    }
}

impl<T: Clone + Send + 'static> Default for PubSub<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for PubSub<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subscribers = self.shared.members.lock().len();
        f.debug_struct("PubSub")
            .field("subscribers", &subscribers)
            .finish_non_exhaustive()
    }
}
