use std::path::Path;
use std::sync::Arc;

use concert_testbed::Authority;
use tempfile::TempDir;

use super::stage::*;
use crate::client::{self, Client, Endpoint};
use crate::server::{Allow, Server};
use crate::*;

fn without(folder: TempDir, file: &str) -> TempDir {
    std::fs::remove_file(folder.path().join(file)).unwrap();
    folder
}

fn server(folder: &Path) -> Server {
    Server::new(Arc::new(Memory::new([bucket()]))).address("127.0.0.1:0").tls(Tls::folder(folder))
}

fn client_of(server: &Running, tls: Tls) -> Client {
    let address = server.address.replace("127.0.0.1", "localhost");
    client::connect(Endpoint { use_tls: true, tls, ..Endpoint::new(address) }).unwrap()
}

#[tokio::test]
async fn the_server_is_verified() {
    let authority = Authority::fresh();
    let folder = authority.pair_only("localhost");
    let running = Running::start(server(folder.path())).await;
    let trusting = authority.trusting();
    client_of(&running, Tls::folder(trusting.path())).handshake(&call()).await.unwrap();

    let stranger = Authority::fresh().trusting();
    for tls in [Tls::folder(stranger.path()), Tls::system()] {
        let error = client_of(&running, tls).handshake(&call()).await.unwrap_err();
        assert_eq!(error.class, Class::Unreachable, "{error}");
        assert!(error.message.contains("certificate"), "{error}");
    }
}

#[tokio::test]
async fn a_server_for_another_name_is_refused() {
    let authority = Authority::fresh();
    let folder = authority.pair_only("elsewhere");
    let running = Running::start(server(folder.path())).await;
    let trusting = authority.trusting();
    let error = client_of(&running, Tls::folder(trusting.path())).handshake(&call()).await.unwrap_err();
    assert_eq!(error.class, Class::Unreachable, "{error}");
}

#[tokio::test]
async fn callers_are_verified_and_allowed_by_kind() {
    let authority = Authority::fresh();
    let folder = authority.folder("localhost");
    let other = concert_model::GroupVersionKind::parse("example.dev/v1", "Other").unwrap();
    let allow = Allow::nobody().kind(bucket(), ["concert"]).kind(other, ["guest"]);
    let running = Running::start(server(folder.path()).allow(allow)).await;

    let concert = authority.folder("concert");
    let client = client_of(&running, Tls::folder(concert.path()));
    client.handshake(&call()).await.unwrap();
    let mut external = client.connect(&object("a"), None, &call()).await.unwrap();
    external.observe(&object("a"), &call()).await.unwrap();

    let guest = authority.folder("guest");
    let client = client_of(&running, Tls::folder(guest.path()));
    client.handshake(&call()).await.unwrap();
    let mut external = client.connect(&object("a"), None, &call()).await.unwrap();
    let error = external.create(&object("a"), &token("t"), &call()).await.unwrap_err();
    assert_eq!((error.class, error.effect), (Class::Denied, Effect::None), "{error}");

    let stranger = authority.folder("stranger");
    let error = client_of(&running, Tls::folder(stranger.path())).handshake(&call()).await.unwrap_err();
    assert_eq!(error.class, Class::Denied, "{error}");

    let anonymous = authority.trusting();
    let error = client_of(&running, Tls::folder(anonymous.path())).handshake(&call()).await.unwrap_err();
    assert_eq!(error.class, Class::Unreachable, "{error}");
}

#[tokio::test]
async fn half_a_pair_is_refused_by_both_sides() {
    let authority = Authority::fresh();
    for missing in ["tls.crt", "tls.key"] {
        let folder = without(authority.folder("localhost"), missing);
        let error = server(folder.path()).bind().await.map(drop).unwrap_err();
        assert!(error.message.contains(missing), "{error}");
        let endpoint =
            Endpoint { use_tls: true, tls: Tls::folder(folder.path()), ..Endpoint::new("localhost:1") };
        let error = client::connect(endpoint).map(drop).unwrap_err();
        assert_eq!(error.class, Class::Denied);
        assert!(error.message.contains("half a pair"), "{error}");
    }
    let empty = tempfile::tempdir().unwrap();
    assert!(server(empty.path()).bind().await.is_err(), "TLS that is asked for never becomes none");
    let plain = Server::new(Arc::new(Memory::new([]))).address("127.0.0.1:0").allow(Allow::nobody());
    assert!(plain.bind().await.is_err(), "names need certificates");
}

#[tokio::test]
async fn both_sides_take_up_new_certificates() {
    let old = Authority::fresh();
    let (near, far) = (old.folder("concert"), old.folder("localhost"));
    let running = Running::start(server(far.path())).await;
    let client = client_of(&running, Tls::folder(near.path()));
    client.handshake(&call()).await.unwrap();
    let epoch = client.link().borrow().epoch;

    let new = Authority::fresh();
    for (folder, name) in [(&near, "concert"), (&far, "localhost")] {
        new.write_trust(folder.path());
        new.write_pair(folder.path(), name);
    }
    // The client looks at its files every so often; until then it goes on with what it has.
    let renewed = async {
        while client.link().borrow().epoch == epoch {
            client.handshake(&call()).await.unwrap();
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), renewed).await.unwrap();
    client.handshake(&call()).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_makes_way_for_new_certificates_is_not_lost() {
    let authority = Authority::fresh();
    let (near, far) = (authority.folder("concert"), authority.folder("localhost"));
    let running = Running::start(server(far.path())).await;
    let client = client_of(&running, Tls::folder(near.path()));
    client.handshake(&call()).await.unwrap();
    let before = *client.link().borrow();

    authority.write_pair(near.path(), "concert");
    let renewed = async {
        while client.link().borrow().epoch == before.epoch {
            let mut external = client.connect(&object("a"), None, &call()).await.unwrap();
            external.observe(&object("a"), &call()).await.unwrap();
        }
    };
    tokio::select! {
        biased;
        () = client.lost() => panic!("it made way"),
        done = tokio::time::timeout(std::time::Duration::from_secs(30), renewed) => done.unwrap(),
    }
    let after = *client.link().borrow();
    assert!(after.is_up && after.losses == before.losses, "{after:?}");
    running.stop().await.unwrap();
    client.lost().await;
}
