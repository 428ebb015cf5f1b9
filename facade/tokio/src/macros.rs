//! The macros that pass the path of this crate on, so that they work under any name.

/// Waits for several futures at once and runs the handler of the first that is ready.
#[macro_export]
macro_rules! select {
    ($($input:tt)*) => {
        $crate::__private::select_in! { $crate; $($input)* }
    };
}

/// Waits for all of several futures and gives their outputs as a tuple.
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

/// Declares values that belong to a task.
#[macro_export]
macro_rules! task_local {
    ($($input:tt)*) => {
        $crate::__private::task_local! { $($input)* }
    };
}
