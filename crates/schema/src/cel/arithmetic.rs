//! Numbers, times and durations: calculating and comparing them.

use std::cmp::Ordering;

use concert_model::time::{SignedDuration, Timestamp};

use super::Fault;
use super::ast::Operator;
use super::value::Val;

pub(super) fn calculate<'a>(operator: Operator, left: &Val<'a>, right: &Val<'a>) -> Result<Val<'a>, Fault> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => integers(operator, *a, *b),
        (Val::Uint(a), Val::Uint(b)) => naturals(operator, *a, *b),
        (Val::Double(a), Val::Double(b)) => match operator {
            Operator::Add => Ok(Val::Double(a + b)),
            Operator::Subtract => Ok(Val::Double(a - b)),
            Operator::Multiply => Ok(Val::Double(a * b)),
            Operator::Divide => Ok(Val::Double(a / b)),
            _ => Err(Fault::overload()),
        },
        (Val::Span(a), Val::Span(b)) => match operator {
            Operator::Add => a.checked_add(*b).map(Val::Span).ok_or_else(Fault::overflow),
            Operator::Subtract => a.checked_sub(*b).map(Val::Span).ok_or_else(Fault::overflow),
            _ => Err(Fault::overload()),
        },
        (Val::Time(time), Val::Span(span)) if operator == Operator::Add => moved(*time, *span),
        (Val::Span(span), Val::Time(time)) if operator == Operator::Add => moved(*time, *span),
        (Val::Time(time), Val::Span(span)) if operator == Operator::Subtract => {
            moved(*time, span.checked_neg().ok_or_else(Fault::overflow)?)
        }
        (Val::Time(a), Val::Time(b)) if operator == Operator::Subtract => {
            let nanoseconds = a.as_nanosecond() - b.as_nanosecond();
            i64::try_from(nanoseconds).map(Val::Span).map_err(|_| Fault::overflow())
        }
        _ => Err(Fault::overload()),
    }
}

fn integers<'a>(operator: Operator, a: i64, b: i64) -> Result<Val<'a>, Fault> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Remainder if b == 0 => return Err(Fault::error("division by zero")),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
        _ => return Err(Fault::overload()),
    };
    result.map(Val::Int).ok_or_else(Fault::overflow)
}

fn naturals<'a>(operator: Operator, a: u64, b: u64) -> Result<Val<'a>, Fault> {
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide | Operator::Remainder if b == 0 => return Err(Fault::error("division by zero")),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
        _ => return Err(Fault::overload()),
    };
    result.map(Val::Uint).ok_or_else(Fault::overflow)
}

fn moved<'a>(time: Timestamp, nanoseconds: i64) -> Result<Val<'a>, Fault> {
    let moved = time.checked_add(SignedDuration::from_nanos(nanoseconds));
    moved.map(Val::Time).map_err(|_| Fault::overflow())
}

/// How two numbers of any kind compare; none when one is no number, some(none) for NaN.
pub(super) fn compare(left: &Val<'_>, right: &Val<'_>) -> Option<Option<Ordering>> {
    match (whole(left), whole(right)) {
        (Some(a), Some(b)) => Some(Some(a.cmp(&b))),
        (Some(a), None) => with_float(a, right).map(|order| order.map(Ordering::reverse)),
        (None, Some(b)) => with_float(b, left),
        (None, None) => match (left, right) {
            (Val::Double(a), Val::Double(b)) => Some(a.partial_cmp(b)),
            _ => None,
        },
    }
}

fn whole(value: &Val<'_>) -> Option<i128> {
    match value {
        Val::Int(value) => Some(i128::from(*value)),
        Val::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// How the float compares with the integer, exactly: casts saturate far beyond any integer of ours.
fn with_float(integer: i128, float: &Val<'_>) -> Option<Option<Ordering>> {
    let Val::Double(float) = float else { return None };
    if float.is_nan() {
        return Some(None);
    }
    let order = (float.trunc() as i128).cmp(&integer);
    Some(Some(order.then_with(|| float.fract().partial_cmp(&0.0).unwrap_or(Ordering::Equal))))
}
