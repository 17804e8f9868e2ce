//! What a path speaks of.
//!
//! Nothing is looked up here: the shape of a path alone says which part of it is a group, a namespace, a
//! resource and a name.

use std::borrow::Cow;

/// What is behind a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// `/`: all paths.
    Root,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health(&'a str),
    /// `/api`.
    CoreVersions,
    /// `/apis`.
    Groups,
    /// `/apis/GROUP`.
    Group(&'a str),
    /// `/api/v1` or `/apis/GROUP/VERSION`: its resources, by `apiVersion`.
    Resources(&'a str),
    /// `/openapi/v2`.
    OpenApiTwo,
    /// `/openapi/v3`.
    OpenApi,
    /// `/openapi/v3/apis/GROUP/VERSION`, by `apiVersion`.
    OpenApiDocument(&'a str),
    /// Objects.
    Objects(Address<'a>),
}

/// One object, or all of one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address<'a> {
    /// `v1` or `GROUP/VERSION`.
    pub(crate) api_version: &'a str,
    /// None if the path names none.
    pub(crate) namespace: Option<Cow<'a, str>>,
    /// The plural.
    pub(crate) resource: &'a str,
    /// None for all of them.
    pub(crate) name: Option<Cow<'a, str>>,
    /// `status`; empty for the object itself.
    pub(crate) subresource: &'a str,
}

impl Address<'_> {
    /// The group of the API; empty for the core.
    pub(crate) fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// Reads a path; none if nothing can be behind it.
pub(crate) fn parse(path: &str) -> Option<Target<'_>> {
    let path = path.strip_prefix('/')?;
    let path = path.strip_suffix('/').unwrap_or(path);
    let (first, rest) = split(path);
    match (first, rest) {
        ("", "") => Some(Target::Root),
        ("version", "") => Some(Target::Version),
        ("healthz" | "livez" | "readyz", "") => Some(Target::Health(first)),
        ("api", "") => Some(Target::CoreVersions),
        ("apis", "") => Some(Target::Groups),
        ("openapi", rest) => open_api(rest),
        ("api", rest) => {
            let (version, rest) = split(rest);
            if rest.is_empty() { Some(Target::Resources(version)) } else { objects(version, rest) }
        }
        ("apis", rest) => {
            let (group, after) = split(rest);
            if after.is_empty() {
                return Some(Target::Group(group));
            }
            let (version, objects_path) = split(after);
            let api_version = &rest[..group.len() + 1 + version.len()];
            if objects_path.is_empty() {
                return Some(Target::Resources(api_version));
            }
            objects(api_version, objects_path)
        }
        _ => None,
    }
}

fn open_api(rest: &str) -> Option<Target<'_>> {
    if rest == "v2" {
        return Some(Target::OpenApiTwo);
    }
    let document = rest.strip_prefix("v3")?;
    if document.is_empty() {
        return Some(Target::OpenApi);
    }
    let document = document.strip_prefix('/')?;
    document.strip_prefix("apis/").or_else(|| document.strip_prefix("api/")).map(Target::OpenApiDocument)
}

fn objects<'a>(api_version: &'a str, rest: &'a str) -> Option<Target<'a>> {
    let mut parts = [""; 5];
    let mut count = 0;
    for part in rest.split('/') {
        if count == parts.len() || part.is_empty() {
            return None;
        }
        parts[count] = part;
        count += 1;
    }
    let is_core = !api_version.contains('/');
    let (namespace, resource, name, subresource) = match &parts[..count] {
        // The namespaces themselves have this shape as well.
        ["namespaces", name, subresource @ ("status" | "finalize" | "explain" | "history")] if is_core => {
            (None, "namespaces", Some(*name), *subresource)
        }
        ["namespaces", namespace, resource] => (Some(*namespace), *resource, None, ""),
        ["namespaces", namespace, resource, name] => (Some(*namespace), *resource, Some(*name), ""),
        ["namespaces", namespace, resource, name, sub] => (Some(*namespace), *resource, Some(*name), *sub),
        [resource] => (None, *resource, None, ""),
        [resource, name] => (None, *resource, Some(*name), ""),
        [resource, name, subresource] => (None, *resource, Some(*name), *subresource),
        _ => return None,
    };
    let namespace = match namespace {
        Some(namespace) => Some(decode(namespace)?),
        None => None,
    };
    let name = match name {
        Some(name) => Some(decode(name)?),
        None => None,
    };
    Some(Target::Objects(Address { api_version, namespace, resource, name, subresource }))
}

fn split(path: &str) -> (&str, &str) {
    path.split_once('/').unwrap_or((path, ""))
}

/// One segment without its percent signs; none if they are malformed.
fn decode(segment: &str) -> Option<Cow<'_, str>> {
    if !segment.contains('%') {
        return Some(Cow::Borrowed(segment));
    }
    let decoded = percent_decode(segment.bytes())?;
    (!decoded.contains(['/', '\0'])).then_some(Cow::Owned(decoded))
}

