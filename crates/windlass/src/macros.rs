//! The macros that pass the path of this crate on, so that they work under any name.

/// Waits for several futures at once and runs the handler of the first that is ready.
///
/// ```
/// # use std::time::Duration;
/// # windlass::block_on(async {
/// let (sender, mut channel) = windlass::sync::mpsc::channel(1);
/// sender.send(7).await.unwrap();
/// let seen = windlass::select! {
///     message = channel.recv() => message,
///     () = windlass::time::sleep(Duration::from_secs(60)) => None,
/// };
/// assert_eq!(seen, Some(7));
/// # });
/// ```
/// Exactly one handler runs. The other futures are dropped before it does, so a cancel-safe one has
/// consumed nothing. If several are ready the choice is fair; `biased;` at the top takes the first
/// in the order of writing. A branch whose condition is false, or whose pattern does not fit, is
/// out; when all are, `else` runs.
#[macro_export]
macro_rules! select {
    ($($input:tt)*) => {
        $crate::__private::select_in! { $crate; $($input)* }
    };
}

/// Waits for all of several futures and gives their outputs as a tuple.
///
/// They run on the same task, in turn whenever it is woken, each time from another one on. After
/// `biased;` they run in the order of writing.
#[macro_export]
macro_rules! join {
    ($($input:tt)*) => {
        $crate::__private::join_in! { $crate; $($input)* }
    };
}

/// Waits for all of several futures that give a `Result`; the first error drops the others.
#[macro_export]
macro_rules! try_join {
    ($($input:tt)*) => {
        $crate::__private::try_join_in! { $crate; $($input)* }
    };
}

/// Pins values of the stack, by name or at their `let`.
///
/// ```
/// # windlass::block_on(async {
/// windlass::pin! {
///     let answer = async { 6 * 7 };
/// }
/// assert_eq!((&mut answer).await, 42);
/// # });
/// ```
#[macro_export]
macro_rules! pin {
    ($($name:ident),* $(,)?) => { $(
        let mut $name = ::core::pin::pin!($name);
        #[allow(unused_mut)]
        let mut $name = $name.as_mut();
    )* };
    ($(let $name:ident = $value:expr;)*) => { $(
        let mut $name = ::core::pin::pin!($value);
        #[allow(unused_mut)]
        let mut $name = $name.as_mut();
    )* };
}
