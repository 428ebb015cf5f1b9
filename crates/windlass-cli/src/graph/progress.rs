//! How far a run is, on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use windlass::graph::run::Control;
use windlass::graph::{RunResult, Running};
use windlass::task::JoinError;
use windlass::time::{Instant, MissedTickBehavior, interval_at};

/// A run that ends sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
const PERIOD: Duration = Duration::from_millis(100);

const WITH_STEPS: &str = "{bar:20} {pos}/{len} epochs, {msg} invocations, {elapsed}, {eta} left";
const WITHOUT_STEPS: &str = "{spinner} {pos} epochs, {msg} invocations, {elapsed}";

/// Waits for the end of a run, and shows how far it is meanwhile.
pub(crate) async fn show_until(
    mut running: Running,
    control: &Control,
    steps: Option<u64>,
) -> Result<RunResult, JoinError> {
    let mut ticks = interval_at(Instant::now() + PATIENCE, PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut bar = None;
    let result = loop {
        windlass::select! {
            result = &mut running => break result,
            _ = ticks.tick() => update(bar.get_or_insert_with(|| new_bar(steps)), control),
        }
    };
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    result
}

fn new_bar(steps: Option<u64>) -> ProgressBar {
    let template = match steps {
        Some(_) => WITH_STEPS,
        None => WITHOUT_STEPS,
    };
    // The templates are ours; with the usual style people still see how far it is.
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(steps, ProgressDrawTarget::stderr());
    bar.with_style(style).with_elapsed(PATIENCE)
}

fn update(bar: &mut ProgressBar, control: &Control) {
    let progress = control.progress();
    bar.set_message(progress.ticks.to_string());
    bar.set_position(progress.epochs);
    bar.tick();
}
