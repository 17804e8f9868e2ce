//! Which kinds a server has, and which of them a word means.

use concert_model::Address;
use serde_json::Value;

use super::error::Error;
use super::session::{Ask, Session};
use crate::cli::Advice;

/// All in one answer, where the server can do that.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// One kind in one version, and how it is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    /// As in paths: `buckets`.
    pub plural: String,
    pub singular: String,
    pub kind: String,
    pub short_names: Vec<String>,
    pub categories: Vec<String>,
    pub is_namespaced: bool,
    pub verbs: Vec<String>,
}

impl Resource {
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// What its objects are called on the command line: `bucket.cloud.concert.dev`.
    pub fn label(&self) -> String {
        let kind = self.kind.to_lowercase();
        if self.group.is_empty() { kind } else { format!("{kind}.{}", self.group) }
    }

    /// All of them, or those of a namespace.
    pub fn collection(&self, namespace: Option<&str>) -> Address {
        let base = if self.group.is_empty() {
            Address::new("/api").step(&self.version)
        } else {
            Address::new("/apis").step(&self.group).step(&self.version)
        };
        let base = match namespace.filter(|_| self.is_namespaced) {
            Some(namespace) => base.step("namespaces").step(namespace),
            None => base,
        };
        base.step(&self.plural)
    }

    /// One of them.
    pub fn object(&self, namespace: &str, name: &str) -> Address {
        self.collection(Some(namespace)).step(name)
    }

    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|it| it == verb)
    }

    fn is_called(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        let (name, group) = match word.split_once('.') {
            Some((name, group)) => (name, Some(group)),
            None => (word.as_str(), None),
        };
        let is_name = name == self.plural
            || name == self.singular
            || name == self.kind.to_lowercase()
            || self.short_names.iter().any(|it| it == name);
        // `buckets.v1.cloud.concert.dev` names the version as well.
        let is_group = group.is_none_or(|it| {
            it == self.group
                || it.strip_prefix(&self.version).and_then(|it| it.strip_prefix('.')) == Some(&self.group)
        });
        is_name && is_group
    }
}

/// The kinds of a server, in the order it prefers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds(pub Vec<Resource>);

impl Kinds {
    /// Asks the server.
    pub async fn of(session: &Session) -> Result<Self, Error> {
        let mut all = Vec::new();
        for root in ["/api", "/apis"] {
            let answer = session.value(&Ask::get(Address::new(root)).accept(AGGREGATED)).await?;
            if answer["kind"] == "APIGroupDiscoveryList" {
                all.extend(aggregated(&answer));
                continue;
            }
            for (group, version) in versions(&answer) {
                all.extend(Self::of_version(session, &group, &version).await?.0);
            }
        }
        Ok(Self(all))
    }

    /// The kinds of one version of a group; none if there is no such version.
    pub async fn of_version(session: &Session, group: &str, version: &str) -> Result<Self, Error> {
        let address = if group.is_empty() { Address::new("/api") } else { Address::new("/apis").step(group) };
        let answer = session.find(&Ask::get(address.step(version))).await?;
        Ok(Self(answer.map(|it| of_list(group, version, &it)).unwrap_or_default()))
    }

    /// The one kind that a word means.
    pub fn one(&self, word: &str) -> Result<&Resource, Advice> {
        self.0.iter().find(|it| it.is_called(word)).ok_or_else(|| unknown(word))
    }

    /// The kinds that a word means: one, or all of a category.
    pub fn all(&self, word: &str) -> Result<Vec<&Resource>, Advice> {
        if let Ok(one) = self.one(word) {
            return Ok(vec![one]);
        }
        let mut found: Vec<&Resource> = Vec::new();
        for resource in self.0.iter().filter(|it| it.can("list") && it.categories.iter().any(|it| it == word))
        {
            // Other versions are views of the same objects.
            if !found.iter().any(|it| it.group == resource.group && it.plural == resource.plural) {
                found.push(resource);
            }
        }
        if found.is_empty() { Err(unknown(word)) } else { Ok(found) }
    }
}

fn unknown(word: &str) -> Advice {
    Advice::new(format!("the server has no kind that is called {word}"), "concert api-resources")
}

