//! What is known of each server, on disk: everything here survives this process.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use concert_provider::{Class, Error};
use serde::{Deserialize, Serialize};

use super::process::Process;
use super::settings::Wanted;
use crate::owner::Owner;
use crate::{Result, data_folder};

/// The name of a server, which is also that of its folder. Never leads out of the folder of all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct Name(String);

impl Name {
    /// Takes an external name; none if no server can have it.
    pub(super) fn new(text: &str) -> Option<Self> {
        let is_letter = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit();
        let is_fine = text.len() <= 63
            && text.starts_with(is_letter)
            && text.chars().all(|it| is_letter(it) || it == '-' || it == '.');
        is_fine.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: Name,
    pub(super) owner: Owner,
    /// The token that made it.
    pub(super) token: String,
    pub(super) port: u16,
    pub(super) password: String,
    /// What it was last told to be, and starts with.
    pub(super) settings: Wanted,
    /// The process that was last started for it.
    pub(super) process: Option<Process>,
}

/// The folder with one folder for each server.
#[derive(Clone, Debug)]
pub(super) struct Records(PathBuf);

impl Records {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    /// The folder of a server.
    pub(super) fn folder(&self, name: &Name) -> PathBuf {
        self.0.join(name.as_str())
    }

    /// The folder that a server works in, by which its process is recognised.
    pub(super) fn data(&self, name: &Name) -> PathBuf {
        self.folder(name).join("data")
    }

    pub(super) fn get(&self, name: &Name) -> Result<Option<Record>> {
        let path = self.file(name);
        let Some(bytes) = data_folder::read(&path).map_err(|e| failed("read", &path, &e))? else {
            return Ok(None);
        };
        let unreadable = |e: serde_json::Error| {
            let message = format!("{} cannot be read: {e}; restore it from a copy", path.display());
            Error::new(Class::NeedsHuman, message)
        };
        serde_json::from_slice(&bytes).map(Some).map_err(unreadable)
    }

    pub(super) fn save(&self, record: &Record) -> Result<()> {
        let path = self.file(&record.name);
        let bytes = serde_json::to_vec_pretty(record).unwrap_or_default();
        let written =
            data_folder::make(&self.data(&record.name)).and_then(|()| data_folder::write(&path, &bytes));
        written.map_err(|e| failed("write", &path, &e))
    }

    /// All of them. One that cannot be read is left out, so that it harms no other.
    pub(super) fn list(&self) -> Result<Vec<Record>> {
        let entries = fs::read_dir(&self.0).map_err(|e| failed("read", &self.0, &e))?;
        let names = entries.flatten().filter_map(|it| Name::new(it.file_name().to_str()?));
        Ok(names.filter_map(|name| self.get(&name).ok().flatten()).collect())
    }

    /// Removes a server's folder with all that is in it.
    pub(super) fn remove(&self, name: &Name) -> Result<()> {
        // Moved aside first: a folder that is half gone must not look like a server. The dot keeps it from
        // being one by its name.
        let (folder, aside) = (self.folder(name), self.0.join(format!(".{name}")));
        let removed = match fs::rename(&folder, &aside) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(()) => fs::remove_dir_all(&aside),
        };
        removed.map_err(|e| failed("remove", &folder, &e))
    }

    fn file(&self, name: &Name) -> PathBuf {
        self.folder(name).join("instance.json")
    }
}

/// An error of the disk.
pub(super) fn failed(verb: &str, path: &Path, error: &io::Error) -> Error {
    Error::new(Class::Transient, format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        for name in ["", ".", "..", "../a", "a/b", ".a", "A", "a b", "a\0", "-a", &"a".repeat(64)] {
            assert!(Name::new(name).is_none(), "{name:?}");
        }
        assert!(Name::new("cache-0a1b2c3d").is_some() && Name::new("a.b").is_some());
    }
}
