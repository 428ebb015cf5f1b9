//! Starts a command, and starts it again when it dies, but not too often.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use windlass_graph::component::Failure;
use windlass_runtime::time::{Instant, sleep};

use super::Order;
use super::life::{Life, LifeEnd};
use super::plan::{Plan, Restart};
use super::protocol::Publication;
use super::tail::Tail;
use crate::inlet::Feed;
use crate::outlet::Orders;

/// The longest pause before it is started again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Runs the command until the run ends, or it has finished, or it has died too often.
pub(super) async fn supervise(plan: Plan, mut orders: Orders<Order>, feed: Feed<Publication>) {
    let failure = live(&plan, &mut orders, &feed).await.err();
    if let Some(failure) = failure {
        let report = feed.report(Failure::new(failure.clone()));
        if orders.ending.run_until_cancelled(report).await.is_none() {
            // The component no longer takes what the command says.
            orders.completions.fail(Failure::new(failure));
        }
    }
    // Nothing more will come. What is handed over until the component sees that is reported
    // at the end.
    drop(feed);
    orders.ending.cancelled().await;
    let left = orders.completions.pending();
    if left > 0 {
        let command = plan.shown();
        orders.completions.fail(Failure::new(format!(
            "{command} ended, and was not done with {left} messages"
        )));
    }
}

/// One life after another. An error says why there is none any more.
async fn live(
    plan: &Plan,
    orders: &mut Orders<Order>,
    feed: &Feed<Publication>,
) -> Result<(), String> {
    let mut deaths = Deaths::new(plan.restart);
    let tail = Tail::default();
    let mut left = BTreeMap::new();
    let command = plan.shown();
    loop {
        let life = Life {
            plan,
            feed,
            tail: &tail,
        };
        let how = match life.run(orders, &mut left).await {
            LifeEnd::Stopped | LifeEnd::Finished => return Ok(()),
            LifeEnd::NotStarted(error) => return Err(format!("cannot start {command}: {error}")),
            LifeEnd::Died(how) => how,
        };
        let Some(pause) = deaths.pause() else {
            let (times, within) = (deaths.times.len(), plan.restart.within);
            let last = tail.shown();
            return Err(format!(
                "{command} {how}, {times} times within {within:?}; {last}"
            ));
        };
        tracing::warn!(target: "windlass::graph", component = plan.id, "{command} {how}: it is started again in {pause:?}");
        if orders
            .ending
            .run_until_cancelled(sleep(pause))
            .await
            .is_none()
        {
            return Err(format!("{command} {how}; {}", tail.shown()));
        }
    }
}

/// When it died.
struct Deaths {
    restart: Restart,
    times: VecDeque<Instant>,
}

impl Deaths {
    fn new(restart: Restart) -> Deaths {
        Deaths {
            restart,
            times: VecDeque::new(),
        }
    }

    /// It died: how long to wait before it is started again; none if it died too often.
    fn pause(&mut self) -> Option<Duration> {
        let now = Instant::now();
        let Restart {
            max,
            within,
            backoff,
        } = self.restart;
        while let Some(first) = self.times.front()
            && now.saturating_duration_since(*first) > within
        {
            self.times.pop_front();
        }
        self.times.push_back(now);
        if self.times.len() > max {
            return None;
        }
        let doubled = u32::try_from(self.times.len() - 1).unwrap_or(u32::MAX);
        let pause = backoff.saturating_mul(2_u32.saturating_pow(doubled));
        Some(pause.min(LONGEST_PAUSE.max(backoff)))
    }
}
