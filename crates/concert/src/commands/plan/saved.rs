//! Plans in files: what would be sent, and what that was based on.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use concert_model::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::step::{Base, Step};
use crate::cli::Advice;
use crate::client::apply::{Applier, Options};
use crate::client::{Ask, Session};

/// The form of the file. One with another number is not read.
const FORMAT: u32 = 1;

/// A plan as it was saved.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Saved {
    concert_plan: u32,
    server: String,
    steps: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    manifest: Value,
    /// None if there was no such object.
    uid: Option<String>,
    resource_version: Option<String>,
}

/// Saves a plan where only its owner can read it: manifests may hold secrets.
pub fn write(path: &Path, server: &str, steps: &[Step]) -> anyhow::Result<()> {
    let entry = |step: &Step| Entry {
        manifest: step.manifest.clone().into_value(),
        uid: step.base.as_ref().map(|it| it.uid.clone()),
        resource_version: step.base.as_ref().map(|it| it.resource_version.clone()),
    };
    let steps = steps.iter().map(entry).collect();
    let saved = Saved { concert_plan: FORMAT, server: server.to_owned(), steps };
    let cannot = || format!("cannot write {}", path.display());
    let mut options = std::fs::OpenOptions::new();
    let mut file =
        options.write(true).create(true).truncate(true).mode(0o600).open(path).with_context(cannot)?;
    file.write_all(&serde_json::to_vec_pretty(&saved)?).with_context(cannot)
}

/// Reads a plan.
pub fn read(path: &Path) -> anyhow::Result<Saved> {
    let again = "make it again with `concert plan -f FILE -o FILE.plan`";
    let wrong = |why: String| Advice::new(format!("{} is no saved plan: {why}", path.display()), again);
    let text = std::fs::read(path).map_err(|it| wrong(it.to_string()))?;
    let saved: Saved = serde_json::from_slice(&text).map_err(|it| wrong(it.to_string()))?;
    if saved.concert_plan != FORMAT {
        return Err(wrong(format!("its form is {}, not {FORMAT}", saved.concert_plan)).into());
    }
    Ok(saved)
}

impl Saved {
    /// What is to be applied. What was there must still be in the state it was in, or the server refuses.
    pub fn manifests(&self) -> anyhow::Result<Vec<Object>> {
        let one = |entry: &Entry| {
            let mut object = Object::from_value(entry.manifest.clone())?;
            if let (Some(uid), Some(version)) = (&entry.uid, &entry.resource_version) {
                object.set_metadata("uid", uid.as_str().into());
                object.set_metadata("resourceVersion", version.as_str().into());
            }
            Ok(object)
        };
        self.steps.iter().map(one).collect()
    }

    /// Looks whether everything is as it was, before anything is written.
    pub async fn check(&self, session: &Session) -> anyhow::Result<()> {
        if self.server != session.server() {
            let what = format!("the plan was made for {}, not for {}", self.server, session.server());
            return Err(Advice::new(what, format!("--server {}", self.server)).into());
        }
        let mut finder = Applier::new(session, Options::default(), None);
        let mut moved = Vec::new();
        for entry in &self.steps {
            let manifest = Object::from_value(entry.manifest.clone())?;
            // A kind that the plan itself defines has no objects.
            let now = match finder.resource(&manifest).await {
                Ok(resource) => {
                    let manifest = finder.prepared(&manifest, &resource)?;
                    let ask = Ask::get(resource.object(manifest.namespace(), manifest.name()));
                    session.find(&ask).await?.as_ref().map(Base::of)
                }
                Err(_) if entry.uid.is_none() => None,
                Err(error) => return Err(error),
            };
            if let Some(how) = difference(entry, now.as_ref()) {
                moved.push(format!("{} {} {how}", manifest.kind(), manifest.name()));
            }
        }
        if moved.is_empty() {
            return Ok(());
        }
        let what = format!("what the plan was based on has moved: {}", moved.join("; "));
        Err(Advice::new(what, "plan again: concert plan -f FILE -o FILE.plan").into())
    }
}

/// How what is there is not what was there.
fn difference(entry: &Entry, now: Option<&Base>) -> Option<&'static str> {
    match (&entry.uid, now) {
        (None, None) => None,
        (None, Some(_)) => Some("exists now"),
        (Some(_), None) => Some("is gone"),
        (Some(uid), Some(now)) if *uid != now.uid => Some("is another one now"),
        (Some(_), Some(now)) if entry.resource_version.as_ref() != Some(&now.resource_version) => {
            Some("has changed")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::*;

    fn entry(base: Option<(&str, &str)>) -> Entry {
        let manifest = json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a"}});
        let (uid, version) = base.unzip();
        Entry { manifest, uid: uid.map(Into::into), resource_version: version.map(Into::into) }
    }

    #[test]
    fn whatever_has_moved_is_said() {
        let base = |uid: &str, version: &str| Base { uid: uid.into(), resource_version: version.into() };
        for (planned, now, how) in [
            (None, None, None),
            (None, Some(base("u", "1")), Some("exists now")),
            (Some(("u", "1")), None, Some("is gone")),
            (Some(("u", "1")), Some(base("v", "1")), Some("is another one now")),
            (Some(("u", "1")), Some(base("u", "2")), Some("has changed")),
            (Some(("u", "1")), Some(base("u", "1")), None),
        ] {
            assert_eq!(difference(&entry(planned), now.as_ref()), how, "{planned:?} {now:?}");
        }
    }

    #[test]
    fn a_plan_survives_its_file_and_is_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.plan");
        let mut step = Step::unknown(Object::from_value(entry(None).manifest).unwrap(), "");
        step.base = Some(Base { uid: "u".into(), resource_version: "7".into() });
        write(&path, "https://s", &[step]).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let objects = read(&path).unwrap().manifests().unwrap();
        assert_eq!(objects[0].metadata("resourceVersion"), "7");
        std::fs::write(&path, r#"{"concertPlan": 2, "server": "s", "steps": []}"#).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("its form is 2"));
        std::fs::write(&path, "kind: no").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("no saved plan"));
    }
}
