//! Value validations of a node or branch.

use serde_json::Value;

use super::branch::Junctors;
use super::keywords::Keywords;
use super::{Compiler, SCHEMA_PATTERNS_MAX};
use crate::structural::checks::{Bound, Checks, NumberChecks, Range, TextChecks};
use crate::structural::format::Format;
use crate::structural::number::Num;
use crate::structural::path::Path;
use crate::structural::pattern::Pattern;
use crate::structural::schema::Type;

impl Compiler {
    /// Reads what narrows values; `kind` decides what a format means.
    pub(super) fn checks(
        &mut self,
        keywords: &Keywords<'_>,
        kind: Option<Type>,
        junctors: Junctors<'_>,
    ) -> Checks {
        let format = keywords.text("format", self).and_then(|name| Format::new(kind, name));
        let (text_format, number_format) = match format {
            Some(Format::Text(..)) => (format, None),
            other => (None, other),
        };
        Checks {
            values: self.values(keywords),
            text: self.text_checks(keywords, text_format),
            number: self.number_checks(keywords, number_format),
            items: self.range(keywords, "minItems", "maxItems"),
            properties: self.range(keywords, "minProperties", "maxProperties"),
            required: keywords.texts("required", self).into(),
            branches: self.branches(keywords, junctors),
        }
    }

    fn values(&mut self, keywords: &Keywords<'_>) -> Option<Box<[Value]>> {
        let values = keywords.list("enum", self);
        if values.is_empty() { None } else { Some(values.into()) }
    }

    fn range(&mut self, keywords: &Keywords<'_>, min: &str, max: &str) -> Range {
        Range { min: keywords.count(min, self), max: keywords.count(max, self) }
    }

    fn text_checks(&mut self, keywords: &Keywords<'_>, format: Option<Format>) -> Option<Box<TextChecks>> {
        let length = self.range(keywords, "minLength", "maxLength");
        let pattern = keywords
            .text("pattern", self)
            .filter(|pattern| !pattern.is_empty())
            .and_then(|pattern| self.pattern(pattern, &keywords.path().child("pattern")));
        let is_empty = length == Range::default() && pattern.is_none() && format.is_none();
        if is_empty { None } else { Some(Box::new(TextChecks { length, pattern, format })) }
    }

    fn pattern(&mut self, source: &str, path: &Path<'_>) -> Option<Pattern> {
        if let Some(pattern) = self.patterns.get(source) {
            return Some(pattern.clone());
        }
        if self.patterns.len() == SCHEMA_PATTERNS_MAX {
            let why = format!("a schema may not have more than {SCHEMA_PATTERNS_MAX} different patterns");
            self.forbid(path, why);
            return None;
        }
        match Pattern::new(source) {
            Ok(pattern) => {
                self.patterns.insert(source.to_owned(), pattern.clone());
                Some(pattern)
            }
            Err(error) => {
                self.invalid(path, &Value::from(source), error.to_string());
                None
            }
        }
    }

    fn number_checks(
        &mut self,
        keywords: &Keywords<'_>,
        format: Option<Format>,
    ) -> Option<Box<NumberChecks>> {
        let minimum = self.bound(keywords, "minimum", "exclusiveMinimum");
        let maximum = self.bound(keywords, "maximum", "exclusiveMaximum");
        let multiple_of = self.number(keywords, "multipleOf");
        if multiple_of.is_some_and(|factor| !factor.is_positive()) {
            let factor = keywords.get("multipleOf").unwrap_or(&Value::Null);
            self.invalid(&keywords.path().child("multipleOf"), factor, "must be greater than 0");
        }
        let is_empty = minimum.is_none() && maximum.is_none() && multiple_of.is_none() && format.is_none();
        if is_empty { None } else { Some(Box::new(NumberChecks { minimum, maximum, multiple_of, format })) }
    }

    fn bound(&mut self, keywords: &Keywords<'_>, limit: &str, exclusive: &str) -> Option<Bound> {
        let exclusive = keywords.flag(exclusive, self);
        let limit = self.number(keywords, limit)?;
        Some(Bound { limit, exclusive })
    }

    fn number(&mut self, keywords: &Keywords<'_>, keyword: &str) -> Option<Num> {
        keywords.typed(keyword, "number", Value::as_number, self).map(Num::of)
    }
}
