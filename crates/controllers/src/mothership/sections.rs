//! What is known of the sections of all entries: versions, values that somebody cares for, and the
//! revision of each entry. Plain data behind one lock; contents are not kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use concert_engine::{Versions, Watched};
use concert_model::inventory::{Entry, Ledger, Section, names};
use concert_model::{Object, Uid};
use concert_store::Error;
use serde_json::Value;

/// Values that are told apart in sections of one name; who cares for more of them hears of every change.
const PATHS_MAX: usize = 64;
/// Longest path of such a value: what a registration takes.
const PATH_BYTES_MAX: usize = 1024;
/// Names of sections in which values are told apart. Who waits names sections, there or not.
const NAMES_MAX: usize = 1_000;

/// All sections. Everything is told to it in the order in which it happened.
#[derive(Debug, Default)]
pub struct Sections {
    state: Mutex<State>,
    /// How many of its two sources have told what there is.
    listed: Watched<usize>,
}

#[derive(Debug, Default)]
struct State {
    ledger: Ledger,
    /// By the name of the object.
    known: BTreeMap<Arc<str>, Known>,
    /// Which values matter, by section.
    paths: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    list: u64,
}

#[derive(Debug)]
struct Known {
    uid: Option<Uid>,
    version: u64,
    /// Values by path, where they are known; none for what is not there.
    values: BTreeMap<Arc<str>, Option<u64>>,
    list: u64,
}

/// A section that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Of which entry.
    pub entry: Arc<str>,
    /// Which incarnation of it.
    pub uid: Option<Uid>,
    /// Which.
    pub section: Arc<str>,
    /// What it is at now, in the words of labels; none if it is gone.
    pub at: Option<Arc<str>>,
    /// Values that matter, and whether they are others than before.
    pub values: Vec<(Arc<str>, Option<u64>, bool)>,
}

/// What is known of something that is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Its version, in the words of labels; none if there is nothing.
    At(Option<Arc<str>>),
    /// Its section is at this version, but nobody has looked at the value yet.
    Unseen(u64),
}

impl Moved {
    /// Whether this wakes who watches `path`.
    pub fn concerns(&self, path: Option<&str>) -> bool {
        let Some(path) = path else { return true };
        // One that is not told apart may be another one now.
        self.values.iter().find(|it| *it.0 == *path).is_none_or(|it| it.2)
    }

    /// Everything that this is news of, with what it is at now: under the name of the entry, and under
    /// that of this incarnation of it.
    pub fn labels(&self) -> Vec<(String, Option<Arc<str>>)> {
        let mut labels = Vec::new();
        for uid in std::iter::once(None).chain(self.uid.as_ref().map(Some)) {
            labels.push((label(&self.entry, uid, &self.section, None), self.at.clone()));
            for (path, value, _) in &self.values {
                labels.push((label(&self.entry, uid, &self.section, Some(path)), value.map(value_text)));
            }
        }
        labels
    }
}

/// What a section of an entry, or a value in it, is called among those who wait. With `uid` it is one of
/// that incarnation of the entry.
pub fn label(entry: &str, uid: Option<&Uid>, section: &str, path: Option<&str>) -> String {
    let uid = uid.map(|it| format!("@{}", it.0)).unwrap_or_default();
    let path = path.map(|it| format!("#{it}")).unwrap_or_default();
    format!("{entry}{uid}/{section}{path}")
}

type Parsed<'a> = (&'a str, Option<Uid>, &'a str, Option<&'a str>);

fn parse_label(label: &str) -> Option<Parsed<'_>> {
    let (entry, rest) = label.split_once('/')?;
    let (entry, uid) = match entry.split_once('@') {
        Some((entry, uid)) => (entry, Some(Uid(uid.into()))),
        None => (entry, None),
    };
    match rest.split_once('#') {
        Some((section, path)) => Some((entry, uid, section, Some(path))),
        None => Some((entry, uid, rest, None)),
    }
}

/// A version of one incarnation: a section may outlive its entry for a moment, and meet the next one.
fn version_text(uid: Option<&Uid>, version: u64) -> Arc<str> {
    format!("{version} of {}", uid.map_or("", |it| &it.0)).into()
}

fn value_text(value: u64) -> Arc<str> {
    format!("{value:x}").into()
}

/// What a value comes to, for this incarnation of its entry; none for one that is not there.
pub fn value_of(section: Section<'_>, path: &str) -> Option<u64> {
    let uid = section.entry_uid().unwrap_or_else(|| Uid("".into()));
    if section.is_secret() {
        // What is in it is nobody's business: any change may be one of the value.
        return Some(hash(&format!("{}{}", uid.0, section.hash())));
    }
    let value = section.data().pointer(path).filter(|it| !it.is_null());
    value.map(|it: &Value| hash(&format!("{}{it}", uid.0)))
}

