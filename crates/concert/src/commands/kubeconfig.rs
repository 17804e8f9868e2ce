//! `concert kubeconfig`: the connection that `concert` uses, as a file for kubectl.

use super::Run;
use crate::client::{Connection, Flags, kubeconfig};
use crate::exit::Exit;
use crate::print;

#[derive(clap::Args)]
pub struct Kubeconfig {}

impl Run for Kubeconfig {
    const NAME: &'static str = "kubeconfig";
    const ABOUT: &'static str = "Print a kubeconfig that works with kubectl";

    fn run(self, flags: &Flags) -> anyhow::Result<Exit> {
        let connection = Connection::find(flags)?;
        let mut document = connection.document;
        document["contexts"][0]["context"]["namespace"] = connection.namespace.into();
        print::out(&print::yaml(&kubeconfig::embed(document)?))?;
        Ok(Exit::Done)
    }
}
