//! Making a copy and taking one back, on a store that is open.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use concert_api::auth;
use concert_store::seal::Keyring;
use concert_store::{By, Chance, Clock, Local};
use tracing::info;

use super::super::data::{DataFolder, Entry};
use super::Refusal;
use super::refusal::chain;

/// A store and the folder it is in.
pub(in crate::serve) struct Site {
    pub folder: DataFolder,
    pub store: Local,
    pub clock: Arc<dyn Clock>,
    pub chance: Chance,
}

impl Site {
    /// Copies everything to `file`, and the keys beside it if they are asked for.
    pub async fn backup(&self, file: &Path, with_key: bool) -> Result<(), Refusal> {
        let key_file = key_of(file);
        if with_key && key_file.exists() {
            let what = format!("{} is there already", key_file.display());
            return Err(Refusal::new(what, "choose another name, or remove it"));
        }
        let keys = with_key.then(|| self.keys()).transpose()?;
        self.store.backup_to(file).await.map_err(|error| Refusal::of_backup(&error, file))?;
        let Some(keys) = keys else { return Ok(()) };
        let written = keys.copy_to(&key_file).map_err(|error| {
            Refusal::of_keys(&error, "the copy itself is good; copy concert.key of the data directory too")
        });
        // Keys that are changed while the copy is made may not open all of it.
        if self.keys()?.numbers() != keys.numbers() {
            let what = "the keys of the store were changed meanwhile";
            return Err(Refusal::new(what, "remove both files and try again"));
        }
        written
    }

    /// Puts the copy in the place of everything, and sees to it that the folder's administrator gets in.
    pub async fn restore(&self, file: &Path, key: Option<&Path>) -> Result<(), Refusal> {
        let key = key.map(Path::to_owned).or_else(|| Some(key_of(file)).filter(|it| it.exists()));
        let keys = key.map(Keyring::read_from).transpose().map_err(|error| {
            Refusal::of_keys(&error, "give the file that `concert backup --with-key` wrote, with mode 0600")
        })?;
        let restored = self.store.restore_from(file, keys).await;
        restored.map_err(|error| Refusal::of_restore(&error, file))?;
        info!(file = %file.display(), "restored");
        Ok(())
    }

    /// Makes a token for the administrator if the store does not know the one in the folder. Whoever owns
    /// the folder owns the store; without this a copy from elsewhere would let nobody in.
    pub async fn admit_administrator(&self, entry: Entry) -> Result<(), Refusal> {
        let failed = |what: String| Refusal::new(what, "the copy was taken; restore it again");
        if let Some(token) = self.folder.token_in_kubeconfig() {
            let known = auth::is_known(&self.store, &*self.clock, &token).await;
            if known.map_err(|error| failed(chain(&error)))? {
                return Ok(());
            }
        }
        let by = By::actor("concert").because("restore");
        let issued = auth::issue_for_administrator(&self.store, &*self.clock, &self.chance, &by).await;
        let token = Some(issued.map_err(|error| failed(chain(&error)))?.token);
        let written = self.folder.write_kubeconfig(&Entry { token, ..entry });
        written.map_err(|error| failed(chain(&error)))?;
        info!(kubeconfig = %self.folder.kubeconfig().display(), "the administrator gets in with this file");
        Ok(())
    }

    fn keys(&self) -> Result<Keyring, Refusal> {
        let read = Keyring::read_from(self.folder.key());
        read.map_err(|error| Refusal::of_keys(&error, "leave --with-key out"))
    }
}

/// Where the keys of a copy are, if they are with it.
fn key_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".key");
    name.into()
}
