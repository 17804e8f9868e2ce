//! From a provider's configuration to the way to it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use concert_controllers::managed::allowance::Allowance;
use concert_controllers::managed::registry::claims::Wanted;
use concert_controllers::managed::registry::{Declaration, Rank};
use concert_provider::client::{self, Endpoint};
use concert_provider::{Connector, Tls};
use tracing::warn;

use super::config::{ProviderConfig, RateLimit};
use super::error::Error;

/// Makes the way to a provider. Nothing is dialled yet.
pub type Dial =
    Arc<dyn Fn(&ProviderConfig) -> Result<Arc<dyn Connector>, concert_provider::Error> + Send + Sync>;

/// Over gRPC, with the certificates of this folder, else with the system's roots.
pub(crate) fn grpc(cert_dir: Option<PathBuf>) -> Dial {
    Arc::new(move |provider| {
        let tls = cert_dir.as_ref().map_or_else(Tls::system, Tls::folder);
        let endpoint = Endpoint {
            use_tls: provider.use_ssl,
            insecure: provider.insecure,
            tls,
            ..Endpoint::new(&provider.endpoint)
        };
        Ok(Arc::new(client::connect(endpoint)?))
    })
}

/// Refuses certificates that cannot be used, even if no provider uses them yet.
pub(crate) fn check_certificates(folder: &Path) -> Result<(), Error> {
    let refuse = |why: String| Error::Certificates { folder: folder.to_owned(), why };
    if !folder.is_dir() {
        return Err(refuse("there is no such folder".to_owned()));
    }
    Tls::folder(folder).check().map_err(|error| refuse(error.message))
}

/// Says once which providers are spoken to in clear.
pub(crate) fn warn_of_plain_text<'a>(providers: impl Iterator<Item = &'a ProviderConfig>) {
    let plain: Vec<&str> = providers.filter(|it| is_plain(it)).map(|it| it.name.as_str()).collect();
    if !plain.is_empty() {
        warn!(providers = plain.join(", "), "no TLS: what is sent to these providers can be read on the way");
    }
}

/// Whether what is sent can be read on the way.
fn is_plain(provider: &ProviderConfig) -> bool {
    let endpoint = provider.endpoint.trim_end_matches('/');
    let has_tls = provider.use_ssl || endpoint.starts_with("https://") || endpoint.ends_with(":443");
    !has_tls && !endpoint.starts_with("unix:")
}

/// What the registry needs.
pub(crate) fn declaration(provider: &ProviderConfig, rank: Rank, dial: &Dial) -> Result<Declaration, Error> {
    let refuse = |why: String| Error::Provider { name: provider.name.clone(), why };
    let mut kinds = Vec::new();
    for kind in &provider.resource_types {
        let gvk = kind.gvk().map_err(|rule| refuse(format!("{:?}: {rule}", kind.api_version)))?;
        kinds.push(Wanted { kind: gvk, has_deterministic_names: kind.deterministic_names });
    }
    let connector = dial(provider).map_err(|error| refuse(error.message))?;
    let allowance = Allowance {
        provider: provider.rate_limit.map(RateLimit::budget),
        account: provider.account_rate_limit.map(RateLimit::budget),
    };
    Ok(Declaration { name: provider.name.as_str().into(), connector, kinds, allowance, rank, last: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_can_read_is_not_plain() {
        let at = |endpoint: &str| ProviderConfig { endpoint: endpoint.into(), ..ProviderConfig::default() };
        assert!(is_plain(&at("provider:50051")) && is_plain(&at("http://provider:80")));
        assert!(!is_plain(&ProviderConfig { use_ssl: true, ..at("provider:50051") }));
        for endpoint in ["provider:443", "https://provider", "unix:/run/p.sock"] {
            assert!(!is_plain(&at(endpoint)), "{endpoint}");
        }
    }
}
