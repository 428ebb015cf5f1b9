//! `#[windlass::actor::messages]`: an actor's methods as messages.

use std::time::Duration;

use windlass::actor::supervisor::{ChildSpec, Strategy, Supervisor};
use windlass::actor::{
    Actor, ActorError, Address, AskError, CallError, Context, ExitReason, Host, MailboxPolicy,
    Methods, SendErrorKind, Spawn, Weigh, messages,
};
use windlass::{select, time};

#[derive(Debug, Default)]
struct Stock {
    count: u32,
}

#[derive(Debug, PartialEq)]
struct Short {
    missing: u32,
}

#[messages]
impl Stock {
    /// Is no message: it has no receiver.
    pub(crate) fn new() -> Stock {
        Stock::default()
    }

    /// Adds so many pieces.
    pub(crate) fn add(&mut self, number: u32) {
        self.change(number.cast_signed());
    }

    /// Adds pieces when they have come.
    pub(crate) async fn deliver(&mut self, number: u32, after: Duration) {
        time::sleep(after).await;
        self.change(number.cast_signed());
    }

    /// Takes pieces out; all or none.
    pub(crate) async fn take_out(&mut self, number: u32) -> Result<u32, Short> {
        if number > self.count {
            let missing = number - self.count;
            return Err(Short { missing });
        }
        self.count -= number;
        Ok(self.count)
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Another kind of result.
    pub(crate) fn read(&self, text: String) -> std::io::Result<u32> {
        text.parse().map_err(std::io::Error::other)
    }

    /// Ends the process with an error if there is less.
    pub(crate) fn require(&self, number: u32) -> Result<(), ActorError> {
        if self.count < number {
            return Err(ActorError::new("too few"));
        }
        Ok(())
    }

    pub(crate) fn checked(&self) -> Result<u32, ActorError> {
        self.require(1)?;
        Ok(self.count)
    }

    /// Answers, and ends the process normally.
    pub(crate) fn close(&mut self, ctx: &mut Context<StockMessage>) -> u32 {
        ctx.stop();
        self.count
    }

    #[cfg(any())]
    pub(crate) fn is_not_compiled(&self, nothing: NoSuchType) {}

    /// Helps; is no message.
    fn change(&mut self, by: i32) {
        self.count = self.count.saturating_add_signed(by);
    }
}

fn stock(spawn: Spawn) -> StockHandle {
    StockHandle::from(spawn.actor(Stock::new()).expect("a process").address())
}

#[windlass::test(simulated, seeds = 20)]
async fn methods_send_and_ask() {
    let stock = stock(Host::current().expect("a host").process());
    stock.add(3).await.expect("it lives");
    stock.try_add(4).expect("there is room");
    assert_eq!(stock.count().await, Ok(7));
    assert_eq!(stock.take_out(2).await, Ok(5));
    let short = stock.take_out(8).await;
    assert_eq!(short, Err(CallError::Failed(Short { missing: 3 })));
    assert_eq!(stock.read("12".to_owned()).await.expect("a number"), 12);
    assert!(matches!(
        stock.read("x".to_owned()).await,
        Err(CallError::Failed(_))
    ));
    assert_eq!(stock.checked().await, Ok(5));
    // What the handle speaks to is there, too.
    assert!(stock.is_alive());
}

#[windlass::test]
async fn methods_send_and_ask_in_real_time() {
    let stock = stock(Host::current().expect("a host").process());
    for number in 0..1_000 {
        stock.add(number).await.expect("it lives");
    }
    assert_eq!(stock.count().await, Ok(499_500));
}

#[windlass::test]
async fn calls_are_futures_for_any_task() {
    let stock = stock(Host::current().expect("a host").process());
    let mut group = windlass::TaskGroup::new();
    for number in 0..10 {
        let stock = stock.clone();
        group.spawn(async move {
            stock.add(number).await.expect("it lives");
            stock.count().await.expect("it lives")
        });
    }
    let counts = group.join().await.expect("no panic");
    assert_eq!(counts.into_iter().max(), Some(45));
}

#[windlass::test(simulated, seeds = 20)]
async fn methods_end_the_process() {
    let host = Host::current().expect("a host");
    let closing = stock(host.process());
    let ended = closing.ended();
    assert_eq!(closing.close().await, Ok(0), "the answer comes");
    assert_eq!(ended.await.reason, ExitReason::Normal);
    let error = closing.try_add(1).expect_err("it has ended");
    assert_eq!(error.kind, SendErrorKind::NoProcess);
    assert!(matches!(error.message, StockMessage::Add { number: 1 }));

    let failing = stock(host.process());
    failing.require(1).await.expect("it is sent");
    let reason = failing.ended().await.reason;
    assert_eq!(reason, ExitReason::Error("too few".into()));

    let asked = stock(host.process());
    assert_eq!(asked.checked().await, Err(AskError::NoAnswer));
    assert_eq!(
        asked.take_out(1).await,
        Err(CallError::Ask(AskError::NoAnswer))
    );
}

#[windlass::test(simulated, seeds = 20)]
async fn a_handle_has_a_deadline() {
    let stock = stock(Host::current().expect("a host").process());
    stock
        .deliver(1, Duration::from_secs(7))
        .await
        .expect("it lives");
    let began = time::Instant::now();
    assert_eq!(stock.count().await, Err(AskError::TimedOut));
    assert_eq!(began.elapsed(), Duration::from_secs(5));
    let patient = stock.within(Duration::from_secs(10));
    assert_eq!(patient.count().await, Ok(1));
    assert_eq!(began.elapsed(), Duration::from_secs(7));
}

#[windlass::test(simulated, seeds = 20)]
async fn the_bound_of_the_mailbox_holds() {
    let spawn = Host::current().expect("a host").process();
    let stock = stock(spawn.mailbox(MailboxPolicy::Bounded(1)));
    stock
        .deliver(1, Duration::from_secs(1))
        .await
        .expect("it lives");
    // The first is being handled when there is room for the second.
    stock.add(1).await.expect("it lives");
    let full = stock.try_add(2).expect_err("there is no room");
    assert_eq!(full.kind, SendErrorKind::Full);
    stock.add(3).await.expect("it waits for room");
    assert_eq!(stock.count().await, Ok(5));
}

impl Weigh for StockMessage {
    fn weigh(&self) -> usize {
        match self {
            StockMessage::Read { text, .. } => size_of::<StockMessage>() + text.len(),
            _ => size_of::<StockMessage>(),
        }
    }
}

#[windlass::test(simulated, seeds = 20)]
async fn the_messages_can_be_weighed() {
    let spawn = Host::current().expect("a host").process();
    let stock = stock(spawn.weighed::<StockMessage>().mailbox_bytes(10_000));
    let refused = stock.read("x".repeat(20_000)).await;
    let too_large = AskError::Undelivered(SendErrorKind::TooLarge);
    assert!(matches!(refused, Err(CallError::Ask(error)) if error == too_large));
}

#[windlass::test(simulated, seeds = 20)]
async fn a_supervisor_starts_it() {
    let host = Host::current().expect("a host");
    let supervisor = Supervisor::new(Strategy::OneForOne)
        .child(ChildSpec::new("stock", |spawn| {
            Ok(spawn.name("stock").actor(Stock::new())?.pid())
        }))
        .start(&host)
        .expect("a supervisor");
    supervisor.started().await.expect("its child starts");
    let find = || host.address_of("stock").map(StockHandle::from);
    let first = find().expect("it is there");
    first.require(1).await.expect("it lives");
    first.ended().await;
    time::sleep(Duration::from_secs(1)).await;
    assert_eq!(find().expect("it is there again").count().await, Ok(0));
}

#[windlass::test(simulated, seeds = 20)]
async fn a_handle_survives_restarts() {
    let (child, address) = ChildSpec::addressed("stock", |spawn| spawn.actor(Stock::new()));
    let supervisor = Supervisor::new(Strategy::OneForOne).child(child);
    let _supervisor = supervisor.start(&Host::current().expect("a host"));
    let stock = StockHandle::from(address);
    stock.add(3).await.expect("it is started");
    assert_eq!(stock.count().await, Ok(3));
    assert_eq!(
        stock.within(Duration::from_secs(1)).take_out(3).await,
        Ok(0)
    );
    assert_eq!(
        stock.checked().await,
        Err(AskError::NoAnswer),
        "it ends the process"
    );
    assert_eq!(stock.count().await, Ok(0), "the next one answers");
}

/// An actor with hooks of its own.
struct Hooked {
    log: Vec<&'static str>,
}

#[messages(dispatch_only, message = HookedCall, handle = HookedClient)]
impl Hooked {
    pub(crate) fn log(&self) -> Vec<&'static str> {
        self.log.clone()
    }
}

