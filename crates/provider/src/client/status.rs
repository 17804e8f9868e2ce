//! gRPC statuses as errors of the contract.

use std::error::Error as _;
use std::time::Duration;

use prost::Message;
use tonic::{Code, ConnectError, Status, TimeoutExpired};

use crate::error::{Class, Effect, Error};
use crate::text;

/// What kind of call failed: only one that writes can leave its outcome in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Read,
    Write,
}

/// The error that a status means.
pub(crate) fn error(status: &Status, verb: Verb) -> Error {
    let (class, effect, message) = if status.source().is_some() { local(status) } else { remote(status) };
    let effect = if verb == Verb::Write { effect } else { Effect::None };
    Error { effect, retry_after: retry_after(status), ..Error::new(class, text::clean(&message)) }
}

/// No answer came in time.
pub(crate) fn late(verb: Verb) -> Error {
    // Without the time that was left: the text goes into conditions, and must not differ at each try.
    let error = Error::new(Class::Transient, "the provider did not answer in time");
    if verb == Verb::Write { error.in_doubt() } else { error }
}

/// What this side made of a broken connection. Its code says nothing: a reset stream arrives as
/// almost any of them.
fn local(status: &Status) -> (Class, Effect, String) {
    let mut last = String::new();
    let mut next = status.source();
    while let Some(cause) = next {
        if cause.is::<TimeoutExpired>() {
            return (Class::Transient, Effect::Unknown, "the provider did not answer in time".to_owned());
        }
        if cause.is::<ConnectError>() {
            // Nothing was sent, so nothing happened.
            return (Class::Unreachable, Effect::None, format!("cannot reach the provider: {cause}"));
        }
        last = cause.to_string();
        next = cause.source();
    }
    (Class::Unreachable, Effect::Unknown, format!("the connection to the provider was lost: {last}"))
}

/// What the provider said, or what its answer looked like to the decoder.
fn remote(status: &Status) -> (Class, Effect, String) {
    let message = status.message();
    let (class, effect) = match status.code() {
        Code::OutOfRange if message.contains("decoded message length too large") => {
            return (
                Class::Misbehaved,
                Effect::Unknown,
                format!("the provider's answer is too large: {message}"),
            );
        }
        Code::Internal if is_decoding(message) => {
            return (
                Class::Misbehaved,
                Effect::Unknown,
                format!("the provider's answer is unreadable: {message}"),
            );
        }
        Code::Aborted => (Class::Conflict, Effect::None),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
            (Class::Terminal, Effect::None)
        }
        Code::ResourceExhausted => (Class::Throttled, Effect::None),
        Code::Unauthenticated | Code::PermissionDenied => (Class::Denied, Effect::None),
        Code::Unimplemented => (Class::NotServed, Effect::None),
        Code::NotFound | Code::AlreadyExists => (Class::Transient, Effect::None),
        Code::Unavailable => (Class::Unreachable, Effect::Unknown),
        Code::Ok
        | Code::Unknown
        | Code::Cancelled
        | Code::DeadlineExceeded
        | Code::Internal
        | Code::DataLoss => (Class::Transient, Effect::Unknown),
    };
    let message =
        if message.is_empty() { format!("the provider said {}", status.code()) } else { message.to_owned() };
    (class, effect, message)
}

fn is_decoding(message: &str) -> bool {
    ["failed to decode Protobuf", "Missing response message", "protocol error: received message with"]
        .iter()
        .any(|sign| message.contains(sign))
}

/// `google.rpc.Status`, as far as it is needed.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RichStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<prost_types::Any>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    pub(crate) retry_delay: Option<prost_types::Duration>,
}

/// The name of [`RetryInfo`] in a rich status.
pub(crate) const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

fn retry_after(status: &Status) -> Option<Duration> {
    let rich = RichStatus::decode(status.details()).ok()?;
    let detail = rich.details.into_iter().find(|it| it.type_url == RETRY_INFO)?;
    RetryInfo::decode(&*detail.value).ok()?.retry_delay.and_then(|it| it.try_into().ok())
}

/// A status that carries a time to wait.
pub(crate) fn with_retry_info(code: Code, message: &str, wait: Duration) -> Status {
    let info = RetryInfo { retry_delay: wait.try_into().ok() };
    let rich = RichStatus {
        code: code as i32,
        message: message.to_owned(),
        details: vec![prost_types::Any { type_url: RETRY_INFO.to_owned(), value: info.encode_to_vec() }],
    };
    Status::with_details(code, message, rich.encode_to_vec().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_means_what_the_mapping_says() {
        use Code::*;
        for (code, class, effect) in [
            (Aborted, Class::Conflict, Effect::None),
            (InvalidArgument, Class::Terminal, Effect::None),
            (FailedPrecondition, Class::Terminal, Effect::None),
            (ResourceExhausted, Class::Throttled, Effect::None),
            (Unauthenticated, Class::Denied, Effect::None),
            (PermissionDenied, Class::Denied, Effect::None),
            (Unimplemented, Class::NotServed, Effect::None),
            (NotFound, Class::Transient, Effect::None),
            (AlreadyExists, Class::Transient, Effect::None),
            (Unavailable, Class::Unreachable, Effect::Unknown),
            (DeadlineExceeded, Class::Transient, Effect::Unknown),
            (Cancelled, Class::Transient, Effect::Unknown),
            (Unknown, Class::Transient, Effect::Unknown),
            (Internal, Class::Transient, Effect::Unknown),
        ] {
            let status = Status::new(code, "why");
            let written = error(&status, Verb::Write);
            assert_eq!((written.class, written.effect), (class, effect), "{code:?}");
            assert_eq!(error(&status, Verb::Read).effect, Effect::None, "{code:?}");
        }
    }

    #[test]
    fn a_time_to_wait_is_found_in_the_details() {
        let status = with_retry_info(Code::ResourceExhausted, "slow down", Duration::from_secs(7));
        assert_eq!(error(&status, Verb::Write).retry_after, Some(Duration::from_secs(7)));
        assert_eq!(error(&Status::unknown("x"), Verb::Write).retry_after, None);
    }
}
