//! The folder with everything that a control plane owns: its store, the key of that, certificates, and the
//! kubeconfig that gets its administrator in.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use concert_api::listen::tls::replace_file;
use concert_model::base64;
use concert_store::backend::{Sqlite, sqlite};
use concert_store::seal::Keyring;
use concert_store::{Chance, Clock, Config, Local};
use serde_json::Value;

use super::Error;

/// Names in the folder.
const STORE: &str = "concert.db";
const KEY: &str = "concert.key";
const TLS: &str = "tls";
const KUBECONFIG: &str = "kubeconfig";
const LOGIN_KEY: &str = "jwt.key";
const AUDIT: &str = "audit.jsonl";

/// A folder that only its owner can read.
#[derive(Clone, Debug)]
pub struct DataFolder(PathBuf);

impl DataFolder {
    /// Makes the folder if it is not there.
    ///
    /// # Errors
    /// [`Error::Data`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, Error> {
        let path = path.into();
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| Error::Data { path: path.clone(), error })?;
        Ok(Self(path))
    }

    /// Whether a control plane was ever started in `path`. Makes nothing.
    pub fn has_store(path: &Path) -> bool {
        path.join(STORE).exists()
    }

    /// The database file.
    pub fn store(&self) -> PathBuf {
        self.0.join(STORE)
    }

    /// The key that the database is sealed with.
    pub fn key(&self) -> PathBuf {
        self.0.join(KEY)
    }

    /// The key that logins are signed with, unless one is configured.
    pub fn login_key(&self) -> PathBuf {
        self.0.join(LOGIN_KEY)
    }

    /// Where certificates are made.
    pub fn tls(&self) -> PathBuf {
        self.0.join(TLS)
    }

    /// The administrator's way in.
    pub fn kubeconfig(&self) -> PathBuf {
        self.0.join(KUBECONFIG)
    }

    /// Who did what.
    pub fn audit(&self) -> PathBuf {
        self.0.join(AUDIT)
    }

    /// The administrator's token, from the kubeconfig that was written at the first start.
    pub fn token_in_kubeconfig(&self) -> Option<String> {
        let text = fs::read_to_string(self.kubeconfig()).ok()?;
        let config: Value = serde_saphyr::from_str(&text).ok()?;
        config["users"][0]["user"]["token"].as_str().map(str::to_owned)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Opens the store, and its file for whoever copies it.
    ///
    /// # Errors
    /// [`Error::Store`], also when another process has it.
    pub fn open_store(&self, clock: &Arc<dyn Clock>, chance: &Chance) -> Result<(Local, Arc<Sqlite>), Error> {
        let backend = Sqlite::open(self.store(), &sqlite::Options::default()).map_err(Error::store)?;
        let backend = Arc::new(backend);
        let keyring = Keyring::open(self.key(), chance).map_err(Error::store)?;
        let config = Config::new(clock.clone(), chance.fork()).sealed(keyring);
        let store = Local::open(backend.clone(), config).map_err(Error::store)?;
        Ok((store, backend))
    }

    /// Writes the administrator's kubeconfig, readable by nobody else, in one step.
    ///
    /// # Errors
    /// [`Error::Data`].
    pub fn write_kubeconfig(&self, entry: &Entry) -> Result<(), Error> {
        let path = self.kubeconfig();
        let failed = |error| Error::Data { path: path.clone(), error };
        replace_file(&path, entry.to_yaml().as_bytes(), 0o600).map_err(failed)
    }
}

/// One cluster, one user, one context: what a kubeconfig of ours holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `https://127.0.0.1:8000`.
    pub server: String,
    /// The certificates that the server is verified with, as PEM; none for the well-known authorities, or
    /// for plain HTTP.
    pub authority: Option<String>,
    /// What to show; none where nobody asks.
    pub token: Option<String>,
}

impl Entry {
    /// As kubectl reads it.
    pub fn to_yaml(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut cluster = format!("    server: {}\n", quoted(&self.server));
        if let Some(pem) = &self.authority {
            let data = base64::encode(pem.as_bytes());
            cluster += &format!("    certificate-authority-data: {data}\n");
        }
        let user = match &self.token {
            Some(token) => format!("  user:\n    token: {}\n", quoted(token)),
            None => "  user: {}\n".to_owned(),
        };
        format!(
            "apiVersion: v1\nkind: Config\nclusters:\n- name: concert\n  cluster:\n{cluster}users:\n- name: admin\n{user}\
             contexts:\n- name: concert\n  context:\n    cluster: concert\n    user: admin\n    namespace: default\n\
             current-context: concert\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_kubeconfig_is_what_kubectl_reads_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let data = DataFolder::open(folder.path().join("a/b")).unwrap();
        let entry = Entry {
            server: "https://127.0.0.1:8000".into(),
            authority: Some("-----BEGIN".into()),
            token: Some("t\"k".into()),
        };
        data.write_kubeconfig(&entry).unwrap();
        let text = fs::read_to_string(data.kubeconfig()).unwrap();
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read["clusters"][0]["cluster"]["server"], "https://127.0.0.1:8000");
        assert_eq!(read["clusters"][0]["cluster"]["certificate-authority-data"], "LS0tLS1CRUdJTg==");
        assert_eq!(read["users"][0]["user"], json!({"token": "t\"k"}));
        assert_eq!(read["current-context"], read["contexts"][0]["name"]);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(data.path()), mode(&data.kubeconfig())), (0o700, 0o600));
    }

    #[test]
    fn without_authentication_there_is_nothing_to_show() {
        let entry = Entry { server: "http://127.0.0.1:8000".into(), authority: None, token: None };
        let read: Value = serde_saphyr::from_str(&entry.to_yaml()).unwrap();
        assert_eq!(read["users"][0]["user"], json!({}));
        assert!(read["clusters"][0]["cluster"].get("certificate-authority-data").is_none());
    }
}
