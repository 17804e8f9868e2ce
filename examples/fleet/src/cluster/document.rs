//! kubeconfigs that others wrote.
//!
//! A kubeconfig can name programs to run and files to read, so only the parts that are plain data are
//! taken over. Nothing here repeats what was in it: errors name fields, never values.

use std::net::IpAddr;

use concert_model::reach::is_refused;
use serde_json::{Value, json};

/// What leads to a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    pub server: String,
    /// Certificates of its authority: PEM in base64, as kubeconfigs have it.
    pub authority: Option<String>,
    pub identity: Identity,
}

/// Who we are.
#[derive(Clone, PartialEq, Eq)]
pub enum Identity {
    Token(String),
    /// Certificate and key: PEM in base64.
    Certificate(String, String),
}

impl Access {
    /// Reads the current context.
    ///
    /// # Errors
    /// What is wrong with it, without any of it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Value =
            serde_saphyr::from_str(text).map_err(|_| "it is neither YAML nor JSON".to_owned())?;
        let context = document["current-context"].as_str().unwrap_or_default();
        let context = named(&document, "contexts", context, "context")?;
        let name = |field: &str| context[field].as_str().ok_or_else(|| format!("its context has no {field}"));
        let cluster = named(&document, "clusters", name("cluster")?, "cluster")?;
        let user = named(&document, "users", name("user")?, "user")?;
        refuse(cluster, &["certificate-authority", "insecure-skip-tls-verify", "proxy-url"])?;
        refuse(user, &["exec", "auth-provider", "tokenFile", "client-certificate", "client-key", "as"])?;
        let server = cluster["server"].as_str().ok_or("its cluster has no server")?.to_owned();
        let authority = cluster["certificate-authority-data"].as_str().map(str::to_owned);
        let text = |field: &str| user[field].as_str().map(str::to_owned);
        let certificate = text("client-certificate-data").zip(text("client-key-data"));
        let identity = match (text("token"), certificate) {
            (Some(token), _) => Identity::Token(token),
            (None, Some((certificate, key))) => Identity::Certificate(certificate, key),
            (None, None) => return Err("its user has neither a token nor a certificate with a key".into()),
        };
        let access = Self { server, authority, identity };
        access.host()?;
        Ok(access)
    }

    /// A kubeconfig with this and nothing else.
    pub fn to_document(&self) -> Value {
        let mut cluster = json!({ "server": self.server });
        if let Some(authority) = &self.authority {
            cluster["certificate-authority-data"] = json!(authority);
        }
        let user = match &self.identity {
            Identity::Token(token) => json!({ "token": token }),
            Identity::Certificate(certificate, key) => {
                json!({ "client-certificate-data": certificate, "client-key-data": key })
            }
        };
        json!({"apiVersion": "v1", "kind": "Config", "current-context": "fleet",
            "clusters": [{"name": "fleet", "cluster": cluster}], "users": [{"name": "fleet", "user": user}],
            "contexts": [{"name": "fleet", "context": {"cluster": "fleet", "user": "fleet"}}]})
    }

    /// The same cluster as somebody else.
    pub fn with_token(&self, token: &str) -> Self {
        Self { identity: Identity::Token(token.to_owned()), ..self.clone() }
    }

    /// Looks at every address that the server's name leads to.
    pub async fn check_address(&self) -> Result<(), String> {
        let (host, port) = self.host()?;
        let found = tokio::net::lookup_host((host.as_str(), port)).await;
        for place in found.map_err(|_| "its server has a name that leads nowhere".to_owned())? {
            check(place.ip())?;
        }
        Ok(())
    }

    fn host(&self) -> Result<(String, u16), String> {
        let no_address = || "its server is no address such as https://HOST:PORT".to_owned();
        let uri: http::Uri = self.server.parse().map_err(|_| no_address())?;
        if uri.scheme_str() != Some("https") {
            return Err("its server does not start with https://".to_owned());
        }
        let host = uri.host().ok_or_else(no_address)?.trim_matches(['[', ']']).to_owned();
        if let Ok(address) = host.parse() {
            check(address)?;
        }
        Ok((host, uri.port_u16().unwrap_or(443)))
    }
}

/// Not where machines of a cloud find out about themselves.
fn check(address: IpAddr) -> Result<(), String> {
    if is_refused(address) { Err("its server is at an address that is refused".to_owned()) } else { Ok(()) }
}

fn named<'a>(document: &'a Value, list: &str, name: &str, part: &str) -> Result<&'a Value, String> {
    let entries = document[list].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = entries.iter().find(|it| it["name"] == name);
    found.map(|it| &it[part]).ok_or_else(|| format!("it has no {part} of the name that is used"))
}

fn refuse(part: &Value, fields: &[&str]) -> Result<(), String> {
    match fields.iter().find(|field| !part[**field].is_null() && part[**field] != false) {
        Some(field) => Err(format!("{field} is not accepted")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CANARY: &str = "canary-4711";

    fn document(cluster: &Value, user: &Value) -> String {
        json!({"current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}], "users": [{"name": "u", "user": user}]})
        .to_string()
    }

    fn why_not(text: &str) -> String {
        let why = Access::parse(text).err().expect("it is refused");
        assert!(!why.contains(CANARY), "{why}");
        why
    }

    #[test]
    fn plain_data_is_taken_over_and_nothing_else() {
        let cluster = json!({"server": "https://10.0.0.1:6443", "certificate-authority-data": "YQ=="});
        let access =
            Access::parse(&document(&cluster, &json!({"token": "t"}))).unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(access.server, "https://10.0.0.1:6443");
        assert!(Access::parse(&access.to_document().to_string()) == Ok(access));
        let both = json!({"client-certificate-data": "Yw==", "client-key-data": "aw=="});
        assert!(Access::parse(&document(&cluster, &both)).is_ok());
    }

    #[test]
    fn programs_and_files_are_refused_and_never_repeated() {
        let server = json!({"server": "https://10.0.0.1"});
        for field in ["exec", "auth-provider", "tokenFile", "client-certificate", "client-key", "as"] {
            assert!(why_not(&document(&server, &json!({"token": "t", field: CANARY}))).contains(field));
        }
        for field in ["certificate-authority", "insecure-skip-tls-verify", "proxy-url"] {
            let cluster = json!({"server": "https://10.0.0.1", field: CANARY});
            assert!(why_not(&document(&cluster, &json!({"token": CANARY}))).contains(field));
        }
        for text in [CANARY, "", "{", "a: [canary-4711", "[canary-4711]"] {
            assert!(!why_not(text).is_empty());
        }
        assert!(why_not(&document(&server, &json!({"username": CANARY}))).contains("neither"));
    }

    #[test]
    fn addresses_of_the_machine_room_are_refused() {
        for server in [
            "https://169.254.169.254/latest",
            "https://[fe80::1]:6443",
            "https://[::ffff:169.254.169.254]",
            "https://0.0.0.0:6443",
        ] {
            let why = why_not(&document(&json!({ "server": server }), &json!({"token": "t"})));
            assert!(why.contains("is refused"), "{server}: {why}");
        }
        for server in ["http://10.0.0.1", "10.0.0.1:6443", "https://", "file:///canary-4711"] {
            why_not(&document(&json!({ "server": server }), &json!({"token": "t"})));
        }
    }
}
