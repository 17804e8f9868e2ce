use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use super::stage::*;
use crate::client::{self, Client, Endpoint};
use crate::server::{Allow, Server};
use crate::*;

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// A folder with this authority's `ca.crt` and a pair for `name`.
    fn folder(&self, name: &str) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        self.write(folder.path(), name);
        folder
    }

    fn write(&self, folder: &Path, name: &str) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(folder.join("ca.crt"), &self.pem).unwrap();
        std::fs::write(folder.join("tls.crt"), certificate.pem()).unwrap();
        std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
    }
}

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
    let authority = Authority::new();
    let folder = without(authority.folder("localhost"), "ca.crt");
    let running = Running::start(server(folder.path())).await;
    let trusting = without(without(authority.folder("x"), "tls.crt"), "tls.key");
    client_of(&running, Tls::folder(trusting.path())).handshake(&call()).await.unwrap();

    let stranger = without(without(Authority::new().folder("x"), "tls.crt"), "tls.key");
    for tls in [Tls::folder(stranger.path()), Tls::system()] {
        let error = client_of(&running, tls).handshake(&call()).await.unwrap_err();
        assert_eq!(error.class, Class::Unreachable, "{error}");
        assert!(error.message.contains("certificate"), "{error}");
    }
}

#[tokio::test]
async fn a_server_for_another_name_is_refused() {
    let authority = Authority::new();
    let folder = without(authority.folder("elsewhere"), "ca.crt");
    let running = Running::start(server(folder.path())).await;
    let trusting = without(without(authority.folder("x"), "tls.crt"), "tls.key");
    let error = client_of(&running, Tls::folder(trusting.path())).handshake(&call()).await.unwrap_err();
    assert_eq!(error.class, Class::Unreachable, "{error}");
}

#[tokio::test]
async fn callers_are_verified_and_allowed_by_kind() {
    let authority = Authority::new();
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

    let anonymous = without(without(authority.folder("x"), "tls.crt"), "tls.key");
    let error = client_of(&running, Tls::folder(anonymous.path())).handshake(&call()).await.unwrap_err();
    assert_eq!(error.class, Class::Unreachable, "{error}");
}

#[tokio::test]
async fn half_a_pair_is_refused_by_both_sides() {
    let authority = Authority::new();
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
    let old = Authority::new();
    let (near, far) = (old.folder("concert"), old.folder("localhost"));
    let running = Running::start(server(far.path())).await;
    let client = client_of(&running, Tls::folder(near.path()));
    client.handshake(&call()).await.unwrap();
    let epoch = client.link().borrow().epoch;

    let new = Authority::new();
    new.write(near.path(), "concert");
    new.write(far.path(), "localhost");
    // The client looks at its files every so often; until then it goes on with what it has.
    let renewed = async {
        while client.link().borrow().epoch == epoch {
            client.handshake(&call()).await.unwrap();
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), renewed).await.unwrap();
    client.handshake(&call()).await.unwrap();
}
