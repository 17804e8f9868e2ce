//! What an expression is and what it may cost at most, told from the schema.
//!
//! Sizes that the schema does not bound are as large as a request can make them. Types are followed as
//! far as schemas tell them; what they do not tell is dynamic and fails, if it does, when the rule runs.

use super::Fault;
use super::ast::{Expr, Loop, LoopKind, Node, Operator};
use super::functions::{Returns, signature, type_named};
use super::value::unescaped;
use crate::structural::{Schema, Type};

/// Most bytes of a request: what bounds the size of a list or a text that has no bound of its own.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// Longest name of anything.
const NAME_MAX: u64 = 253;

#[derive(Clone, Debug)]
pub(super) enum Kind<'a> {
    Dyn,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Time,
    Span,
    Quantity,
    Ip,
    Cidr,
    Version,
    Type,
    Maybe(Box<Shape<'a>>),
    List(Box<Shape<'a>>),
    Map(Box<Shape<'a>>),
    /// A list or an object as a schema has it.
    Node(&'a Schema),
    /// `metadata` of an object, of which rules see the name.
    Metadata,
    /// An object of which all of `metadata` is seen.
    Whole(&'a Schema),
}

/// A kind, with the most elements, entries or characters it may have.
#[derive(Clone, Debug)]
pub(super) struct Shape<'a> {
    pub(super) kind: Kind<'a>,
    size: u64,
}

impl<'a> Shape<'a> {
    fn new(kind: Kind<'a>, size: u64) -> Self {
        Self { kind, size }
    }

    pub(super) fn unknown() -> Self {
        Self::new(Kind::Dyn, REQUEST_BYTES_MAX)
    }

    pub(super) fn maybe(self) -> Self {
        Self::new(Kind::Maybe(Box::new(self)), 1)
    }

    /// What values of `schema` are to CEL.
    pub(super) fn of(schema: &'a Schema) -> Self {
        let kind = match (schema.kind(), schema.text_format()) {
            (Some(Type::Object | Type::Array), _) => Kind::Node(schema),
            (Some(Type::String), Some("date-time" | "datetime" | "date")) => Kind::Time,
            (Some(Type::String), Some("duration")) => Kind::Span,
            (Some(Type::String), _) => Kind::Text,
            (Some(Type::Integer), _) => Kind::Int,
            (Some(Type::Number), _) => Kind::Double,
            (Some(Type::Boolean), _) => Kind::Bool,
            (None, _) => Kind::Dyn,
        };
        Self::new(kind, size_of(schema))
    }

    /// What an object of `schema` is to an expression that is none of its rules.
    pub(super) fn of_object(schema: &'a Schema) -> Self {
        Self::new(Kind::Whole(schema), size_of(schema))
    }

    /// What going through the whole value costs.
    fn weight(&self) -> u64 {
        match &self.kind {
            Kind::Text => self.size / 10 + 1,
            Kind::Dyn => self.size,
            Kind::Node(schema) => schema.facts.weight,
            Kind::List(inner) | Kind::Map(inner) | Kind::Maybe(inner) => {
                self.size.saturating_mul(inner.weight()).saturating_add(1)
            }
            _ => 1,
        }
    }

    /// The elements of a list; for a map, its values.
    fn inner(&self) -> Option<Shape<'a>> {
        match &self.kind {
            Kind::Dyn => Some(Shape::unknown()),
            Kind::List(inner) | Kind::Map(inner) => Some((**inner).clone()),
            Kind::Node(schema) => match (schema.items(), schema.each()) {
                (Some(schema), _) | (_, Some(schema)) => Some(Shape::of(schema)),
                (None, None) => Some(Shape::unknown()),
            },
            _ => None,
        }
    }

    fn is_list(&self) -> bool {
        matches!(&self.kind, Kind::List(_))
            || matches!(&self.kind, Kind::Node(schema) if schema.kind() == Some(Type::Array))
    }

    /// What a macro goes through: elements of a list, keys of a map.
    fn range(&self) -> Option<Shape<'a>> {
        match &self.kind {
            Kind::Dyn => Some(Shape::unknown()),
            _ if self.is_list() => self.inner(),
            Kind::Map(_) | Kind::Node(_) => Some(Shape::new(Kind::Text, NAME_MAX)),
            _ => None,
        }
    }

    fn field(&self, name: &str) -> Result<Shape<'a>, Fault> {
        let undefined = || Fault::error(format!("undefined field '{name}'"));
        match &self.kind {
            Kind::Dyn => Ok(Shape::unknown()),
            Kind::Map(inner) => Ok((**inner).clone()),
            Kind::Maybe(inner) => inner.field(name).map(Shape::maybe),
            Kind::Whole(_) if name == "metadata" => Ok(Shape::unknown()),
            Kind::Whole(schema) => Shape::new(Kind::Node(schema), self.size).field(name),
            Kind::Metadata if matches!(name, "name" | "generateName") => Ok(Shape::new(Kind::Text, NAME_MAX)),
            Kind::Node(schema) if schema.kind() == Some(Type::Object) => {
                let plain = unescaped(name);
                let found = schema.property(name).or(plain.as_deref().and_then(|name| schema.property(name)));
                match (found, name) {
                    (_, "metadata") if schema.is_resource() => Ok(Shape::new(Kind::Metadata, 2)),
                    (_, "apiVersion" | "kind") if schema.is_resource() => {
                        Ok(Shape::new(Kind::Text, NAME_MAX))
                    }
                    (Some(schema), _) => Ok(Shape::of(schema)),
                    (None, _) if schema.has_any_values() => Ok(Shape::unknown()),
                    (None, _) => Err(undefined()),
                }
            }
            Kind::Metadata => Err(undefined()),
            _ => Err(Fault::error(format!("a value without fields has no '{name}'"))),
        }
    }
}

