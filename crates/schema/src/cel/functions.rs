//! The functions rules may call.
//!
//! [`signature`] is what compiling needs, [`call`] what running does. What works through a text or a list
//! is charged before it does.

use std::cmp::Ordering;

use concert_model::time::{self, Timestamp};

use super::Fault;
use super::eval::Run;
use super::net::{self, Cidr};
use super::quantity::Quantity;
use super::semver::{self, Version};
use super::span;
use super::value::{Text, Val};

/// What a function gives back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Returns {
    Bool,
    Int,
    Uint,
    Double,
    /// A text no longer than the arguments together.
    Text,
    /// A text that may be the product of two arguments.
    LongText,
    Texts,
    Time,
    Span,
    Quantity,
    Ip,
    Cidr,
    Version,
    Type,
    /// What the first argument is.
    Same,
    /// What the elements of the first argument are.
    Element,
    /// What is in the optional first argument.
    Inner,
    Maybe,
}

/// Name, whether it is a method, fewest and most arguments with the one in front of the dot.
type Signature = (&'static str, bool, usize, usize, Returns);

const SIGNATURES: &[Signature] = &[
    ("size", false, 1, 1, Returns::Int),
    ("size", true, 1, 1, Returns::Int),
    ("int", false, 1, 1, Returns::Int),
    ("uint", false, 1, 1, Returns::Uint),
    ("double", false, 1, 1, Returns::Double),
    ("string", false, 1, 1, Returns::Text),
    ("bool", false, 1, 1, Returns::Bool),
    ("type", false, 1, 1, Returns::Type),
    ("dyn", false, 1, 1, Returns::Same),
    ("duration", false, 1, 1, Returns::Span),
    ("timestamp", false, 1, 1, Returns::Time),
    ("quantity", false, 1, 1, Returns::Quantity),
    ("isQuantity", false, 1, 1, Returns::Bool),
    ("ip", false, 1, 1, Returns::Ip),
    ("isIP", false, 1, 1, Returns::Bool),
    ("ip.isCanonical", false, 1, 1, Returns::Bool),
    ("family", true, 1, 1, Returns::Int),
    ("isUnspecified", true, 1, 1, Returns::Bool),
    ("isLoopback", true, 1, 1, Returns::Bool),
    ("isLinkLocalMulticast", true, 1, 1, Returns::Bool),
    ("isLinkLocalUnicast", true, 1, 1, Returns::Bool),
    ("isGlobalUnicast", true, 1, 1, Returns::Bool),
    ("cidr", false, 1, 1, Returns::Cidr),
    ("isCIDR", false, 1, 1, Returns::Bool),
    ("ip", true, 1, 1, Returns::Ip),
    ("masked", true, 1, 1, Returns::Cidr),
    ("prefixLength", true, 1, 1, Returns::Int),
    ("containsIP", true, 2, 2, Returns::Bool),
    ("containsCIDR", true, 2, 2, Returns::Bool),
    ("semver", false, 1, 1, Returns::Version),
    ("isSemver", false, 1, 1, Returns::Bool),
    ("major", true, 1, 1, Returns::Int),
    ("minor", true, 1, 1, Returns::Int),
    ("patch", true, 1, 1, Returns::Int),
    ("optional.of", false, 1, 1, Returns::Maybe),
    ("optional.none", false, 0, 0, Returns::Maybe),
    ("sets.contains", false, 2, 2, Returns::Bool),
    ("sets.equivalent", false, 2, 2, Returns::Bool),
    ("sets.intersects", false, 2, 2, Returns::Bool),
    ("contains", true, 2, 2, Returns::Bool),
    ("startsWith", true, 2, 2, Returns::Bool),
    ("endsWith", true, 2, 2, Returns::Bool),
    ("lowerAscii", true, 1, 1, Returns::Text),
    ("upperAscii", true, 1, 1, Returns::Text),
    ("trim", true, 1, 1, Returns::Text),
    ("reverse", true, 1, 1, Returns::Same),
    ("replace", true, 3, 4, Returns::LongText),
    ("split", true, 2, 3, Returns::Texts),
    ("join", true, 1, 2, Returns::LongText),
    ("substring", true, 2, 3, Returns::Text),
    ("charAt", true, 2, 2, Returns::Text),
    ("indexOf", true, 2, 3, Returns::Int),
    ("lastIndexOf", true, 2, 2, Returns::Int),
    ("isSorted", true, 1, 1, Returns::Bool),
    ("sum", true, 1, 1, Returns::Element),
    ("min", true, 1, 1, Returns::Element),
    ("max", true, 1, 1, Returns::Element),
    ("getFullYear", true, 1, 1, Returns::Int),
    ("getMonth", true, 1, 1, Returns::Int),
    ("getDate", true, 1, 1, Returns::Int),
    ("getDayOfMonth", true, 1, 1, Returns::Int),
    ("getDayOfYear", true, 1, 1, Returns::Int),
    ("getDayOfWeek", true, 1, 1, Returns::Int),
    ("getHours", true, 1, 1, Returns::Int),
    ("getMinutes", true, 1, 1, Returns::Int),
    ("getSeconds", true, 1, 1, Returns::Int),
    ("getMilliseconds", true, 1, 1, Returns::Int),
    ("isGreaterThan", true, 2, 2, Returns::Bool),
    ("isLessThan", true, 2, 2, Returns::Bool),
    ("compareTo", true, 2, 2, Returns::Int),
    ("asInteger", true, 1, 1, Returns::Int),
    ("isInteger", true, 1, 1, Returns::Bool),
    ("asApproximateFloat", true, 1, 1, Returns::Double),
    ("sign", true, 1, 1, Returns::Int),
    ("add", true, 2, 2, Returns::Quantity),
    ("sub", true, 2, 2, Returns::Quantity),
    ("hasValue", true, 1, 1, Returns::Bool),
    ("value", true, 1, 1, Returns::Inner),
    ("orValue", true, 2, 2, Returns::Inner),
    ("or", true, 2, 2, Returns::Same),
    ("contains", false, 2, 2, Returns::Bool),
    ("startsWith", false, 2, 2, Returns::Bool),
    ("endsWith", false, 2, 2, Returns::Bool),
    ("isSorted", false, 1, 1, Returns::Bool),
    ("sum", false, 1, 1, Returns::Element),
    ("min", false, 1, 1, Returns::Element),
    ("max", false, 1, 1, Returns::Element),
];

/// What the function gives back; none when there is no such function.
pub(super) fn signature(name: &str, is_method: bool, arguments: usize) -> Option<Returns> {
    let fits = |&&(known, method, least, most, _): &&Signature| {
        known == name && method == is_method && (least..=most).contains(&arguments)
    };
    SIGNATURES.iter().find(fits).map(|(.., returns)| *returns)
}

/// The type that a name stands for, as in `type(x) == string`.
pub(super) fn type_named(name: &str) -> Option<&'static str> {
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"]
        .into_iter()
        .find(|known| *known == name)
}

