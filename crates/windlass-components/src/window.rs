//! `windlass.window`: computes something over the last messages, or those of a span of time.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_graph::component::{
    Component, ConfigError, ConfigField, ConfigKind, Descriptor, Failure, Invocation, Output,
    Received, Setup,
};
use windlass_graph::expression::{Expression, MessageScope, Names};
use windlass_graph::model::Config;
use windlass_value::{Payload, Unwritable};

use crate::emit::{computed, millis, plain, taken};
use crate::settings::{MOST_MS, Settings, expr_field, fixed};

#[derive(Debug, Default)]
pub(crate) struct Window {
    expression: Option<Expression>,
    extent: Extent,
    most: usize,
    held: VecDeque<TimedValue>,
    /// By size: how many of the next messages are left out.
    skip: u64,
    /// By span: when it begins.
    start: Option<i64>,
    output: Output<Payload>,
}

#[derive(Debug)]
struct TimedValue {
    time: i64,
    value: Payload,
}

/// What a window keeps over a snapshot: its messages with their times, as recordings write them.
#[derive(Serialize, Deserialize)]
struct Snapshot {
    held: Vec<(i64, Value)>,
    skip: u64,
    start: Option<i64>,
}

/// What a window holds, and how far it is from the next. Times are nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
enum Extent {
    #[default]
    Nothing,
    Size {
        size: usize,
        step: u64,
    },
    Span {
        span: i64,
        step: i64,
    },
}

/// How many messages a window may hold.
const MOST_VALUES: u64 = 1 << 20;
/// How many windows a message may be in.
const MOST_OVERLAP: i64 = 10_000;
const NANOS_PER_MS: i64 = 1_000_000;

impl Extent {
    fn read(settings: Settings<'_>, most: usize) -> Result<Extent, Failure> {
        let size = settings.count_within("size", 1, MOST_VALUES)?;
        let span = settings.count_within("span_ms", 1, MOST_MS)?;
        let step = settings.count_within("step", 1, MOST_MS)?;
        match (size, span) {
            (Some(size), None) => match usize::try_from(size) {
                Ok(size) if size <= most => Ok(Extent::Size {
                    size,
                    step: step.unwrap_or(size as u64),
                }),
                _ => Err(Failure::new("config.size is more than config.max_values")),
            },
            (None, Some(span)) => {
                let nanos = |ms: u64| ms as i64 * NANOS_PER_MS;
                let (span, step) = (nanos(span), nanos(step.unwrap_or(span)));
                match span / step <= MOST_OVERLAP {
                    true => Ok(Extent::Span { span, step }),
                    false => Err(Failure::new(format!(
                        "config.step is too small: a message would be in more than {MOST_OVERLAP} windows"
                    ))),
                }
            }
            _ => Err(Failure::new(
                "a window needs either config.size (messages) or config.span_ms (time)",
            )),
        }
    }
}

impl Window {
    /// Publishes what the expression makes of what is held.
    fn close(&self, invocation: &mut Invocation<'_>, at: Option<i64>) -> Result<(), Failure> {
        let Some(expression) = &self.expression else {
            return Ok(());
        };
        let values = Payload::List(self.held.iter().map(|held| held.value.clone()).collect());
        let last = self.held.back().map_or(&Payload::Nil, |held| &held.value);
        let scope = MessageScope {
            value: last,
            values: &values,
            epoch: invocation.epoch(),
            now_ms: millis(invocation.now() as f64),
            port: "in",
            event_ms: at.map(|time| millis(time as f64)),
        };
        let result = computed(expression, expression.evaluate(&scope))?;
        match at {
            Some(time) => invocation.publish_at(self.output, result, time),
            None => invocation.publish(self.output, result),
        };
        Ok(())
    }

    fn add(&mut self, time: i64, value: Payload) -> Result<(), Failure> {
        if self.held.len() >= self.most {
            return Err(Failure::new(format!(
                "the window holds {} messages, and may not hold more: use a shorter span, or raise config.max_values",
                self.most
            )));
        }
        self.held.push_back(TimedValue { time, value });
        Ok(())
    }

