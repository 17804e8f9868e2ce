//! `concert config check`: says what `serve` would be told, or what is wrong with it.

use concert_server::serve::Storage;

use super::Run;
use super::serve::Settings;
use crate::client::Flags;
use crate::exit::Exit;
use crate::print;

#[derive(clap::Args)]
pub struct Config {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Check what `concert serve` would be told with the same flags, variables and file
    Check(Box<Settings>),
}

impl Run for Config {
    const NAME: &'static str = "config";
    const ABOUT: &'static str = "Check the configuration of a control plane";

    fn run(self, _: &Flags) -> anyhow::Result<Exit> {
        let What::Check(settings) = self.what;
        let config = settings.resolve()?;
        let tls = match (&config.tls_files, config.is_dev) {
            (_, true) => "none, and no authentication".to_owned(),
            (Some((certificate, _)), _) => format!("with {}", certificate.display()),
            (None, _) => "with a certificate of its own making".to_owned(),
        };
        let names: Vec<&str> = config.providers.providers.iter().map(|it| it.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let store = match &config.storage {
            Storage::Folder => "in the data directory".to_owned(),
            Storage::Database(address, _) => address.to_string(),
        };
        print::out(&format!(
            "data directory  {}\nstore           {store}\nAPI             {}\nTLS             {tls}\nadmin           {}\nproviders       {names}\n",
            config.data_dir.display(),
            config.listen,
            config.admin_listen,
        ))?;
        Ok(Exit::Done)
    }
}
