//! `concert backup` and `concert restore`, on a control plane that runs and on one that does not.

use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::plane::{Plane, widget};
use crate::wait::eventually;
use crate::wire::{WIDGETS, call};

/// Runs `concert WORDS --data-dir DATA`.
fn concert(data: &Path, words: &[&Path]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_concert"));
    command.args(words).arg("--data-dir").arg(data).stdin(Stdio::null()).output().unwrap()
}

fn must(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said
}

/// What it says on stderr; it must fail with a hint.
fn refused(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("\nhint: "), "{said}");
    said
}

fn backup(data: &Path, file: &Path) -> String {
    must(&concert(data, &["backup".as_ref(), file]))
}

fn restore(data: &Path, file: &Path) -> Output {
    concert(data, &["restore".as_ref(), file])
}

fn names(plane: &Plane) -> Vec<String> {
    let (status, list) = call(&plane.address, "GET", WIDGETS, "").unwrap();
    assert_eq!(status, 200, "{list}");
    let list: Value = serde_json::from_str(&list).unwrap();
    let name = |it: &Value| it["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn a_copy_under_load_is_of_one_moment() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    let (written, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (before, after) = std::thread::scope(|scope| {
        // Each writes the next only when the one before is acknowledged, by turns: what is in the copy
        // must be a beginning of what was written.
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let number = written.load(Ordering::Relaxed);
                let body = widget(&format!("w{number:05}"), &json!({"size": 1})).to_string();
                assert_eq!(call(&plane.address, "POST", WIDGETS, &body).unwrap().0, 201);
                written.store(number + 1, Ordering::Relaxed);
            }
        });
        let reached = |count: usize| {
            eventually("writes are under way", || match written.load(Ordering::Relaxed) {
                now if now >= count => Ok(now),
                now => Err(now.to_string()),
            })
        };
        let before = reached(50);
        backup(&plane.data(), &plane.file("copy"));
        let after = written.load(Ordering::Relaxed) + 1;
        reached(after + 50);
        is_over.store(true, Ordering::Relaxed);
        (before, after)
    });
    assert!(names(&plane).len() > after);
    must(&restore(&plane.data(), &plane.file("copy")));
    let found = names(&plane);
    let expected: Vec<String> = (0..found.len()).map(|number| format!("w{number:05}")).collect();
    assert_eq!(found, expected);
    assert!((before..=after).contains(&found.len()), "{before} {} {after}", found.len());
}

#[test]
fn a_restore_is_noticed_by_who_watches_and_everything_goes_on() {
    let Some(plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("kept", &json!({"size": 1})));
    plane.kubectl(&["create", "namespace", "gone"]);
    let said = backup(&plane.data(), &plane.file("copy"));
    assert!(said.contains("wrote ") && said.contains("concert.key"), "{said}");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&plane.file("copy")), 0o600);
    assert_eq!(mode(&plane.data().join("control.sock")), 0o600);
    assert!(!plane.file("copy.key").exists(), "the key is given only when it is asked for");

    plane.apply(&widget("later", &json!({"size": 1})));
    plane.kubectl(&["delete", "widget", "kept"]);
    let (_, list) = call(&plane.address, "GET", WIDGETS, "").unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let position = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let watching = format!("{WIDGETS}?watch=1&resourceVersion={position}");
    let events = std::thread::scope(|scope| {
        let watch = scope.spawn(|| call(&plane.address, "GET", &watching, "").unwrap());
        // Its first event shows that the watch is there.
        plane.apply(&widget("seen", &json!({"size": 1})));
        must(&restore(&plane.data(), &plane.file("copy")));
        watch.join().unwrap().1
    });
    assert!(events.contains("\"type\":\"ERROR\"") && events.contains("\"code\":410"), "{events}");
    let (_, again) = call(&plane.address, "GET", &watching, "").unwrap();
    assert!(again.contains("410"), "a position of before is expired: {again}");
    assert_eq!(names(&plane), ["kept"]);
    let newest: u64 =
        plane.get("widget", "kept")["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(newest > position.parse::<u64>().unwrap() + 1_000_000_000);
    // Controllers have begun again.
    plane.kubectl(&["delete", "namespace", "gone", "--timeout=30s"]);
    plane.apply(&widget("new", &json!({"size": 1})));
}

