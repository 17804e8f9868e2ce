//! Events as lines, written once for all who watch the same.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use concert_model::{Encoded, ResourceVersion};
use concert_store::Event;
use serde_json::{Value, json};

use crate::error::Naming;
use crate::kube::accept::Form;
use crate::kube::answer::text;
use crate::kube::api::{Call, Inner};
use crate::kube::catalogue::Resource;
use crate::kube::list::ListOptions;
use crate::kube::splice;
use crate::kube::table::{Include, Tables};

/// Lines kept. A thousand watchers wake together for the same few events; what they do not find here any
/// more they write themselves.
const SLOTS: usize = 256;

/// Longer lines are not kept: all together stay under 4 MB.
const LINE_BYTES_MAX: usize = 16 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Added,
    Modified,
    Deleted,
}

impl Kind {
    fn head(self) -> &'static [u8] {
        match self {
            Kind::Added => br#"{"type":"ADDED","object":"#,
            Kind::Modified => br#"{"type":"MODIFIED","object":"#,
            Kind::Deleted => br#"{"type":"DELETED","object":"#,
        }
    }
}

/// Lines that were written a moment ago.
pub(crate) struct Lines(Vec<Mutex<Option<Line>>>);

/// A line is the same for everybody if the write, what it looks like and the version are.
struct Line {
    version: ResourceVersion,
    kind: Kind,
    resource: Arc<Resource>,
    bytes: Bytes,
}

impl Lines {
    pub(crate) fn new() -> Self {
        Self((0..SLOTS).map(|_| Mutex::new(None)).collect())
    }

    fn get_or_write(&self, resource: &Arc<Resource>, kind: Kind, object: &Encoded) -> Bytes {
        let version = object.resource_version();
        // Consecutive writes have consecutive numbers, so that a burst of them does not collide.
        let slot = version.0.parse::<usize>().unwrap_or_default() % SLOTS;
        let mut kept = self.0[slot].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = &*kept
            && line.version == *version
            && line.kind == kind
            && Arc::ptr_eq(&line.resource, resource)
        {
            return line.bytes.clone();
        }
        let bytes = write(kind, &object.to_json_as(resource.version()));
        if bytes.len() <= LINE_BYTES_MAX {
            let (version, resource) = (version.clone(), resource.clone());
            *kept = Some(Line { version, kind, resource, bytes: bytes.clone() });
        }
        bytes
    }
}

fn write(kind: Kind, object: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(object.len() + 40);
    line.extend_from_slice(kind.head());
    line.extend_from_slice(object);
    line.extend_from_slice(b"}\n");
    line.into()
}

/// Writes the events of one watch.
pub(super) struct Writer {
    pub(super) resource: Arc<Resource>,
    form: Form,
    include: Include,
    has_bookmarks: bool,
    /// The client waits to hear that it has seen everything there was.
    has_initial_end: bool,
    /// Objects that were there before are sent to this client alone.
    is_initial: bool,
    has_headings: bool,
}

impl Writer {
    pub(super) fn new(call: &Call<'_>, options: &ListOptions, form: Form, include: Include) -> Self {
        let is_initial = match options.send_initial_events {
            Some(is_asked) => is_asked,
            None => options.resource_version.is_none(),
        };
        Self {
            resource: call.resource.clone(),
            form,
            include,
            has_bookmarks: options.has_bookmarks,
            has_initial_end: options.send_initial_events == Some(true),
            is_initial,
            has_headings: false,
        }
    }

    pub(super) fn naming(&self) -> Naming<'_> {
        self.resource.naming("")
    }

    /// The line of an event; none if the client does not want it.
    pub(super) fn line(&mut self, api: &Inner, event: Event) -> Option<Bytes> {
        let (kind, object) = match event {
            Event::Added(object) => (Kind::Added, object),
            Event::Modified(object) => (Kind::Modified, object),
            Event::Deleted(object) => (Kind::Deleted, object),
            Event::Bookmark { position, is_initial_end } => {
                self.is_initial &= !is_initial_end;
                let is_wanted = self.has_bookmarks && (!is_initial_end || self.has_initial_end);
                return is_wanted.then(|| self.bookmark(&position, is_initial_end));
            }
        };
        Some(match self.form {
            Form::Whole | Form::Aggregated if self.is_initial => {
                write(kind, &object.to_json_as(self.resource.version()))
            }
            Form::Whole | Form::Aggregated => api.lines.get_or_write(&self.resource, kind, &object),
            Form::Partial => write(kind, &splice::partial(&object)),
            Form::Table => {
                let tables = Tables { resource: &self.resource, include: self.include, now: api.clock.now() };
                let is_first = !std::mem::replace(&mut self.has_headings, true);
                write(kind, &tables.single(&object, is_first))
            }
        })
    }

    fn bookmark(&self, position: &ResourceVersion, is_initial_end: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": &*position.0, "creationTimestamp": null});
        if is_initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let partial = |metadata: Value| json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
        let object = match self.form {
            Form::Whole | Form::Aggregated => json!({
                "kind": &*self.resource.group_kind().kind, "apiVersion": &*self.resource.api_version,
                "metadata": metadata,
            }),
            Form::Partial => partial(metadata),
            Form::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": &*position.0}, "columnDefinitions": [],
                "rows": [{"cells": [], "object": partial(metadata)}],
            }),
        };
        let mut line = text(&json!({"type": "BOOKMARK", "object": object}));
        line.push(b'\n');
        line.into()
    }
}
