//! What the arguments of a command mean: KIND, KIND NAME…, KIND/NAME…, KIND,KIND.

use crate::cli::Advice;

/// One kind by the word for it, and one of its objects or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub kind: String,
    pub name: Option<String>,
}

const FORMS: &str = "write KIND, KIND NAME or KIND/NAME, as in: concert get buckets, concert get bucket/a";

impl Target {
    /// Everything the arguments mean.
    pub fn all(arguments: &[String]) -> Result<Vec<Self>, Advice> {
        let of =
            |kind: &str, name: Option<&str>| Self { kind: kind.to_owned(), name: name.map(str::to_owned) };
        let Some((first, rest)) = arguments.split_first() else {
            return Err(Advice::new("no kind is named", FORMS));
        };
        if first.contains('/') {
            let split = |argument: &String| match argument.split_once('/') {
                Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
                    Ok(of(kind, Some(name)))
                }
                _ => Err(Advice::new(format!("{argument} is not KIND/NAME"), FORMS)),
            };
            return arguments.iter().map(split).collect();
        }
        if let Some(mixed) = rest.iter().find(|it| it.contains('/')) {
            return Err(Advice::new(format!("{mixed} names a kind again"), FORMS));
        }
        let kinds: Vec<&str> = first.split(',').filter(|it| !it.is_empty()).collect();
        match (&kinds[..], rest) {
            ([], _) => Err(Advice::new("no kind is named", FORMS)),
            (kinds, []) => Ok(kinds.iter().map(|it| of(it, None)).collect()),
            ([kind], names) => Ok(names.iter().map(|it| of(kind, Some(it))).collect()),
            (_, _) => Err(Advice::new("names belong to one kind", FORMS)),
        }
    }

    /// The one object the arguments mean.
    pub fn one(arguments: &[String]) -> Result<(String, String), Advice> {
        match &Self::all(arguments)?[..] {
            [Self { kind, name: Some(name) }] => Ok((kind.clone(), name.clone())),
            _ => Err(Advice::new("one object is to be named", "write KIND/NAME, as in: bucket/a")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<String, Advice> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let show = |it: Target| format!("{}:{}", it.kind, it.name.unwrap_or_default());
        Target::all(&words).map(|all| all.into_iter().map(show).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn all_forms_are_understood() {
        for (line, meaning) in [
            ("buckets", "buckets:"),
            ("buckets,networks", "buckets: networks:"),
            ("bucket a b", "bucket:a bucket:b"),
            ("bucket/a network/b", "bucket:a network:b"),
            ("buckets.v1.cloud.dev/a", "buckets.v1.cloud.dev:a"),
        ] {
            assert_eq!(parse(line).unwrap(), meaning);
        }
        for line in ["", ",", "bucket/", "/a", "bucket/a b", "bucket a/b", "a,b c", "a/b/c"] {
            assert!(parse(line).unwrap_err().hint.contains("KIND/NAME"), "{line}");
        }
    }

    #[test]
    fn one_object_is_one_object() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(Target::one(&words("bucket a")).unwrap(), ("bucket".into(), "a".into()));
        assert!(Target::one(&words("bucket")).is_err() && Target::one(&words("bucket a b")).is_err());
    }
}
