//! What one replica answers for all comes through any of them: over TLS, with a token, and to no stranger.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use concert_testbed::Postgres;
use serde_json::{Value, json};

use crate::plane::Plane;
use crate::wait::eventually;

/// What a worker of toys asks for.
const CLAIM: &str = "/api/v1/workers/toys/claim";

/// Two replicas as they are in use, with certificates and without `--dev`.
struct Pair {
    planes: Vec<Plane>,
    /// The administrator's.
    token: String,
    /// What clients trust, where it is not what each of them has made for itself.
    authority: Option<PathBuf>,
    _folder: tempfile::TempDir,
}

impl Pair {
    fn start(server: &Postgres, authority: Option<PathBuf>, more: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("keys").to_str().unwrap().to_owned();
        let url = server.fresh_url();
        let flags = ["--store", &url, "--key-file", &keys, "--member-lease", "3s", "--plugins", "off"];
        let flags: Vec<&str> = flags.iter().chain(more).copied().collect();
        let one = Plane::start_with(&flags)?;
        let token = one.kubectl(&["config", "view", "--raw", "-o", "jsonpath={.users[0].user.token}"]);
        assert!(!token.is_empty(), "the first of them has a token");
        let two = Plane::start_with(&flags).unwrap();
        Some(Self { planes: vec![one, two], token, authority, _folder: folder })
    }

