//! OpenAPI v2, which describes nothing.
//!
//! kubectl asks for it before it sends a `List`, to check the items itself, and gives up where there is none.
//! What it does not find described there it leaves to the server, which checks every field anyway.

use http::header::ACCEPT;
use http::request::Parts as Head;
use http::{Response, StatusCode};
use serde_json::json;

use super::super::answer::{self, Answer, Body};

/// What kubectl accepts, and nothing else.
const ACCEPTED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// What it is then told it got: the other name is not one that a content type may have.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

const TITLE: &str = "Concert";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The document, as the client wants it.
pub(crate) fn two(head: &Head) -> Response<Body> {
    let accepts =
        |it: &http::HeaderValue| it.to_str().is_ok_and(|it| it.contains(ACCEPTED) || it.contains(PROTOBUF));
    if head.headers.get_all(ACCEPT).iter().any(accepts) {
        return answer::whole(StatusCode::OK, PROTOBUF, protobuf());
    }
    let document = json!({"swagger": "2.0", "info": {"title": TITLE, "version": VERSION}, "paths": {}});
    Answer::value(&document).write(super::super::accept::Media::Json, false)
}

/// `Document { swagger = 1, info = 2 { title = 1, version = 2 }, paths = 8 {} }`.
fn protobuf() -> Vec<u8> {
    let info = [field(1, TITLE.as_bytes()), field(2, VERSION.as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info), field(8, b"")].concat()
}

/// A field of bytes, fewer than 128.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("the texts above are short");
    [&[number << 3 | 2, length], bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_one_that_a_client_can_read() {
        let version = VERSION.as_bytes();
        let mut expected = vec![0x0a, 3, b'2', b'.', b'0', 0x12, u8::try_from(11 + version.len()).unwrap()];
        expected.extend_from_slice(&[0x0a, 7]);
        expected.extend_from_slice(b"Concert");
        expected.extend_from_slice(&[0x12, u8::try_from(version.len()).unwrap()]);
        expected.extend_from_slice(version);
        expected.extend_from_slice(&[0x42, 0]);
        assert_eq!(protobuf(), expected);
    }
}
