//! Stackful coroutines: waiting, staying, ending, borrowing, stacks.

mod by_hand;
mod cancel;
mod forks;
mod scope;
mod stacks;
mod waiting;