pub(super) fn call<'a>(run: &mut Run<'a>, name: &str, arguments: Vec<Val<'a>>) -> Result<Val<'a>, Fault> {
    for argument in &arguments {
        if let Val::Text(text) = argument {
            run.charge_text(text.as_str())?;
        }
    }
    match (name, &arguments[..]) {
        ("size", [value]) => {
            let size = value.size().ok_or_else(Fault::overload)?;
            Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX)))
        }
        ("dyn", [value]) => Ok(value.clone()),
        ("type", [value]) => Ok(Val::Type(value.type_name())),
        ("int" | "uint" | "double" | "string" | "bool" | "duration" | "timestamp", [value]) => {
            convert(name, value)
        }
        ("quantity" | "semver" | "cidr", [value]) => convert(name, value),
        ("ip", [value @ Val::Text(_)]) => convert(name, value),
        ("isIP", [Val::Text(text)]) => Ok(Val::Bool(net::parse_ip(text.as_str()).is_some())),
        ("isCIDR", [Val::Text(text)]) => Ok(Val::Bool(Cidr::parse(text.as_str()).is_some())),
        ("isSemver", [Val::Text(text)]) => Ok(Val::Bool(Version::parse(text.as_str()).is_some())),
        ("ip.isCanonical", [Val::Text(text)]) => net::is_canonical(text.as_str()).map(Val::Bool),
        ("isQuantity", [Val::Text(text)]) => Ok(Val::Bool(Quantity::parse(text.as_str()).is_some())),
        ("optional.none", []) => Ok(Val::maybe(None)),
        ("optional.of", [value]) => Ok(Val::maybe(Some(value.clone()))),
        ("hasValue", [Val::Maybe(value)]) => Ok(Val::Bool(value.is_some())),
        ("value", [Val::Maybe(value)]) => {
            let value = value.as_deref().cloned();
            value.ok_or_else(|| Fault::error("optional.none() dereference"))
        }
        ("orValue", [Val::Maybe(value), other]) => Ok(value.as_deref().unwrap_or(other).clone()),
        ("or", [Val::Maybe(value), other]) => {
            Ok(if value.is_some() { Val::Maybe(value.clone()) } else { other.clone() })
        }
        ("sets.contains" | "sets.equivalent" | "sets.intersects", [a, b]) => sets(run, name, a, b),
        (_, [list, rest @ ..]) if list.is_list() => of_list(run, name, list, rest),
        (_, [Val::Text(text), rest @ ..]) => super::texts::of_text(run, name, text.as_str(), rest),
        (_, [Val::Quantity(quantity), rest @ ..]) => of_quantity(name, *quantity, rest),
        (_, [Val::Ip(address), rest @ ..]) => net::of_ip(name, *address, rest),
        (_, [Val::Cidr(network), rest @ ..]) => net::of_cidr(name, *network, rest),
        (_, [Val::Version(version), rest @ ..]) => semver::of_version(name, version, rest),
        (_, [Val::Time(at)]) => of_time(name, *at),
        (_, [Val::Span(span)]) => of_span(name, *span),
        _ => Err(Fault::overload()),
    }
}

