//! Starts a command, and starts it again when it dies, but not too often.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use windlass_graph::component::Failure;
use windlass_runtime::time::{Instant, sleep};

use super::Order;
use super::life::{Ended, Life};
use super::plan::{Plan, Restart};
use super::protocol::Said;
use super::tail::Tail;
use crate::inlet::Feed;
use crate::outlet::Orders;

/// The longest pause before it is started again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Runs the command until the run ends, or it has finished, or it has died too often.
pub(super) async fn supervise(plan: Plan, mut orders: Orders<Order>, feed: Feed<Said>) {
    let fault = live(&plan, &mut orders, &feed).await.err();
    if let Some(fault) = fault {
        let report = feed.report(Failure::new(fault.clone()));
        if orders.ending.run_until_cancelled(report).await.is_none() {
            // Nobody takes what comes any more.
            orders.desk.fail(Failure::new(fault));
        }
    }
    // Nothing more will come. What is handed over until that is seen is told at the end.
    drop(feed);
    orders.ending.cancelled().await;
    let left = orders.desk.pending();
    if left > 0 {
        let command = plan.shown();
        orders.desk.fail(Failure::new(format!(
            "{command} ended, and was not done with {left} messages"
        )));
    }
}

/// One life after another. An error says why there is none any more.
async fn live(plan: &Plan, orders: &mut Orders<Order>, feed: &Feed<Said>) -> Result<(), String> {
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
            Ended::Stopped | Ended::Finished => return Ok(()),
            Ended::NotStarted(error) => return Err(format!("cannot start {command}: {error}")),
            Ended::Died(how) => how,
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
