//! How clients get in: the listener, its certificates, the first token, and the kubeconfig that has both.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use concert_api::auth::{Gate, Keys, ensure_roles, first_token, issue_for_administrator};
use concert_api::listen::tls::{Certificates, Source, names_for};
use concert_api::listen::{self, Listener, Security};
use concert_store::{By, Chance, Clock, Local};
use tracing::warn;

use super::config::Config;
use super::data::{DataFolder, Entry};
use super::error::Error;

/// A listener, and what clients need to trust it.
pub(super) struct WayIn {
    pub listener: Listener,
    authority: Option<String>,
    is_dev: bool,
}

impl WayIn {
    /// Takes the address, with certificates unless in development.
    pub async fn open(config: &Config, folder: &DataFolder, clock: &Arc<dyn Clock>) -> Result<Self, Error> {
        let certificates = if config.is_dev {
            None
        } else {
            let source = match &config.tls_files {
                Some((certificate, key)) => {
                    Source::Files { certificate: certificate.clone(), key: key.clone() }
                }
                None => Source::Own {
                    directory: folder.tls(),
                    names: names_for(config.listen, &config.tls_names),
                },
            };
            Some(Certificates::open(source, clock.clone()).map_err(Error::listen)?)
        };
        let authority = certificates.as_ref().map(Certificates::authority).transpose();
        let authority = authority.map_err(Error::listen)?.flatten();
        let security = certificates.map_or(Security::Development, Security::Tls);
        let listening = listen::Config {
            address: config.listen,
            security,
            limits: config.limits.clone(),
            clock: clock.clone(),
        };
        let listener = Listener::bind(listening).await.map_err(Error::listen)?;
        Ok(Self { listener, authority, is_dev: config.is_dev })
    }

    /// The certificates that clients verify the server with, as PEM; none where the well-known ones do.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Who may do what, and the administrator's kubeconfig, which is named if a token was issued for it now.
    pub async fn guard(
        &self,
        folder: &DataFolder,
        store: &Local,
        clock: &Arc<dyn Clock>,
        chance: &Chance,
        keys: &Keys,
    ) -> Result<(Gate, Option<PathBuf>), Error> {
        let server = self.url();
        let path = folder.kubeconfig();
        if self.is_dev {
            ensure_roles(store).await.map_err(Error::store)?;
            folder.write_kubeconfig(&Entry { server, authority: None, token: None })?;
            warn!(
                kubeconfig = %path.display(),
                "development mode: no authentication, no encryption, every program on this machine may do everything"
            );
            return Ok((Gate::open(), None));
        }
        // Somebody started it for development before, and nobody has a token yet.
        let was_open = path.exists() && folder.token_in_kubeconfig().is_none();
        let first = match first_token(store, &**clock, chance).await.map_err(Error::store)? {
            None if was_open => {
                let by = By::actor("concert").because("first start with authentication");
                let issued = issue_for_administrator(store, &**clock, chance, &by).await;
                Some(issued.map_err(Error::store)?)
            }
            first => first,
        };
        let is_first = first.is_some();
        // The port or the certificates may have changed since the last start.
        let token = first.map(|it| it.token).or_else(|| folder.token_in_kubeconfig());
        if token.is_some() {
            folder.write_kubeconfig(&Entry { server, authority: self.authority.clone(), token })?;
        }
        // After the token was kept: only then does the next start make no other.
        ensure_roles(store).await.map_err(Error::store)?;
        let gate = Gate::guarded_with_logins(store.clone(), clock.clone(), keys.clone());
        Ok((gate, is_first.then_some(path)))
    }

    /// What a kubeconfig says of the way in, without a token; none where nobody needs one.
    pub fn entry(&self) -> Option<Entry> {
        let entry = Entry { server: self.url(), authority: self.authority.clone(), token: None };
        (!self.is_dev).then_some(entry)
    }

    pub fn url(&self) -> String {
        let scheme = if self.is_dev { "http" } else { "https" };
        let mut address = self.listener.address();
        if address.ip().is_unspecified() {
            address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
        }
        format!("{scheme}://{address}")
    }
}

#[cfg(test)]
mod tests {
    use concert_store::backend::memory::Memory;
    use concert_store::{Config as StoreConfig, SystemClock};
    use http::header::{AUTHORIZATION, HeaderMap, HeaderValue};

    use super::super::Layer;
    use super::*;

    #[tokio::test]
    async fn a_first_start_that_could_not_keep_its_token_makes_another_the_next_time() {
        let place = tempfile::tempdir().unwrap();
        let layer = Layer {
            data_dir: Some(place.path().to_owned()),
            listen: Some("127.0.0.1:0".into()),
            admin_listen: Some("0".into()),
            plugins: Some("off".into()),
            ..Layer::default()
        };
        let (config, folder) = (layer.resolve().unwrap(), DataFolder::open(place.path()).unwrap());
        let (clock, chance): (Arc<dyn Clock>, _) = (Arc::new(SystemClock::new()), Chance::seeded(1));
        let settings = StoreConfig::new(clock.clone(), chance.fork()).inline();
        let store = Local::open(Arc::new(Memory::new()), settings).unwrap();
        let keys = config.logins.keys(&folder, &chance).unwrap();
        let way_in = WayIn::open(&config, &folder, &clock).await.unwrap();

        let in_the_way = place.path().join("kubeconfig.new");
        std::fs::create_dir(&in_the_way).unwrap();
        assert!(way_in.guard(&folder, &store, &clock, &chance, &keys).await.is_err());
        std::fs::remove_dir(&in_the_way).unwrap();
        let (gate, path) = way_in.guard(&folder, &store, &clock, &chance, &keys).await.unwrap();
        assert_eq!(path, Some(folder.kubeconfig()));
        let token = format!("Bearer {}", folder.token_in_kubeconfig().unwrap());
        let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(&token).unwrap())]);
        assert_eq!(&*gate.authenticate(&headers).await.unwrap().name, "admin");
        let (_, again) = way_in.guard(&folder, &store, &clock, &chance, &keys).await.unwrap();
        assert_eq!(again, None);
    }
}
