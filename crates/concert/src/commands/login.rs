//! `concert login`: remembers a server and who we are to it.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use anyhow::Context as _;
use concert_model::Address;
use http::Method;
use serde_json::{Value, json};

use super::Run;
use crate::cli::{Advice, say};
use crate::client::{Ask, Connection, Flags, Places, Session, kubeconfig};
use crate::exit::Exit;
use crate::{print, secret_file};

#[derive(clap::Args)]
pub struct Login {}

impl Run for Login {
    const NAME: &'static str = "login";
    const ABOUT: &'static str = "Remember a server and a token for the commands to come";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        if flags.server.is_none() && flags.kubeconfig.is_none() {
            let what = "which server to log in to is not said";
            return Err(Advice::new(
                what,
                "concert login --server https://HOST:PORT --certificate-authority FILE --token -",
            )
            .into());
        }
        let connection = Connection::find(flags)?;
        let Some(path) = Places::of_user().login() else {
            return Err(Advice::new("there is no home directory to remember it in", "set HOME").into());
        };
        Session::run_on(&connection, async |session| {
            let name = whoami(&session).await?;
            let mut document = kubeconfig::embed(connection.document.clone())?;
            document["contexts"][0]["context"]["namespace"] = connection.namespace.clone().into();
            write(&path, &document)?;
            say(&print::plain(&format!(
                "logged in to {} as {name}; written to {}",
                session.server(),
                path.display()
            )));
            Ok(Exit::Done)
        })
    }
}

/// Who the server takes us for. One that does not tell lets anybody in.
async fn whoami(session: &Session) -> anyhow::Result<String> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let address = Address::new("/apis/authentication.k8s.io/v1/selfsubjectreviews");
    match session.value(&Ask::new(Method::POST, address).with_json(&review)).await {
        Ok(answer) => {
            let name = answer.pointer("/status/userInfo/username").and_then(Value::as_str);
            Ok(name.unwrap_or("somebody").to_owned())
        }
        Err(error) if error.is_not_served() => Ok("nobody in particular".to_owned()),
        Err(error) => Err(error.into()),
    }
}

/// Writes it where only its owner can read it.
fn write(path: &Path, document: &Value) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(cannot)?;
    secret_file::write(path, print::yaml(document).as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_remembered_is_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("concert/kubeconfig");
        for token in ["one", "two"] {
            write(&path, &json!({"users": [{"user": {"token": token}}]})).unwrap();
        }
        assert!(std::fs::read_to_string(&path).unwrap().contains("two"));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