impl Actor for Hooked {
    type Message = HookedCall;

    async fn started(&mut self, _: &mut Context<HookedCall>) -> Result<(), ActorError> {
        self.log.push("started");
        Ok(())
    }

    async fn handle(
        &mut self,
        call: HookedCall,
        ctx: &mut Context<HookedCall>,
    ) -> Result<(), ActorError> {
        self.log.push("called");
        self.dispatch(call, ctx).await
    }
}

#[windlass::test(simulated, seeds = 20)]
async fn an_actor_may_have_hooks() {
    let host = Host::current().expect("a host");
    let hooked = host.actor(Hooked { log: Vec::new() }).expect("a process");
    let hooked = HookedClient::from(hooked.address());
    assert_eq!(hooked.log().await, Ok(vec!["started", "called"]));
}

#[windlass::test(simulated, seeds = 20)]
async fn a_loop_of_its_own_selects_beside_the_messages() {
    let ticking = windlass::actor::spawn(|mut ctx: Context<StockMessage>| async move {
        let mut stock = Stock::new();
        let mut ticks = time::interval(Duration::from_secs(1));
        loop {
            select! {
                message = ctx.recv() => match message {
                    Some(message) => stock.dispatch(message, &mut ctx).await?,
                    None => return Ok(()),
                },
                _ = ticks.tick() => stock.add(10),
            }
        }
    })
    .expect("a process");
    let stock = StockHandle::from(ticking.address());
    time::sleep(Duration::from_millis(2_500)).await;
    stock.add(1).await.expect("it lives");
    assert_eq!(stock.count().await, Ok(31));
    stock.cancel("enough");
    assert!(ticking.join().await.reason.is_normal());
}

