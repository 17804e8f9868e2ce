//! Query parameters.
//!
//! A parameter that the operation does not know is refused: a client must not believe that it was heeded.

use std::borrow::Cow;

use super::path::percent_decode;
use crate::error::Error;

/// Parameters of every request. `timeout` is how long the client waits, which it sees to itself.
const ALWAYS: &[&str] = &["pretty", "timeout"];

/// The parameters of one request.
#[derive(Debug, Default)]
pub(crate) struct Params<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Params<'a> {
    /// Reads a query of at most `bytes_max` bytes.
    pub(crate) fn read(query: Option<&'a str>, bytes_max: usize) -> Result<Self, Error> {
        let query = query.unwrap_or_default();
        if query.len() > bytes_max {
            return Err(Error::bad_request(format!("the query is longer than {bytes_max} bytes")));
        }
        let mut params: Vec<(Cow<'a, str>, Cow<'a, str>)> = Vec::new();
        for pair in pairs(query) {
            let (name, value) = pair?;
            match params.iter().find(|(known, _)| *known == name) {
                None => params.push((name, value)),
                Some((_, same)) if *same == value => {}
                Some(_) => {
                    return Err(Error::bad_request(format!("query parameter {name:?} is given twice")));
                }
            }
        }
        Ok(Self(params))
    }

    /// Refuses all that is not in `known`.
    pub(crate) fn check(&self, known: &[&str]) -> Result<(), Error> {
        let is_known = |name: &str| known.contains(&name) || ALWAYS.contains(&name);
        match self.0.iter().find(|(name, _)| !is_known(name)) {
            None => Ok(()),
            Some((name, _)) => {
                Err(Error::bad_request(format!("query parameter {name:?} is not supported here")))
            }
        }
    }

    /// The names of all that were given.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// The text of a parameter; none if it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value).filter(|value| !value.is_empty())
    }

    /// A parameter that is true or false.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        let Some((_, text)) = self.0.iter().find(|(known, _)| known == name) else { return Ok(None) };
        let malformed = || format!("query parameter {name}={text:?} must be true or false");
        truth(text).map(Some).ok_or_else(|| Error::bad_request(malformed()))
    }

    /// A parameter that is true.
    pub(crate) fn is_set(&self, name: &str) -> Result<bool, Error> {
        Ok(self.flag(name)?.unwrap_or_default())
    }

    /// A parameter that is a whole number, not negative.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Error> {
        let parse = |text: &str| {
            let number = text.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| {
                Error::bad_request(format!("query parameter {name}={text:?} must be a whole number"))
            })
        };
        self.text(name).map(parse).transpose()
    }
}

/// Whether a query sets a flag, as [`Params::is_set`] will read it. One that cannot be read sets none.
pub(crate) fn sets(query: &str, flag: &str) -> bool {
    pairs(query).flatten().any(|(name, value)| name == flag && truth(&value) == Some(true))
}

/// Names and values, decoded.
fn pairs(query: &str) -> impl Iterator<Item = Result<(Cow<'_, str>, Cow<'_, str>), Error>> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decode(name)?, decode(value)?))
    })
}

/// To give a flag without a value is to set it, as on Kubernetes.
fn truth(text: &str) -> Option<bool> {
    match text {
        "" | "true" | "True" | "TRUE" | "1" | "t" | "T" => Some(true),
        "false" | "False" | "FALSE" | "0" | "f" | "F" => Some(false),
        _ => None,
    }
}

fn decode(text: &str) -> Result<Cow<'_, str>, Error> {
    if !text.contains(['%', '+']) {
        return Ok(Cow::Borrowed(text));
    }
    let spaced = text.bytes().map(|byte| if byte == b'+' { b' ' } else { byte });
    let decoded = percent_decode(spaced);
    decoded.map(Cow::Owned).ok_or_else(|| Error::bad_request("the query is not percent-encoded UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Params<'_>, Error> {
        Params::read(Some(query), 100)
    }

    #[test]
    fn values_are_decoded() {
        let params = read("labelSelector=a%3Db%2Cc+in+(d)&watch=1&limit=5&continue=").unwrap();
        assert_eq!(params.text("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!(params.flag("watch").unwrap(), Some(true));
        assert_eq!(params.number("limit").unwrap(), Some(5));
        assert_eq!(params.text("continue"), None);
        assert_eq!(params.text("none"), None);
    }

    #[test]
    fn a_flag_is_read_alike_before_and_after() {
        for query in ["watch", "watch=", "watch=1", "watch=T", "a=b&watch=true", "%77atch=tr%75e", "watch=0"]
            .into_iter()
            .chain(["watch=false", "watch=F", "watch=maybe", "awatch=1", "", "watch=%zz", "watch=%31"])
        {
            let is_read = read(query).and_then(|params| params.is_set("watch")).unwrap_or_default();
            assert_eq!(sets(query, "watch"), is_read, "{query}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let params = read("watch=maybe&limit=-1&pretty=true").unwrap();
        assert!(params.check(&["watch", "limit"]).is_ok());
        assert_eq!(
            params.check(&["watch"]).unwrap_err().message,
            "query parameter \"limit\" is not supported here"
        );
        assert!(params.flag("watch").is_err());
        assert!(params.number("limit").is_err());
        assert!(read("a=1&a=2").is_err());
        assert!(read("a=1&a=1").is_ok());
        assert!(read("a=%zz").is_err());
        assert!(read(&"a".repeat(101)).is_err());
    }
}
