//! `concert-testbed up` runs a cluster for people; `hold` is the parent of every cluster's servers.

use std::io::{BufReader, Write};
use std::path::Path;

use anyhow::{Result, bail};
use concert_testbed::{Cluster, Options, hold};

const USAGE: &str = "usage: concert-testbed up [--controllers]   runs a cluster until Ctrl-C
       concert-testbed hold DIRECTORY       holds servers for another process";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["up"] => up(&Options::default()),
        ["up", "--controllers"] => up(&Options { with_controllers: true, ..Options::default() }),
        ["hold", directory] => {
            hold::run(Path::new(directory), BufReader::new(std::io::stdin()), std::io::stdout())
        }
        _ => bail!(USAGE),
    }
}

/// The servers end because this process does, and with it the pipe to their parent: Ctrl-C needs no
/// handler.
fn up(options: &Options) -> Result<()> {
    let Some(cluster) = Cluster::start_with(options)? else { return Ok(()) };
    writeln!(std::io::stdout(), "{}", cluster.kubeconfig().display())?;
    eprintln!("kube-apiserver listens on {}; Ctrl-C ends it", cluster.url());
    eprintln!(
        "hint: {} --kubeconfig {} get namespaces",
        cluster.kubectl_program().display(),
        cluster.kubeconfig().display()
    );
    loop {
        std::thread::park();
    }
}
