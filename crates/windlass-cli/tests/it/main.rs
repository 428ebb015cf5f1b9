//! The command as people use it: the real binary, on the example graphs.

mod commands;
mod endings;
mod goldens;
mod limits;
mod new;
mod observe;
mod privileges;
mod published;
mod reports;
mod run;
mod runs;
mod schema;
mod stopping;
mod support;
mod terminals;
