//! Which accounts the provider has been told of, on which connection.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex};

use tokio::sync::OnceCell;

use super::link::Links;
use crate::contract::{Configuration, Result};
use crate::error::{Class, Error};

/// Remembers what was configured. One entry for each account, so as many as there are.
#[derive(Default)]
pub(crate) struct Accounts(Mutex<HashMap<String, Entry>>);

struct Entry {
    fingerprint: String,
    /// Holds the epoch of the connection once it is done.
    done: Arc<OnceCell<u64>>,
}

impl Accounts {
    /// Runs `configure` unless this state of the account is known on this connection. Those who ask
    /// meanwhile wait for the same call.
    pub(crate) async fn ensure(
        &self,
        configuration: &Configuration,
        links: &Links,
        configure: impl Future<Output = Result<()>>,
    ) -> Result<()> {
        let done = self.entry(configuration, links.now().epoch);
        let run = async {
            configure.await?;
            Ok(links.now().epoch)
        };
        done.get_or_try_init(|| run).await.map(|_| ())
    }

    /// The provider does not know the account after all.
    pub(crate) fn forget(&self, name: &str) {
        self.0.lock().expect("nobody panics with the accounts in hand").remove(name);
    }

    fn entry(&self, configuration: &Configuration, epoch: u64) -> Arc<OnceCell<u64>> {
        let mut entries = self.0.lock().expect("nobody panics with the accounts in hand");
        if let Some(entry) = entries.get(&configuration.name)
            && entry.fingerprint == configuration.fingerprint
            && entry.done.get().is_none_or(|done| *done == epoch)
        {
            return Arc::clone(&entry.done);
        }
        let done = Arc::default();
        let entry = Entry { fingerprint: configuration.fingerprint.clone(), done: Arc::clone(&done) };
        entries.insert(configuration.name.clone(), entry);
        done
    }
}

/// Whether credentials may go over a connection.
pub(crate) fn permit(configuration: &Configuration, is_exposed: bool, insecure: bool) -> Result<()> {
    if !is_exposed || insecure || configuration.credentials.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the credentials of {} are not sent in clear to another machine: use TLS for this provider, or permit it \
         with insecure: true",
        configuration.name
    );
    Err(Error::new(Class::Denied, message))
}

#[cfg(test)]
mod tests {
    use concert_model::{GroupVersionKind, Object};

    use super::*;
    use crate::details::Details;

    #[test]
    fn credentials_are_not_sent_in_clear_unless_permitted() {
        let kind = GroupVersionKind::parse("example.dev/v1", "ProviderConfig").unwrap();
        let mut configuration = Configuration {
            name: "default".into(),
            fingerprint: "1".into(),
            object: Object::new(&kind, "", "default"),
            credentials: Details::new().with("key", "secret"),
        };
        let error = permit(&configuration, true, false).unwrap_err();
        assert_eq!(error.class, Class::Denied);
        assert!(error.message.contains("insecure: true") && !error.message.contains("secret"), "{error}");
        assert!(permit(&configuration, true, true).is_ok());
        assert!(permit(&configuration, false, false).is_ok());
        configuration.credentials = Details::new();
        assert!(permit(&configuration, true, false).is_ok());
    }
}
