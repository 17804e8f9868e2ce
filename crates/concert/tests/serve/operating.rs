//! What `docs/guides/postgres.md` says is typed as it stands, on a real server: from a file to a database, an
//! upgrade, a copy, the way back from it, and a trial of it.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use concert_store::seal::Keyring;
use concert_testbed::Postgres;

use crate::guide::commands;
use crate::plane::Plane;

const GUIDE: &str = include_str!("../../../../docs/guides/postgres.md");

/// What a reader has and this machine does not: a service manager, for the one replica there is. `serve` is what
/// the guide has it run.
const SERVICE: &str = r#"
trap 'kill $(jobs -p) || true' EXIT
ready() {
    until curl -fsS "http://127.0.0.1:$1/readyz"; do kill -0 "$2" || exit 1; sleep 0.1; done
}
systemctl() {
    case "$1" in
    stop) kill "$PID"; wait "$PID" || exit 1 ;;
    start) serve > "$LOG" 2>&1 & PID=$!; ready "$ADMIN" "$PID" ;;
    esac
}
"#;

/// A port of loopback that nobody has.
fn free() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

/// The statements between fences that say `sql`.
fn statements(guide: &str) -> Vec<&str> {
    let block = guide.split("```sql\n").nth(1).and_then(|it| it.split("```").next()).unwrap();
    block.lines().filter(|it| !it.is_empty()).collect()
}

/// Replaces what a reader replaces, which must be there.
fn put(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the guide no longer says {from:?}: {text}");
    text.replace(from, to)
}

/// The file that a reader comes from, and their folder for it.
fn begin(plane: &mut Plane, home: &Path) {
    plane.kubectl(&["create", "namespace", "kept"]);
    plane.kill();
    let share = home.join(".local/share");
    fs::create_dir_all(&share).unwrap();
    symlink(plane.data(), share.join("concert")).unwrap();
}

