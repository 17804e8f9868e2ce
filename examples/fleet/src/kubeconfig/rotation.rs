//! When a token has had its time.

use std::time::Duration;

use concert_model::{Timestamp, time};
use serde_json::{Value, json};

/// Between which parts of its lifetime a token is replaced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub from: f64,
    pub until: f64,
}

/// What is known of the token that is handed out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issued {
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    pub rotate_at: Timestamp,
    /// The account it is for. One that was made again under the same name is another.
    pub account: String,
    pub server: String,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is good until then.
    Keep(Duration),
    /// A new one is needed.
    Issue(&'static str),
}

/// Decides from what is known.
pub fn decide(issued: Option<&Issued>, account: &str, server: &str, now: Timestamp) -> Step {
    let Some(issued) = issued else { return Step::Issue("there is none yet") };
    if issued.account != account {
        return Step::Issue("its account was made again");
    }
    if issued.server != server {
        return Step::Issue("the cluster has another address");
    }
    match Duration::try_from(issued.rotate_at.duration_since(now)) {
        Ok(left) if !left.is_zero() => Step::Keep(left),
        _ => Step::Issue("it has had its time"),
    }
}

impl Window {
    /// A point within the window; `fraction` is from 0 to 1 and drawn, so that the tokens of a fleet do not
    /// all end at once.
    pub fn rotate_at(&self, issued_at: Timestamp, expires_at: Timestamp, fraction: f64) -> Timestamp {
        let lifetime = expires_at.duration_since(issued_at).as_secs_f64().max(0.0);
        let part = self.from + (self.until - self.from) * fraction;
        issued_at + Duration::from_secs_f64(lifetime * part.clamp(0.0, 1.0))
    }
}

impl Issued {
    /// Reads what was kept beside the kubeconfig; none if there is nothing that can be read.
    pub fn read(section: &Value) -> Option<Self> {
        let time = |field: &str| section[field].as_str().and_then(time::parse);
        let text = |field: &str| section[field].as_str().map(str::to_owned);
        section["kubeconfig"].as_str()?;
        Some(Self {
            issued_at: time("not_before")?,
            expires_at: time("expires_at")?,
            rotate_at: time("rotate_at")?,
            account: text("account_uid")?,
            server: text("server")?,
        })
    }

    /// What is put into the section.
    pub fn write(&self, kubeconfig: &str) -> Value {
        json!({
            "kubeconfig": kubeconfig,
            "not_before": time::micros(self.issued_at),
            "expires_at": time::seconds(self.expires_at),
            "rotate_at": time::micros(self.rotate_at),
            "account_uid": self.account,
            "server": self.server,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_794_774_676 + second).unwrap()
    }

    fn issued() -> Issued {
        let (account, server) = ("u1".to_owned(), "https://a".to_owned());
        Issued { issued_at: at(0), expires_at: at(3600), rotate_at: at(2700), account, server }
    }

    #[test]
    fn a_token_is_kept_until_its_point_and_then_replaced() {
        let decide = |now| decide(Some(&issued()), "u1", "https://a", now);
        assert_eq!(decide(at(700)), Step::Keep(Duration::from_secs(2000)));
        assert!(matches!(decide(at(2700)), Step::Issue(_)) && matches!(decide(at(9999)), Step::Issue(_)));
    }

    #[test]
    fn another_account_or_address_needs_another_token() {
        for (account, server) in [("u2", "https://a"), ("u1", "https://b")] {
            assert!(matches!(decide(Some(&issued()), account, server, at(1)), Step::Issue(_)));
        }
        assert!(matches!(decide(None, "u1", "https://a", at(1)), Step::Issue(_)));
    }

    #[test]
    fn the_point_is_always_within_the_window() {
        let window = Window { from: 0.6, until: 0.9 };
        assert_eq!(window.rotate_at(at(0), at(1000), 0.0), at(600));
        assert_eq!(window.rotate_at(at(0), at(1000), 0.5), at(750));
        assert!(window.rotate_at(at(0), at(1000), 0.999) < at(900));
        assert_eq!(Window { from: 2.0, until: 3.0 }.rotate_at(at(0), at(1000), 0.5), at(1000));
    }

    #[test]
    fn what_was_kept_can_be_read_again() {
        let section = issued().write("k");
        assert_eq!(Issued::read(&section), Some(issued()));
        assert_eq!(Issued::read(&json!({"kubeconfig": "k"})), None);
        assert_eq!(Issued::read(&Value::Null), None);
    }
}
