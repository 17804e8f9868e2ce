//! Versions: `semver()` and what they can be asked, as semver.org 2.0.0 orders them.

use std::cmp::Ordering;

use super::Fault;
use super::value::Val;

/// A version. Build metadata is checked and then forgotten: it has no place in the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    numbers: [u64; 3],
    before: Vec<Part>,
}

/// One piece of what stands after the dash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    // Numbers come before words.
    Number(u64),
    Word(String),
}

impl Version {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
        if build.is_some_and(|build| !build.split('.').all(is_word)) {
            return None;
        }
        let (core, before) = text.split_once('-').map_or((text, None), |(core, it)| (core, Some(it)));
        let mut parts = core.split('.');
        let mut next = || number(parts.next()?);
        let numbers = [next()?, next()?, next()?];
        if parts.next().is_some() {
            return None;
        }
        let before = match before {
            None => Vec::new(),
            Some(before) => before.split('.').map(part).collect::<Option<_>>()?,
        };
        Some(Self { numbers, before })
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-')
}

/// Digits without leading zeros.
fn number(text: &str) -> Option<u64> {
    let is_plain = text.bytes().all(|it| it.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| is_plain)
}

fn part(text: &str) -> Option<Part> {
    if !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit()) {
        return number(text).map(Part::Number);
    }
    is_word(text).then(|| Part::Word(text.to_owned()))
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        // Whatever comes before a release has more to say than the release, and is smaller.
        let before = match (self.before.is_empty(), other.before.is_empty()) {
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            _ => self.before.cmp(&other.before),
        };
        self.numbers.cmp(&other.numbers).then(before)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(super) fn of_version<'a>(name: &str, version: &Version, rest: &[Val<'a>]) -> Result<Val<'a>, Fault> {
    let number = |place: usize| Ok(Val::Int(i64::try_from(version.numbers[place]).unwrap_or(i64::MAX)));
    match (name, rest) {
        ("major", []) => number(0),
        ("minor", []) => number(1),
        ("patch", []) => number(2),
        ("isLessThan", [Val::Version(other)]) => Ok(Val::Bool(*version < **other)),
        ("isGreaterThan", [Val::Version(other)]) => Ok(Val::Bool(*version > **other)),
        ("compareTo", [Val::Version(other)]) => Ok(Val::Int(version.cmp(other) as i64)),
        _ => Err(Fault::overload()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_the_standard_has_it() {
        let texts = [
            "0.0.1",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "2.0.0",
        ];
        let versions: Vec<Version> = texts.iter().map(|it| Version::parse(it).unwrap()).collect();
        assert!(versions.windows(2).all(|it| it[0] < it[1]));
        assert_eq!(Version::parse("1.0.0+a.1"), Version::parse("1.0.0+b"));
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for bad in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "v1.2.3",
            "01.2.3",
            "1.02.3",
            "1.2.3-",
            "1.2.3-01",
            "1.2.3-a..b",
            "1.2.3+",
            "1.2.3-ä",
            "1.2.x",
            " 1.2.3",
            "+1.2.3",
        ] {
            assert_eq!(Version::parse(bad), None, "{bad:?}");
        }
        assert!(Version::parse("1.2.3-0a.-.x--y+001").is_some());
    }
}
