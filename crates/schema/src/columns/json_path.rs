//! The part of JSONPath that columns use.
//!
//! `.a.b`, `['a.b']`, `.a\.b`, `[0]`, `[-1]`, `[*]`, `.*` and `[?(@.type=="Ready")]`. Everything else
//! is refused when the path is read, so that nobody waits for a column that stays empty.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

use crate::structural::order;

/// Most steps of one path.
pub const PATH_STEPS_MAX: usize = 64;

/// Most values that one path finds: a table shows few.
const FOUND_MAX: usize = 1000;

/// A path that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    source: String,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    Every,
    Where(Filter),
}

/// Keeps the elements that have something at `path`, or something that compares as asked for.
#[derive(Clone, Debug, PartialEq)]
struct Filter {
    path: Vec<Step>,
    test: Option<(Comparison, Value)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Longer ones first: `<=` begins with `<`.
    const ALL: [(&'static str, Comparison); 6] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::Different),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];

    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::Different => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It does not begin as paths do.
    #[error("must begin with '.' or '['")]
    Start,
    /// Something stands at `at` that a column's path cannot have.
    #[error("is not a simple JSONPath at character {at}: {why}")]
    Syntax {
        /// How many characters are understood.
        at: usize,
        /// What was expected.
        why: &'static str,
    },
    /// There are more than [`PATH_STEPS_MAX`] steps.
    #[error("must have at most {PATH_STEPS_MAX} steps")]
    TooLong,
}

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// When it is malformed or uses more of JSONPath than columns may.
    pub fn parse(source: &str) -> Result<Self, PathError> {
        if !source.starts_with(['.', '[']) {
            return Err(PathError::Start);
        }
        let mut parser = Parser { source, rest: source };
        // The whole object, as kubectl has it.
        let steps = if source == "." { Vec::new() } else { parser.steps(false)? };
        Ok(Self { source: source.to_owned(), steps })
    }

    /// The text it was read from.
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// The names on the way, when it goes through fields only.
    pub(crate) fn fields(&self) -> Option<Vec<&str>> {
        let names = self.steps.iter().map(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            Step::Index(_) | Step::Every | Step::Where(_) => None,
        });
        names.collect()
    }

    /// Everything the path leads to, in the order of the object.
    pub fn find<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        find(&self.steps, value)
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

fn find<'a>(steps: &[Step], value: &'a Value) -> Vec<&'a Value> {
    let mut found = vec![value];
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            take(step, value, &mut next);
            next.truncate(FOUND_MAX);
        }
        found = next;
    }
    found
}

fn take<'a>(step: &Step, value: &'a Value, found: &mut Vec<&'a Value>) {
    match (step, value) {
        (Step::Field(name), Value::Object(fields)) => found.extend(fields.get(name)),
        (Step::Index(index), Value::Array(list)) => found.extend(element(list, *index)),
        (Step::Every, Value::Array(list)) => found.extend(list),
        (Step::Every, Value::Object(fields)) => found.extend(fields.values()),
        (Step::Where(filter), Value::Array(list)) => {
            found.extend(list.iter().filter(|element| filter.keeps(element)));
        }
        _ => {}
    }
}

/// Negative indices count from the end.
fn element(list: &[Value], index: i64) -> Option<&Value> {
    let distance = usize::try_from(index.unsigned_abs()).ok()?;
    if index < 0 { list.len().checked_sub(distance).and_then(|at| list.get(at)) } else { list.get(distance) }
}

impl Filter {
    fn keeps(&self, value: &Value) -> bool {
        let found = find(&self.path, value);
        match &self.test {
            None => !found.is_empty(),
            Some((comparison, expected)) => found.first().is_some_and(|found| {
                let is_comparable = std::mem::discriminant(*found) == std::mem::discriminant(expected);
                match comparison {
                    Comparison::Different => !is_comparable || order::compare(found, expected).is_ne(),
                    other => is_comparable && other.holds(order::compare(found, expected)),
                }
            }),
        }
    }
}

