//! Generates the messages and services of both protocols. protox reads the files, so building needs
//! no protoc.

use std::path::Path;

const FILES: [&str; 2] = ["external/v1alpha1/external.proto", "concert/provider/v1/provider.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // From the folder of the package, which cargo runs this in: a build cache that clones share may hold a
    // program that another one built, with another path in it.
    let root = Path::new("../../proto");
    for file in FILES {
        println!("cargo::rerun-if-changed={}", root.join(file).display());
    }
    let files = protox::compile(FILES, [root])?;
    tonic_prost_build::configure().bytes(".concert.provider.v1").build_transport(false).compile_fds(files)?;
    Ok(())
}