/// FNV-1a, finished so that all bits count: values are only compared with earlier ones of this process.
fn hash(text: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^ (hash >> 33)
}

impl Sections {
    /// Nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Completes when all that there is has been told.
    pub async fn ready(&self) {
        self.listed.wait_for(|it| *it >= 2).await;
    }

    /// A list begins: all sections follow.
    pub fn list_begins(&self) {
        self.lock().list += 1;
    }

    /// A list has ended: what was known and is not in it is gone.
    pub fn list_ends(&self, is_first: bool) -> Vec<Moved> {
        let mut state = self.lock();
        let list = state.list;
        let lost: Vec<Arc<str>> =
            state.known.iter().filter(|(_, it)| it.list != list).map(|(name, _)| name.clone()).collect();
        let moved = lost.iter().filter_map(|name| state.forget(name)).collect();
        state.ledger.settle();
        drop(state);
        if is_first {
            self.listed.change(|it| *it += 1);
        }
        moved
    }

    /// All entries have been told for the first time.
    pub fn entries_listed(&self) {
        self.lock().ledger.settle();
        self.listed.change(|it| *it += 1);
    }

    /// An entry is like this.
    pub fn note_entry(&self, entry: &Object) {
        self.lock().ledger.note_entry(entry);
    }

    /// An entry is no more.
    pub fn entry_gone(&self, entry: &Object) {
        self.lock().ledger.remove_entry(&Entry(entry).uid());
    }

    /// A section is like this. Says what that changes.
    pub fn note(&self, object: &Object) -> Option<Moved> {
        let section = Section(object);
        let mut state = self.lock();
        let (list, name) = (state.list, Arc::<str>::from(object.name()));
        let paths = state.paths.get(section.name()).cloned().unwrap_or_default();
        let (uid, version) = (section.entry_uid(), section.version());
        state.ledger.note_section(object);
        let before = state.known.get_mut(&name);
        if let Some(before) = before.filter(|it| it.uid == uid && it.version >= version) {
            before.list = list;
            if before.version == version {
                for path in paths {
                    before.values.entry(path.clone()).or_insert_with(|| value_of(section, &path));
                }
            }
            return None;
        }
        let values: BTreeMap<Arc<str>, Option<u64>> =
            paths.iter().map(|path| (path.clone(), value_of(section, path))).collect();
        let at = Some(version_text(uid.as_ref(), version));
        let known = Known { uid: uid.clone(), version, values: values.clone(), list };
        let before = state.known.insert(name, known).filter(|it| it.uid == uid);
        let old = |path: &str| before.as_ref().map_or(Some(None), |it| it.values.get(path).copied());
        let values = values.into_iter().map(|(path, now)| {
            let is_other = old(&path) != Some(now);
            (path, now, is_other)
        });
        Some(Moved {
            entry: section.entry().into(),
            uid,
            section: section.name().into(),
            at,
            values: values.collect(),
        })
    }

    /// A section is no more; `last` is what it was.
    pub fn gone(&self, last: &Object) -> Option<Moved> {
        let mut state = self.lock();
        state.ledger.remove_section(last);
        let is_it = state.known.get(last.name()).is_some_and(|it| it.uid == Section(last).entry_uid());
        is_it.then(|| state.forget(last.name())).flatten()
    }

