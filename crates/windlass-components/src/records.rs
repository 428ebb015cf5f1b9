//! How sources publish: record by record, without losing one.

use windlass_graph::component::{Failure, Invocation, Output};
use windlass_value::Payload;

/// What a source has for its next invocations.
#[derive(Debug)]
pub(crate) struct Records<T> {
    /// How many an invocation publishes.
    each: usize,
    /// What an edge had no room for.
    again: Option<T>,
    /// What was wrong after others had been published; an invocation that fails publishes nothing.
    failure: Option<Failure>,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum NextRecord<T> {
    One(T),
    /// Nothing for now.
    Nothing,
    /// Nothing any more.
    End,
}

impl<T> Default for Records<T> {
    fn default() -> Self {
        Records::new(1)
    }
}

impl Records<Payload> {
    /// As `run`, to an output.
    pub(crate) fn publish(
        &mut self,
        invocation: &mut Invocation<'_>,
        output: Output<Payload>,
        next: impl FnMut() -> Result<NextRecord<Payload>, Failure>,
    ) -> Result<bool, Failure> {
        self.run(invocation, next, |invocation, payload| {
            invocation.publish(output, payload.clone())
        })
    }
}

impl<T> Records<T> {
    pub(crate) fn new(each: usize) -> Records<T> {
        Records {
            each,
            again: None,
            failure: None,
        }
    }

    /// Whether nothing is left of what was taken.
    pub(crate) fn is_settled(&self) -> bool {
        self.again.is_none() && self.failure.is_none()
    }

    /// Publishes the next ones; says whether there may be more. `publish` says whether there was
    /// room.
    pub(crate) fn run(
        &mut self,
        invocation: &mut Invocation<'_>,
        mut next: impl FnMut() -> Result<NextRecord<T>, Failure>,
        publish: impl Fn(&mut Invocation<'_>, &T) -> bool,
    ) -> Result<bool, Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        for given in 0..self.each {
            let next = match self.again.take() {
                Some(again) => Ok(NextRecord::One(again)),
                None => next(),
            };
            let record = match next {
                Ok(NextRecord::One(record)) => record,
                Ok(NextRecord::Nothing) => return Ok(false),
                Ok(NextRecord::End) => {
                    invocation.finish();
                    return Ok(false);
                }
                Err(failure) if given == 0 => return Err(failure),
                Err(failure) => {
                    self.failure = Some(failure);
                    return Ok(true);
                }
            };
            if !publish(invocation, &record) {
                self.again = Some(record);
                return Ok(true);
            }
        }
        Ok(true)
    }
}