    fn by_size(
        &mut self,
        invocation: &mut Invocation<'_>,
        message: &Received,
        (size, step): (usize, u64),
    ) -> Result<(), Failure> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(());
        }
        let value = plain(message)?.clone();
        self.add(0, value)?;
        if self.held.len() < size {
            return Ok(());
        }
        let closed = self.close(invocation, message.event_time());
        let gone = usize::try_from(step).unwrap_or(usize::MAX).min(size);
        self.held.drain(..gone);
        self.skip = step.saturating_sub(size as u64);
        closed
    }

    fn by_span(
        &mut self,
        invocation: &mut Invocation<'_>,
        message: &Received,
        (span, step): (i64, i64),
    ) -> Result<(), Failure> {
        let now = i64::try_from(invocation.now()).unwrap_or(i64::MAX);
        let time = message.event_time().unwrap_or(now);
        let value = plain(message)?.clone();
        let mut start = *self.start.get_or_insert(time);
        let mut closed = Ok(());
        while time >= start.saturating_add(span) {
            if self.held.is_empty() {
                // Nothing is in the windows between.
                let behind = time.saturating_sub(start).saturating_sub(span);
                start =
                    start.saturating_add((behind / step).saturating_add(1).saturating_mul(step));
                break;
            }
            closed = closed.and(self.close(invocation, Some(start.saturating_add(span))));
            let next = start.saturating_add(step);
            if next == start {
                // The end of time.
                break;
            }
            start = next;
            self.held.retain(|held| held.time >= start);
        }
        self.start = Some(start);
        // Between two windows, if the step is longer than the span. What is older than the window
        // is still in it.
        if step > span && time < start && self.held.is_empty() {
            return closed;
        }
        closed.and(self.add(time, value))
    }
}

impl Component for Window {
    fn describe() -> Descriptor {
        let count =
            |name, most: u64| ConfigField::new(name, ConfigKind::Integer).within(1.0, most as f64);
        Descriptor::new()
            .input("in")
            .output("out")
            .field(count("size", MOST_VALUES))
            .field(count("span_ms", MOST_MS))
            .field(count("step", MOST_MS))
            .field(expr_field(Names::Window))
            .field(count("max_values", MOST_VALUES))
            .about("Publishes what an expression makes of the last messages, or of those of a span of time.")
    }

    fn configure(&mut self, setup: &mut Setup<'_>) -> Result<(), Failure> {
        let settings = Settings(setup.config());
        self.most = settings.count("max_values", 65_536, MOST_VALUES)?;
        self.extent = Extent::read(settings, self.most)?;
        self.expression = Some(settings.expr(Names::Window)?);
        self.output = setup.output("out")?;
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Failure> {
        self.held.clear();
        (self.skip, self.start) = (0, None);
        Ok(())
    }

    fn execute(&mut self, invocation: &mut Invocation<'_>) -> Result<(), Failure> {
        for message in taken(invocation) {
            match self.extent {
                Extent::Nothing => {}
                Extent::Size { size, step } => self.by_size(invocation, &message, (size, step))?,
                Extent::Span { span, step } => self.by_span(invocation, &message, (span, step))?,
            }
        }
        Ok(())
    }

    fn snapshot(&mut self) -> Result<Option<Value>, Failure> {
        let held = self
            .held
            .iter()
            .map(|held| Ok((held.time, held.value.to_recorded()?)));
        let snapshot = Snapshot {
            held: held.collect::<Result<_, Unwritable>>()?,
            skip: self.skip,
            start: self.start,
        };
        Ok(Some(serde_json::to_value(snapshot)?))
    }

    fn restore(&mut self, snapshot: &Value) -> Result<(), Failure> {
        let wrong = || Failure::new("the snapshot is not one of windlass.window");
        let snapshot = Snapshot::deserialize(snapshot).map_err(|_| wrong())?;
        let held = snapshot.held.into_iter().map(|(time, value)| {
            let value = Payload::from_recorded(value).map_err(|_| wrong())?;
            Ok(TimedValue { time, value })
        });
        self.held = held.collect::<Result<_, Failure>>()?;
        (self.skip, self.start) = (snapshot.skip, snapshot.start);
        Ok(())
    }

    fn check_config(&self, _: &str, config: &Config) -> Vec<ConfigError> {
        let extent = match (config.get("size"), config.get("span_ms")) {
            (Some(_), Some(_)) => Some("a window has a size or a span, and this one has both"),
            (None, None) => Some("a window needs a size or a span, and this one has neither"),
            _ => None,
        };
        let fix = "set either `size` (messages) or `span_ms` (time)";
        let failure = extent.map(|message| ConfigError::new("", message, fix));
        failure.into_iter().collect()
    }

    fn validate_config(&self, _: &Config) -> Result<(), Failure> {
        fixed()
    }
}
