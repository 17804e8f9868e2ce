//! What `docs/guides/serve.md` says is typed as it stands, on a control plane of its own.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use concert_provider::server::Server;
use concert_provider_example::Example;
use concert_provider_example::cloud::{Api, Cloud, Settings};
use concert_server::{Chance, SystemClock};
use tokio::runtime::{Builder, Runtime};

use crate::plane::Plane;

const GUIDE: &str = include_str!("../../../../docs/guides/serve.md");

/// The lines between fences that say `bash`.
pub fn commands(guide: &str) -> Vec<String> {
    let blocks = guide.split("```bash\n").skip(1);
    blocks.map(|it| it.split("```").next().unwrap_or_default().to_owned()).collect()
}

/// The example provider on a port of its own; it ends with the runtime.
fn provider() -> (Runtime, String) {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let bound = runtime.block_on(async {
        let cloud = Cloud::new(Settings::default(), Chance::seeded(1));
        let api = Arc::new(Api::new(cloud, Arc::new(SystemClock::new())));
        Server::new(Arc::new(Example::new(api))).address("127.0.0.1:0").bind().await.unwrap()
    });
    let address = bound.address().unwrap().to_string();
    runtime.spawn(bound.serve(std::future::pending()));
    (runtime, address)
}

#[test]
fn the_guide_works_as_it_is_typed() {
    let Some(plane) = Plane::start_with(&["--plugins", "off"]) else { return };
    let (bin, work) = (plane.file("bin"), plane.file("work"));
    std::fs::create_dir(&bin).unwrap();
    std::fs::create_dir(&work).unwrap();
    symlink(env!("CARGO_BIN_EXE_concert"), bin.join("concert")).unwrap();
    let kubectl = plane.command(&[]);
    symlink(kubectl.get_program(), bin.join("kubectl")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    symlink(root.join("providers"), work.join("providers")).unwrap();

    let (_cloud, endpoint) = provider();
    let mut blocks = commands(GUIDE);
    // It runs already, elsewhere than a reader's would.
    assert_eq!(blocks.remove(0), "concert serve\n");
    let first = "export KUBECONFIG=~/.local/share/concert/kubeconfig\n";
    assert!(blocks[0].starts_with(first), "{}", blocks[0]);
    let script = blocks.concat();
    let script = script.replace(first, "").replace("127.0.0.1:50051", &endpoint);
    assert!(script.contains(&endpoint), "the guide names another address of the provider");

    let script = format!(
        "PATH={}:$PATH
{script}",
        bin.display()
    );
    let output = Command::new("bash")
        .args(["-euxo", "pipefail", "-c", &script])
        .current_dir(&work)
        .env("KUBECONFIG", plane.kubeconfig())
        .env("CONCERT_DATA_DIR", plane.data())
        .env("KUBECACHEDIR", plane.file("cache"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}\n--- and\n{talk}");
    for part in ["bucket.cloud.concert.dev/photos condition met", "roof", "is ready"] {
        assert!(said.contains(part), "{part:?} is not in\n{said}\n--- and\n{talk}");
    }
    assert_eq!(plane.get("garden", "roof")["spec"]["trees"], 5);
}
