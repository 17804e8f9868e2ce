//! The commands of `concert`: a file each, and a line in [`ALL`].

mod advance_store;
mod api_resources;
mod apply;
mod completions;
mod config;
mod copies;
mod delete;
mod demo;
mod events;
mod explain;
mod fleet;
mod get;
mod history;
mod kubeconfig;
mod login;
mod members;
mod migrate_store;
mod objects;
mod plan;
mod serve;
mod token;
mod watch;

use clap::ArgMatches;

use crate::client::Flags;
use crate::exit::Exit;

/// Every command there is, in the order of the help text.
pub const ALL: &[Command] = &[
    Command::of::<demo::Demo>(),
    Command::of::<serve::Serve>(),
    Command::of::<config::Config>(),
    Command::of::<copies::Backup>(),
    Command::of::<copies::Restore>(),
    Command::of::<migrate_store::MigrateStore>(),
    Command::of::<advance_store::AdvanceStore>(),
    Command::of::<apply::Apply>(),
    Command::of::<get::Get>(),
    Command::of::<watch::Follow>(),
    Command::of::<delete::Delete>(),
    Command::of::<events::Events>(),
    Command::of::<history::History>(),
    Command::of::<explain::Explain>(),
    Command::of::<fleet::Fleet>(),
    Command::of::<members::Members>(),
    Command::of::<plan::Plan>(),
    Command::of::<api_resources::ApiResources>(),
    Command::of::<login::Login>(),
    Command::of::<token::Token>(),
    Command::of::<kubeconfig::Kubeconfig>(),
    Command::of::<completions::Completions>(),
];

/// The arguments of one command, and what it does.
pub trait Run: clap::Args {
    /// What it is called.
    const NAME: &'static str;
    /// One line for the help text.
    const ABOUT: &'static str;

    /// Does it.
    fn run(self, flags: &Flags) -> anyhow::Result<Exit>;
}

/// One command.
pub struct Command {
    pub name: &'static str,
    pub define: fn() -> clap::Command,
    pub run: fn(&ArgMatches, &Flags) -> anyhow::Result<Exit>,
}

impl Command {
    pub const fn of<T: Run>() -> Self {
        Self {
            name: T::NAME,
            // Last, for what arguments are flattened in would otherwise speak for the command.
            define: || T::augment_args(clap::Command::new(T::NAME)).about(T::ABOUT).long_about(T::ABOUT),
            run: |matches, flags| T::from_arg_matches(matches)?.run(flags),
        }
    }
}
