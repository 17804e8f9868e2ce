//! Watches: one event a line, for as long as the server has something to say.

use bytes::{Buf as _, BytesMut};
use concert_model::Address;
use http::Response;
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;

use super::error::{Error, Refusal};
use super::session::{Ask, Session};

/// Longest event.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Added(Value),
    Modified(Value),
    Deleted(Value),
    Bookmark(Value),
}

impl Event {
    /// The position after it, so that a watch can go on from there.
    pub fn position(&self) -> Option<&str> {
        let (Self::Added(object) | Self::Modified(object) | Self::Deleted(object) | Self::Bookmark(object)) =
            self;
        // A table has rows, each with the metadata of an object.
        let of_row = object.pointer("/rows/0/object/metadata/resourceVersion").and_then(Value::as_str);
        of_row.or(object["metadata"]["resourceVersion"].as_str()).filter(|it| !it.is_empty())
    }
}

/// A watch that is open.
pub struct Watch<'a> {
    session: &'a Session,
    body: Body,
    rest: BytesMut,
}

impl<'a> Watch<'a> {
    /// Everything after `position` in `collection`.
    pub async fn open(
        session: &'a Session,
        collection: Address,
        position: &str,
        is_table: bool,
    ) -> Result<Self, Error> {
        let address = collection.with("watch", "true").with("allowWatchBookmarks", "true");
        let ask = Ask::get(address.with("resourceVersion", position));
        let response: Response<Body> = session.stream(&if is_table { ask.in_columns() } else { ask }).await?;
        Ok(Self { session, body: response.into_body(), rest: BytesMut::new() })
    }

    /// The next event; none when the server has closed the watch, which it does every now and then.
    ///
    /// # Errors
    /// Also for an event that is an error: [`Error::is_expired`] when the position is too old.
    pub async fn next(&mut self) -> Result<Option<Event>, Error> {
        loop {
            if let Some(end) = self.rest.iter().position(|it| *it == b'\n') {
                let line = self.rest.split_to(end + 1);
                if line.trim_ascii().is_empty() {
                    continue;
                }
                return event(&line, self.session.server()).map(Some);
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let frame = frame.map_err(|error| self.session.unreachable(error))?;
            if let Ok(mut data) = frame.into_data() {
                while data.has_remaining() {
                    let chunk = data.chunk();
                    self.rest.extend_from_slice(chunk);
                    let read = chunk.len();
                    data.advance(read);
                }
            }
            if self.rest.len() > EVENT_BYTES_MAX {
                return Err(Error::Odd { server: self.session.server().to_owned() });
            }
        }
    }
}

fn event(line: &[u8], server: &str) -> Result<Event, Error> {
    let odd = || Error::Odd { server: server.to_owned() };
    let mut value: Value = serde_json::from_slice(line).map_err(|_| odd())?;
    let object = value["object"].take();
    match value["type"].as_str() {
        Some("ADDED") => Ok(Event::Added(object)),
        Some("MODIFIED") => Ok(Event::Modified(object)),
        Some("DELETED") => Ok(Event::Deleted(object)),
        Some("BOOKMARK") => Ok(Event::Bookmark(object)),
        Some("ERROR") => {
            let code = object["code"].as_u64().and_then(|it| u16::try_from(it).ok()).unwrap_or(500);
            Err(Error::Refused(Box::new(Refusal::of(server, code, object.to_string().as_bytes()))))
        }
        _ => Err(odd()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn events_and_errors_are_told_apart() {
        let line = |value: Value| event(value.to_string().as_bytes(), "s");
        let object = json!({"metadata": {"resourceVersion": "7"}});
        let added = line(json!({"type": "ADDED", "object": object})).unwrap();
        assert_eq!((&added, added.position()), (&Event::Added(object), Some("7")));
        let row = json!({"kind": "Table", "metadata": {}, "rows": [{"object": {"metadata": {"resourceVersion": "9"}}}]});
        assert_eq!(line(json!({"type": "BOOKMARK", "object": row})).unwrap().position(), Some("9"));
        let gone = json!({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}});
        assert!(line(gone).unwrap_err().is_expired());
        assert!(matches!(line(json!({"type": "SURPRISE"})), Err(Error::Odd { .. })));
        assert!(matches!(event(b"<html>", "s"), Err(Error::Odd { .. })));
    }
}
