//! `concert advance-store`: the last step after a copy of a database was put back.

use anyhow::Context as _;
use concert_server::serve::{Error, Layer, Storage, StoreUrl, advance};

use super::Run;
use crate::cli::{Advice, say};
use crate::client::Flags;
use crate::exit::Exit;
use crate::print::plain;

#[derive(clap::Args)]
pub struct AdvanceStore {
    /// The database, which no replica uses now: postgres://USER:PASSWORD@HOST/DATABASE [variable: CONCERT_STORE]
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

impl Run for AdvanceStore {
    const NAME: &'static str = "advance-store";
    const ABOUT: &'static str = "Move all numbers of a database ahead after a copy of it was put back";

    fn run(self, _: &Flags) -> anyhow::Result<Exit> {
        let flags = Layer { store: self.store.map(StoreUrl::from), ..Layer::default() };
        let config = flags.over(Layer::from_environment().map_err(Error::from)?).resolve();
        let config = config.map_err(Error::from)?;
        let Storage::Database(address, _) = &config.storage else {
            let advice = "pass --store postgres://USER:PASSWORD@HOST/DATABASE, or set CONCERT_STORE";
            return None.context(Advice::new("no database was named", advice));
        };
        let newest = advance(&config.storage)?;
        say(&plain(&format!("{address} goes on from revision {newest}")));
        say("what clients remember from before is refused, and they list again; now start the replicas");
        Ok(Exit::Done)
    }
}