/// The most elements, entries or characters that a value of `schema` may have.
pub(super) fn size_of(schema: &Schema) -> u64 {
    let fitting = |bytes: u64| REQUEST_BYTES_MAX / bytes.max(1);
    match schema.kind() {
        Some(Type::String) => {
            let is_short = schema.text_format().is_some_and(|format| {
                matches!(
                    format,
                    "date-time" | "datetime" | "date" | "duration" | "uuid" | "ipv4" | "ipv6" | "mac"
                )
            });
            let most = if is_short { 64 } else { REQUEST_BYTES_MAX };
            schema.text_max().unwrap_or(most).min(REQUEST_BYTES_MAX)
        }
        Some(Type::Array) => {
            // An element and its comma.
            let most = fitting(schema.items().map_or(2, |items| items.facts.bytes_min + 1));
            schema.items_max().unwrap_or(most).min(most)
        }
        Some(Type::Object) => match schema.each() {
            // Quotes, colon and comma.
            Some(each) => {
                let most = fitting(each.facts.bytes_min + 4);
                schema.properties_max().unwrap_or(most).min(most)
            }
            None if schema.has_any_values() => schema.properties_max().unwrap_or(fitting(5)),
            None => schema.properties().count() as u64,
        },
        Some(Type::Integer | Type::Number | Type::Boolean) => 1,
        None if schema.is_int_or_string() => schema.text_max().unwrap_or(REQUEST_BYTES_MAX),
        None => REQUEST_BYTES_MAX,
    }
}

/// The expression's shape and its highest cost, with names in scope.
pub(super) struct Estimate<'a> {
    pub(super) scope: Vec<(String, Shape<'a>)>,
}

/// What an expression is, and what it costs.
type Priced<'a> = (Shape<'a>, u64);

