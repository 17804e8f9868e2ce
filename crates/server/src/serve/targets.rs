//! The way into target clusters: by the kubeconfig that lies in the `credentials` of an entry.
//!
//! Somebody else wrote it, so it may say where to go and who we are, and nothing more: a kubeconfig that
//! would have us run a program, read a file or trust anybody is refused, and so is one that leads to a
//! link-local address. Nothing of it is ever repeated.

use std::net::IpAddr;
use std::sync::Arc;

use async_trait::async_trait;
use concert_api::audit::{Audit, Record};
use concert_api::auth::{Access, User};
use concert_controllers::mothership::{CREDENTIALS, Reach, Unreachable};
use concert_engine::{OnExit, Tasks};
use concert_model::inventory::{NAMESPACE, Section, names};
use concert_model::reach::is_refused;
use concert_model::{ObjectKey, base64};
use concert_store::kubernetes::{self, Kubernetes};
use concert_store::{Clock, Error, Store};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

/// Longest kubeconfig: a few certificates fit in.
const BYTES_MAX: usize = 256 * 1024;

/// Reads credentials from the inventory and connects by them.
pub(super) struct Kubeconfigs {
    pub inventory: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    pub tasks: Tasks,
    /// Where accesses to secret sections are written down.
    pub audit: Audit,
}

/// Who reads credentials here, in the audit trail.
const READER: &str = "system:mothership";

#[async_trait]
impl Reach for Kubeconfigs {
    async fn reach(&self, entry: &str) -> Result<Option<Arc<dyn Store>>, Unreachable> {
        let contents = self.contents(entry).await.map_err(Unreachable::Unread)?;
        let Some(contents) = contents else { return Ok(None) };
        let text = contents["kubeconfig"].as_str().ok_or(Unreachable::Useless("there is no kubeconfig"))?;
        let config = read(text)?;
        check_host(&host(&config)?).await?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
        let config = config.map_err(|_| Unreachable::Useless("its parts do not fit together"))?;
        // What the name leads to may be another place by the time of the connection.
        let client = kubernetes::careful(&config);
        let client = client.map_err(|_| Unreachable::Useless("its certificates cannot be used"))?;
        let tasks = self.tasks.clone();
        let spawn: kubernetes::Spawn = Arc::new(move |name: &str, task| tasks.spawn(name, OnExit::Log, task));
        let config = kubernetes::Config::new(self.clock.clone(), spawn);
        Ok(Some(Arc::new(Kubernetes::new(client, config))))
    }
}

impl Kubeconfigs {
    /// What the section contains; none if there is no such section.
    async fn contents(&self, entry: &str) -> Result<Option<Value>, Error> {
        let found = match self.inventory.get(&names::section_key(entry, CREDENTIALS)).await {
            Err(Error::NotFound { .. }) => return Ok(None),
            found => found?.decode(),
        };
        let section = Section(&found);
        let Some(secret) = section.secret_name() else { return Ok(Some(section.data().clone())) };
        let key = ObjectKey::namespaced(names::secret_kind(), NAMESPACE, secret);
        let read = self.inventory.get(&key).await;
        self.note(entry, read.is_ok());
        let secret = match read {
            // Replaced as we look: there will be word of it.
            Err(Error::NotFound { .. }) => return Ok(None),
            secret => secret?.decode(),
        };
        let bytes = secret.get("data")[names::CONTENT].as_str().and_then(base64::decode);
        Ok(bytes.and_then(|it| serde_json::from_slice(&it).ok()))
    }

    /// Writes down an access, as the door of the inventory does for those who come through it.
    fn note(&self, entry: &str, is_read: bool) {
        let user = User { name: READER.into(), uid: "".into(), groups: Vec::new(), sender: None };
        let name = names::section_object(entry, CREDENTIALS);
        let access = Access::Resource {
            verb: "get",
            group: names::GROUP,
            resource: "sections",
            subresource: "secret",
            namespace: "",
            name: &name,
        };
        let code = if is_read { 200 } else { 404 };
        self.audit.note(Record::new(self.clock.now(), Some(&user), Some(&access), code));
    }
}

/// A kubeconfig that does nothing but say where to go and who we are.
fn read(text: &str) -> Result<Kubeconfig, Unreachable> {
    if text.len() > BYTES_MAX {
        return Err(Unreachable::Useless("the kubeconfig is too long"));
    }
    let config = Kubeconfig::from_yaml(text);
    let config = config.map_err(|_| Unreachable::Useless("the kubeconfig cannot be read"))?;
    for cluster in config.clusters.iter().filter_map(|it| it.cluster.as_ref()) {
        if cluster.certificate_authority.is_some() {
            return Err(Unreachable::Useless("the kubeconfig names a file"));
        }
        if cluster.insecure_skip_tls_verify == Some(true) {
            return Err(Unreachable::Useless("the kubeconfig does not verify the server"));
        }
        if cluster.proxy_url.is_some() {
            return Err(Unreachable::Useless("the kubeconfig names a proxy"));
        }
    }
    for user in config.auth_infos.iter().filter_map(|it| it.auth_info.as_ref()) {
        if user.exec.is_some() || user.auth_provider.is_some() {
            return Err(Unreachable::Useless("the kubeconfig names a program"));
        }
        if user.token_file.is_some() || user.client_certificate.is_some() || user.client_key.is_some() {
            return Err(Unreachable::Useless("the kubeconfig names a file"));
        }
    }
    Ok(config)
}

