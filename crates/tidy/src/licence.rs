//! Licence expressions, as in `Apache-2.0 OR (MIT AND BSD-3-Clause)`.
//!
//! `AND` binds tighter than `OR`, `WITH` tighter than both, and the old `MIT/Apache-2.0` means `OR`.
//! What an expression needs is on the allow list or it is not; there are no degrees.

/// Whether `expression` can be satisfied with licences from `allowed` alone.
///
/// # Errors
/// What is wrong with the expression. One that cannot be read permits nothing.
pub fn permits(expression: &str, allowed: &[String]) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut parser = Parser { words: spaced.split_whitespace().collect(), at: 0, allowed };
    let result = parser.any()?;
    match parser.next() {
        None => Ok(result),
        Some(word) => Err(format!("`{expression}`: `{word}` is not expected there")),
    }
}

struct Parser<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a [String],
}

/// Every alternative is read to its end, satisfied or not: an unreadable half makes the whole
/// unreadable.
impl<'a> Parser<'a> {
    fn any(&mut self) -> Result<bool, String> {
        let mut result = self.all()?;
        while self.take("OR") {
            result |= self.all()?;
        }
        Ok(result)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut result = self.one()?;
        while self.take("AND") {
            result &= self.one()?;
        }
        Ok(result)
    }

    fn one(&mut self) -> Result<bool, String> {
        match self.next() {
            Some("(") => {
                let result = self.any()?;
                if self.take(")") { Ok(result) } else { Err("a closing parenthesis is missing".to_owned()) }
            }
            Some(word) if !["AND", "OR", "WITH", ")"].contains(&word) => self.licence(word),
            Some(word) => Err(format!("a licence is missing before `{word}`")),
            None => Err("a licence is missing at the end".to_owned()),
        }
    }

    /// An exception only ever permits more, but it is still another text: it is allowed by its
    /// whole name or not at all.
    fn licence(&mut self, name: &str) -> Result<bool, String> {
        let whole = if self.take("WITH") {
            let exception = self.next().ok_or("an exception is missing after `WITH`")?;
            format!("{name} WITH {exception}")
        } else {
            name.to_owned()
        };
        Ok(self.allowed.contains(&whole))
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.words.get(self.at).copied();
        self.at += 1;
        word
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.words.get(self.at) == Some(&word);
        self.at += usize::from(found);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permitted(expression: &str) -> Result<bool, String> {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC"];
        permits(expression, &allowed.map(str::to_owned))
    }

    #[test]
    fn permits_what_the_list_satisfies() {
        for expression in [
            "MIT",
            "MIT OR GPL-3.0-only",
            "GPL-3.0-only OR MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only / ISC",
            "MIT AND ISC",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0-only",
            "(MIT OR GPL-3.0-only) AND ISC",
            "GPL-3.0-only AND MIT OR ISC",
        ] {
            assert_eq!(permitted(expression), Ok(true), "{expression}");
        }
    }

    #[test]
    fn refuses_what_the_list_does_not_satisfy() {
        for expression in [
            "GPL-3.0-only",
            "mit",
            "MIT AND GPL-3.0-only",
            "(MIT OR ISC) AND GPL-3.0-only",
            "GPL-3.0-only OR MPL-2.0 AND MIT",
            "MIT WITH LLVM-exception",
            "GPL-2.0-only WITH Classpath-exception-2.0",
        ] {
            assert_eq!(permitted(expression), Ok(false), "{expression}");
        }
    }

    #[test]
    fn refuses_what_it_cannot_read() {
        for expression in ["", "MIT OR", "(MIT", "MIT)", "AND MIT", "MIT ISC", "MIT WITH", "MIT OR (ISC"] {
            assert!(permitted(expression).is_err(), "{expression}");
        }
    }
}
