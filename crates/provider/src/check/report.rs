//! What the checks came to.

use std::fmt;

use serde_json::{Value, json};

/// How one check went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Pass,
    /// Against the contract.
    Fail,
    /// Could not be tried.
    Skip,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Which check.
    pub name: &'static str,
    /// For which kind; empty if for none in particular.
    pub kind: String,
    /// How it went.
    pub verdict: Verdict,
    /// Why, where there is more to say.
    pub detail: String,
}

/// All checks, in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Name, version and protocol of the provider.
    pub provider: String,
    /// One for each check.
    pub outcomes: Vec<Outcome>,
}

impl Report {
    /// Whether nothing failed.
    pub fn is_ok(&self) -> bool {
        self.outcomes.iter().all(|it| it.verdict != Verdict::Fail)
    }

    /// How many went so.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.outcomes.iter().filter(|it| it.verdict == verdict).count()
    }

    /// For programs.
    pub fn to_json(&self) -> Value {
        let checks: Vec<_> = self
            .outcomes
            .iter()
            .map(|it| json!({"name": it.name, "kind": it.kind, "verdict": word(it.verdict), "detail": it.detail}))
            .collect();
        json!({"provider": self.provider, "ok": self.is_ok(), "checks": checks})
    }

    pub(super) fn pass(&mut self, name: &'static str, kind: &str) {
        self.add(name, kind, Verdict::Pass, String::new());
    }

    pub(super) fn fail(&mut self, name: &'static str, kind: &str, detail: String) {
        self.add(name, kind, Verdict::Fail, detail);
    }

    pub(super) fn skip(&mut self, name: &'static str, kind: &str, detail: &str) {
        self.add(name, kind, Verdict::Skip, detail.to_owned());
    }

    fn add(&mut self, name: &'static str, kind: &str, verdict: Verdict, detail: String) {
        self.outcomes.push(Outcome { name, kind: kind.to_owned(), verdict, detail });
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail => "fail",
        Verdict::Skip => "skip",
    }
}

/// One line for each check, then a sum.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for it in &self.outcomes {
            write!(f, "{}  {}", word(it.verdict), it.name)?;
            if !it.kind.is_empty() {
                write!(f, "  [{}]", it.kind)?;
            }
            if !it.detail.is_empty() {
                write!(f, "  {}", it.detail)?;
            }
            writeln!(f)?;
        }
        let [pass, fail, skip] = [Verdict::Pass, Verdict::Fail, Verdict::Skip].map(|it| self.count(it));
        write!(f, "{}: {pass} passed, {fail} failed, {skip} skipped", self.provider)
    }
}
