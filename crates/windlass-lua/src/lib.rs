//! Lua on the Windlass runtime: preempted, supervised, sandboxed processes, and components of
//! graphs.
//!
//! | word | meaning |
//! |---|---|
//! | interpreter | makes Lua processes: what they may do, where their scripts are |
//! | script | a file of Lua code, or a text with a name |
//! | Lua process | a guest with a Lua state of its own; parallel with others |
//! | task | a function that a Lua process has started; shares its state, is preempted, never parallel |
//! | sandbox | what scripts may reach: directories, hosts, the environment |
//!
//! ```
//! use windlass_lua::Interpreter;
//! use windlass_vm::Vm;
//!
//! # let runtime = windlass_runtime::Runtime::new()?;
//! # runtime.block_on(async {
//! let vm = Vm::builder().build()?;
//! let lua = Interpreter::builder(&vm).build()?;
//! let task = lua.spawn_text("answer", "function main(a, b) return a * b end", [6.into(), 7.into()])?;
//! assert_eq!(task.join().await.value, 42.into());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What scripts can do is in `docs/lua.md`.
#![deny(unsafe_code)]

mod compile_cost;
mod component;
mod date;
mod error;
mod error_text;
mod guest;
mod interpreter;
mod json;
mod native;
mod op;
mod pattern;
mod preempt;
mod sandbox;
mod script;
mod state;
mod supervise;
mod task_set;
mod value;

pub use component::{register, register_with_output};
pub use error::{BuildError, ScriptError};
pub use guest::LuaGuest;
pub use interpreter::{Builder, Interpreter, Level, Printed};
pub use mlua;
pub use preempt::SignalError;
pub use sandbox::Sandbox;
pub use script::Script;
pub use value::Unsendable;