#[test]
fn a_copy_with_its_key_starts_a_control_plane_elsewhere() {
    let Some(mut plane) = Plane::start_with(&[]) else { return };
    plane.kubectl(&["create", "secret", "generic", "s", "--from-literal=a=very-secret"]);
    let copy = plane.file("copy");
    must(&concert(&plane.data(), &["backup".as_ref(), "--with-key".as_ref(), &copy]));
    plane.kill();
    // Stopped, it can be copied too; the same name is not taken twice.
    let said = refused(&concert(&plane.data(), &["backup".as_ref(), &copy]));
    assert!(said.contains("is there already"), "{said}");
    backup(&plane.data(), &plane.file("second"));

    std::fs::remove_dir_all(plane.data()).unwrap();
    let said = refused(&restore(&plane.data(), &plane.file("second")));
    assert!(said.contains("sealed with keys that are not here") && said.contains("--key"), "{said}");
    must(&restore(&plane.data(), &copy));
    let private = plane.file("copy.key").metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(private, 0o600);
    plane.start_again();
    assert!(plane.kubectl(&["auth", "whoami"]).contains("admin"));
    assert_eq!(plane.get("secret", "s")["data"]["a"], "dmVyeS1zZWNyZXQ=");
    // Also while it runs, with a key that is named.
    let key = plane.file("copy.key");
    let words: [&Path; 4] = ["restore".as_ref(), &plane.file("second"), "--key".as_ref(), &key];
    must(&concert(&plane.data(), &words));
    assert_eq!(plane.get("secret", "s")["data"]["a"], "dmVyeS1zZWNyZXQ=");
}

#[test]
fn what_is_no_good_copy_is_refused_and_nothing_changes() {
    let Some(mut plane) = Plane::start() else { return };
    plane.define_widgets();
    plane.apply(&widget("kept", &json!({"size": 1})));
    // Large enough for a copy to be too large, beside what SQLite keeps for itself.
    let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "large"},
        "data": {"text": "x".repeat(400_000)}});
    assert_eq!(
        call(&plane.address, "POST", "/api/v1/namespaces/default/configmaps", &large.to_string()).unwrap().0,
        201
    );
    let copy = plane.file("copy");
    backup(&plane.data(), &copy);
    let good = std::fs::read(&copy).unwrap();
    let cut = plane.file("cut");
    std::fs::write(&cut, &good[..good.len() / 2]).unwrap();
    let newer = plane.file("newer");
    std::fs::write(&newer, &good).unwrap();
    // Where SQLite keeps the version of the schema.
    std::fs::OpenOptions::new().write(true).open(&newer).unwrap().write_at(&[0, 0, 1, 0], 60).unwrap();
    let text = plane.file("text");
    std::fs::write(&text, "x".repeat(10_000)).unwrap();
    let none = plane.file("none");
    let cases = [
        (&cut, "is cut off"),
        (&newer, "newer than"),
        (&text, "is not a Concert store"),
        (&none, "No such file"),
    ];
    for round in 0..2 {
        for (file, why) in &cases {
            let said = refused(&restore(&plane.data(), file));
            assert!(said.contains(why), "{said}");
        }
        if round == 0 {
            assert_eq!(names(&plane), ["kept"]);
            plane.kill();
        }
    }
    let said = without_room(&plane.data(), &plane.file("full"), good.len() / 2);
    assert!(said.contains("cannot write"), "{said}");
    plane.start_again();
    assert_eq!(names(&plane), ["kept"]);
    let folder = plane.data().parent().unwrap().to_owned();
    let left: Vec<String> = folder
        .read_dir()
        .unwrap()
        .chain(plane.data().read_dir().unwrap())
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .filter(|it| it.ends_with(".new") || it.ends_with(".restore") || it.starts_with("full"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    let said = refused(&concert(&plane.file("nowhere"), &["backup".as_ref(), &plane.file("other")]));
    assert!(said.contains("there is no control plane in"), "{said}");
    assert!(!plane.file("nowhere").exists());
}

/// What a backup says that may write no file of more than `bytes`.
fn without_room(data: &Path, file: &Path, bytes: usize) -> String {
    let script = "trap '' XFSZ; ulimit -f \"$3\"; exec \"$0\" backup --data-dir \"$1\" \"$2\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_concert")]).arg(data).arg(file);
    // A block of ulimit has 512 bytes.
    refused(&command.arg((bytes / 512).to_string()).stdin(Stdio::null()).output().unwrap())
}