    /// What one of them answers, with its code.
    fn call(&self, plane: &Plane, token: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let authority = self.authority.clone().unwrap_or_else(|| plane.data().join("tls/ca.crt"));
        let mut command = Command::new("curl");
        command.args(["-sS", "--noproxy", "*", "-w", "\n%{http_code}", "--cacert"]).arg(authority);
        command.args(["-H", &format!("Authorization: Bearer {token}")]);
        if let Some(body) = body {
            command.args(["-H", "Content-Type: application/json", "-d", &body.to_string()]);
        }
        let output = command.arg(format!("https://{}{path}", plane.address)).stdin(Stdio::null()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let (text, code) = text.rsplit_once('\n').unwrap();
        (code.parse().unwrap(), text.to_owned())
    }

    /// The same for the administrator. While work moves to its place the answer is 503, and workers ask again.
    fn ask(&self, plane: &Plane, path: &str, body: &Value) -> Value {
        eventually("an answer", || match self.call(plane, &self.token, path, Some(body)) {
            (200..300, text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
            other => Err(format!("{path}: {other:?}")),
        })
    }

    /// Waits until they have shared the work. Returns the one that lends, and the other.
    fn settle(&self) -> (&Plane, &Plane) {
        let places = eventually("the work is shared", || {
            let mut lends = Vec::new();
            for plane in &self.planes {
                let (_, text) = self.call(plane, &self.token, "/api/v1/cluster/nodes", None);
                let answer: Value = serde_json::from_str(&text).unwrap_or_default();
                let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
                let live = nodes.iter().filter(|it| it["status"] == "Ready" && it["is_leaving"] == false);
                let shares: Vec<u64> = live.filter_map(|it| it["shares"].as_u64()).collect();
                // Of 128 a half is 64, give or take what chance does.
                if shares.len() != 2 || shares.iter().sum::<u64>() != 128 || shares.iter().any(|it| *it < 16)
                {
                    return Err(text);
                }
                lends.push(answer["this_instance_is_leader"] == true);
            }
            match lends[..] {
                [true, false] => Ok((0, 1)),
                [false, true] => Ok((1, 0)),
                _ => Err(format!("{lends:?}")),
            }
        });
        (&self.planes[places.0], &self.planes[places.1])
    }

    /// Has a worker of toys, and a first toy.
    fn register(&self, plane: &Plane) {
        let kind = json!({"name": "Toy", "version": "v1", "schema": {"type": "object"}});
        self.ask(plane, "/api/v1/resource-types", &kind);
        let handles = json!([{"resource_type": "Toy"}]);
        self.ask(plane, "/api/v1/workers", &json!({"name": "toys", "handles": handles, "host_id": "h"}));
        self.make(plane, "first");
    }

    fn make(&self, plane: &Plane, name: &str) {
        let toy = json!({"name": name, "resource_type_name": "Toy", "resource_type_version": "v1",
            "spec": {"size": 1}});
        self.ask(plane, "/api/v1/resources", &toy);
    }

    /// Takes up an item at one of them and reports on it at another.
    fn work(&self, claiming: &Plane, reporting: &Plane) {
        let claimed = eventually("an item", || {
            let answer = self.ask(claiming, CLAIM, &wanted());
            answer["items"].get(0).cloned().ok_or_else(|| answer.to_string())
        });
        let result = json!({"item": claimed["item"], "fence": claimed["lease"]["fence"], "outcome": "ready"});
        let done = self.ask(reporting, "/api/v1/workers/toys/results", &json!({"results": [result]}));
        assert_eq!(done["results"][0]["status"], 200, "{done} for {claimed}");
    }

    /// Waits until this one has found that the other is not who it should be. It has nothing to answer.
    fn await_distrust(&self, plane: &Plane) {
        eventually("it says that it cannot pass a request on", || {
            let (code, text) = self.call(plane, &self.token, CLAIM, Some(&wanted()));
            assert_eq!(code, 503, "{text}");
            let log = plane.log();
            let line = log.lines().find(|line| line.contains("cannot pass a request on"));
            let line = line.ok_or_else(|| format!("{code} {text}"))?;
            assert!(line.contains("TLS: invalid peer certificate"), "{line}");
            Ok(())
        });
    }
}

fn wanted() -> Value {
    json!({"host_id": "h", "limit": 1, "wait_seconds": 5})
}

#[test]
fn a_worker_is_served_through_any_replica_over_tls() {
    let Some(server) = Postgres::shared() else { return };
    let Some(pair) = Pair::start(server, None, &[]) else { return };
    let (lender, other) = pair.settle();
    pair.register(other);
    pair.work(other, other);
    for (name, (claiming, reporting)) in [("second", (lender, other)), ("third", (other, lender))] {
        pair.make(claiming, name);
        pair.work(claiming, reporting);
    }
    for name in ["first", "second", "third"] {
        let path = format!("/api/v1/resources/by-name/Toy/v1/{name}");
        eventually("it is ready", || {
            let (_, text) = pair.call(other, &pair.token, &path, None);
            if text.contains("\"ready\"") { Ok(()) } else { Err(text) }
        });
    }
    // Whoever is nobody here is nobody there.
    for plane in [lender, other] {
        let (code, text) = pair.call(plane, "not-a-token", CLAIM, Some(&wanted()));
        assert_eq!(code, 401, "{text}");
    }
}

#[test]
fn nothing_is_passed_on_to_somebody_with_another_authority() {
    let Some(server) = Postgres::shared() else { return };
    // It answers where the replicas should, with a certificate for that address, of its own making.
    let Some(stranger) = Plane::start_with(&[]) else { return };
    let there = format!("https://{}", stranger.address);
    let pair = Pair::start(server, None, &["--advertise", &there]).unwrap();
    let (lender, other) = pair.settle();
    pair.register(lender);
    pair.await_distrust(other);
    pair.work(lender, lender);
}

#[test]
fn a_private_authority_is_trusted_when_its_root_is_in_the_file() {
    let Some(server) = Postgres::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (chain, key) = (folder.path().join("chain.crt"), folder.path().join("key"));
    fs::copy(server.authority().with_file_name("server.crt"), &chain).unwrap();
    fs::copy(server.authority().with_file_name("server.key"), &key).unwrap();
    let files = ["--tls-cert-file", chain.to_str().unwrap(), "--tls-key-file", key.to_str().unwrap()];
    let Some(mut pair) = Pair::start(server, Some(server.authority()), &files) else { return };
    let (lender, other) = pair.settle();
    pair.register(lender);
    // Nobody on this machine knows who signed that.
    pair.await_distrust(other);

    let root = fs::read_to_string(server.authority()).unwrap();
    let leaf = fs::read_to_string(&chain).unwrap();
    fs::write(&chain, format!("{leaf}{root}")).unwrap();
    for plane in &mut pair.planes {
        plane.kill();
        plane.start_again();
    }
    let (_, other) = pair.settle();
    pair.work(other, other);
}