    /// Has values of sections told apart. Says whether some were not: sections have to be listed again.
    pub fn care_for<'a>(&self, wanted: impl IntoIterator<Item = (&'a str, &'a str)>) -> bool {
        let mut state = self.lock();
        let mut is_new = false;
        for (section, path) in wanted {
            is_new |= state.care_for(section, path) == Care::New;
        }
        is_new
    }

    /// What a section of an entry, or a value in it, is called and at; the value is told apart from now
    /// on. Beyond the bound it is the section that is looked at. One of another incarnation than `uid` is
    /// not there.
    pub fn look(&self, entry: &str, uid: Option<&Uid>, section: &str, path: Option<&str>) -> (String, Sight) {
        let mut state = self.lock();
        let path = path.filter(|path| state.care_for(section, path) != Care::Refused);
        let name = label(entry, uid, section, path);
        let known = state.known.get(&*names::section_object(entry, section));
        let Some(known) = known.filter(|it| uid.is_none() || it.uid.as_ref() == uid) else {
            return (name, Sight::At(None));
        };
        let sight = match path {
            None => Sight::At(Some(version_text(known.uid.as_ref(), known.version))),
            Some(path) => match known.values.get(path) {
                Some(value) => Sight::At(value.map(value_text)),
                None => Sight::Unseen(known.version),
            },
        };
        (name, sight)
    }

    /// Somebody has looked at a value: takes it if it is of the version that is known.
    pub fn learn(&self, object: &Object, path: &str) -> bool {
        let (section, mut state) = (Section(object), self.lock());
        let known = state.known.get_mut(object.name());
        let known = known.filter(|it| it.version == section.version() && it.uid == section.entry_uid());
        known.map(|it| it.values.insert(path.into(), value_of(section, path))).is_some()
    }

    /// The revision of an entry.
    pub fn revision(&self, entry: &Uid) -> u64 {
        self.lock().ledger.revision(entry)
    }

    /// Whether a section has changed after `revision` of its entry.
    pub fn has_changed(&self, entry: &Uid, section: &str, revision: u64) -> bool {
        self.lock().ledger.has_changed(entry, section, revision)
    }

    /// The versions of some sections of an entry; 0 for what is not there.
    pub fn versions<'a>(
        &self,
        entry: &str,
        sections: impl IntoIterator<Item = &'a str>,
    ) -> BTreeMap<String, u64> {
        let state = self.lock();
        let version = |section: &str| state.known.get(&*names::section_object(entry, section));
        sections.into_iter().map(|it| (it.to_owned(), version(it).map_or(0, |it| it.version))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn forget(&mut self, name: &str) -> Option<Moved> {
        let known = self.known.remove(name)?;
        let (entry, section) = names::parse_section_object(name)?;
        if let Some(uid) = &known.uid {
            // Also when nobody heard it go: whoever counts less than the inventory does would take a change
            // for one that its host had seen.
            self.ledger.lose_section(uid, section, known.version);
        }
        let value = |(path, value): (Arc<str>, Option<u64>)| (path, None, value.is_some());
        Some(Moved {
            entry: entry.into(),
            uid: known.uid,
            section: section.into(),
            at: None,
            values: known.values.into_iter().map(value).collect(),
        })
    }

    fn care_for(&mut self, section: &str, path: &str) -> Care {
        let has_room = self.paths.len() < NAMES_MAX;
        let paths = match self.paths.get_mut(section) {
            Some(paths) => paths,
            None if !has_room => return Care::Refused,
            None => self.paths.entry(section.into()).or_default(),
        };
        if paths.iter().any(|it| **it == *path) {
            return Care::Known;
        }
        if paths.len() >= PATHS_MAX || path.len() > PATH_BYTES_MAX {
            return Care::Refused;
        }
        paths.push(path.into());
        Care::New
    }
}

/// Whether a value is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Care {
    Known,
    New,
    Refused,
}

