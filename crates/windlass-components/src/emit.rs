//! Publishing what follows from a message.

use windlass_graph::component::{Failure, Invocation, Output, Received};
use windlass_graph::expression::{Expression, ExpressionError, MessageScope};
use windlass_value::{Payload, Unwritable};

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

/// Returns the payload of a message for an expression, which cannot look into a Rust value.
pub(crate) fn plain(message: &Received) -> Result<&Payload, Failure> {
    match message.payload() {
        Payload::Opaque(value) => Err(Unwritable::Opaque(value.type_name()).into()),
        payload => Ok(payload),
    }
}

/// Returns what an expression can use of a message.
pub(crate) fn scope<'a>(
    invocation: &'a Invocation<'_>,
    message: &'a Received,
) -> Result<MessageScope<'a>, Failure> {
    Ok(MessageScope {
        value: plain(message)?,
        values: &Payload::Nil,
        epoch: invocation.epoch(),
        now_ms: millis(invocation.now() as f64),
        port: invocation.port_of(message),
        event_ms: message.event_time().map(|time| millis(time as f64)),
    })
}

/// Returns what an expression computed; its error becomes a failure that shows the place.
pub(crate) fn computed<T>(
    expression: &Expression,
    computed: Result<T, ExpressionError>,
) -> Result<T, Failure> {
    computed.map_err(|error| Failure::new(expression.explain(&error)))
}
