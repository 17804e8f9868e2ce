//! Errors as failures inside a response.

use super::{duration_from, duration_to};
use crate::error::{Class, Error};
use crate::text;
use crate::wire::v1;

/// What the message of an error that asks for Configure starts with. The contract has no class for
/// it, because nobody but the client of this crate needs to see it.
pub(crate) const NEEDS_CONFIGURE: &str = "account not configured: ";

pub(crate) fn failure_to(error: &Error) -> v1::Failure {
    let class = match error.class {
        Class::Throttled => v1::Class::Throttled,
        Class::Terminal => v1::Class::Terminal,
        Class::Conflict => v1::Class::Conflict,
        Class::NeedsHuman => v1::Class::NeedsHuman,
        Class::Denied if error.message.starts_with(NEEDS_CONFIGURE) => v1::Class::NeedsConfigure,
        Class::Denied => v1::Class::Denied,
        Class::NotServed => v1::Class::NotServed,
        // What a provider cannot reach, or finds broken, is behind it: worth another try.
        Class::Transient | Class::Unreachable | Class::Misbehaved => v1::Class::Transient,
    };
    v1::Failure {
        class: class.into(),
        message: text::clean(&error.message),
        retry_after: error.retry_after.map(duration_to),
        budget: error.budget.clone().unwrap_or_default(),
    }
}

pub(crate) fn failure_from(failure: v1::Failure) -> Error {
    let mut message = text::clean(&failure.message);
    let class = match failure.class() {
        v1::Class::Unspecified | v1::Class::Transient => Class::Transient,
        v1::Class::Throttled => Class::Throttled,
        v1::Class::Terminal => Class::Terminal,
        v1::Class::Conflict => Class::Conflict,
        v1::Class::NeedsHuman => Class::NeedsHuman,
        v1::Class::Denied => Class::Denied,
        v1::Class::NotServed => Class::NotServed,
        v1::Class::NeedsConfigure => {
            if !message.starts_with(NEEDS_CONFIGURE) {
                message.insert_str(0, NEEDS_CONFIGURE);
            }
            Class::Denied
        }
    };
    if message.is_empty() {
        "the provider did not say why".clone_into(&mut message);
    }
    Error {
        retry_after: duration_from(failure.retry_after),
        budget: Some(text::clean(&failure.budget)).filter(|it| !it.is_empty()),
        ..Error::new(class, message)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_class_that_a_provider_can_mean_survives() {
        for class in [
            Class::Transient,
            Class::Throttled,
            Class::Terminal,
            Class::Conflict,
            Class::NeedsHuman,
            Class::Denied,
            Class::NotServed,
        ] {
            let error = Error { budget: Some("calls".into()), ..Error::new(class, "because") };
            let error = error.after(Duration::from_millis(1500));
            assert_eq!(failure_from(failure_to(&error)), error);
        }
    }

    #[test]
    fn a_class_from_the_future_is_transient() {
        let failure = v1::Failure { class: 99, ..Default::default() };
        assert_eq!(failure_from(failure).class, Class::Transient);
    }
}
