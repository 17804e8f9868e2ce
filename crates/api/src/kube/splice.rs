//! Objects put together from stored bytes, without reading them.

use concert_model::Encoded;
use concert_model::ResourceVersion;

/// `{"kind":"PartialObjectMetadata",…}`: an object without all but its metadata.
pub(crate) fn partial(object: &Encoded) -> Vec<u8> {
    let metadata = object.body().metadata();
    let mut out = Vec::with_capacity(metadata.len() + 128);
    out.extend_from_slice(
        br#"{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"#,
    );
    quote(&mut out, &object.resource_version().0);
    if metadata.len() > 2 {
        out.push(b',');
        out.extend_from_slice(&metadata[1..metadata.len() - 1]);
    }
    out.extend_from_slice(b"}}");
    out
}

/// A list: what it is, where it was read, and its items as JSON.
pub(crate) struct List<'a> {
    pub(crate) kind: &'a str,
    pub(crate) api_version: &'a str,
    pub(crate) position: &'a ResourceVersion,
    pub(crate) next: Option<&'a str>,
    /// How many come after it.
    pub(crate) remaining: Option<usize>,
}

impl List<'_> {
    /// The list up to its items, `bytes` of which are to come.
    pub(crate) fn open(&self, field: &str, bytes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes + 256);
        out.extend_from_slice(br#"{"kind":"#);
        quote(&mut out, self.kind);
        out.extend_from_slice(br#","apiVersion":"#);
        quote(&mut out, self.api_version);
        out.extend_from_slice(br#","metadata":{"resourceVersion":"#);
        quote(&mut out, &self.position.0);
        if let Some(next) = self.next {
            out.extend_from_slice(br#","continue":"#);
            quote(&mut out, next);
        }
        // Zero is said by leaving it out, as Kubernetes does.
        if let Some(count) = self.remaining.filter(|count| *count > 0) {
            out.extend_from_slice(format!(",\"remainingItemCount\":{count}").as_bytes());
        }
        out.extend_from_slice(b"},");
        quote(&mut out, field);
        out.extend_from_slice(b":[");
        out
    }
}

/// Ends what [`List::open`] began.
pub(crate) fn close(mut out: Vec<u8>) -> Vec<u8> {
    out.extend_from_slice(b"]}");
    out
}

/// Adds an item to an array that `start` bytes of `out` stand before.
pub(crate) fn item(out: &mut Vec<u8>, start: usize, json: &[u8]) {
    if out.len() > start {
        out.push(b',');
    }
    out.extend_from_slice(json);
}

/// Adds a JSON string.
pub(crate) fn quote(out: &mut Vec<u8>, text: &str) {
    // Writing into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}
