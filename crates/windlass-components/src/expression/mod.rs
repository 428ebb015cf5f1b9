//! Expressions over messages: a small language of its own.
//!
//! An expression is compiled once and evaluated for every message. It can read what it is given and make a value of
//! it; it cannot loop, keep anything, or reach outside. Length, depth and the size of results are bounded.
//!
//! ```
//! use windlass_components::expression::{Expression, Scope};
//! use windlass_graph::Payload;
//!
//! let expression = Expression::new("value.celsius * 9 / 5 + 32")?;
//! let message = Payload::map([("celsius", 21.5.into())]);
//! assert_eq!(expression.evaluate(&Scope::of(&message))?, Payload::from(70.7));
//!
//! let error = Expression::new("value.celsius *").unwrap_err();
//! assert_eq!(error.to_string(), "expected a value, found the end (column 16)");
//! # Ok::<(), windlass_components::expression::ExpressionError>(())
//! ```

mod error;
mod evaluate;
mod function;
mod lexer;
mod number;
mod parser;
mod tree;

use std::fmt;

use windlass_graph::Payload;

pub use error::{ExpressionError, ExpressionErrorKind};
pub use function::function_names;

use tree::{Name, Node};

/// How many bytes a source may have.
const SOURCE_BYTES: usize = 4096;

/// An expression that is ready to be evaluated.
#[derive(Clone, PartialEq)]
pub struct Expression {
    source: String,
    root: Node,
}

/// What an expression can speak of.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// `value`: the message.
    pub value: &'a Payload,
    /// `values`: the messages of a window, a list.
    pub values: &'a Payload,
    /// `epoch`: its number.
    pub epoch: u64,
    /// `now_ms`: the lane's time in milliseconds.
    pub now_ms: f64,
    /// `port`: where the message came in.
    pub port: &'a str,
    /// `event_ms`: when the message happened, in milliseconds; null if nobody said.
    pub event_ms: Option<f64>,
}

impl<'a> Scope<'a> {
    /// A message and nothing else.
    pub fn of(value: &'a Payload) -> Scope<'a> {
        Scope {
            value,
            values: &Payload::Nil,
            epoch: 0,
            now_ms: 0.0,
            port: "",
            event_ms: None,
        }
    }
}

impl Expression {
    /// Compiles an expression over one message.
    ///
    /// # Errors
    /// If it cannot be read: what is wrong, and where.
    pub fn new(source: &str) -> Result<Expression, ExpressionError> {
        Expression::compile(source, &Name::ALL[..Name::ALL.len() - 1])
    }

    /// Compiles an expression over a window, which has `values`.
    ///
    /// # Errors
    /// If it cannot be read: what is wrong, and where.
    pub fn of_window(source: &str) -> Result<Expression, ExpressionError> {
        Expression::compile(source, &Name::ALL)
    }

    fn compile(source: &str, names: &[(&str, Name)]) -> Result<Expression, ExpressionError> {
        if source.len() > SOURCE_BYTES {
            let kind = ExpressionErrorKind::SourceTooLong { most: SOURCE_BYTES };
            return Err(ExpressionError::new(kind, 1));
        }
        Ok(Expression {
            source: source.to_owned(),
            root: parser::parse(source, names)?,
        })
    }

    /// What it is for this message.
    ///
    /// # Errors
    /// If it cannot be computed: what is wrong, and where.
    pub fn evaluate(&self, scope: &Scope<'_>) -> Result<Payload, ExpressionError> {
        evaluate::evaluate(&self.root, scope)
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}
