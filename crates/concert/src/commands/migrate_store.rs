//! `concert migrate-store`: from the file of a control plane into a database that replicas share.

use std::path::PathBuf;

use anyhow::Context as _;
use concert_server::serve::{Error, Layer, Storage, StoreUrl, migrate};

use super::Run;
use crate::cli::{Advice, say};
use crate::client::Flags;
use crate::exit::Exit;
use crate::print::plain;

#[derive(clap::Args)]
pub struct MigrateStore {
    /// The folder of the control plane, which must not run [default: ~/.local/share/concert]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The database, without a store: postgres://USER:PASSWORD@HOST/DATABASE [variable: CONCERT_STORE]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Keys to seal everything with there, made if there are none [default: concert.key of --data-dir]
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl Run for MigrateStore {
    const NAME: &'static str = "migrate-store";
    const ABOUT: &'static str = "Copy all that a control plane keeps into a PostgreSQL database";

    fn run(self, _: &Flags) -> anyhow::Result<Exit> {
        let flags = Layer {
            data_dir: self.data_dir,
            store: self.store.map(StoreUrl::from),
            key_file: self.key_file,
            ..Layer::default()
        };
        let config = flags.over(Layer::from_environment().map_err(Error::from)?).resolve();
        let config = config.map_err(Error::from)?;
        let Storage::Database(address, key_file) = &config.storage else {
            let advice = "pass --store postgres://USER:PASSWORD@HOST/DATABASE, or set CONCERT_STORE";
            return None.context(Advice::new("no database was named", advice));
        };
        let moved = migrate(&config.data_dir, &config.storage)?;
        say(&plain(&format!(
            "copied {} writes, {} items of work and {} attempts to {address}",
            moved.writes, moved.claims, moved.attempts
        )));
        let keys = key_file.clone().unwrap_or_else(|| config.data_dir.join("concert.key"));
        say(&plain(&format!("every replica needs {}: give it with --key-file", keys.display())));
        say("the file in the data directory is left as it is, and no longer used with --store");
        Ok(Exit::Done)
    }
}
