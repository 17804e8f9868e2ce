//! What providers of Crossplane call things, so that those of one kind can take the place of each other: the
//! tags of an external thing, and the keys of connection details.

use std::collections::BTreeMap;

use concert_model::Object;
use serde_json::Value;

/// Keys of the tags by which an external thing names the object that it belongs to.
pub mod tag {
    /// The kind, `KIND.GROUP` in lower case.
    pub const KIND: &str = "crossplane-kind";
    /// The object's name.
    pub const NAME: &str = "crossplane-name";
    /// Its namespace, where it has one.
    pub const NAMESPACE: &str = "crossplane-namespace";
    /// The name of the configuration it refers to.
    pub const CONFIG: &str = "crossplane-providerconfig";
    /// The kind of that, where the object says it.
    pub const CONFIG_KIND: &str = "crossplane-providerconfig-kind";
}

/// Keys of connection details.
pub mod detail {
    /// Where to connect to.
    pub const ENDPOINT: &str = "endpoint";
    /// At which port.
    pub const PORT: &str = "port";
    /// As whom.
    pub const USERNAME: &str = "username";
    /// With which password.
    pub const PASSWORD: &str = "password";
    /// The certificate of the authority that vouches for it, in PEM.
    pub const CLUSTER_CA: &str = "clusterCA";
    /// The certificate to show, in PEM.
    pub const CLIENT_CERT: &str = "clientCert";
    /// Its key, in PEM.
    pub const CLIENT_KEY: &str = "clientKey";
    /// With which token.
    pub const TOKEN: &str = "token";
    /// A whole kubeconfig.
    pub const KUBECONFIG: &str = "kubeconfig";
}

/// The tags that an external thing of `object` should have, where its system has tags. What is empty is left
/// out.
pub fn external_tags(object: &Object) -> BTreeMap<&'static str, String> {
    let kind = object.gvk().map(|it| it.group_kind.to_string().to_lowercase()).unwrap_or_default();
    let config = object.spec().get("providerConfigRef");
    let of_config = |field: &str| {
        let text = config.and_then(|it| it.get(field)).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let tags = [
        (tag::KIND, kind),
        (tag::NAME, object.name().to_owned()),
        (tag::NAMESPACE, object.namespace().to_owned()),
        (tag::CONFIG, of_config("name")),
        (tag::CONFIG_KIND, of_config("kind")),
    ];
    tags.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tags(metadata: Value, spec: Value) -> Value {
        let object = json!({"apiVersion": "storage.example.com/v1", "kind": "BucketPolicy",
            "metadata": metadata, "spec": spec});
        json!(external_tags(&Object::from_value(object).unwrap()))
    }

    #[test]
    fn tags_name_the_object_and_its_configuration() {
        let reference = json!({"providerConfigRef": {"kind": "ClusterProviderConfig", "name": "default"}});
        assert_eq!(
            tags(json!({"name": "a", "namespace": "team"}), reference),
            json!({"crossplane-kind": "bucketpolicy.storage.example.com", "crossplane-name": "a",
                "crossplane-namespace": "team", "crossplane-providerconfig": "default",
                "crossplane-providerconfig-kind": "ClusterProviderConfig"})
        );
    }

    #[test]
    fn what_an_object_does_not_say_is_no_tag() {
        let kind = "bucketpolicy.storage.example.com";
        let named = json!({"crossplane-kind": kind, "crossplane-name": "a"});
        assert_eq!(tags(json!({"name": "a"}), json!({})), named);
        let legacy = json!({"providerConfigRef": {"name": "default"}});
        let tagged = tags(json!({"name": "a"}), legacy);
        assert_eq!(
            (&tagged["crossplane-providerconfig"], tagged.as_object().unwrap().len()),
            (&json!("default"), 3)
        );
    }

    #[test]
    fn details_have_the_keys_that_their_readers_look_for() {
        use detail::*;
        let all =
            [ENDPOINT, PORT, USERNAME, PASSWORD, CLUSTER_CA, CLIENT_CERT, CLIENT_KEY, TOKEN, KUBECONFIG];
        let keys = "endpoint port username password clusterCA clientCert clientKey token kubeconfig";
        assert_eq!(all.join(" "), keys);
    }
}