impl<'a> Estimate<'a> {
    pub(super) fn of(&mut self, node: &Node) -> Result<Priced<'a>, Fault> {
        let plain = |kind, size| Ok((Shape::new(kind, size), 1));
        match &node.expr {
            Expr::Null => plain(Kind::Null, 1),
            Expr::Bool(_) => plain(Kind::Bool, 1),
            Expr::Int(_) => plain(Kind::Int, 1),
            Expr::Uint(_) => plain(Kind::Uint, 1),
            Expr::Double(_) => plain(Kind::Double, 1),
            Expr::Text(text) => plain(Kind::Text, text.len() as u64),
            Expr::Name(name) => self.name(name),
            Expr::Select(of, name) => {
                let (of, cost) = self.of(of)?;
                Ok((of.field(name)?, cost.saturating_add(1)))
            }
            Expr::MaybeSelect(of, name) => {
                let (of, cost) = self.of(of)?;
                let field = of.field(name)?;
                let field = if matches!(field.kind, Kind::Maybe(_)) { field } else { field.maybe() };
                Ok((field, cost.saturating_add(1)))
            }
            Expr::Has(of, name) => {
                let (of, cost) = self.of(of)?;
                of.field(name)?;
                Ok((Shape::new(Kind::Bool, 1), cost.saturating_add(1)))
            }
            Expr::Index(of, at) => {
                let ((of, of_cost), (_, at_cost)) = (self.of(of)?, self.of(at)?);
                let inner = of.inner().ok_or_else(|| Fault::error("this has no elements to index"))?;
                Ok((inner, of_cost.saturating_add(at_cost).saturating_add(1)))
            }
            Expr::List(all) => {
                let (inner, cost) = self.all(all)?;
                Ok((Shape::new(Kind::List(Box::new(inner)), all.len() as u64), cost))
            }
            Expr::Map(entries) => self.map(entries),
            Expr::Not(of) => {
                let (of, cost) = self.of(of)?;
                must_be_bool(&of)?;
                Ok((Shape::new(Kind::Bool, 1), cost.saturating_add(1)))
            }
            Expr::Negate(of) => self.of(of).map(|(of, cost)| (of, cost.saturating_add(1))),
            Expr::And(all) | Expr::Or(all) => {
                let mut total = 1_u64;
                for node in all {
                    let (of, cost) = self.of(node)?;
                    must_be_bool(&of)?;
                    total = total.saturating_add(cost);
                }
                Ok((Shape::new(Kind::Bool, 1), total))
            }
            Expr::Binary(operator, left, right) => self.binary(*operator, left, right),
            Expr::If(condition, yes, no) => {
                let (condition, cost) = self.of(condition)?;
                must_be_bool(&condition)?;
                let ((yes, yes_cost), (no, no_cost)) = (self.of(yes)?, self.of(no)?);
                Ok((either(yes, no), cost.saturating_add(yes_cost.max(no_cost)).saturating_add(1)))
            }
            Expr::Call { name, is_method, arguments } => self.call(name, *is_method, arguments),
            Expr::Matches(of, _, price) => {
                let (of, cost) = self.of(of)?;
                let price = (of.size / 10 + 1).saturating_mul(*price as u64);
                Ok((Shape::new(Kind::Bool, 1), cost.saturating_add(price)))
            }
            Expr::Loop(it) => self.repeat(it),
            Expr::Bind(name, value, body) => {
                let (value, value_cost) = self.of(value)?;
                let (body, cost) = self.within(name, value, body)?;
                Ok((body, cost.saturating_add(value_cost).saturating_add(1)))
            }
        }
    }

    fn name(&self, name: &str) -> Result<Priced<'a>, Fault> {
        let found = self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, shape)| shape.clone());
        let found = found.or_else(|| type_named(name).map(|_| Shape::new(Kind::Type, 1)));
        found.map(|shape| (shape, 1)).ok_or_else(|| undeclared(name))
    }

    fn within(&mut self, name: &str, shape: Shape<'a>, body: &Node) -> Result<Priced<'a>, Fault> {
        self.scope.push((name.to_owned(), shape));
        let result = self.of(body);
        self.scope.pop();
        result
    }

    /// What all have in common, and what they cost together.
    fn all(&mut self, nodes: &[Node]) -> Result<Priced<'a>, Fault> {
        let mut common: Option<Shape<'a>> = None;
        let mut total = 1_u64;
        for node in nodes {
            let (shape, cost) = self.of(node)?;
            total = total.saturating_add(cost);
            common = Some(match common {
                None => shape,
                Some(common) => either(common, shape),
            });
        }
        Ok((common.unwrap_or_else(Shape::unknown), total))
    }

    fn map(&mut self, entries: &[(Node, Node)]) -> Result<Priced<'a>, Fault> {
        let mut total = 1_u64;
        let mut common: Option<Shape<'a>> = None;
        for (key, value) in entries {
            let ((_, key_cost), (shape, cost)) = (self.of(key)?, self.of(value)?);
            total = total.saturating_add(key_cost).saturating_add(cost);
            common = Some(match common {
                None => shape,
                Some(common) => either(common, shape),
            });
        }
        let inner = Box::new(common.unwrap_or_else(Shape::unknown));
        Ok((Shape::new(Kind::Map(inner), entries.len() as u64), total))
    }

    fn binary(&mut self, operator: Operator, left: &Node, right: &Node) -> Result<Priced<'a>, Fault> {
        let ((left, left_cost), (right, right_cost)) = (self.of(left)?, self.of(right)?);
        let cost = left_cost.saturating_add(right_cost).saturating_add(1);
        let (shape, price) = match operator {
            Operator::Equal
            | Operator::Different
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual => (Shape::new(Kind::Bool, 1), left.weight().min(right.weight())),
            Operator::In => {
                let is_keyed = matches!(right.kind, Kind::Map(_) | Kind::Node(_)) && !right.is_list();
                let each = left.weight().min(right.inner().map_or(1, |inner| inner.weight()));
                let price = if is_keyed { 1 } else { right.size.saturating_mul(each.saturating_add(1)) };
                (Shape::new(Kind::Bool, 1), price)
            }
            Operator::Add if left.is_list() || matches!(left.kind, Kind::Text | Kind::Dyn) => {
                let size = left.size.saturating_add(right.size);
                let price = if left.is_list() { size } else { size / 10 };
                let kind = match (left.inner(), right.inner()) {
                    (Some(left), Some(right)) if !matches!(left.kind, Kind::Dyn) => {
                        Kind::List(Box::new(either(left, right)))
                    }
                    _ => left.kind,
                };
                (Shape::new(kind, size), price)
            }
            // A time less a time is a duration; between others the kind stays.
            _ if matches!((&left.kind, &right.kind), (Kind::Time, Kind::Time)) => {
                (Shape::new(Kind::Span, 1), 0)
            }
            _ if matches!((&left.kind, &right.kind), (Kind::Span, Kind::Time)) => (right, 0),
            _ => (left, 0),
        };
        Ok((shape, cost.saturating_add(price)))
    }

    fn call(&mut self, name: &str, is_method: bool, arguments: &[Node]) -> Result<Priced<'a>, Fault> {
        let returns = signature(name, is_method, arguments.len()).ok_or_else(|| undeclared(name))?;
        let mut total = 1_u64;
        let mut shapes = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let (shape, cost) = self.of(argument)?;
            total = total.saturating_add(cost).saturating_add(shape.size / 10);
            shapes.push(shape);
        }
        let sizes = shapes.iter().fold(0_u64, |sum, shape| sum.saturating_add(shape.size));
        let product = shapes.iter().fold(1_u64, |product, shape| product.saturating_mul(shape.size / 10 + 1));
        total = total.saturating_add(match name {
            "size" | "type" | "dyn" | "int" | "orValue" | "value" | "hasValue" | "or" => 0,
            "sets.contains" | "sets.equivalent" | "sets.intersects" => {
                let pairs = shapes.iter().fold(2_u64, |pairs, shape| pairs.saturating_mul(shape.size));
                pairs.saturating_mul(shapes.iter().map(Shape::weight).min().unwrap_or(1))
            }
            _ if shapes.first().is_some_and(Shape::is_list) => {
                shapes.iter().map(Shape::weight).max().unwrap_or(0)
            }
            _ => product.max(sizes / 10),
        });
        Ok((returned(returns, shapes, sizes), total))
    }

    fn repeat(&mut self, it: &Loop) -> Result<Priced<'a>, Fault> {
        let (range, cost) = self.of(&it.range)?;
        let element = range.range().ok_or_else(|| Fault::error("this has no elements to go through"))?;
        let mut each = 1_u64;
        if let Some(filter) = &it.filter {
            let (shape, cost) = self.within(&it.variable, element.clone(), filter)?;
            must_be_bool(&shape)?;
            each = each.saturating_add(cost);
        }
        let mut result = element.clone();
        if let Some(transform) = &it.transform {
            let (shape, cost) = self.within(&it.variable, element, transform)?;
            each = each.saturating_add(cost);
            result = shape;
        }
        let total = range.size.saturating_mul(each).saturating_add(cost).saturating_add(1);
        let shape = match it.kind {
            LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne => Shape::new(Kind::Bool, 1),
            LoopKind::Filter | LoopKind::Map => Shape::new(Kind::List(Box::new(result)), range.size),
        };
        Ok((shape, total))
    }
}