fn text(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value, field: &str) -> Vec<String> {
    let all = value[field].as_array().into_iter().flatten();
    all.filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

fn aggregated(answer: &Value) -> Vec<Resource> {
    let mut all = Vec::new();
    for group in answer["items"].as_array().into_iter().flatten() {
        let name = text(&group["metadata"], "name");
        for version in group["versions"].as_array().into_iter().flatten() {
            for it in version["resources"].as_array().into_iter().flatten() {
                all.push(Resource {
                    group: name.clone(),
                    version: text(version, "version"),
                    plural: text(it, "resource"),
                    singular: text(it, "singularResource"),
                    kind: text(&it["responseKind"], "kind"),
                    short_names: texts(it, "shortNames"),
                    categories: texts(it, "categories"),
                    is_namespaced: it["scope"] == "Namespaced",
                    verbs: texts(it, "verbs"),
                });
            }
        }
    }
    all
}

/// What an APIVersions or an APIGroupList names; of each group the preferred version first.
fn versions(answer: &Value) -> Vec<(String, String)> {
    if answer["kind"] == "APIVersions" {
        return texts(answer, "versions").into_iter().map(|it| (String::new(), it)).collect();
    }
    let mut all = Vec::new();
    for group in answer["groups"].as_array().into_iter().flatten() {
        let preferred = text(&group["preferredVersion"], "version");
        let mut versions: Vec<String> =
            group["versions"].as_array().into_iter().flatten().map(|it| text(it, "version")).collect();
        versions.sort_by_key(|it| *it != preferred);
        all.extend(versions.into_iter().map(|it| (text(group, "name"), it)));
    }
    all
}

fn of_list(group: &str, version: &str, list: &Value) -> Vec<Resource> {
    let all = list["resources"].as_array().into_iter().flatten();
    // What has a slash is a part of an object.
    let whole = all.filter(|it| it["name"].as_str().is_some_and(|it| !it.contains('/')));
    whole
        .map(|it| Resource {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: text(it, "name"),
            singular: text(it, "singularName"),
            kind: text(it, "kind"),
            short_names: texts(it, "shortNames"),
            categories: texts(it, "categories"),
            is_namespaced: it["namespaced"] == true,
            verbs: texts(it, "verbs"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kinds() -> Kinds {
        let bucket = |version: &str| {
            json!({"version": version, "resources": [{"resource": "buckets", "scope": "Namespaced",
            "responseKind": {"kind": "Bucket"}, "singularResource": "bucket", "shortNames": ["bkt"],
            "categories": ["managed"], "verbs": ["get", "list"]}]})
        };
        Kinds(aggregated(&json!({"items": [
            {"metadata": {"name": ""}, "versions": [{"version": "v1", "resources": [{"resource": "secrets",
                "responseKind": {"kind": "Secret"}, "singularResource": "secret", "scope": "Namespaced", "verbs": ["list"]}]}]},
            {"metadata": {"name": "cloud.dev"}, "versions": [bucket("v1"), bucket("v1alpha1")]},
            {"metadata": {"name": "other.dev"}, "versions": [bucket("v2")]}]})))
    }

    #[test]
    fn a_kind_has_many_names() {
        let kinds = kinds();
        for word in ["buckets", "bucket", "Bucket", "BKT", "buckets.cloud.dev", "bucket.v1.cloud.dev"] {
            assert_eq!(kinds.one(word).unwrap().api_version(), "cloud.dev/v1", "{word}");
        }
        assert_eq!(kinds.one("buckets.v1alpha1.cloud.dev").unwrap().version, "v1alpha1");
        assert_eq!(kinds.one("bkt.other.dev").unwrap().group, "other.dev");
        assert_eq!(kinds.one("secret").unwrap().label(), "secret");
        for word in ["bucke", "buckets.dev", "", "managed"] {
            assert_eq!(kinds.one(word).unwrap_err().hint, "concert api-resources", "{word}");
        }
    }

    #[test]
    fn a_category_means_each_kind_once() {
        let kinds = kinds();
        let found: Vec<String> = kinds.all("managed").unwrap().iter().map(|it| it.api_version()).collect();
        assert_eq!(found, ["cloud.dev/v1", "other.dev/v2"]);
        assert!(kinds.all("nothing").is_err());
    }

    #[test]
    fn older_servers_answer_piece_by_piece() {
        let groups = json!({"kind": "APIGroupList", "groups": [{"name": "g.io", "preferredVersion": {"version": "v1"},
            "versions": [{"version": "v2beta1"}, {"version": "v1"}]}]});
        let pair = |version: &str| ("g.io".to_owned(), version.to_owned());
        assert_eq!(versions(&groups), [pair("v1"), pair("v2beta1")]);
        assert_eq!(
            versions(&json!({"kind": "APIVersions", "versions": ["v1"]})),
            [(String::new(), "v1".to_owned())]
        );
        let list = json!({"resources": [{"name": "as", "singularName": "a", "kind": "A", "namespaced": true, "verbs": ["get"]},
            {"name": "as/status", "kind": "A"}]});
        let found = of_list("g.io", "v1", &list);
        assert_eq!((found.len(), found[0].label().as_str()), (1, "a.g.io"));
        assert_eq!(found[0].object("n", "x").as_str(), "/apis/g.io/v1/namespaces/n/as/x");
    }

    #[test]
    fn cluster_scoped_kinds_have_no_namespace_in_their_path() {
        let resource = Resource { version: "v1".into(), plural: "namespaces".into(), ..Resource::default() };
        assert_eq!(resource.object("default", "team").as_str(), "/api/v1/namespaces/team");
    }
}
