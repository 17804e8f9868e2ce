//! `concert token`: makes a token for a user or a service account and prints it, this once.

use std::time::Duration;

use anyhow::Context as _;
use concert_model::{Address, time};
use concert_server::{Clock as _, SystemClock};
use http::Method;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde_json::{Value, json};

use super::Run;
use super::objects::duration;
use crate::cli::{Advice, say};
use crate::client::{Ask, Flags, Session};
use crate::exit::Exit;
use crate::print;

/// What tokens begin with, so that a leaked one is recognised.
const PREFIX: &str = "concert_";
/// Digits of the digest that name the object.
const NAME_DIGITS: usize = 32;

#[derive(clap::Args)]
pub struct Token {
    /// Whom it stands for
    #[arg(long, required_unless_present = "service_account", conflicts_with = "service_account")]
    user: Option<String>,
    /// A group that the user is in; may be repeated
    #[arg(long, requires = "user")]
    group: Vec<String>,
    /// A service account of the namespace
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// How long it is good for
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = duration)]
    lifetime: Duration,
}

impl Run for Token {
    const NAME: &'static str = "token";
    const ABOUT: &'static str = "Make a token for a user or a service account";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        Session::run(flags, async |session| {
            let token = match &self.service_account {
                Some(name) => of_account(&session, name, self.lifetime).await?,
                None => {
                    of_user(&session, self.user.as_deref().unwrap_or_default(), &self.group, self.lifetime)
                        .await?
                }
            };
            print::out(&(print::plain(&token) + "\n"))?;
            Ok(Exit::Done)
        })
    }
}

/// The server makes the tokens of service accounts itself.
async fn of_account(session: &Session, name: &str, lifetime: Duration) -> anyhow::Result<String> {
    let address = Address::new("/api/v1/namespaces").step(session.namespace());
    let address = address.step("serviceaccounts").step(name).step("token");
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": lifetime.as_secs()}});
    let answer = session.value(&Ask::new(Method::POST, address).with_json(&request)).await?;
    let token = answer.pointer("/status/token").and_then(Value::as_str);
    token.map(str::to_owned).context("the server gave no token")
}

/// Only the digest leaves this process.
async fn of_user(
    session: &Session,
    user: &str,
    groups: &[String],
    lifetime: Duration,
) -> anyhow::Result<String> {
    let mut secret = [0; 32];
    SystemRandom::new().fill(&mut secret).map_err(|_| anyhow::anyhow!("the system has no randomness"))?;
    let token = format!("{PREFIX}{}", hex(&secret));
    let object = object(&token, user, groups, lifetime)?;
    let address = Address::new("/apis/concert.dev/v1alpha1/tokens");
    match session.value(&Ask::new(Method::POST, address).with_json(&object)).await {
        Ok(_) => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            say(&format!("to end it before its time: concert delete token.concert.dev/{name}"));
            Ok(token)
        }
        Err(error) if error.is_not_served() => {
            let what = format!("{} keeps no tokens of users", session.server());
            Err(Advice::new(what, "concert token --service-account NAME").into())
        }
        Err(error) => Err(error.into()),
    }
}

fn object(token: &str, user: &str, groups: &[String], lifetime: Duration) -> anyhow::Result<Value> {
    let hash = hex(digest(&SHA256, token.as_bytes()).as_ref());
    let lifetime = time::SignedDuration::try_from(lifetime)?;
    let expires = SystemClock::new().now().checked_add(lifetime).context("--lifetime is too long")?;
    Ok(
        json!({"apiVersion": "concert.dev/v1alpha1", "kind": "Token", "metadata": {"name": hash[..NAME_DIGITS]},
        "spec": {"user": user, "groups": groups, "sha256": hash, "expiresAt": time::seconds(expires)}}),
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_digest_is_sent() {
        let object = object("concert_abc", "jo", &["team".into()], Duration::from_secs(60)).unwrap();
        assert!(!object.to_string().contains("concert_abc"));
        let hash = object["spec"]["sha256"].as_str().unwrap();
        assert_eq!((hash.len(), object["metadata"]["name"].as_str().unwrap()), (64, &hash[..32]));
        assert_eq!(object["spec"]["groups"], json!(["team"]));
        assert_eq!(hex(digest(&SHA256, b"abc").as_ref())[..16], *"ba7816bf8f01cfea");
    }
}