fn convert<'a>(name: &str, value: &Val<'a>) -> Result<Val<'a>, Fault> {
    let bad = || Fault::error(format!("type conversion error from '{}' to '{name}'", value.type_name()));
    let converted = match (name, value) {
        ("int", Val::Int(_))
        | ("uint", Val::Uint(_))
        | ("double", Val::Double(_))
        | ("string", Val::Text(_)) => Some(value.clone()),
        ("bool", Val::Bool(_)) | ("duration", Val::Span(_)) | ("timestamp", Val::Time(_)) => {
            Some(value.clone())
        }
        ("int", Val::Uint(number)) => i64::try_from(*number).ok().map(Val::Int),
        ("int", Val::Double(number)) => {
            // Exclusive: 2^63 is a float and no i64.
            let fits = number.is_finite() && number.abs() < 9_223_372_036_854_775_808.0;
            fits.then_some(Val::Int(*number as i64))
        }
        ("int", Val::Text(text)) => text.as_str().parse().ok().map(Val::Int),
        ("int", Val::Time(at)) => Some(Val::Int(at.as_second())),
        ("uint", Val::Int(number)) => u64::try_from(*number).ok().map(Val::Uint),
        ("uint", Val::Text(text)) => text.as_str().parse().ok().map(Val::Uint),
        ("double", Val::Int(number)) => Some(Val::Double(*number as f64)),
        ("double", Val::Uint(number)) => Some(Val::Double(*number as f64)),
        ("double", Val::Text(text)) => text.as_str().parse().ok().map(Val::Double),
        ("string", Val::Int(number)) => Some(Val::text(number.to_string())),
        ("string", Val::Uint(number)) => Some(Val::text(number.to_string())),
        ("string", Val::Double(number)) => Some(Val::text(number.to_string())),
        ("string", Val::Bool(flag)) => Some(Val::text(flag.to_string())),
        ("string", Val::Time(at)) => Some(Val::text(at.to_string())),
        ("string", Val::Span(nanoseconds)) => Some(Val::text(span::print(*nanoseconds))),
        ("bool", Val::Text(text)) => match text.as_str() {
            "true" | "True" | "TRUE" | "t" | "1" => Some(Val::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "0" => Some(Val::Bool(false)),
            _ => None,
        },
        ("duration", Val::Text(text)) => span::parse(text.as_str()).map(Val::Span),
        ("timestamp", Val::Text(text)) => time::parse(text.as_str()).map(Val::Time),
        ("timestamp", Val::Int(seconds)) => Timestamp::from_second(*seconds).ok().map(Val::Time),
        ("string", Val::Ip(address)) => Some(Val::text(address.to_string())),
        ("string", Val::Cidr(network)) => Some(Val::text(network.to_string())),
        ("quantity", Val::Text(text)) => Quantity::parse(text.as_str()).map(Val::Quantity),
        ("ip", Val::Text(text)) => net::parse_ip(text.as_str()).map(Val::Ip),
        ("cidr", Val::Text(text)) => Cidr::parse(text.as_str()).map(Val::Cidr),
        ("semver", Val::Text(text)) => Version::parse(text.as_str()).map(|it| Val::Version(it.into())),
        _ => None,
    };
    converted.ok_or_else(bad)
}