/// Generic over types, constants and bounds.
struct Shelf<T, const N: usize>
where
    T: Clone,
{
    things: [Option<T>; N],
}

#[messages]
impl<T: Send + 'static, const N: usize> Shelf<T, N>
where
    T: Clone,
{
    pub(crate) fn put(&mut self, r#mut: usize, thing: T) -> Option<T> {
        self.things[r#mut].replace(thing)
    }

    pub(crate) fn get(&self, place: usize) -> Option<T> {
        self.things[place].clone()
    }

    pub(crate) fn copy(&self) -> Box<Self> {
        let things = self.things.clone();
        Box::new(Shelf { things })
    }

    pub(crate) fn clear(&mut self) {
        self.things = [const { None }; N];
    }
}

#[windlass::test(simulated, seeds = 5)]
async fn an_actor_may_be_generic() {
    let host = Host::current().expect("a host");
    let shelf = Shelf::<String, 3> {
        things: [const { None }; 3],
    };
    let shelf: ShelfHandle<String, 3> = host.actor(shelf).expect("a process").address().into();
    assert_eq!(shelf.put(1, "cup".to_owned()).await, Ok(None));
    assert_eq!(shelf.get(1).await, Ok(Some("cup".to_owned())));
    let copy = shelf.copy().await.expect("it lives");
    shelf.clear().await.expect("it lives");
    assert_eq!(shelf.get(1).await, Ok(None));
    assert_eq!(copy.things[1].as_deref(), Some("cup"));
}

/// None of its methods uses the parameter.
struct Marked<T>(std::marker::PhantomData<fn() -> T>);

#[messages]
impl<T: 'static> Marked<T> {
    pub(crate) fn name(&self) -> &'static str {
        std::any::type_name::<T>()
    }
}

#[windlass::test(simulated, seeds = 5)]
async fn a_parameter_may_be_in_no_message() {
    let host = Host::current().expect("a host");
    let marked = host.actor(Marked::<u8>(std::marker::PhantomData));
    let marked = MarkedHandle::from(marked.expect("a process").address());
    assert_eq!(marked.clone().name().await, Ok("u8"));
}

/// A dependency under another name, and a macro that passes the path on.
mod renamed {
    pub(crate) use windlass as engine;

    /// Makes a counter that is an actor.
    #[macro_export]
    macro_rules! counter {
        ($name:ident) => {
            pub(crate) struct $name(u64);

            #[$crate::messages::renamed::engine::actor::messages(
                                                    crate = $crate::messages::renamed::engine::actor
                                                )]
            impl $name {
                pub(crate) fn up(&mut self) -> u64 {
                    self.0 += 1;
                    self.0
                }
            }
        };
    }
    counter!(Counter);

    pub(crate) fn counter() -> Counter {
        Counter(0)
    }
}

#[windlass::test(simulated, seeds = 5)]
async fn the_path_of_the_crate_is_passed_on() {
    let host = Host::current().expect("a host");
    let counter = host.actor(renamed::counter()).expect("a process");
    let address: Address<renamed::CounterMessage> = counter.address();
    assert_eq!(renamed::CounterHandle::from(address).up().await, Ok(1));
}
