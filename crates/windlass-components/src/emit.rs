//! Publishing what follows from a message.

use std::borrow::Cow;

use serde_json::Value;
use windlass_graph::Payload;
use windlass_graph::component::{Failure, Invocation, Output, Received};

use crate::expression::{Expression, Scope};
use crate::format::to_json;

/// Publishes at the time of the message that it follows from.
pub(crate) fn emit(
    invocation: &mut Invocation<'_>,
    output: Output<Payload>,
    payload: Payload,
    event_time: Option<i64>,
) -> bool {
    match event_time {
        Some(time) => invocation.publish_at(output, payload, time),
        None => invocation.publish(output, payload),
    }
}

/// What came, out of the invocation.
pub(crate) fn taken(invocation: &mut Invocation<'_>) -> Vec<Received> {
    invocation.take_inputs().collect()
}

/// Nanoseconds as milliseconds.
pub(crate) fn millis(nanos: f64) -> f64 {
    nanos / 1e6
}

/// What an expression is for a message.
pub(crate) fn evaluate(
    expression: &Expression,
    invocation: &Invocation<'_>,
    message: &Received,
) -> Result<Value, Failure> {
    let value: Cow<'_, Value> = to_json(message.payload())?;
    let scope = Scope {
        value: &value,
        values: &Value::Null,
        epoch: invocation.epoch(),
        now_ms: millis(invocation.now() as f64),
        port: invocation.port_of(message),
        event_ms: message.event_time().map(|time| millis(time as f64)),
    };
    computed(expression, &scope)
}

/// As `Expression::evaluate`, with an error that shows the place.
pub(crate) fn computed(expression: &Expression, scope: &Scope<'_>) -> Result<Value, Failure> {
    expression.evaluate(scope).map_err(|error| {
        let shown = error.shown_in(expression.source());
        Failure::new(format!("the expression cannot be computed: {shown}"))
    })
}