struct Parser<'a> {
    source: &'a str,
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Steps up to the end, or inside a filter up to what cannot be one.
    fn steps(&mut self, in_filter: bool) -> Result<Vec<Step>, PathError> {
        let mut steps = Vec::new();
        while self.rest.starts_with(['.', '[']) {
            if steps.len() == PATH_STEPS_MAX {
                return Err(PathError::TooLong);
            }
            let step = if self.eat(".") { self.dotted(in_filter)? } else { self.bracketed(in_filter)? };
            steps.push(step);
        }
        if !in_filter && !self.rest.is_empty() {
            return Err(self.expected("expected '.' or '['"));
        }
        Ok(steps)
    }

    /// A name after a dot; a backslash takes the next character as it is.
    fn dotted(&mut self, in_filter: bool) -> Result<Step, PathError> {
        if self.eat("*") {
            return Ok(Step::Every);
        }
        let mut name = String::new();
        let mut characters = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '\\' => match characters.next() {
                    Some((_, escaped)) => name.push(escaped),
                    None => return Err(self.expected("expected a character after '\\'")),
                },
                '.' | '[' | ']' | '(' | ')' | '{' | '}' | '\'' | '"' | '@' | '?' | '*' | '$' | ',' | ' ' => {
                    end = at;
                    break;
                }
                '=' | '!' | '<' | '>' if in_filter => {
                    end = at;
                    break;
                }
                other => name.push(other),
            }
        }
        if name.is_empty() {
            return Err(self.expected("expected a field name"));
        }
        self.rest = &self.rest[end..];
        Ok(Step::Field(name))
    }

    fn bracketed(&mut self, in_filter: bool) -> Result<Step, PathError> {
        self.expect("[", "expected '['")?;
        let step = if self.eat("*") {
            Step::Every
        } else if self.rest.starts_with(['\'', '"']) {
            Step::Field(self.quoted()?)
        } else if self.eat("?(") {
            if in_filter {
                return Err(self.expected("a filter cannot have a filter"));
            }
            Step::Where(self.filter()?)
        } else {
            Step::Index(self.integer()?)
        };
        self.expect("]", "expected ']'")?;
        Ok(step)
    }

    fn filter(&mut self) -> Result<Filter, PathError> {
        self.spaces();
        self.expect("@", "expected '@'")?;
        let path = self.steps(true)?;
        self.spaces();
        let comparison = Comparison::ALL.into_iter().find(|(text, _)| self.eat(text));
        let test = match comparison {
            None => None,
            Some((_, comparison)) => {
                self.spaces();
                Some((comparison, self.literal()?))
            }
        };
        self.spaces();
        self.expect(")", "expected a comparison or ')'")?;
        Ok(Filter { path, test })
    }

    fn literal(&mut self) -> Result<Value, PathError> {
        if self.rest.starts_with(['\'', '"']) {
            return self.quoted().map(Value::from);
        }
        let end = self.rest.find([')', ' ']).unwrap_or(self.rest.len());
        match serde_json::from_str::<Value>(&self.rest[..end]) {
            Ok(value @ (Value::Bool(_) | Value::Number(_))) => {
                self.rest = &self.rest[end..];
                Ok(value)
            }
            _ => Err(self.expected("expected a quoted text, a number, true or false")),
        }
    }

    fn quoted(&mut self) -> Result<String, PathError> {
        let mut characters = self.rest.char_indices();
        let Some((_, quote)) = characters.next() else {
            return Err(self.expected("expected a quote"));
        };
        let mut text = String::new();
        while let Some((at, character)) = characters.next() {
            if character == quote {
                self.rest = &self.rest[at + 1..];
                return Ok(text);
            }
            match character {
                '\\' => text.extend(characters.next().map(|(_, escaped)| escaped)),
                other => text.push(other),
            }
        }
        Err(self.expected("the quote is not closed"))
    }

    fn integer(&mut self) -> Result<i64, PathError> {
        let end = self.rest.find(']').unwrap_or(self.rest.len());
        let index = self.rest[..end].trim().parse();
        let index = index.map_err(|_| self.expected("expected an index, '*', a quoted name or '?('"))?;
        self.rest = &self.rest[end..];
        Ok(index)
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }

    fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, text: &str, why: &'static str) -> Result<(), PathError> {
        if self.eat(text) { Ok(()) } else { Err(self.expected(why)) }
    }

    fn expected(&self, why: &'static str) -> PathError {
        let understood = &self.source[..self.source.len() - self.rest.len()];
        PathError::Syntax { at: understood.chars().count(), why }
    }
}
