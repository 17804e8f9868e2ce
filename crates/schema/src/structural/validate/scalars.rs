//! Checks of texts, numbers and counts.

use serde_json::{Number, Value};

use super::report::Report;
use super::words::{self, Counted};
use crate::structural::checks::{Checks, NumberChecks, Range, TextChecks};
use crate::structural::format::Format;
use crate::structural::number::Num;
use crate::structural::path::Path;
use crate::structural::schema::Type;

pub(super) fn check_text(checks: &Checks, text: &str, path: &Path<'_>, report: &mut Report) {
    let Some(TextChecks { length, pattern, format }) = checks.text.as_deref() else { return };
    check_length(*length, text, path, report);
    if let Some(pattern) = pattern
        && !pattern.is_match(text)
    {
        report.add(|| words::no_match(path, pattern.source(), text));
    }
    if let Some(format) = format
        && !format.accepts_text(text)
    {
        report.add(|| words::wrong_format(path, format.name(), text));
    }
}

/// Counts characters, and only where the number of bytes leaves the question open.
fn check_length(length: Range, text: &str, path: &Path<'_>, report: &mut Report) {
    if let Some(max) = length.max
        && text.len() as u64 > max
        && text.chars().count() as u64 > max
    {
        report.add(|| words::too_long(path, max));
    }
    if let Some(min) = length.min
        && ((text.len() as u64) < min || (text.chars().count() as u64) < min)
    {
        report.add(|| words::too_short(path, min, text));
    }
}

pub(super) fn check_number(checks: &Checks, number: &Number, path: &Path<'_>, report: &mut Report) {
    let Some(NumberChecks { minimum, maximum, multiple_of, format }) = checks.number.as_deref() else {
        return;
    };
    let num = Num::of(number);
    let value = || Value::Number(number.clone());
    if let Some(format) = format
        && !format.accepts_number(num)
    {
        let kind = if matches!(format, Format::Float) { Type::Number } else { Type::Integer };
        report.add(|| words::wrong_number_format(path, kind.name(), format.name(), &value()));
    }
    if let Some(bound) = *minimum
        && !(num > bound.limit || (!bound.exclusive && num == bound.limit))
    {
        report.add(|| words::too_small(path, bound, &value()));
    }
    if let Some(bound) = *maximum
        && !(num < bound.limit || (!bound.exclusive && num == bound.limit))
    {
        report.add(|| words::too_large(path, bound, &value()));
    }
    if let Some(factor) = *multiple_of
        && !num.is_multiple_of(factor)
    {
        report.add(|| words::no_multiple(path, factor, &value()));
    }
}

pub(super) fn check_count(range: Range, found: usize, what: Counted, path: &Path<'_>, report: &mut Report) {
    if let Some(max) = range.max
        && found as u64 > max
    {
        report.add(|| words::too_many(path, found, max));
    }
    if let Some(min) = range.min
        && (found as u64) < min
    {
        report.add(|| words::too_few(path, what, found, min));
    }
}
