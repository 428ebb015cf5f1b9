//! The one expression language: what `windlass.map`, `.filter` and `.window` do with a message, and
//! what an assertion demands of an event.
//!
//! An expression is compiled once and evaluated for every message or event. It can read the values
//! that a [`Scope`] gives it and make a value of them; it cannot loop, keep anything, or reach
//! outside. Length, depth and the size of results are bounded.
//!
//! It is in this crate because expressions are part of the files that an editor or a linter checks:
//! `ConfigKind::Expression` declares a field that has one. Rejected: a crate of its own. The
//! checks of a graph file would then need another way to it, and the search for similar names
//! (`suggest.rs`) another home.
//!
//! ```
//! use windlass_plan::expression::{Expression, MessageScope};
//! use windlass_value::Payload;
//!
//! let expression = Expression::new("value.celsius * 9 / 5 + 32")?;
//! let message = Payload::map([("celsius", 21.5.into())]);
//! assert_eq!(expression.evaluate(&MessageScope::of(&message))?, Payload::from(70.7));
//!
//! let error = Expression::new("value.celsius *").unwrap_err();
//! assert_eq!(error.to_string(), "expected a value, found the end (column 16)");
//! # Ok::<(), windlass_plan::expression::ExpressionError>(())
//! ```

mod error;
mod evaluate;
mod function;
mod lexer;
mod number;
mod parser;
mod pattern;
mod scope;
mod tree;

use std::fmt;

use windlass_value::Payload;

pub use error::{ExpressionError, ExpressionErrorKind};
pub use function::function_names;
pub use pattern::fits;
pub use scope::{MessageScope, Name, Names, Scope};

use parser::parse;
use tree::Node;

/// How many bytes a source may have.
const SOURCE_BYTES: usize = 4096;

/// An expression that is ready to be evaluated.
#[derive(Clone, PartialEq)]
pub struct Expression {
    source: String,
    root: Node,
}

impl Expression {
    /// Compiles an expression over one message.
    ///
    /// # Errors
    /// If it cannot be read: what is wrong, and where.
    pub fn new(source: &str) -> Result<Expression, ExpressionError> {
        Expression::compile(source, Names::Message)
    }

    /// Compiles an expression that may use these names.
    ///
    /// # Errors
    /// If it cannot be read: what is wrong, and where.
    pub fn compile(source: &str, names: Names) -> Result<Expression, ExpressionError> {
        Expression::compile_with(source, names, &[])
    }

    /// Compiles an expression that may also use the names of these constants, each of which stands
    /// for its value.
    ///
    /// # Errors
    /// If it cannot be read: what is wrong, and where.
    pub fn compile_with(
        source: &str,
        names: Names,
        constants: &[(&str, Payload)],
    ) -> Result<Expression, ExpressionError> {
        if source.len() > SOURCE_BYTES {
            let kind = ExpressionErrorKind::SourceTooLong { most: SOURCE_BYTES };
            return Err(ExpressionError::new(kind, 1));
        }
        Ok(Expression {
            source: source.to_owned(),
            root: parse(source, names, constants)?,
        })
    }

    /// Computes the value of the expression.
    ///
    /// # Errors
    /// If it cannot be computed: what is wrong, and where.
    pub fn evaluate(&self, scope: &impl Scope) -> Result<Payload, ExpressionError> {
        evaluate::evaluate(&self.root, scope)
    }

    /// Computes the value of an expression that has to be true or false.
    ///
    /// # Errors
    /// If it cannot be computed, or is neither true nor false: what is wrong, and where.
    pub fn holds(&self, scope: &impl Scope) -> Result<bool, ExpressionError> {
        evaluate::holds(&self.root, &self.source, scope)
    }

    /// Returns true if the expression uses this name.
    pub fn uses(&self, name: Name) -> bool {
        self.root.uses(name)
    }

    /// Returns the text that the expression was compiled from.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns an error of `evaluate` or `holds` as a message for people, with a caret below the
    /// place.
    pub fn explain(&self, error: &ExpressionError) -> String {
        let shown = error.shown_in(&self.source);
        format!("the expression cannot be computed: {shown}")
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}
