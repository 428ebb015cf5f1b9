//! What is wrong with an expression, and where.

use std::fmt;

use windlass_value::Unwritable;

/// What is wrong with an expression, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// What is wrong.
    pub kind: ExpressionErrorKind,
    /// Where: the character of the source, from 1.
    pub column: usize,
}

/// What can be wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpressionErrorKind {
    /// The source is longer than that.
    SourceTooLong {
        /// How many bytes it may have.
        most: usize,
    },
    /// Parentheses, lists, calls and choices in each other, deeper than that.
    TooDeep {
        /// How deep they may be.
        most: usize,
    },
    /// A character that begins nothing.
    Character(char),
    /// A text without its closing quote.
    OpenText,
    /// A backslash and something that means nothing.
    Escape,
    /// A number that is none, or that does not fit.
    Number(String),
    /// Something else was expected.
    Expected {
        /// What was expected.
        wanted: &'static str,
        /// What there is.
        found: String,
    },
    /// A name that means nothing here.
    Name {
        /// The name as it is written.
        name: String,
        /// Those that mean something.
        known: String,
    },
    /// There is no such function.
    Function {
        /// The name as it is written.
        name: String,
        /// A question about a similar name; empty if there is none.
        hint: String,
    },
    /// A function with too few or too many arguments.
    Arguments {
        /// The name of the function.
        function: &'static str,
        /// How many it takes.
        takes: String,
        /// How many there are.
        found: usize,
    },
    /// More lists are inside of each other than a field is looked for in.
    ValueTooDeep {
        /// How many lists may be inside of each other.
        most: usize,
    },
    /// A value that cannot be shown as JSON.
    NoJson(Unwritable),
    /// A value of a type with which this cannot be done.
    Type {
        /// What takes it.
        what: String,
        /// What it takes.
        takes: &'static str,
        /// What it got.
        found: &'static str,
    },
    /// A whole number beyond 64 bits.
    Overflow,
    /// A division by zero.
    DivisionByZero,
    /// A number that is infinite, or none.
    NotFinite,
    /// A text that is no number.
    NotANumber(String),
    /// A condition that is neither true nor false.
    NoCondition {
        /// The text of the expression.
        source: String,
        /// The beginning of the value that it has instead.
        found: String,
    },
    /// The result is larger than that.
    ResultTooLarge {
        /// How many bytes it may have.
        most: usize,
    },
}

impl ExpressionError {
    pub(super) fn new(kind: ExpressionErrorKind, column: usize) -> ExpressionError {
        ExpressionError { kind, column }
    }

    /// The error with the expression and a caret below the place.
    pub fn shown_in(&self, source: &str) -> String {
        // A long expression is shown around the place.
        const BEFORE: usize = 60;
        const SHOWN: usize = 100;
        let first = self.column.saturating_sub(BEFORE + 1);
        let blank = |c: char| if c.is_control() { ' ' } else { c };
        let part: String = source.chars().skip(first).take(SHOWN).map(blank).collect();
        let indent = " ".repeat(self.column - 1 - first);
        format!("{self}\n  {part}\n  {indent}^")
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (column {})", self.kind, self.column)
    }
}

impl std::error::Error for ExpressionError {}

impl fmt::Display for ExpressionErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_message(f)?;
        match self.intended_operator() {
            Some(operator) => write!(f, "; write `{operator}`"),
            None => Ok(()),
        }
    }
}

impl ExpressionErrorKind {
    /// Returns the operator that the author meant, if the mistake is how another language writes
    /// it.
    fn intended_operator(&self) -> Option<&'static str> {
        match self {
            ExpressionErrorKind::Character('=') => Some("=="),
            ExpressionErrorKind::Character('&') => Some("&&"),
            ExpressionErrorKind::Character('|') => Some("||"),
            ExpressionErrorKind::Expected { found: word, .. }
            | ExpressionErrorKind::Name { name: word, .. }
            | ExpressionErrorKind::Function { name: word, .. } => match word.as_str() {
                "and" => Some("&&"),
                "or" => Some("||"),
                "not" => Some("!"),
                _ => None,
            },
            _ => None,
        }
    }

    fn write_message(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpressionErrorKind::SourceTooLong { most } => {
                write!(f, "an expression may have {most} bytes: split it in two")
            }
            ExpressionErrorKind::ValueTooDeep { most } => write!(
                f,
                "the value has more than {most} lists inside of each other: take a part of it first"
            ),
            ExpressionErrorKind::NoJson(reason) => write!(f, "{reason}"),
            ExpressionErrorKind::TooDeep { most } => {
                write!(f, "it is nested deeper than {most} levels")
            }
            ExpressionErrorKind::Character(c) => write!(f, "{c:?} means nothing here"),
            ExpressionErrorKind::OpenText => f.write_str("the text has no closing quote"),
            ExpressionErrorKind::Escape => f.write_str(
                "after a backslash comes one of n, t, r, \\, ', \" or u and four digits",
            ),
            ExpressionErrorKind::Number(text) => write!(f, "{text} is no number of 64 bits"),
            ExpressionErrorKind::Expected { wanted, found } => {
                write!(f, "expected {wanted}, found {found}")
            }
            ExpressionErrorKind::Name { name, known } => {
                write!(f, "there is no {name}")?;
                match self.intended_operator() {
                    Some(_) => Ok(()),
                    None => write!(f, "; there are {known}"),
                }
            }
            ExpressionErrorKind::Function { name, hint } => {
                write!(f, "there is no function {name}")?;
                match hint.as_str() {
                    hint if hint.is_empty() || self.intended_operator().is_some() => Ok(()),
                    hint => write!(f, "; {hint}"),
                }
            }
            ExpressionErrorKind::Arguments {
                function,
                takes,
                found,
            } => write!(f, "{function} takes {takes}, and got {found}"),
            ExpressionErrorKind::Type { what, takes, found } => {
                write!(f, "{what} takes {takes}, and got {found}")
            }
            ExpressionErrorKind::Overflow => {
                f.write_str("a whole number has 64 bits, and this does not fit")
            }
            ExpressionErrorKind::DivisionByZero => f.write_str("division by zero"),
            ExpressionErrorKind::NotFinite => f.write_str("the result is no finite number"),
            ExpressionErrorKind::NotANumber(text) => write!(f, "{text:?} is no number"),
            ExpressionErrorKind::NoCondition { source, found } => {
                write!(f, "{source} gives {found}: a condition needs true or false")
            }
            ExpressionErrorKind::ResultTooLarge { most } => {
                write!(f, "the result is larger than {most} bytes")
            }
        }
    }
}