/// Host and port of the cluster that is meant.
fn host(config: &Kubeconfig) -> Result<(String, u16), Unreachable> {
    let useless = || Unreachable::Useless("the kubeconfig does not say which server");
    let current = config.current_context.as_deref();
    let named = config.contexts.iter().find(|it| Some(it.name.as_str()) == current);
    let context = named.or(config.contexts.first()).and_then(|it| it.context.as_ref()).ok_or_else(useless)?;
    let cluster = config.clusters.iter().find(|it| it.name == context.cluster).ok_or_else(useless)?;
    let server = cluster.cluster.as_ref().and_then(|it| it.server.as_deref()).ok_or_else(useless)?;
    let uri: http::Uri = server.parse().map_err(|_| useless())?;
    if uri.scheme_str() != Some("https") {
        return Err(Unreachable::Useless("the server must be https://HOST[:PORT]"));
    }
    let host = uri.host().ok_or_else(useless)?.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok((host, uri.port_u16().unwrap_or(443)))
}

/// Refuses what only this machine can reach, by address or by a name that leads there.
async fn check_host((host, port): &(String, u16)) -> Result<(), Unreachable> {
    let refused = || Unreachable::Useless("the server is at an address that is refused");
    if let Ok(address) = host.parse::<IpAddr>() {
        return if is_refused(address) { Err(refused()) } else { Ok(()) };
    }
    let found = tokio::net::lookup_host((host.as_str(), *port)).await;
    let mut found = found.map_err(|_| Unreachable::Lost("the name of the server leads nowhere now"))?;
    if found.any(|it| is_refused(it.ip())) { Err(refused()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use concert_engine::TokioSpawn;
    use concert_model::Object;
    use concert_model::inventory::Entry;
    use concert_store::backend::memory::Memory;
    use concert_store::{By, Chance, Local, SystemClock};
    use serde_json::json;

    use super::*;

    const CANARY: &str = "canary-in-a-kubeconfig";

    fn config(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{{cluster}}}}}]\n\
             users: [{{name: u, user: {{token: {CANARY}{user}}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
        )
    }

    async fn refusal(text: &str) -> String {
        let judged = match read(text).and_then(|it| host(&it)) {
            Ok(host) => check_host(&host).await,
            Err(error) => Err(error),
        };
        let text = judged.unwrap_err().to_string();
        assert!(!text.contains(CANARY), "{text}");
        text
    }

    #[tokio::test]
    async fn r7_a_kubeconfig_says_where_to_go_and_who_we_are_and_nothing_more() {
        for (cluster, user, why) in [
            ("server: 'https://169.254.169.254'", "", "an address that is refused"),
            ("server: 'https://[fe80::1]:6443'", "", "an address that is refused"),
            ("server: 'http://10.0.0.1'", "", "must be https"),
            ("server: 'https://10.0.0.1', insecure-skip-tls-verify: true", "", "does not verify"),
            ("server: 'https://10.0.0.1', certificate-authority: /etc/passwd", "", "names a file"),
            ("server: 'https://10.0.0.1', proxy-url: 'http://a'", "", "names a proxy"),
            ("server: 'https://10.0.0.1'", ", tokenFile: /etc/passwd", "names a file"),
            ("server: 'https://10.0.0.1'", ", client-key: /etc/passwd", "names a file"),
            ("server: 'https://10.0.0.1'", ", exec: {apiVersion: v1, command: /bin/sh}", "names a program"),
            ("", "", "does not say which server"),
        ] {
            let text = refusal(&config(cluster, user)).await;
            assert!(text.contains(why), "{cluster} {user}: {text}");
        }
        assert!(refusal(&format!("{{ {CANARY}: [")).await.contains("cannot be read"));
        assert!(refusal(&CANARY.repeat(20_000)).await.contains("too long"));
        let fine = config("server: 'https://127.0.0.1:6443'", "");
        assert_eq!(host(&read(&fine).unwrap()).unwrap(), ("127.0.0.1".into(), 6443));
        assert!(check_host(&("127.0.0.1".into(), 6443)).await.is_ok());
    }

    #[tokio::test]
    async fn r7_a_name_that_nobody_knows_now_may_be_known_later() {
        let judged = check_host(&("cluster.invalid".into(), 6443)).await;
        assert!(matches!(judged, Err(Unreachable::Lost(_))), "{judged:?}");
    }

    #[tokio::test]
    async fn r7_credentials_that_lead_to_this_machine_lead_to_no_connection() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let terms = concert_store::Config::new(clock.clone(), Chance::seeded(1)).inline();
        let store = Local::open(Arc::new(Memory::new()), terms).unwrap();
        let by = By::actor("test");
        let definitions = include_str!("../../../../deploy/crds/inventory.yaml");
        for definition in serde_saphyr::from_multiple::<Value>(definitions).unwrap() {
            store.create(Object::from_value(definition).unwrap(), &by).await.unwrap();
        }
        let mut entry = Object::new(&names::versioned(&names::entry_kind()), "", "rt-1");
        entry.set("spec", json!({"kind": "byoc"}));
        let entry = store.create(entry, &by).await.unwrap().decode();
        let mut section = Section::of(Entry(&entry), CREDENTIALS);
        let text = config("server: 'https://169.254.169.254'", "");
        section.get_mut("spec")["data"] = json!({"kubeconfig": text});
        store.create(section, &by).await.unwrap();
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
        let ways = Kubeconfigs { inventory: Arc::new(store), clock, tasks, audit: Audit::off() };
        let Err(refused) = ways.reach("rt-1").await else { panic!("there is a way") };
        assert!(refused.to_string().contains("an address that is refused"), "{refused}");
        assert!(ways.reach("rt-2").await.unwrap().is_none());
    }
}