/// Text with `%XX` read; none where that is not UTF-8 or not hexadecimal.
pub(crate) fn percent_decode(text: impl Iterator<Item = u8>) -> Option<String> {
    let mut text = text;
    let mut out = Vec::new();
    while let Some(byte) = text.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let mut digit = || char::from(text.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        out.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects_of(path: &str) -> (String, Option<String>, String, Option<String>, String) {
        let Some(Target::Objects(a)) = parse(path) else { panic!("{path}: {:?}", parse(path)) };
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        (a.api_version.into(), owned(a.namespace), a.resource.into(), owned(a.name), a.subresource.into())
    }

    #[test]
    fn objects_are_found_by_the_shape_of_the_path() {
        let some = |text: &str| Some(text.to_owned());
        let case = |path, api: &str, namespace, resource: &str, name, sub: &str| {
            assert_eq!(
                objects_of(path),
                (api.into(), namespace, resource.into(), name, sub.into()),
                "{path}"
            );
        };
        case("/api/v1/secrets", "v1", None, "secrets", None, "");
        case("/api/v1/namespaces", "v1", None, "namespaces", None, "");
        case("/api/v1/namespaces/a", "v1", None, "namespaces", some("a"), "");
        case("/api/v1/namespaces/a/status", "v1", None, "namespaces", some("a"), "status");
        case("/api/v1/namespaces/a/finalize", "v1", None, "namespaces", some("a"), "finalize");
        case("/api/v1/namespaces/a/secrets", "v1", some("a"), "secrets", None, "");
        case("/apis/g.io/v1/namespaces/a/things/b", "g.io/v1", some("a"), "things", some("b"), "");
        case(
            "/apis/g.io/v1/namespaces/a/things/b/status",
            "g.io/v1",
            some("a"),
            "things",
            some("b"),
            "status",
        );
        case("/apis/g.io/v1/things/b", "g.io/v1", None, "things", some("b"), "");
        case("/apis/g.io/v1/things/system%3Ab", "g.io/v1", None, "things", some("system:b"), "");
    }

    #[test]
    fn everything_else_has_its_place() {
        for (path, target) in [
            ("/", Target::Root),
            ("/version", Target::Version),
            ("/version/", Target::Version),
            ("/livez", Target::Health("livez")),
            ("/api", Target::CoreVersions),
            ("/api/v1", Target::Resources("v1")),
            ("/apis", Target::Groups),
            ("/apis/g.io", Target::Group("g.io")),
            ("/apis/g.io/v1", Target::Resources("g.io/v1")),
            ("/openapi/v2", Target::OpenApiTwo),
            ("/openapi/v3", Target::OpenApi),
            ("/openapi/v3/api/v1", Target::OpenApiDocument("v1")),
            ("/openapi/v3/apis/g.io/v1", Target::OpenApiDocument("g.io/v1")),
        ] {
            assert_eq!(parse(path), Some(target), "{path}");
        }
    }

    #[test]
    fn what_has_no_shape_is_nothing() {
        for path in [
            "",
            "nothing",
            "/nothing",
            "/openapi/v2/api",
            "/openapi/v4",
            "/api/v1/a/b/c/d/e/f",
            "/api/v1//a",
            "/apis/g/v1/a/%zz",
            "/apis/g/v1/a/%2F",
            "/apis/g/v1/a/%ff",
            "/apis/g/v1/a/%2",
        ] {
            assert_eq!(parse(path), None, "{path}");
        }
    }
}
