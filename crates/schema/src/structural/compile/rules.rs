//! CEL rules: read and checked for form. The expressions are compiled when the whole schema is there.

use serde_json::Value;

use super::Compiler;
use super::keywords::Keywords;
use crate::structural::path::Path;
use crate::structural::rule::{Reason, ValidationRule};

const KEYWORDS: [&str; 6] =
    ["fieldPath", "message", "messageExpression", "optionalOldSelf", "reason", "rule"];

impl Compiler {
    pub(super) fn rules(&mut self, keywords: &Keywords<'_>) -> Vec<ValidationRule> {
        const VALIDATIONS: &str = "x-kubernetes-validations";
        let list = keywords.list(VALIDATIONS, self);
        let place = keywords.path().child(VALIDATIONS);
        let mut rules = Vec::with_capacity(list.len());
        for (index, source) in list.iter().enumerate() {
            rules.extend(self.rule(source, &place.index(index)));
        }
        rules
    }

    fn rule(&mut self, source: &Value, path: &Path<'_>) -> Option<ValidationRule> {
        let keywords = Keywords::of_rule(source, path, &KEYWORDS, self)?;
        let mut text = |keyword| keywords.text(keyword, self).map(str::to_owned);
        let rule = ValidationRule {
            rule: text("rule").unwrap_or_default(),
            message: text("message"),
            message_expression: text("messageExpression"),
            field_path: text("fieldPath"),
            reason: Reason::default(),
            optional_old_self: None,
        };
        let reasons = Reason::ALL.map(|reason| (reason.name(), reason));
        let reason = keywords.one_of("reason", &reasons, self).unwrap_or_default();
        let optional_old_self = keywords.typed("optionalOldSelf", "boolean", Value::as_bool, self);
        self.check_rule(&rule, path);
        Some(ValidationRule { reason, optional_old_self, ..rule })
    }

    fn check_rule(&mut self, rule: &ValidationRule, path: &Path<'_>) {
        let has_line_breaks = |text: &str| text.trim().contains(['\n', '\r']);
        if rule.rule.trim().is_empty() {
            self.require(&path.child("rule"), "rule is not specified");
        }
        let texts = [
            ("message", &rule.message),
            ("messageExpression", &rule.message_expression),
            ("fieldPath", &rule.field_path),
        ];
        for (keyword, text) in texts {
            let Some(text) = text else { continue };
            let shown = Value::from(text.as_str());
            if text.trim().is_empty() {
                let why = format!("{keyword} must be non-empty if specified");
                self.invalid(&path.child(keyword), &shown, why);
            } else if keyword != "messageExpression" && has_line_breaks(text) {
                let why = format!("{keyword} must not contain line breaks");
                self.invalid(&path.child(keyword), &shown, why);
            }
        }
        if has_line_breaks(&rule.rule) && rule.message.is_none() {
            self.require(&path.child("message"), "message must be specified if rule contains line breaks");
        }
    }
}
