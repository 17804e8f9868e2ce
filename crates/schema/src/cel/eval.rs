//! Running an expression, at a price.
//!
//! Every step costs one, and whatever works through data costs by its size: texts a tenth for each
//! character, lists one for each element. When the budget is spent the rule ends, whatever it was doing.

use std::cmp::Ordering;
use std::rc::Rc;

use super::Fault;
use super::ast::{Expr, Loop, LoopKind, Node, Operator};
use super::functions;
use super::value::{Text, Val};
use crate::structural::ListType;

/// What is left to spend, and what the names mean.
pub(super) struct Run<'a> {
    budget: u64,
    scope: Vec<(&'a str, Val<'a>)>,
}

impl<'a> Run<'a> {
    pub(super) fn new(budget: u64, scope: Vec<(&'a str, Val<'a>)>) -> Self {
        Self { budget, scope }
    }

    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    pub(super) fn charge(&mut self, cost: usize) -> Result<(), Fault> {
        let left = self.budget.checked_sub(cost as u64);
        self.budget = left.unwrap_or(0);
        left.map(drop).ok_or(Fault::Budget)
    }

    /// The price of reading a text once.
    pub(super) fn charge_text(&mut self, text: &str) -> Result<(), Fault> {
        self.charge(text.len() / 10)
    }

