//! The same over TLS, and what a bad handshake does not do.

use concert_store::Clock;
use concert_store::conformance::HandClock;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::super::tls::{Certificates, Source, names_for};
use super::*;

struct Secure {
    server: Server,
    authority: String,
    _folder: tempfile::TempDir,
}

async fn secure(limits: Limits) -> Secure {
    let folder = tempfile::tempdir().unwrap();
    let names = names_for("127.0.0.1:0".parse().unwrap(), &[]);
    let source = Source::Own { directory: folder.path().to_owned(), names };
    let certificates = Certificates::open(source, Arc::new(SystemClock::new())).unwrap();
    let authority = certificates.authority().unwrap().unwrap();
    let server = start(limits, Security::Tls(certificates)).await;
    Secure { server, authority, _folder: folder }
}

impl Secure {
    async fn dial(&self, authority: Option<&str>, protocol: &[u8]) -> std::io::Result<TlsStream<TcpStream>> {
        dial(self.server.address, authority.unwrap_or_default(), protocol, &SystemClock::new()).await
    }

    async fn trusting(&self, protocol: &[u8]) -> TlsStream<TcpStream> {
        self.dial(Some(&self.authority), protocol).await.unwrap()
    }
}

/// A client's clock.
#[derive(Debug)]
struct Now(UnixTime);

impl TimeProvider for Now {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}

/// A client that trusts `authority` alone.
async fn dial(
    address: SocketAddr,
    authority: &str,
    protocol: &[u8],
    clock: &dyn Clock,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let seconds = u64::try_from(clock.now().as_second()).unwrap();
    let now = Now(UnixTime::since_unix_epoch(Duration::from_secs(seconds)));
    let config = ClientConfig::builder_with_details(provider, Arc::new(now));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// The certificate that the server has shown.
fn shown(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

fn get(path: &str) -> Request<Full<Bytes>> {
    let uri = format!("https://127.0.0.1{path}");
    Request::builder().uri(uri).header("host", "127.0.0.1").body(Full::default()).unwrap()
}

#[tokio::test]
async fn both_protocols_are_spoken_to_who_trusts_the_ca() {
    let secure = secure(Limits::default()).await;
    let driver = &secure.server.tasks;
    let stream = secure.trusting(b"http/1.1").await;
    let (mut one, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    driver.spawn("client", concert_engine::OnExit::Log, async move { drop(connection.await) });
    let response = one.send_request(get("/hello")).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");

    let stream = secure.trusting(b"h2").await;
    let (mut two, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    driver.spawn("client", concert_engine::OnExit::Log, async move { drop(connection.await) });
    let mut watch = two.send_request(get("/watch?watch=1")).await.unwrap().into_body();
    let first = watch.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "first\n");
    let response = two.send_request(get("/hello")).await.unwrap();
    assert_eq!(response.version(), http::Version::HTTP_2);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
    // The watch ends in order when the server stops.
    driver.shutdown().request();
    assert!(watch.collect().await.unwrap().to_bytes().is_empty());
}

#[tokio::test]
async fn who_does_not_trust_the_ca_does_not_connect() {
    let (secure, other) = (secure(Limits::default()).await, secure(Limits::default()).await);
    assert!(secure.dial(None, b"h2").await.is_err());
    assert!(secure.dial(Some(&other.authority), b"h2").await.is_err());
    assert!(secure.dial(Some(&secure.authority), b"smtp").await.is_err());
}

#[tokio::test]
async fn a_bad_handshake_holds_up_nobody() {
    let limits = Limits { handshake_time: Duration::from_millis(200), ..Limits::default() };
    let secure = secure(limits).await;
    let mut silent = secure.server.connect().await;
    let mut plain = secure.server.connect().await;
    plain.send("GET /hello HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(!plain.rest().await.contains("hello"));
    let mut half = secure.server.connect().await;
    half.stream.write_all(&[0x16, 3, 1, 2, 0, 1]).await.unwrap();
    secure.trusting(b"h2").await;
    for client in [&mut silent, &mut half] {
        client.rest().await;
    }
    let mut quiet = secure.trusting(b"h2").await;
    quiet.write_all(b"no preface of HTTP/2 at all, but long enough to be one").await.unwrap();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, quiet.read_to_end(&mut rest)).await.unwrap();
    secure.trusting(b"http/1.1").await;
}

#[tokio::test]
async fn who_trusts_the_first_authority_accepts_every_certificate_that_follows() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::new());
    let names = names_for("127.0.0.1:0".parse().unwrap(), &[]);
    let source = Source::Own { directory: folder.path().to_owned(), names };
    let certificates = Certificates::open(source, clock.clone()).unwrap();
    let authority = certificates.authority().unwrap().unwrap();
    let server = start(Limits::default(), Security::Tls(certificates.clone())).await;
    let dial = async || shown(&dial(server.address, &authority, b"h2", &*clock).await.unwrap());
    let first = dial().await;
    assert_eq!(first, dial().await);
    let day = Duration::from_secs(24 * 60 * 60);
    clock.advance(day * 250);
    let second = dial().await;
    assert_ne!(first, second, "it was renewed before its year was over");
    // The authority is another certificate by now, with the same key.
    clock.advance(day * 2_400);
    assert_ne!(second, dial().await);
    assert_ne!(certificates.authority().unwrap().unwrap(), authority);
}

#[tokio::test]
async fn given_files_that_are_replaced_are_shown_to_the_next_who_comes() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::new());
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let give = || {
        let pair = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(&certificate, pair.cert.pem()).unwrap();
        std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    };
    give();
    let source = Source::Files { certificate: certificate.clone(), key: key.clone() };
    let certificates = Certificates::open(source, clock.clone()).unwrap();
    let server = start(Limits::default(), Security::Tls(certificates.clone())).await;
    let dial = async |authority: &str| dial(server.address, authority, b"h2", &*clock).await;
    let first = certificates.authority().unwrap().expect("it has signed itself");
    dial(&first).await.unwrap();
    give();
    let second = certificates.authority().unwrap().expect("so has this one");
    assert!(dial(&second).await.is_err(), "nobody has looked yet");
    clock.advance(Duration::from_secs(2));
    dial(&second).await.unwrap();
    assert!(dial(&first).await.is_err());
}