fn sets<'a>(run: &mut Run<'a>, name: &str, a: &Val<'a>, b: &Val<'a>) -> Result<Val<'a>, Fault> {
    let contains = |run: &mut Run<'a>, a: &Val<'a>, b: &Val<'a>| -> Result<usize, Fault> {
        let mut found = 0;
        for value in b.range().filter(|_| b.is_list()).ok_or_else(Fault::overload)? {
            run.charge(1)?;
            found += usize::from(run.is_in(&value, a)?);
        }
        Ok(found)
    };
    let found = contains(run, a, b)?;
    let has_all = Some(found) == b.size();
    Ok(Val::Bool(match name {
        "sets.intersects" => found > 0,
        "sets.contains" => has_all,
        _ => has_all && Some(contains(run, b, a)?) == a.size(),
    }))
}

fn of_list<'a>(run: &mut Run<'a>, name: &str, list: &Val<'a>, rest: &[Val<'a>]) -> Result<Val<'a>, Fault> {
    run.charge(list.size().unwrap_or(0))?;
    let elements = list.range().unwrap_or_default();
    match (name, rest) {
        ("isSorted", []) => {
            for pair in elements.windows(2) {
                if run.compare(&pair[0], &pair[1])?.is_none_or(Ordering::is_gt) {
                    return Ok(Val::Bool(false));
                }
            }
            Ok(Val::Bool(true))
        }
        ("min" | "max", []) => {
            let mut elements = elements.into_iter();
            let mut best =
                elements.next().ok_or_else(|| Fault::error(format!("{name} called on empty list")))?;
            for element in elements {
                let order = run.compare(&element, &best)?;
                if order.is_some_and(|order| if name == "min" { order.is_lt() } else { order.is_gt() }) {
                    best = element;
                }
            }
            Ok(best)
        }
        ("sum", []) => {
            let mut elements = elements.into_iter();
            let Some(first) = elements.next() else { return Ok(Val::Int(0)) };
            elements.try_fold(first, |sum, element| {
                super::arithmetic::calculate(super::ast::Operator::Add, &sum, &element)
            })
        }
        ("reverse", []) => Ok(Val::list(elements.into_iter().rev().collect())),
        ("indexOf" | "lastIndexOf", [value]) => {
            let mut found = -1;
            for (index, element) in elements.iter().enumerate() {
                if run.is_equal(element, value)? {
                    found = i64::try_from(index).unwrap_or(i64::MAX);
                    if name == "indexOf" {
                        break;
                    }
                }
            }
            Ok(Val::Int(found))
        }
        ("join", []) => join(run, &elements, ""),
        ("join", [Val::Text(separator)]) => join(run, &elements, separator.as_str()),
        _ => Err(Fault::overload()),
    }
}

