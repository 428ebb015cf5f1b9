//! `cargo xtask shuttle [TEST]`: the shuttle runs of windlass-core.

use crate::error::Error;
use crate::models::{self, SHUTTLE};
use crate::workspace::Workspace;

pub(crate) fn command(workspace: &Workspace, arguments: &[String]) -> Result<(), Error> {
    SHUTTLE.check(workspace, models::one_name("shuttle", arguments)?)
}
