//! `concert backup` and `concert restore`: copies of all that a control plane keeps, whether it runs or not.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use concert_server::serve::Layer;
use concert_server::serve::copies::{Asked, Refusal, Request, ask};
use concert_server::{Clock as _, SystemClock};

use super::Run;
use crate::cli::{Advice, say};
use crate::client::Flags;
use crate::exit::Exit;
use crate::print::{Progress, plain};

/// How often the line on a terminal is written anew.
const TICK: Duration = Duration::from_millis(500);

#[derive(clap::Args)]
pub struct Backup {
    #[command(flatten)]
    place: Place,
    /// Copy the key of the store too, to FILE.key: with both, everything can be read
    #[arg(long)]
    with_key: bool,
    /// The new file
    file: PathBuf,
}

#[derive(clap::Args)]
pub struct Restore {
    #[command(flatten)]
    place: Place,
    /// The key that the copy was sealed with [default: FILE.key, if there is one, else the store's own]
    #[arg(long, value_name = "KEYFILE")]
    key: Option<PathBuf>,
    /// What `concert backup` wrote
    file: PathBuf,
}

#[derive(clap::Args)]
struct Place {
    /// The folder of the control plane [default: ~/.local/share/concert]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Place {
    /// Where `concert serve` would look, told the same.
    fn find(self) -> anyhow::Result<PathBuf> {
        let file = match concert_server::config::variable("CONCERT_CONFIG") {
            Some(path) => Layer::read(Path::new(&path))?,
            None => Layer::default(),
        };
        let flags = Layer { data_dir: self.data_dir, ..Layer::default() };
        let told = flags.over(Layer::from_environment()?).over(file).data_dir;
        let folder = told.or_else(concert_server::config::data_folder);
        folder.context(Advice::new("there is no home directory to look in", "pass --data-dir DIR"))
    }
}

impl Run for Backup {
    const NAME: &'static str = "backup";
    const ABOUT: &'static str = "Copy all that a control plane keeps to a file, while it runs or not";

    fn run(self, _: &Flags) -> anyhow::Result<Exit> {
        let file = absolute(&self.file)?;
        let request = Request::Backup { file: file.clone(), with_key: self.with_key };
        act(&self.place.find()?, &request, &format!("writing {}", file.display()))?;
        let bytes = std::fs::metadata(&file).map(|it| it.len()).unwrap_or_default();
        say(&plain(&format!("wrote {} ({bytes} bytes)", file.display())));
        if self.with_key {
            say(&plain(&format!("wrote {}.key: keep it apart from the copy", file.display())));
        } else {
            say("it is of no use without concert.key of the data directory: keep a copy of that elsewhere");
        }
        Ok(Exit::Done)
    }
}

impl Run for Restore {
    const NAME: &'static str = "restore";
    const ABOUT: &'static str =
        "Put a copy in the place of all that a control plane keeps, while it runs or not";

    fn run(self, _: &Flags) -> anyhow::Result<Exit> {
        let file = absolute(&self.file)?;
        let key = self.key.as_deref().map(absolute).transpose()?;
        let request = Request::Restore { file: file.clone(), key };
        let asked = act(&self.place.find()?, &request, &format!("restoring {}", file.display()))?;
        let then = match asked {
            Asked::Running => "who watches is told to list again",
            Asked::Alone => "start it with `concert serve`",
        };
        say(&plain(&format!("restored {}; {then}", file.display())));
        Ok(Exit::Done)
    }
}

/// The control plane may have another working directory.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot tell where {} is", path.display()))
}

fn act(folder: &Path, request: &Request, what: &str) -> anyhow::Result<Asked> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let clock = SystemClock::new();
        let mut progress = Progress::new();
        let mut asked = std::pin::pin!(ask(folder, request));
        loop {
            progress.say(plain(&format!("{what}, {} s", clock.elapsed().as_secs())));
            tokio::select! {
                done = &mut asked => {
                    return done.map_err(|Refusal { what, hint }| Advice::new(what, hint).into());
                }
                () = clock.sleep(TICK) => {}
            }
        }
    })
}
