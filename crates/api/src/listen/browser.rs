//! Keeping websites away from a server that asks nobody who they are.
//!
//! Any page that a developer looks at can send requests to loopback. It cannot set the Host it calls us
//! by (which gives away names that were made to point here), nor hide its Origin, nor send JSON without
//! asking first.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, TRANSFER_ENCODING};
use http::uri::Authority;
use http::{HeaderMap, Method, Request, StatusCode};

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rebuff {
    pub(super) code: StatusCode,
    pub(super) reason: &'static str,
    pub(super) message: &'static str,
}

const fn forbidden(message: &'static str) -> Rebuff {
    Rebuff { code: StatusCode::FORBIDDEN, reason: "Forbidden", message }
}

const BAD_HOST: Rebuff = forbidden(
    "in development mode the Host must be localhost or a loopback address, with the port of the server",
);
const BAD_ORIGIN: Rebuff = forbidden("in development mode requests of websites are refused");
const BAD_TYPE: Rebuff = Rebuff {
    code: StatusCode::UNSUPPORTED_MEDIA_TYPE,
    reason: "UnsupportedMediaType",
    message: "in development mode writes need a JSON, YAML or protobuf content type",
};

/// Whether a request to the server on `port` can come from a program rather than from a website.
pub(super) fn check<B>(request: &Request<B>, port: u16) -> Result<(), Rebuff> {
    let headers = request.headers();
    let host = one(headers, HOST).ok_or(BAD_HOST)?;
    let is_ours = |authority: &str| is_loopback(authority, port);
    let is_named_right = request.uri().authority().is_none_or(|it| is_ours(it.as_str()));
    if !is_ours(host) || !is_named_right {
        return Err(BAD_HOST);
    }
    let is_same =
        |origin: &str| origin.strip_prefix("http://").is_some_and(|it| it.eq_ignore_ascii_case(host));
    if headers.contains_key(ORIGIN) && !one(headers, ORIGIN).is_some_and(is_same) {
        return Err(BAD_ORIGIN);
    }
    let site = headers.get("sec-fetch-site");
    if site.is_some_and(|it| it != "same-origin" && it != "none") {
        return Err(BAD_ORIGIN);
    }
    check_type(request.method(), headers)
}

fn check_type(method: &Method, headers: &HeaderMap) -> Result<(), Rebuff> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let has_no_body = !headers.contains_key(TRANSFER_ENCODING)
        && headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0");
    // Nothing to misread; and a browser says where it comes from, which was looked at already.
    if has_no_body && !headers.contains_key(CONTENT_TYPE) {
        return Ok(());
    }
    if one(headers, CONTENT_TYPE).is_some_and(is_data) { Ok(()) } else { Err(BAD_TYPE) }
}

/// The header's value, if it is there once.
fn one(headers: &HeaderMap, name: http::HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(first)
}

fn is_loopback(authority: &str, port: u16) -> bool {
    let Ok(authority) = authority.parse::<Authority>() else { return false };
    // `a@localhost` names a user, which no client of ours does.
    if authority.as_str().contains('@') || authority.port_u16().unwrap_or(80) != port {
        return false;
    }
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<std::net::IpAddr>().is_ok_and(|it| it.to_canonical().is_loopback())
}

fn is_data(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if essence == "text/yaml" {
        return true;
    }
    let Some(subtype) = essence.strip_prefix("application/") else { return false };
    let form = subtype.rsplit('+').next().unwrap_or(subtype);
    // Browsers ask before they send any of these; kubectl sends the last for the kinds it knows.
    matches!(form, "json" | "yaml" | "x-yaml" | "vnd.kubernetes.protobuf")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(method: &str, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::builder().method(method).uri("/api/v1/namespaces");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&request.body(()).unwrap(), 8000).map_or_else(|rebuff| rebuff.code.as_u16(), |()| 200)
    }

    #[test]
    fn only_our_own_names_are_answered_to() {
        for (host, code) in [
            ("localhost:8000", 200),
            ("LOCALHOST:8000", 200),
            ("127.0.0.1:8000", 200),
            ("127.9.9.9:8000", 200),
            ("[::1]:8000", 200),
            ("localhost", 403),
            ("localhost:8001", 403),
            ("127.0.0.1.evil.dev:8000", 403),
            ("evil.dev:8000", 403),
            ("localhost.evil.dev:8000", 403),
            ("a@localhost:8000", 403),
            ("10.0.0.1:8000", 403),
            ("", 403),
        ] {
            assert_eq!(verdict("GET", &[("host", host)]), code, "{host}");
        }
        assert_eq!(verdict("GET", &[]), 403);
        assert_eq!(verdict("GET", &[("host", "localhost:8000"), ("host", "evil.dev:8000")]), 403);
        let absolute = Request::builder().uri("http://evil.dev:8000/").header("host", "localhost:8000");
        assert_eq!(check(&absolute.body(()).unwrap(), 8000), Err(BAD_HOST));
    }

    #[test]
    fn websites_are_refused() {
        let host = ("host", "localhost:8000");
        for (name, value, code) in [
            ("origin", "http://localhost:8000", 200),
            ("origin", "http://localhost:3000", 403),
            ("origin", "https://localhost:8000", 403),
            ("origin", "http://evil.dev", 403),
            ("origin", "null", 403),
            ("origin", "", 403),
            ("sec-fetch-site", "cross-site", 403),
            ("sec-fetch-site", "same-site", 403),
            ("sec-fetch-site", "same-origin", 200),
            ("sec-fetch-site", "none", 200),
        ] {
            assert_eq!(verdict("GET", &[host, (name, value)]), code, "{name}: {value}");
        }
    }

    #[test]
    fn writes_say_that_they_are_data() {
        let host = ("host", "localhost:8000");
        for (content_type, code) in [
            ("application/json", 200),
            ("application/json; charset=utf-8", 200),
            ("Application/YAML", 200),
            ("application/x-yaml", 200),
            ("text/yaml; charset=utf-8", 200),
            ("application/merge-patch+json", 200),
            ("application/apply-patch+yaml", 200),
            ("application/json-patch+json", 200),
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("multipart/form-data", 415),
            ("text/json", 415),
            ("text/x-yaml", 415),
            ("application/jsonx", 415),
            ("", 415),
        ] {
            for method in ["POST", "PUT", "PATCH", "DELETE"] {
                assert_eq!(verdict(method, &[host, ("content-type", content_type)]), code, "{content_type}");
            }
        }
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            assert_eq!(verdict(method, &[host]), 200);
            assert_eq!(verdict(method, &[host, ("content-length", "0")]), 200);
            assert_eq!(verdict(method, &[host, ("content-length", "5")]), 415);
            assert_eq!(verdict(method, &[host, ("transfer-encoding", "chunked")]), 415);
            assert_eq!(verdict(method, &[host, ("origin", "http://evil.dev")]), 403);
        }
    }
}
