//! The program as people start it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MANAGED: &str = env!("CARGO_BIN_EXE_managed-reconciler");
const DYNAMIC: &str = env!("CARGO_BIN_EXE_dynamic-reconciler");

fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).env_remove("KUBECONFIG").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A file in a folder of its own.
fn file(name: &str, content: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (folder, path)
}

#[test]
fn help_and_version_show_the_name_that_was_called() {
    for (program, name) in [(MANAGED, "managed-reconciler"), (DYNAMIC, "dynamic-reconciler")] {
        let help = run(program, &["--help"]);
        assert_eq!(help.status.code(), Some(0));
        let out = text(&help.stdout);
        assert!(out.contains(&format!("Usage:\n  {name} [flags]\n")), "{out}");
        assert!(out.contains("(default 1m0s)"), "{out}");
        let version = run(program, &["--version"]);
        assert_eq!(text(&version.stdout), format!("{name} {}\n", env!("CARGO_PKG_VERSION")));
        let plan = text(&run(program, &["plan", "--help"]).stdout);
        assert!(plan.contains(&format!("{name} plan -f FILE [flags]")), "{plan}");
    }
}

#[test]
fn what_is_wrong_ends_with_a_hint_and_its_exit_code() {
    let two = r#"{"providers": [{"name": "a", "endpoint": "a:1"}, {"name": "b", "endpoint": "b:1"}]}"#;
    let (_one, two) = file("two.json", two);
    let (_two, misspelt) = file("bad.json", "{\"providers\": [\n{\"name\": \"a\", \"endpont\": \"a:1\"}]}");
    let (_three, taken) =
        file("taken.yaml", "providers:\n- {name: a, endpoint: a:1}\n- {name: a, endpoint: b:1}\n");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tls.key"), "half").unwrap();
    let half = format!("--cert-dir={}", folder.path().display());
    for (arguments, code, parts) in [
        (vec![], 1, vec!["--config", "--provider-endpoint", "hint: "]),
        (vec!["--config", &two, "--provider-endpoint=c:1"], 1, vec!["declares 2", "hint: "]),
        (vec!["--config", &misspelt], 1, vec!["providers[0]", "endpont", "line 2 column", "hint: "]),
        (vec!["--config", &taken], 1, vec!["providers[1].name: \"a\" is used twice", "hint: "]),
        (vec!["--config", "/no/such/file"], 1, vec!["/no/such/file", "hint: "]),
        (vec!["--provider-endpoint=nowhere"], 1, vec!["providers[0].endpoint", "HOST:PORT", "hint: "]),
        (vec!["--provider-endpoint=a:1", "--store=memory", &half], 1, vec!["tls.crt is missing", "hint: "]),
        (vec!["--provider-endpoint=a:1", "--log-level=loud"], 1, vec!["--log-level", "hint: "]),
        (vec!["--no-such-flag"], 64, vec!["--no-such-flag", "hint: managed-reconciler --help"]),
        (vec!["--poll-interval=60"], 64, vec!["must be a duration", "hint: "]),
        (vec!["plan", "--provider-endpoint=a:1", "-f", "/no/such/file"], 1, vec!["/no/such/file", "hint: "]),
    ] {
        let output = run(MANAGED, &arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        for part in parts {
            assert!(said.contains(part), "{part} in what {arguments:?} says: {said}");
        }
    }
}

#[test]
fn runs_on_the_embedded_store_until_it_is_told_to_stop() {
    let mut child = Command::new(MANAGED)
        .args(["--provider-endpoint=127.0.0.1:1", "--store=memory", "--log-format=json"])
        .args(["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let leading = lines.find(|line| line.contains("\"message\":\"leading\""));
    assert!(leading.is_some_and(|it| it.starts_with('{')));
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert!(lines.any(|line| line.contains("\"message\":\"stopped\"")));
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_plan_for_what_nobody_serves_is_unknown_and_touches_nothing() {
    let manifest = "apiVersion: g.io/v1\nkind: Bucket\nmetadata: {name: a, namespace: default}\n---\n\
                    apiVersion: g.io/v1\nkind: Bucket\nmetadata: {name: b}\n";
    let (_folder, path) = file("buckets.yaml", manifest);
    let arguments =
        ["plan", "--provider-endpoint=127.0.0.1:1", "--store=memory", "-f", &path, "--detailed-exitcode"];
    let output = run(MANAGED, &arguments);
    let out = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(out.starts_with("unknown Bucket default/a ("), "{out}");
}

#[test]
fn the_demonstration_ends_with_everything_ready() {
    let shown = run(env!("CARGO_BIN_EXE_concert"), &["demo", "--exit"]);
    let (out, talk) = (text(&shown.stdout), text(&shown.stderr));
    assert_eq!(shown.status.code(), Some(0), "{out}\n{talk}");
    for bucket in ["photos", "music", "letters"] {
        let is_ready =
            |line: &str| line.starts_with(&format!("bucket/{bucket} ")) && line.contains(" Ready ");
        assert!(out.lines().any(is_ready), "{bucket} in:\n{out}");
    }
    let last = out.lines().last().unwrap_or_default();
    assert!(last.starts_with("rediscluster/app-redis ") && last.contains(" Bound "), "{out}");
}

#[test]
fn the_completions_are_a_script_that_bash_can_read() {
    let script = run(env!("CARGO_BIN_EXE_concert"), &["completions", "bash"]);
    assert_eq!(script.status.code(), Some(0));
    let (_folder, path) = file("concert.bash", &text(&script.stdout));
    // It is read as a whole, and knows the commands.
    let read = format!("source {path} && complete -p concert");
    for arguments in [vec!["-n", &path], vec!["-ec", &read]] {
        let bash = Command::new("bash").args(&arguments).output().unwrap();
        assert!(bash.status.success() && bash.stderr.is_empty(), "{arguments:?}: {}", text(&bash.stderr));
    }
    assert!(text(&script.stdout).contains("api-resources"));
}

/// What the README has a stranger type after the demonstration has begun, without where things are.
fn steps_of_the_readme() -> (Vec<String>, String) {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let block =
        readme.split("```\n").find(|it| it.starts_with("export KUBECONFIG=/tmp/concert-demo-")).unwrap();
    let (places, steps): (Vec<_>, Vec<_>) = block.lines().partition(|it| it.starts_with("export "));
    (places.into_iter().map(str::to_owned).collect(), steps.join("\n") + "\n")
}

#[test]
fn a_stranger_declares_a_bucket_of_their_own_in_the_demonstration() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_concert"))
        .arg("demo")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut said: Vec<String> = Vec::new();
    while !said.last().is_some_and(|it| it.starts_with("Ctrl-C")) {
        said.push(lines.next().unwrap_or_else(|| panic!("it has ended: {said:?}")));
    }
    let (places, steps) = steps_of_the_readme();
    assert!(said.join("\n").contains(&steps), "the README says the same:\n{steps}\nas {said:?}");
    let place = |known: &String| {
        let start = known.split_once('=').unwrap().0;
        said.iter().map(|it| it.trim()).find(|it| it.starts_with(start)).unwrap().to_owned()
    };
    let places: Vec<String> = places.iter().map(place).collect();
    let folder =
        places[0].strip_prefix("export KUBECONFIG=").unwrap().strip_suffix("/data/kubeconfig").unwrap();
    assert!(Path::new(folder).is_dir());

    let script = format!("{}\n{steps}", places.join("\n"));
    let output = Command::new("bash").args(["-euo", "pipefail", "-c", &script]).output().unwrap();
    let (out, talk) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{talk}");
    let mine = "bucket.cloud.concert.dev/mine created\nBucket default/mine is ready";
    assert!(out.starts_with(mine), "{out}\n{talk}");

    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
    assert!(!Path::new(folder).exists(), "it removes everything");
}