fn returned<'a>(returns: Returns, shapes: Vec<Shape<'a>>, sizes: u64) -> Shape<'a> {
    let first = || shapes.first().cloned().unwrap_or_else(Shape::unknown);
    match returns {
        Returns::Bool => Shape::new(Kind::Bool, 1),
        Returns::Int => Shape::new(Kind::Int, 1),
        Returns::Uint => Shape::new(Kind::Uint, 1),
        Returns::Double => Shape::new(Kind::Double, 1),
        Returns::Text => Shape::new(Kind::Text, sizes.max(64)),
        Returns::LongText => {
            let inner = first().inner().map_or(1, |inner| inner.size);
            let product = shapes.iter().fold(inner, |size, shape| size.saturating_mul(shape.size.max(1)));
            Shape::new(Kind::Text, product)
        }
        Returns::Texts => {
            let piece = Shape::new(Kind::Text, sizes);
            Shape::new(Kind::List(Box::new(piece)), sizes)
        }
        Returns::Time => Shape::new(Kind::Time, 1),
        Returns::Span => Shape::new(Kind::Span, 1),
        Returns::Quantity => Shape::new(Kind::Quantity, 1),
        Returns::Ip => Shape::new(Kind::Ip, 1),
        Returns::Cidr => Shape::new(Kind::Cidr, 1),
        Returns::Version => Shape::new(Kind::Version, 1),
        Returns::Type => Shape::new(Kind::Type, 1),
        Returns::Same => first(),
        Returns::Element => first().inner().unwrap_or_else(Shape::unknown),
        Returns::Inner => match first().kind {
            Kind::Maybe(inner) => match shapes.get(1) {
                Some(other) => either(*inner, other.clone()),
                None => *inner,
            },
            _ => Shape::unknown(),
        },
        Returns::Maybe => first().maybe(),
    }
}

/// One or the other.
fn either<'a>(a: Shape<'a>, b: Shape<'a>) -> Shape<'a> {
    let size = a.size.max(b.size);
    let is_same = match (&a.kind, &b.kind) {
        (Kind::Node(a), Kind::Node(b)) => std::ptr::eq(*a, *b),
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    if !is_same {
        return Shape::new(Kind::Dyn, size.max(a.weight()).max(b.weight()));
    }
    if a.weight() >= b.weight() { Shape { size, ..a } } else { Shape { size, ..b } }
}

fn must_be_bool(shape: &Shape<'_>) -> Result<(), Fault> {
    match shape.kind {
        Kind::Bool | Kind::Dyn => Ok(()),
        _ => Err(Fault::error("found no matching overload: a condition must be a bool")),
    }
}

fn undeclared(name: &str) -> Fault {
    Fault::error(format!("undeclared reference to '{name}'"))
}
