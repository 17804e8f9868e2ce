//! Where this process stands for election.

use std::path::Path;
use std::sync::Arc;

use concert_engine::leader::{Config, Election, LeaseSeat, RowSeat, Seat};
use concert_model::Uid;
use concert_store::{Chance, Clock};
use kube::config::Kubeconfig;

use crate::config;

use super::error::Error;
use super::options::Candidacy;
use super::storage::{Opened, Storage};

/// A candidate. On our own stores the seat is a row of work, which fences off former leaders; on
/// Kubernetes it is a Lease.
pub(super) fn election(
    candidacy: &Candidacy,
    storage: &Storage,
    opened: &Opened,
    clock: &Arc<dyn Clock>,
    chance: &Chance,
) -> Result<Election, Error> {
    let seat: Arc<dyn Seat> = match &opened.work {
        Some(work) => Arc::new(RowSeat::new(work.clone(), &candidacy.id)),
        None => {
            let namespace = namespace(candidacy, storage)?;
            Arc::new(LeaseSeat::new(opened.store.clone(), clock.clone(), &namespace, &candidacy.id))
        }
    };
    // The same host may run two, and a restart is somebody else: others must not take it for a renewal.
    let mut config = Config::new(format!("{}_{}", config::host_name(), Uid::from_random(chance.bits())));
    if let Some([lease, renew_within, retry]) = candidacy.times {
        (config.lease, config.renew_within, config.retry) = (lease, renew_within, retry);
    }
    Ok(Election::new(seat, config, clock.clone(), chance.fork()))
}

/// The flag, else the namespace of the pod, else that of the kubeconfig's context.
fn namespace(candidacy: &Candidacy, storage: &Storage) -> Result<String, Error> {
    let told = candidacy.namespace.clone().filter(|it| !it.is_empty());
    let (kubeconfig, context) = match storage {
        Storage::Kubernetes { kubeconfig, context } => (kubeconfig.as_deref(), context.as_deref()),
        _ => (None, None),
    };
    // Whoever names a kubeconfig means that cluster and not the one it happens to run in.
    let is_elsewhere = kubeconfig.is_some() || context.is_some();
    told.or_else(|| config::namespace_in_cluster().filter(|_| !is_elsewhere))
        .or_else(|| namespace_of_context(kubeconfig, context))
        .ok_or(Error::Namespace)
}

fn namespace_of_context(kubeconfig: Option<&Path>, context: Option<&str>) -> Option<String> {
    let file = match kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let file = file.ok()?;
    let name = context.or(file.current_context.as_deref())?;
    let found = file.contexts.iter().find(|it| it.name == name)?;
    found.context.as_ref()?.namespace.clone().filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = "apiVersion: v1\nkind: Config\ncurrent-context: one\nclusters: []\nusers: []\ncontexts:\n\
        - {name: one, context: {cluster: c, user: u, namespace: apps}}\n- {name: two, context: {cluster: c, user: u}}\n";

    #[test]
    fn the_flag_wins_then_the_context_and_else_nobody_knows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, KUBECONFIG).unwrap();
        let ask = |flag: Option<&str>, context: Option<&str>| {
            let candidacy = Candidacy { id: "x".into(), namespace: flag.map(str::to_owned), times: None };
            let context = context.map(str::to_owned);
            namespace(&candidacy, &Storage::Kubernetes { kubeconfig: Some(path.clone()), context })
        };
        assert_eq!(ask(Some("flag"), None).unwrap(), "flag");
        assert_eq!(ask(None, None).unwrap(), "apps");
        assert!(matches!(ask(None, Some("two")), Err(Error::Namespace)));
        assert!(ask(None, Some("two")).unwrap_err().hint().contains("--leader-election-namespace"));
    }
}
