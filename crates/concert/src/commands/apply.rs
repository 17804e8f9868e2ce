//! `concert apply`: declares what is in files, or what a saved plan holds.

use std::path::PathBuf;
use std::time::Duration;

use concert_model::Object;

use super::objects::{duration, too_late};
use super::{Run, plan};
use crate::cli::{Advice, say};
use crate::client::apply::{Applied, Applier, Expect, Options};
use crate::client::wait::{self, Place};
use crate::client::{Flags, Session};
use crate::exit::Exit;
use crate::print::{self, Output, Progress};
use crate::{cli, manifests};

#[derive(clap::Args)]
pub struct Apply {
    /// File or folder with manifests, JSON or YAML, or - for standard input; may be repeated
    #[arg(short, long = "filename", value_name = "FILE", required_unless_present = "plan")]
    filename: Vec<String>,
    /// Also the folders in folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// A plan that `concert plan -o FILE.plan` saved; refused if what it was based on has moved
    #[arg(long, value_name = "FILE.plan", conflicts_with = "filename")]
    plan: Option<PathBuf>,
    /// Take fields over from other managers
    #[arg(long)]
    force_conflicts: bool,
    /// Only say what would be
    #[arg(long)]
    dry_run: bool,
    /// Wait until everything is ready
    #[arg(long)]
    wait: bool,
    /// Longest to wait
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    timeout: Duration,
    /// The form of the answer; without it, what became of each object
    #[arg(short, long, value_enum)]
    output: Option<Output>,
}

impl Run for Apply {
    const NAME: &'static str = "apply";
    const ABOUT: &'static str = "Declare what is in files";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        let saved = self.plan.as_deref().map(plan::saved::read).transpose()?;
        let objects = match &saved {
            Some(saved) => saved.manifests()?,
            None => {
                let all = manifests::read_all(&self.filename, self.recursive)?;
                all.into_iter().map(|it| (it, Expect::Anything)).collect()
            }
        };
        Session::run(flags, async |session| {
            if let Some(saved) = &saved {
                saved.check(&session, self.force_conflicts).await?;
            }
            self.apply(&session, &objects, flags.namespace.as_deref()).await
        })
    }
}

impl Apply {
    async fn apply(
        &self,
        session: &Session,
        objects: &[(Object, Expect)],
        namespace: Option<&str>,
    ) -> anyhow::Result<Exit> {
        let options = Options { is_forced: self.force_conflicts, is_dry_run: self.dry_run };
        let mut applier = Applier::new(session, options, namespace);
        let mut failure = None;
        let (mut done, mut failed) = (Vec::new(), 0);
        for (object, expect) in objects {
            match applier.apply(object, *expect).await {
                Ok(applied) => {
                    self.tell(&applied)?;
                    done.push(applied);
                }
                Err(error) => {
                    failed += 1;
                    let name = format!("{} {}", object.kind(), object.name());
                    say(&print::plain(&format!("{name}: {error:#}")));
                    failure.get_or_insert(cli::hint(&error));
                }
            }
        }
        if let Some(hint) = failure {
            let what = format!("{failed} of {} could not be applied", objects.len());
            return Err(Advice::new(what, hint).into());
        }
        if self.wait && !self.dry_run {
            self.wait_for(session, &done).await?;
        }
        Ok(Exit::Done)
    }

    fn tell(&self, applied: &Applied) -> anyhow::Result<()> {
        let name = print::plain(&format!("{}/{}", applied.resource.label(), applied.name()));
        let note = if self.dry_run { " (dry run)" } else { "" };
        match self.output {
            None | Some(Output::Table | Output::Wide) => {
                print::out(&format!("{name} {}{note}\n", applied.verb()))
            }
            Some(Output::Name) => print::out(&format!("{name}\n")),
            Some(Output::Json) => print::out(&print::json(&applied.object)),
            Some(Output::Yaml) => print::out(&format!("---\n{}", print::yaml(&applied.object))),
        }
    }

    /// One after the other: they become ready at the same time.
    async fn wait_for(&self, session: &Session, all: &[Applied]) -> anyhow::Result<()> {
        let mut progress = Progress::new();
        for applied in all {
            let place =
                Place { resource: &applied.resource, namespace: applied.namespace(), name: applied.name() };
            progress.say(format!("waiting until {} is ready", print::plain(&place.label())));
            let is_ready =
                wait::until(session, place, self.timeout, |it| it.is_some_and(wait::is_settled)).await?;
            if !is_ready {
                progress.clear();
                return Err(too_late("is not ready", &place.label(), self.timeout).into());
            }
        }
        Ok(())
    }
}
