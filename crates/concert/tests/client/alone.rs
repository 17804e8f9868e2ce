//! What needs no server.

use crate::world::{Ran, bare, ran};

/// Runs the program where nothing is known.
fn alone(arguments: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    ran(&mut bare(home.path(), arguments), "")
}

#[test]
fn help_names_every_command_and_exit_code() {
    let help = alone(&["--help"]).fine();
    for part in [
        "apply",
        "explain",
        "plan",
        "api-resources",
        "Exit codes:",
        "  64  ",
        "--server <URL>",
        "CONCERT_SERVER",
    ] {
        assert!(help.contains(part), "{part} in: {help}");
    }
    assert!(alone(&["get", "--help"]).fine().contains("KIND/NAME"));
    assert_eq!(alone(&["--version"]).fine(), format!("concert {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_line_that_makes_no_sense_is_refused_with_a_hint() {
    for line in [
        &["gett"][..],
        &["get"],
        &["get", "x", "-o", "xml"],
        &["apply"],
        &["plan", "-f", "x", "-o", "name"],
        &["token"],
        &["delete", "--wait=maybe", "x/y"],
    ] {
        let ran = alone(line);
        assert_eq!((ran.code, ran.out.as_str()), (Some(64), ""), "{line:?}");
        assert!(ran.said.contains("hint: concert --help"), "{line:?}: {}", ran.said);
    }
    assert_eq!(alone(&[]).code, Some(64));
}

#[test]
fn completions_need_no_server() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(alone(&["completions", shell]).fine().contains("api-resources"), "{shell}");
    }
}

#[test]
fn flags_come_before_variables_and_variables_before_the_file() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("serve.yaml");
    let settings = "dataDir: /from/the/file\nlisten: 127.0.0.1:18001\nadminListen: 127.0.0.1:18002\n";
    std::fs::write(&file, settings).unwrap();
    let check = |flags: &[&str]| {
        let all = [&["config", "check", "--config", file.to_str().unwrap()][..], flags].concat();
        let mut command = bare(home.path(), &all);
        command.env("CONCERT_LISTEN", "127.0.0.1:28001").env("CONCERT_ADMIN_LISTEN", "127.0.0.1:28002");
        ran(&mut command, "").fine()
    };
    let out = check(&["--listen", "127.0.0.1:38001"]);
    for line in [
        "data directory  /from/the/file\n",
        "API             127.0.0.1:38001\n",
        "admin           127.0.0.1:28002\n",
    ] {
        assert!(out.contains(line), "{line:?} is not in {out}");
    }
    assert!(check(&[]).contains("API             127.0.0.1:28001\n"));
    // Every flag of `concert serve`.
    check(&["--log-level", "info,concert_engine=debug", "--log-format", "json"]);
}

#[test]
fn a_server_that_is_not_there_is_said() {
    alone(&["get", "buckets"]).fails(1, &["no server is known", "concert serve --dev"]);
    alone(&["get", "buckets", "--server", "http://127.0.0.1:1"])
        .fails(1, &["cannot reach http://127.0.0.1:1", "concert serve"]);
    alone(&["get", "buckets", "--server", "127.0.0.1:1"]).fails(1, &["is no address", "https://HOST:PORT"]);
    alone(&["get", "buckets", "--server", "http://far.example.com", "--token", "t"])
        .fails(1, &["clear text"]);
    alone(&["get", "buckets", "--kubeconfig", "/no/such/file"])
        .fails(1, &["/no/such/file does not exist", "concert kubeconfig"]);
    alone(&["login"]).fails(1, &["not said", "concert login --server"]);
}

#[test]
fn what_is_asked_is_checked_before_any_server_is() {
    alone(&["plan", "-f", "/no/such/file"]).fails(1, &["/no/such/file"]);
    alone(&["apply", "--plan", "/no/such/file"]).fails(1, &["no saved plan", "concert plan -f"]);
    alone(&["apply", "-f", "/no/such/file"]).fails(1, &["/no/such/file"]);
}
