//! Expressions as they are read.

use crate::structural::pattern::Pattern;

/// An expression, with how deep it is nested: whoever walks it needs that much stack.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) expr: Expr,
    pub(super) height: usize,
}

#[derive(Clone, Debug)]
pub(super) enum Expr {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Name(String),
    Select(Box<Node>, String),
    /// `.?name`: an optional value.
    MaybeSelect(Box<Node>, String),
    /// `has(of.name)`
    Has(Box<Node>, String),
    Index(Box<Node>, Box<Node>),
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Not(Box<Node>),
    Negate(Box<Node>),
    And(Vec<Node>),
    Or(Vec<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    If(Box<Node>, Box<Node>, Box<Node>),
    /// A call; the value in front of the dot is the first argument.
    Call {
        name: String,
        is_method: bool,
        arguments: Vec<Node>,
    },
    /// `text.matches("…")`, with the pattern compiled and what it costs for every ten characters.
    Matches(Box<Node>, Pattern, usize),
    Loop(Box<Loop>),
    /// `cel.bind(name, value, body)`
    Bind(String, Box<Node>, Box<Node>),
}

/// `range.all(variable, body)` and its likes.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    pub(super) kind: LoopKind,
    pub(super) range: Node,
    pub(super) variable: String,
    /// The condition; true for `map` without one.
    pub(super) filter: Option<Node>,
    /// What `map` makes of an element.
    pub(super) transform: Option<Node>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Node {
    /// The expressions right below.
    pub(super) fn children(&self) -> Vec<&Node> {
        match &self.expr {
            Expr::Null
            | Expr::Bool(_)
            | Expr::Int(_)
            | Expr::Uint(_)
            | Expr::Double(_)
            | Expr::Text(_)
            | Expr::Name(_) => Vec::new(),
            Expr::Select(of, _)
            | Expr::MaybeSelect(of, _)
            | Expr::Has(of, _)
            | Expr::Not(of)
            | Expr::Negate(of)
            | Expr::Matches(of, ..) => vec![of],
            Expr::Index(a, b) | Expr::Binary(_, a, b) | Expr::Bind(_, a, b) => vec![a, b],
            Expr::List(all) | Expr::And(all) | Expr::Or(all) | Expr::Call { arguments: all, .. } => {
                all.iter().collect()
            }
            Expr::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            Expr::If(a, b, c) => vec![a, b, c],
            Expr::Loop(it) => [&it.range].into_iter().chain(&it.filter).chain(&it.transform).collect(),
        }
    }

    /// How many patterns are in it.
    pub(super) fn patterns(&self) -> usize {
        let below: usize = self.children().into_iter().map(Node::patterns).sum();
        below + usize::from(matches!(self.expr, Expr::Matches(..)))
    }

    /// True when the variable `name` is read anywhere in it, bound or not.
    pub(super) fn mentions(&self, name: &str) -> bool {
        match &self.expr {
            Expr::Name(found) => found == name,
            _ => self.children().into_iter().any(|child| child.mentions(name)),
        }
    }
}