#[async_trait]
impl Versions for Sections {
    async fn version(&self, label: &str) -> Result<Option<Arc<str>>, Error> {
        let Some((entry, uid, section, path)) = parse_label(label) else { return Ok(None) };
        match self.look(entry, uid.as_ref(), section, path).1 {
            Sight::At(version) => Ok(version),
            // Whoever waits for it has had it looked at; if that is forgotten, it is another one.
            Sight::Unseen(version) => Ok(Some(format!("unseen at {version}").into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn section(version: u64, data: Value) -> Object {
        let mut entry = Object::new(&names::versioned(&names::entry_kind()), "", "rt-1");
        entry.set_metadata("uid", json!("u"));
        let mut object = Section::of(Entry(&entry), "network");
        object.get_mut("spec")["version"] = json!(version);
        object.get_mut("spec")["hash"] = json!(data.to_string());
        object.get_mut("spec")["data"] = data;
        object
    }

    #[test]
    fn only_a_change_of_the_value_concerns_who_watches_it() {
        let sections = Sections::new();
        assert!(sections.care_for([("network", "/vnet_name")]));
        assert!(!sections.care_for([("network", "/vnet_name")]));
        let first = sections.note(&section(1, json!({"cidr": "10.0.0.0/8"}))).unwrap();
        assert!(first.concerns(None) && !first.concerns(Some("/vnet_name")), "it is not there yet");
        let second = sections.note(&section(2, json!({"vnet_name": "a"}))).unwrap();
        assert!(second.concerns(Some("/vnet_name")));
        let third = sections.note(&section(3, json!({"vnet_name": "a", "cidr": "x"}))).unwrap();
        assert!(third.concerns(None) && !third.concerns(Some("/vnet_name")));
        assert!(third.concerns(Some("/never/told/apart")));
        let gone = sections.gone(&section(3, json!({"vnet_name": "a"}))).unwrap();
        assert!(gone.concerns(Some("/vnet_name")) && gone.at.is_none());
    }

    #[test]
    fn a_version_that_is_known_is_no_news() {
        let sections = Sections::new();
        assert!(sections.note(&section(2, json!({}))).is_some());
        assert!(sections.note(&section(2, json!({}))).is_none());
        assert!(sections.note(&section(1, json!({}))).is_none(), "nor is an older one");
        assert_eq!(sections.revision(&Uid("u".into())), 2);
        assert_eq!(sections.versions("rt-1", ["network", "spec"])["network"], 2);
        assert_eq!(sections.versions("rt-1", ["network", "spec"])["spec"], 0);
    }

    #[test]
    fn what_is_missing_from_a_list_is_gone() {
        let sections = Sections::new();
        sections.list_begins();
        sections.note(&section(1, json!({"vnet_name": "a"})));
        assert!(sections.list_ends(true).is_empty());
        sections.list_begins();
        let moved = sections.list_ends(false);
        assert_eq!((moved.len(), &moved[0].at), (1, &None));
        // It counts as one that was heard to go: the inventory, which knows, is at 2.
        let uid = Uid("u".into());
        assert_eq!(sections.revision(&uid), 0, "nothing is left of an entry that was never seen");
        let mut entry = Object::new(&names::versioned(&names::entry_kind()), "", "rt-1");
        entry.set_metadata("uid", json!("u"));
        sections.note_entry(&entry);
        sections.list_begins();
        sections.note(&section(3, json!({"vnet_name": "a"})));
        sections.list_ends(false);
        sections.list_begins();
        sections.list_ends(false);
        assert_eq!(sections.revision(&uid), 4);
        sections.note(&section(5, json!({"vnet_name": "a"})));
        assert!(sections.has_changed(&uid, "network", 4), "whoever read at 4 has not seen it");
    }

    #[test]
    fn names_that_somebody_makes_up_are_bounded() {
        let sections = Sections::new();
        for number in 0..NAMES_MAX {
            sections.look("rt-1", None, &format!("s{number}"), Some("/a"));
        }
        assert_eq!(sections.look("rt-1", None, "one-more", Some("/a")).0, "rt-1/one-more");
        let long = format!("/{}", "a".repeat(PATH_BYTES_MAX));
        assert_eq!(sections.look("rt-1", None, "s0", Some(&long)).0, "rt-1/s0");
    }

    #[test]
    fn values_that_are_looked_for_are_told_apart_from_then_on() {
        let sections = Sections::new();
        assert_eq!(sections.look("rt-1", None, "network", Some("/vnet_name")).1, Sight::At(None));
        let moved = sections.note(&section(1, json!({"vnet_name": "a"}))).unwrap();
        let labels = moved.labels();
        assert_eq!(labels[0], ("rt-1/network".to_owned(), Some("1 of u".into())));
        let (name, sight) = sections.look("rt-1", None, "network", Some("/vnet_name"));
        assert_eq!((&labels[1].0, Sight::At(labels[1].1.clone())), (&name, sight));
        // One that comes later has to be looked up, of the version that is known.
        assert_eq!(sections.look("rt-1", None, "network", Some("/cidr")).1, Sight::Unseen(1));
        assert!(!sections.learn(&section(2, json!({"cidr": "x"})), "/cidr"));
        assert!(sections.learn(&section(1, json!({})), "/cidr"));
        assert_eq!(sections.look("rt-1", None, "network", Some("/cidr")).1, Sight::At(None));
    }

    #[test]
    fn what_is_left_of_an_entry_that_went_is_not_there_for_the_next_one() {
        let (sections, next) = (Sections::new(), Uid("v".into()));
        let look = |uid: &Uid| sections.look("rt-1", Some(uid), "network", Some("/vnet_name")).1;
        sections.care_for([("network", "/vnet_name")]);
        sections.note(&section(1, json!({"vnet_name": "a"})));
        assert!(matches!(look(&Uid("u".into())), Sight::At(Some(_))));
        assert_eq!(look(&next), Sight::At(None));
        let mut again = section(1, json!({"vnet_name": "a"}));
        let owner = again.metadata("ownerReferences").to_string().replace("\"u\"", "\"v\"");
        again.set_metadata("ownerReferences", serde_json::from_str(&owner).unwrap());
        let moved = sections.note(&again).unwrap();
        assert!(moved.concerns(Some("/vnet_name")), "the same value of another entry");
        assert!(matches!(look(&next), Sight::At(Some(_))));
        let (name, sight) = sections.look("rt-1", Some(&next), "network", Some("/vnet_name"));
        let told = moved.labels().into_iter().find(|it| it.0 == name);
        assert_eq!(told.map(|it| Sight::At(it.1)), Some(sight), "whoever waits for it is told");
        assert_eq!(parse_label(&name), Some(("rt-1", Some(next), "network", Some("/vnet_name"))));
    }

    #[test]
    fn beyond_a_bound_it_is_the_section_that_is_looked_at() {
        let sections = Sections::new();
        for number in 0..PATHS_MAX {
            sections.look("rt-1", None, "network", Some(&format!("/p{number}")));
        }
        assert_eq!(sections.look("rt-1", None, "network", Some("/one/more")).0, "rt-1/network");
        assert_eq!(sections.look("rt-1", None, "network", Some("/p0")).0, "rt-1/network#/p0");
    }
}