fn join<'a>(run: &mut Run<'a>, elements: &[Val<'a>], separator: &str) -> Result<Val<'a>, Fault> {
    let mut joined = String::new();
    for (index, element) in elements.iter().enumerate() {
        let Val::Text(text) = element else { return Err(Fault::overload()) };
        run.charge((text.as_str().len() + separator.len()) / 10 + 1)?;
        if index > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text.as_str());
    }
    Ok(Val::text(joined))
}

fn of_quantity<'a>(name: &str, quantity: Quantity, rest: &[Val<'a>]) -> Result<Val<'a>, Fault> {
    let other = match rest {
        [] => None,
        [Val::Quantity(other)] => Some(*other),
        [Val::Int(other)] if matches!(name, "add" | "sub") => Some(Quantity::from_int(*other)),
        _ => return Err(Fault::overload()),
    };
    match (name, other) {
        ("isGreaterThan", Some(other)) => Ok(Val::Bool(quantity > other)),
        ("isLessThan", Some(other)) => Ok(Val::Bool(quantity < other)),
        ("compareTo", Some(other)) => Ok(Val::Int(quantity.cmp(&other) as i64)),
        ("add", Some(other)) => quantity.checked_add(other).map(Val::Quantity).ok_or_else(Fault::overflow),
        ("sub", Some(other)) => quantity.checked_sub(other).map(Val::Quantity).ok_or_else(Fault::overflow),
        ("sign", None) => Ok(Val::Int(quantity.sign())),
        ("isInteger", None) => Ok(Val::Bool(quantity.as_integer().is_some())),
        ("asInteger", None) => {
            quantity.as_integer().map(Val::Int).ok_or_else(|| Fault::error("cannot convert value to integer"))
        }
        ("asApproximateFloat", None) => Ok(Val::Double(quantity.as_float())),
        _ => Err(Fault::overload()),
    }
}

fn of_time<'a>(name: &str, at: Timestamp) -> Result<Val<'a>, Fault> {
    // How it is printed, and what to subtract: CEL counts some from zero.
    let (format, less) = match name {
        "getFullYear" => ("%Y", 0),
        "getMonth" => ("%m", 1),
        "getDate" => ("%d", 0),
        "getDayOfMonth" => ("%d", 1),
        "getDayOfYear" => ("%j", 1),
        "getDayOfWeek" => ("%w", 0),
        "getHours" => ("%H", 0),
        "getMinutes" => ("%M", 0),
        "getSeconds" => ("%S", 0),
        "getMilliseconds" => return Ok(Val::Int(i64::from(at.subsec_millisecond()))),
        _ => return Err(Fault::overload()),
    };
    let number: i64 = at.strftime(format).to_string().parse().map_err(|_| Fault::overflow())?;
    Ok(Val::Int(number - less))
}

fn of_span<'a>(name: &str, nanoseconds: i64) -> Result<Val<'a>, Fault> {
    let unit = match name {
        "getHours" => 3_600_000_000_000,
        "getMinutes" => 60_000_000_000,
        "getSeconds" => 1_000_000_000,
        "getMilliseconds" => return Ok(Val::Int(nanoseconds / 1_000_000 % 1_000)),
        _ => return Err(Fault::overload()),
    };
    Ok(Val::Int(nanoseconds / unit))
}

/// A piece of a text that is not borrowed from the object.
pub(super) fn piece<'a>(text: &str) -> Val<'a> {
    Val::Text(Text::Shared(text.into()))
}