    pub(super) fn eval(&mut self, node: &'a Node) -> Result<Val<'a>, Fault> {
        self.charge(1)?;
        match &node.expr {
            Expr::Null => Ok(Val::Null),
            Expr::Bool(flag) => Ok(Val::Bool(*flag)),
            Expr::Int(value) => Ok(Val::Int(*value)),
            Expr::Uint(value) => Ok(Val::Uint(*value)),
            Expr::Double(value) => Ok(Val::Double(*value)),
            Expr::Text(text) => Ok(Val::Text(Text::Borrowed(text))),
            Expr::Name(name) => self.name(name),
            Expr::Select(of, name) => self.select(of, name),
            Expr::MaybeSelect(of, name) => self.maybe_select(of, name),
            Expr::Has(of, name) => match self.eval(of)? {
                Val::Maybe(value) => Ok(Val::Bool(value.is_some_and(|value| value.field(name).is_some()))),
                value => Ok(Val::Bool(value.field(name).is_some())),
            },
            Expr::Index(of, at) => self.index(of, at),
            Expr::List(all) => self.all(all).map(Val::list),
            Expr::Map(entries) => self.map(entries),
            Expr::Not(of) => self.is_true(of).map(|flag| Val::Bool(!flag)),
            Expr::Negate(of) => negate(self.eval(of)?),
            Expr::And(all) => self.decided(all, false),
            Expr::Or(all) => self.decided(all, true),
            Expr::Binary(operator, left, right) => {
                let (left, right) = (self.eval(left)?, self.eval(right)?);
                self.binary(*operator, left, right)
            }
            Expr::If(condition, yes, no) => {
                if self.is_true(condition)? {
                    self.eval(yes)
                } else {
                    self.eval(no)
                }
            }
            Expr::Call { name, arguments, .. } => {
                let arguments = self.all(arguments)?;
                functions::call(self, name, arguments)
            }
            Expr::Matches(of, pattern, price) => match self.eval(of)? {
                Val::Text(text) => {
                    let text = text.as_str();
                    self.charge((text.len() / 10 + 1).saturating_mul(*price))?;
                    Ok(Val::Bool(pattern.is_match(text)))
                }
                _ => Err(Fault::overload()),
            },
            Expr::Loop(it) => self.repeat(it),
            Expr::Bind(name, value, body) => {
                let value = self.eval(value)?;
                self.within(name, value, body)
            }
        }
    }

    pub(super) fn is_true(&mut self, node: &'a Node) -> Result<bool, Fault> {
        match self.eval(node)? {
            Val::Bool(flag) => Ok(flag),
            _ => Err(Fault::overload()),
        }
    }

    fn all(&mut self, nodes: &'a [Node]) -> Result<Vec<Val<'a>>, Fault> {
        nodes.iter().map(|node| self.eval(node)).collect()
    }

    fn within(&mut self, name: &'a str, value: Val<'a>, body: &'a Node) -> Result<Val<'a>, Fault> {
        self.scope.push((name, value));
        let result = self.eval(body);
        self.scope.pop();
        result
    }

    fn name(&mut self, name: &str) -> Result<Val<'a>, Fault> {
        let found = self.scope.iter().rev().find(|(known, _)| *known == name);
        let found =
            found.map(|(_, value)| value.clone()).or_else(|| functions::type_named(name).map(Val::Type));
        found.ok_or_else(|| Fault::error(format!("undeclared reference to '{name}'")))
    }

    fn select(&mut self, of: &'a Node, name: &str) -> Result<Val<'a>, Fault> {
        match self.eval(of)? {
            Val::Maybe(value) => Ok(Val::maybe(value.and_then(|value| value.field(name)))),
            value @ (Val::Map(_) | Val::Fields(..)) => {
                value.field(name).ok_or_else(|| Fault::error(format!("no such key: {name}")))
            }
            _ => Err(Fault::overload()),
        }
    }

    fn maybe_select(&mut self, of: &'a Node, name: &str) -> Result<Val<'a>, Fault> {
        match self.eval(of)? {
            Val::Maybe(value) => Ok(Val::maybe(value.and_then(|value| value.field(name)))),
            value @ (Val::Map(_) | Val::Fields(..)) => Ok(Val::maybe(value.field(name))),
            _ => Err(Fault::overload()),
        }
    }

    fn index(&mut self, of: &'a Node, at: &'a Node) -> Result<Val<'a>, Fault> {
        let (of, at) = (self.eval(of)?, self.eval(at)?);
        match (&of, &at) {
            (Val::List(_) | Val::Items(..), at) => {
                let index = index_of(at).ok_or_else(Fault::overload)?;
                of.element(index).ok_or_else(|| Fault::error(format!("index out of bounds: {index}")))
            }
            (Val::Fields(fields, schema), Val::Text(name)) => {
                // Keys of maps are never escaped.
                let name = name.as_str();
                let found = fields
                    .get(name)
                    .map(|value| Val::read(value, schema.and_then(|schema| schema.property(name))));
                found.ok_or_else(|| Fault::error(format!("no such key: {name}")))
            }
            (Val::Map(entries), key) => {
                for (found, value) in entries.iter() {
                    if self.is_equal(found, key)? {
                        return Ok(value.clone());
                    }
                }
                Err(Fault::error("no such key"))
            }
            _ => Err(Fault::overload()),
        }
    }

    fn map(&mut self, entries: &'a [(Node, Node)]) -> Result<Val<'a>, Fault> {
        let mut map = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            map.push((self.eval(key)?, self.eval(value)?));
        }
        Ok(Val::Map(Rc::new(map)))
    }

    /// `&&` and `||`: one `deciding` operand decides, even when others fail.
    fn decided(&mut self, nodes: &'a [Node], deciding: bool) -> Result<Val<'a>, Fault> {
        let mut failure = None;
        for node in nodes {
            match self.is_true(node) {
                Ok(flag) if flag == deciding => return Ok(Val::Bool(deciding)),
                Ok(_) => {}
                Err(Fault::Budget) => return Err(Fault::Budget),
                Err(fault) => failure = failure.or(Some(fault)),
            }
        }
        failure.map_or(Ok(Val::Bool(!deciding)), Err)
    }

    fn repeat(&mut self, it: &'a Loop) -> Result<Val<'a>, Fault> {
        let range = self.eval(&it.range)?.range().ok_or_else(Fault::overload)?;
        self.charge(range.len())?;
        match (it.kind, &it.filter, &it.transform) {
            (LoopKind::All, Some(body), _) => self.search(it, range, body, false),
            (LoopKind::Exists, Some(body), _) => self.search(it, range, body, true),
            (LoopKind::ExistsOne | LoopKind::Filter, Some(body), _) => {
                let mut kept = Vec::new();
                for element in range {
                    if self.holds(it, &element, body)? {
                        kept.push(element);
                    }
                }
                let is_one = kept.len() == 1;
                Ok(if it.kind == LoopKind::Filter { Val::list(kept) } else { Val::Bool(is_one) })
            }
            (LoopKind::Map, filter, Some(transform)) => {
                let mut mapped = Vec::new();
                for element in range {
                    if let Some(filter) = filter
                        && !self.holds(it, &element, filter)?
                    {
                        continue;
                    }
                    mapped.push(self.within(&it.variable, element, transform)?);
                }
                Ok(Val::list(mapped))
            }
            _ => Err(Fault::overload()),
        }
    }

    fn search(
        &mut self,
        it: &'a Loop,
        range: Vec<Val<'a>>,
        body: &'a Node,
        deciding: bool,
    ) -> Result<Val<'a>, Fault> {
        let mut failure = None;
        for element in range {
            match self.holds(it, &element, body) {
                Ok(flag) if flag == deciding => return Ok(Val::Bool(deciding)),
                Ok(_) => {}
                Err(Fault::Budget) => return Err(Fault::Budget),
                Err(fault) => failure = failure.or(Some(fault)),
            }
        }
        failure.map_or(Ok(Val::Bool(!deciding)), Err)
    }

    fn holds(&mut self, it: &'a Loop, element: &Val<'a>, body: &'a Node) -> Result<bool, Fault> {
        match self.within(&it.variable, element.clone(), body)? {
            Val::Bool(flag) => Ok(flag),
            _ => Err(Fault::overload()),
        }
    }

    fn binary(&mut self, operator: Operator, left: Val<'a>, right: Val<'a>) -> Result<Val<'a>, Fault> {
        let ordered = |run: &mut Self, holds: fn(Ordering) -> bool| {
            run.compare(&left, &right).map(|order| Val::Bool(order.is_some_and(holds)))
        };
        match operator {
            Operator::Equal => self.is_equal(&left, &right).map(Val::Bool),
            Operator::Different => self.is_equal(&left, &right).map(|same| Val::Bool(!same)),
            Operator::Less => ordered(self, Ordering::is_lt),
            Operator::LessOrEqual => ordered(self, Ordering::is_le),
            Operator::Greater => ordered(self, Ordering::is_gt),
            Operator::GreaterOrEqual => ordered(self, Ordering::is_ge),
            Operator::In => self.is_in(&left, &right).map(Val::Bool),
            Operator::Add if left.is_list() || matches!(left, Val::Text(_)) => self.join(&left, &right),
            _ => super::arithmetic::calculate(operator, &left, &right),
        }
    }

    fn join(&mut self, left: &Val<'a>, right: &Val<'a>) -> Result<Val<'a>, Fault> {
        match (left, right) {
            (Val::Text(left), Val::Text(right)) => {
                self.charge((left.as_str().len() + right.as_str().len()) / 10)?;
                Ok(Val::text(format!("{}{}", left.as_str(), right.as_str())))
            }
            (left, right) if left.is_list() && right.is_list() => {
                self.charge(left.size().unwrap_or(0) + right.size().unwrap_or(0))?;
                let both = left.range().into_iter().chain(right.range()).flatten();
                Ok(Val::list(both.collect()))
            }
            _ => Err(Fault::overload()),
        }
    }

    pub(super) fn is_in(&mut self, value: &Val<'a>, container: &Val<'a>) -> Result<bool, Fault> {
        match (container, value) {
            (Val::Fields(fields, _), Val::Text(name)) => Ok(fields.contains_key(name.as_str())),
            (Val::Fields(..), _) => Ok(false),
            (container, value) => {
                self.charge(container.size().unwrap_or(0))?;
                for element in container.range().ok_or_else(Fault::overload)? {
                    if self.is_equal(&element, value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    pub(super) fn is_equal(&mut self, left: &Val<'a>, right: &Val<'a>) -> Result<bool, Fault> {
        self.charge(1)?;
        match (left, right) {
            (Val::Null, Val::Null) => Ok(true),
            (Val::Bool(a), Val::Bool(b)) => Ok(a == b),
            (Val::Type(a), Val::Type(b)) => Ok(a == b),
            (Val::Quantity(a), Val::Quantity(b)) => Ok(a == b),
            (Val::Ip(a), Val::Ip(b)) => Ok(a == b),
            (Val::Cidr(a), Val::Cidr(b)) => Ok(a == b),
            (Val::Version(a), Val::Version(b)) => Ok(a == b),
            (Val::Maybe(a), Val::Maybe(b)) => match (a, b) {
                (Some(a), Some(b)) => self.is_equal(a, b),
                (a, b) => Ok(a.is_none() && b.is_none()),
            },
            (a, b) if a.is_list() && b.is_list() => self.is_equal_list(a, b),
            (Val::Map(_) | Val::Fields(..), Val::Map(_) | Val::Fields(..)) => self.is_equal_map(left, right),
            _ => match self.compare(left, right) {
                Ok(order) => Ok(order.is_some_and(Ordering::is_eq)),
                Err(Fault::Budget) => Err(Fault::Budget),
                // Values of different types are different.
                Err(Fault::Error(_)) => Ok(false),
            },
        }
    }

    fn is_equal_list(&mut self, left: &Val<'a>, right: &Val<'a>) -> Result<bool, Fault> {
        if left.size() != right.size() {
            return Ok(false);
        }
        self.charge(left.size().unwrap_or(0).saturating_mul(2))?;
        let (lefts, rights) = (left.range().unwrap_or_default(), right.range().unwrap_or_default());
        if is_unordered(left) && is_unordered(right) {
            for value in &lefts {
                if !self.is_in(value, right)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        for (left, right) in lefts.iter().zip(&rights) {
            if !self.is_equal(left, right)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_equal_map(&mut self, left: &Val<'a>, right: &Val<'a>) -> Result<bool, Fault> {
        if left.size() != right.size() {
            return Ok(false);
        }
        self.charge(left.size().unwrap_or(0))?;
        for key in left.range().unwrap_or_default() {
            let Val::Text(name) = &key else { return Ok(false) };
            self.charge(if matches!(right, Val::Map(_)) { right.size().unwrap_or(0) } else { 1 })?;
            match (left.field(name.as_str()), right.field(name.as_str())) {
                (Some(left), Some(right)) if self.is_equal(&left, &right)? => {}
                (None, None) => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    /// None when two numbers have no order, which is so for NaN.
    pub(super) fn compare(&mut self, left: &Val<'a>, right: &Val<'a>) -> Result<Option<Ordering>, Fault> {
        match (left, right) {
            (Val::Text(a), Val::Text(b)) => {
                self.charge(a.as_str().len().min(b.as_str().len()) / 10)?;
                Ok(Some(a.as_str().cmp(b.as_str())))
            }
            (Val::Bool(a), Val::Bool(b)) => Ok(Some(a.cmp(b))),
            (Val::Time(a), Val::Time(b)) => Ok(Some(a.cmp(b))),
            (Val::Span(a), Val::Span(b)) => Ok(Some(a.cmp(b))),
            _ => super::arithmetic::compare(left, right).ok_or_else(Fault::overload),
        }
    }
}

/// Sets and lists with keys are equal whatever the order of their elements.
fn is_unordered(value: &Val<'_>) -> bool {
    matches!(value, Val::Items(_, Some(schema)) if schema.list_type() != ListType::Atomic)
}

fn index_of(value: &Val<'_>) -> Option<usize> {
    match value {
        Val::Int(index) => Some(usize::try_from(*index).unwrap_or(usize::MAX)),
        Val::Uint(index) => Some(usize::try_from(*index).unwrap_or(usize::MAX)),
        Val::Double(index) if index.fract() == 0.0 && *index >= 0.0 => Some(*index as usize),
        _ => None,
    }
}

fn negate(value: Val<'_>) -> Result<Val<'_>, Fault> {
    match value {
        Val::Int(value) => value.checked_neg().map(Val::Int).ok_or_else(Fault::overflow),
        Val::Double(value) => Ok(Val::Double(-value)),
        Val::Span(value) => value.checked_neg().map(Val::Span).ok_or_else(Fault::overflow),
        _ => Err(Fault::overload()),
    }
}