#[test]
fn the_guide_to_postgres_works_as_it_is_typed() {
    let Some(server) = Postgres::start(&[]).unwrap() else { return };
    let Some(mut plane) = Plane::start_with(&["--plugins", "off"]) else { return };
    let [home, bin, work, etc] = ["home", "bin", "work", "etc"].map(|it| plane.file(it));
    begin(&mut plane, &home);
    for folder in [&bin, &work, &etc] {
        fs::create_dir(folder).unwrap();
    }
    symlink(env!("CARGO_BIN_EXE_concert"), bin.join("concert")).unwrap();
    symlink(plane.command(&[]).get_program(), bin.join("kubectl")).unwrap();
    symlink(env!("CARGO_BIN_EXE_concert"), work.join("concert-new")).unwrap();
    fs::copy(server.authority(), etc.join("db-ca.crt")).unwrap();
    // The certificate of the replica, with the root after it, and its key.
    let part = |name: &str| fs::read_to_string(server.authority().with_file_name(name)).unwrap();
    fs::write(etc.join("tls.crt"), part("server.crt") + &part("ca.crt")).unwrap();
    fs::write(etc.join("tls.key"), part("server.key")).unwrap();
    fs::set_permissions(etc.join("tls.key"), fs::Permissions::from_mode(0o600)).unwrap();
    for statement in statements(GUIDE) {
        server.sql("postgres", &statement.replace('…', "pw")).unwrap();
    }

    let (port, admin, trial, trial_admin) = (free(), free(), free(), free());
    let address = format!("postgres://concert:pw@127.0.0.1:{}/", server.port());
    let guide = put(GUIDE, "postgres://concert:PASSWORD@db.example.com:5432/", &address);
    let guide = put(&guide, "/etc/concert/", &format!("{}/", etc.display()));
    let guide = put(&guide, "$(date +%F)", "2030-01-31");
    let blocks = commands(&guide);
    let [first, migrate, members, upgrade, copy, back, practise, kubernetes] = &blocks[..] else {
        panic!("the guide has other blocks: {blocks:#?}")
    };
    let (exports, serve) = first.split_once("concert serve").unwrap();
    let exports = put(exports, "JWT_SECRET_KEY=…", "JWT_SECRET_KEY=0123456789abcdef0123456789abcdef");
    let files =
        format!("--tls-cert-file {0}/tls.crt --tls-key-file {0}/tls.key --plugins off", etc.display());
    let serve = put(serve, "--tls-cert-file … --tls-key-file …", &files);
    let serve = put(&serve, "https://concert-1.example.com:8000", &format!("https://127.0.0.1:{port}"));
    let serve = put(&serve, "0.0.0.0:8000", &format!("0.0.0.0:{port}"));
    let upgrade = put(upgrade, "/usr/local/bin", bin.to_str().unwrap());
    let upgrade = put(&upgrade, "127.0.0.1:8001", &format!("127.0.0.1:{admin}"));
    let of_trial = format!("{address}trial?sslmode=verify-full&sslrootcert={}/db-ca.crt", etc.display());
    let practise = put(practise, "postgres://…/trial?…", &of_trial);
    // In the place of the shell that it is typed into, so that it can be ended.
    let practise = put(&practise, "concert serve", "exec concert serve");
    let practise = put(&practise, "127.0.0.1:8100", &format!("127.0.0.1:{trial}"));
    let practise = put(&practise, "127.0.0.1:8101", &format!("127.0.0.1:{trial_admin}"));
    server.sql("postgres", "CREATE DATABASE trial OWNER concert").unwrap();

    let script = format!(
        "{SERVICE}
{exports}
serve() {{
exec concert serve{serve}
}}
{migrate}
systemctl start concert
{members}{upgrade}{copy}
kubectl create namespace forgotten > /dev/null
{back}
pg_restore --exit-on-error --single-transaction --dbname='{of_trial}' concert-2030-01-31.dump
practise() {{
{practise}
}}
practise > \"$LOG.trial\" 2>&1 & TRIAL=$!
ready {trial_admin} \"$TRIAL\"
kill \"$TRIAL\"
wait \"$TRIAL\"
systemctl stop concert
"
    );
    let (log, path) =
        (plane.file("replica.log"), std::env::join_paths([bin.as_path(), server.programs()]).unwrap());
    let output = Command::new("bash")
        .args(["-euxo", "pipefail", "-c", &format!("PATH=\"$FIRST:$PATH\"\n{script}")])
        .current_dir(&work)
        .env("FIRST", path)
        .env("HOME", &home)
        .env_remove("XDG_DATA_HOME")
        .env("KUBECONFIG", plane.kubeconfig())
        .env("KUBECACHEDIR", plane.file("cache"))
        .env("CONCERT_ADMIN_LISTEN", format!("127.0.0.1:{admin}"))
        .env("ADMIN", &admin)
        .env("LOG", &log)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let served =
        [log.clone(), log.with_extension("log.trial")].map(|it| fs::read_to_string(it).unwrap_or_default());
    assert!(output.status.success(), "{said}\n--- and\n{talk}\n--- and\n{}", served.join("\n--- and\n"));
    assert!(said.contains("SHARES"), "members are shown: {said}");
    assert!(said.contains("kept"), "what was in the file is in what came back: {said}");
    assert!(!said.contains("forgotten"), "and nothing from after the copy: {said}");
    assert_eq!(server.sql("concert", "SELECT to_regnamespace('concert_before') IS NULL").unwrap(), "t");

    // The key file that the part on Kubernetes makes is one.
    let key = work.join("concert.key");
    let make = kubernetes.lines().next().unwrap();
    assert!(Command::new("bash").args(["-ec", make]).current_dir(&work).status().unwrap().success());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    Keyring::read_from(&key).unwrap();
}

#[test]
fn the_guide_says_who_holds_the_lock_of_commits() {
    let Some(server) = Postgres::start(&[]).unwrap() else { return };
    let ask = GUIDE.split('`').find(|it| it.starts_with("SELECT * FROM pg_locks")).unwrap();
    assert_eq!(server.sql("postgres", ask).unwrap(), "");
    let number = ask.rsplit(' ').next().unwrap();
    let _held = server.session("postgres", &format!("SELECT pg_advisory_xact_lock({number}, 1)")).unwrap();
    assert!(server.sql("postgres", ask).unwrap().contains("ExclusiveLock"));
}
