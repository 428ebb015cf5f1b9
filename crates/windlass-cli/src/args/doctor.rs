//! The arguments of `windlass doctor`.

use clap::Args;

use super::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(crate) output: Output,
}
