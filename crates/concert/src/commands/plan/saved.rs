//! Plans in files: what would be sent, and what that was based on.

use std::path::Path;

use concert_model::Object;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shown;
use super::step::Step;
use crate::cli::Advice;
use crate::client::Session;
use crate::client::apply::Expect;
use crate::secret_file;

/// The form of the file. One with another number is not read.
const FORMAT: u32 = 2;

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
    /// What its provider would do; none if it has none.
    provider: Option<Value>,
}

/// Saves a plan where only its owner can read it: manifests may hold secrets.
pub fn write(path: &Path, server: &str, steps: &[Step]) -> anyhow::Result<()> {
    let entry = |step: &Step| Entry {
        manifest: step.manifest.clone().into_value(),
        uid: step.base.as_ref().map(|it| it.uid.clone()),
        resource_version: step.base.as_ref().map(|it| it.resource_version.clone()),
        provider: step.provider.as_ref().map(shown::answer),
    };
    let steps = steps.iter().map(entry).collect();
    let saved = Saved { concert_plan: FORMAT, server: server.to_owned(), steps };
    secret_file::write(path, &serde_json::to_vec_pretty(&saved)?)
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
    /// What is to be applied. What was there must still be in the state it was in, or the server refuses;
    /// what was not there must not be.
    pub fn manifests(&self) -> anyhow::Result<Vec<(Object, Expect)>> {
        let one = |entry: &Entry| {
            let mut object = Object::from_value(entry.manifest.clone())?;
            let (Some(uid), Some(version)) = (&entry.uid, &entry.resource_version) else {
                return Ok((object, Expect::Nothing));
            };
            object.set_metadata("uid", uid.as_str().into());
            object.set_metadata("resourceVersion", version.as_str().into());
            Ok((object, Expect::Anything))
        };
        self.steps.iter().map(one).collect()
    }

    /// Plans again, and looks whether it comes to the same, before anything is written.
    pub async fn check(&self, session: &Session, is_forced: bool) -> anyhow::Result<()> {
        if self.server != session.server() {
            let what = format!("the plan was made for {}, not for {}", self.server, session.server());
            return Err(Advice::new(what, format!("--server {}", self.server)).into());
        }
        let manifests = self.steps.iter().map(|it| Object::from_value(it.manifest.clone()));
        let manifests = manifests.collect::<Result<Vec<_>, _>>()?;
        let (now, _) = super::plan(session, &manifests, None).await?;
        let about =
            |step: &Step, how: &str| format!("{} {} {how}", step.manifest.kind(), step.manifest.name());
        let moved = self.steps.iter().zip(&now);
        let moved = moved.filter_map(|(entry, now)| difference(entry, now).map(|how| about(now, how)));
        let moved: Vec<String> = moved.collect();
        if !moved.is_empty() {
            let what = format!("what the plan was based on has moved: {}", moved.join("; "));
            return Err(Advice::new(what, "plan again: concert plan -f FILE -o FILE.plan").into());
        }
        let conflict = now.iter().filter(|_| !is_forced).find_map(|it| Some((it, it.conflict.as_deref()?)));
        match conflict {
            Some((step, why)) => {
                let hint = "concert apply --plan FILE.plan --force-conflicts";
                Err(Advice::new(about(step, &format!("has a {}", shown::one_line(why))), hint).into())
            }
            None => Ok(()),
        }
    }
}

/// How what is there, or what would be done about it, is not what it was.
fn difference(entry: &Entry, now: &Step) -> Option<&'static str> {
    match (&entry.uid, &now.base) {
        (None, Some(_)) => Some("exists now"),
        (Some(_), None) => Some("is gone"),
        (Some(uid), Some(now)) if *uid != now.uid => Some("is another one now"),
        (Some(_), Some(now)) if entry.resource_version.as_ref() != Some(&now.resource_version) => {
            Some("has changed")
        }
        _ if entry.provider != now.provider.as_ref().map(shown::answer) => {
            Some("is something else to its provider now")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use serde_json::json;

    use super::super::step::{Base, Provider};
    use super::*;

    fn entry(base: Option<(&str, &str)>, provider: Option<&Provider>) -> Entry {
        let manifest = json!({"apiVersion": "g.io/v1", "kind": "A", "metadata": {"name": "a"}});
        let (uid, version) = base.unzip();
        let provider = provider.map(shown::answer);
        Entry { manifest, uid: uid.map(Into::into), resource_version: version.map(Into::into), provider }
    }

    fn step(base: Option<(&str, &str)>, provider: Option<Provider>) -> Step {
        let manifest = Object::from_value(entry(None, None).manifest).unwrap();
        let base = base.map(|(uid, version)| Base { uid: uid.into(), resource_version: version.into() });
        Step { base, provider, ..Step::unknown(manifest, "") }
    }

    #[test]
    fn whatever_has_moved_is_said() {
        for (planned, now, how) in [
            (None, None, None),
            (None, Some(("u", "1")), Some("exists now")),
            (Some(("u", "1")), None, Some("is gone")),
            (Some(("u", "1")), Some(("v", "1")), Some("is another one now")),
            (Some(("u", "1")), Some(("u", "2")), Some("has changed")),
            (Some(("u", "1")), Some(("u", "1")), None),
        ] {
            assert_eq!(difference(&entry(planned, None), &step(now, None)), how, "{planned:?} {now:?}");
        }
    }

    #[test]
    fn another_answer_of_the_provider_is_a_move_and_another_reason_is_none() {
        let plan = |action: &str, reason: &str, size: i64| {
            let changes = json!([{"path": "spec.size", "from": 1, "to": size, "isSensitive": false, "replaces": false}]);
            Provider::of(&json!({"action": action, "reason": reason, "changes": changes}))
        };
        let first = plan("update", "", 2);
        for (now, how) in [
            (plan("update", "in other words", 2), None),
            (plan("update", "", 3), Some("is something else to its provider now")),
            (plan("replace", "", 2), Some("is something else to its provider now")),
            (None, Some("is something else to its provider now")),
        ] {
            assert_eq!(difference(&entry(None, first.as_ref()), &step(None, now.clone())), how, "{now:?}");
        }
    }

    #[test]
    fn a_plan_survives_its_file_and_is_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.plan");
        // One that is there, for everybody to read.
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        write(&path, "https://s", &[step(Some(("u", "7")), None), step(None, None)]).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let objects = read(&path).unwrap().manifests().unwrap();
        assert_eq!(objects[0].0.metadata("resourceVersion"), "7");
        assert_eq!(objects[0].1, Expect::Anything);
        assert_eq!(objects[1].1, Expect::Nothing, "what was not there is to be made");
        std::fs::write(&path, r#"{"concertPlan": 1, "server": "s", "steps": []}"#).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("its form is 1"));
        std::fs::write(&path, "kind: no").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("no saved plan"));
    }
}
