//! Lua's patterns, with an end.
//!
//! C's `string.find` and its like cannot be stopped, and some patterns take a time that doubles
//! with each byte of the text. These give the same results, count their steps, and give up with an
//! error.
//!
//! | file | what is there |
//! |---|---|
//! | `library.rs` | the functions that scripts call |
//! | `arguments.rs` | what they are given |
//! | `substitute.rs` | `gsub` |
//! | `drive.lua` | the loops that call functions of scripts, in Lua: these can yield, and their errors stay what they are |
//! | `matcher/` | the matcher |
//! | `bytes.rs` | sets of bytes, and plain search |
//! | `steps.rs` | how long it may take |

mod arguments;
mod bytes;
mod library;
mod matcher;
mod steps;
mod substitute;
#[cfg(test)]
mod tests;

pub(crate) use library::library;
