//! Keeps a cluster role and a binding for each custom role, so that one authoriser decides. Plugin hosts
//! have one too: which groups there are is known only by the types.

use std::collections::BTreeMap;
use std::sync::Arc;

use concert_model::no8s::{is_ours, names};
use concert_model::{Encoded, GroupKind, LabelSelector, Object, ObjectKey};
use concert_store::{By, Delete, Error, Local, PageRequest, Query, Store};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::{definition_kind, sort};
use crate::auth::{CustomRole, PLUGIN_HOSTS, Rule, Served, role_group};
use crate::rest::records;

const RBAC: &str = "rbac.authorization.k8s.io";
/// The label of what is made here; its value is the number of the role, if it has one.
const MADE: &str = "no8s.concert.dev/custom-role";
const KINDS: [&str; 2] = ["ClusterRoleBinding", "ClusterRole"];
/// Tries against others who write the same object.
const TRIES_MAX: usize = 5;

/// Makes rules of roles. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Roles {
    store: Local,
    /// One at a time: who comes second sees what the first has seen, or more.
    turn: Arc<Mutex<()>>,
}

impl Roles {
    pub(crate) fn new(store: Local) -> Self {
        Self { store, turn: Arc::default() }
    }

    /// Makes what is missing, changes what is old and removes what is left over. Touches nothing that is
    /// as it should be.
    ///
    /// # Errors
    /// Those of the store; doing it again goes on.
    pub(crate) async fn sync(&self) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        let types = self.types().await?;
        let custom = sort().all(&self.store).await?;
        let custom = custom.iter().flat_map(|role| compiled(role, &types));
        let hosts = of_group(PLUGIN_HOSTS, "", PLUGIN_HOSTS, &CustomRole::of_plugin_hosts().rules(&types));
        let wanted: BTreeMap<ObjectKey, Value> = custom.chain(hosts).map(|it| (key(&it), it)).collect();
        // Bindings go before roles and come after them, so that none ever refers to nothing.
        for kind in KINDS {
            for made in self.made(kind).await? {
                if !wanted.contains_key(made.key()) {
                    self.remove(made.key()).await?;
                }
            }
        }
        for (key, object) in wanted {
            self.ensure(&key, object).await?;
        }
        Ok(())
    }

    /// The types there are.
    async fn types(&self) -> Result<Vec<Served>, Error> {
        let page = self.store.list(&Query::all(definition_kind()), &PageRequest::whole()).await?;
        let ours = page.items.iter().filter(|it| it.key().name.ends_with(names::GROUP));
        let mut types: Vec<Served> = ours.filter_map(|it| served(&it.decode())).collect();
        types.sort_unstable();
        Ok(types)
    }

    async fn made(&self, kind: &str) -> Result<Vec<Encoded>, Error> {
        let labels = LabelSelector::parse(MADE).map_err(|error| Error::invalid("label", error))?;
        let query = Query::all(GroupKind::new(RBAC, kind)).with_labels(labels);
        Ok(self.store.list(&query, &PageRequest::whole()).await?.items)
    }

    async fn remove(&self, key: &ObjectKey) -> Result<(), Error> {
        match self.store.delete(key, &Delete::default(), &by()).await {
            Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn ensure(&self, key: &ObjectKey, wanted: Value) -> Result<(), Error> {
        let wanted = Object::from_value(wanted).map_err(|error| Error::invalid("custom role", error))?;
        for _ in 0..TRIES_MAX {
            let written = match self.store.get(key).await {
                Err(Error::NotFound { .. }) => self.store.create(wanted.clone(), &by()).await,
                Err(error) => return Err(error),
                Ok(held) => {
                    let held = held.decode();
                    if held.get("roleRef") != wanted.get("roleRef") {
                        // What a binding refers to can never be changed.
                        self.remove(key).await?;
                        continue;
                    }
                    let Some(changed) = changed(held, &wanted) else { return Ok(()) };
                    self.store.update(changed, &by()).await
                }
            };
            match written {
                Err(Error::AlreadyExists { .. } | Error::Conflict { .. } | Error::NotFound { .. }) => {}
                other => return other.map(drop),
            }
        }
        Err(Error::Conflict { key: key.clone() })
    }
}

fn by() -> By {
    By::actor("concert").because("custom role")
}

/// `held` as it is wanted; none if it is.
fn changed(held: Object, wanted: &Object) -> Option<Object> {
    let mut new = held.clone();
    for field in ["rules", "subjects"] {
        if !wanted.get(field).is_null() {
            new.set(field, wanted.get(field).clone());
        }
    }
    for (label, value) in wanted.labels() {
        new.set_label(&label, &value);
    }
    (new != held).then_some(new)
}

fn served(definition: &Object) -> Option<Served> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let served = Served {
        name: definition.annotation(names::TYPE)?.to_owned(),
        version: definition.annotation(names::VERSION)?.to_owned(),
        group: text(&definition.spec()["group"])?,
        plural: text(&definition.spec()["names"]["plural"])?,
    };
    is_ours(&served.group).then_some(served)
}

/// The cluster role of a custom role, and the binding to everybody who has it.
fn compiled(role: &Object, types: &[Served]) -> Vec<Value> {
    let id = records::id(role);
    if id == 0 {
        return Vec::new();
    }
    let rules = CustomRole::read(role).rules(types);
    of_group(&format!("no8s:{}", role.name()), &id.to_string(), &role_group(id), &rules)
}

/// What lets everybody in `group` do what `rules` say.
fn of_group(name: &str, label: &str, group: &str, rules: &[Rule]) -> Vec<Value> {
    let metadata = json!({"name": name, "labels": {MADE: label}});
    let api_version = format!("{RBAC}/v1");
    vec![
        json!({"apiVersion": api_version, "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group}],
        }),
    ]
}

fn key(object: &Value) -> ObjectKey {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let kind = GroupKind::new(RBAC, text(&object["kind"]));
    ObjectKey::cluster(kind, text(&object["metadata"]["name"]))
}
