use std::path::Path;

use concert_store::conformance::HandClock;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::*;

fn own(directory: &Path, names: &[&str]) -> Source {
    let names = names.iter().map(|it| (*it).to_owned()).collect();
    Source::Own { directory: directory.to_owned(), names }
}

/// The server's own certificate, as it is stored.
fn stored(directory: &Path) -> Vec<CertificateDer<'static>> {
    certificates(&std::fs::read(directory.join("server.pem")).unwrap()).unwrap()
}

fn days(days: u64) -> Duration {
    Duration::from_secs(days * 24 * 60 * 60)
}

#[test]
fn a_ca_is_made_once_and_its_keys_are_private() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("deep/tls");
    let clock = Arc::new(HandClock::new());
    let first = Certificates::open(own(&directory, &["localhost"]), clock.clone()).unwrap();
    let chain = stored(&directory);
    let again = Certificates::open(own(&directory, &["localhost"]), clock.clone()).unwrap();
    assert_eq!((stored(&directory), again.authority().unwrap()), (chain.clone(), first.authority().unwrap()));
    let public = std::fs::read_to_string(first.authority_path().unwrap()).unwrap();
    assert!(!public.contains("PRIVATE") && first.authority().unwrap() == Some(public));
    // Other names need another certificate, of the same CA.
    Certificates::open(own(&directory, &["localhost", "10.0.0.1"]), clock.clone()).unwrap();
    let renamed = stored(&directory);
    assert!(renamed[0] != chain[0] && renamed[1] == chain[1]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |file: &str| std::fs::metadata(directory.join(file)).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            [mode("ca.pem"), mode("server.pem"), mode("."), mode("ca.crt")],
            [0o600, 0o600, 0o700, 0o644]
        );
        let exposed = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(directory.join("ca.pem"), exposed).unwrap();
        let result = Certificates::open(own(&directory, &["localhost"]), clock);
        assert!(matches!(result, Err(TlsError::Exposed { .. })));
    }
}

#[test]
fn a_certificate_is_renewed_long_before_it_expires_and_the_ca_keeps_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::new());
    let certificates = Certificates::open(own(folder.path(), &["localhost"]), clock.clone()).unwrap();
    let (config, chain) = (certificates.current(), stored(folder.path()));
    clock.advance(days(240));
    assert!(Arc::ptr_eq(&config, &certificates.current()));
    clock.advance(days(10));
    assert!(!Arc::ptr_eq(&config, &certificates.current()));
    let renewed = stored(folder.path());
    assert!(renewed[0] != chain[0] && renewed[1] == chain[1]);

    clock.advance(days(2_400));
    certificates.current();
    let late = stored(folder.path());
    let parse = |it: &CertificateDer<'static>| {
        let (_, it) = X509Certificate::from_der(it).unwrap();
        (it.subject().to_string(), it.public_key().raw.to_vec(), it.raw_serial().to_vec())
    };
    let (old, new) = (parse(&chain[1]), parse(&late[1]));
    assert_eq!((old.0, old.1), (new.0, new.1));
    assert_ne!(old.2, new.2);
    assert!(certificates.authority().unwrap().is_some());
}

#[test]
fn given_files_are_read_again_when_they_change_and_nonsense_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::new());
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    let give = |name: &str| {
        let pair = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        std::fs::write(&certificate, pair.cert.pem()).unwrap();
        std::fs::write(&key, pair.signing_key.serialize_pem()).unwrap();
    };
    give("one.dev");
    let source = Source::Files { certificate: certificate.clone(), key: key.clone() };
    let certificates = Certificates::open(source, clock.clone()).unwrap();
    let first = certificates.current();
    let next = || {
        clock.advance(FRESH);
        certificates.current()
    };
    assert!(Arc::ptr_eq(&first, &next()));
    give("two.dev");
    assert!(Arc::ptr_eq(&first, &certificates.current()));
    let second = next();
    assert!(!Arc::ptr_eq(&first, &second));
    let good = std::fs::read(&key).unwrap();
    for broken in [&b""[..], b"no key", rcgen::KeyPair::generate().unwrap().serialize_pem().as_bytes()] {
        std::fs::write(&key, broken).unwrap();
        assert!(Arc::ptr_eq(&second, &next()));
    }
    std::fs::remove_file(&key).unwrap();
    assert!(Arc::ptr_eq(&second, &next()));
    std::fs::write(&key, good).unwrap();
    assert!(Arc::ptr_eq(&second, &next()));
}

#[test]
fn given_certificates_that_nobody_else_has_signed_are_the_authority() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::new());
    Certificates::open(own(folder.path(), &["localhost"]), clock.clone()).unwrap();
    let whole = std::fs::read_to_string(folder.path().join("server.pem")).unwrap();
    let (certificate, key) = (folder.path().join("tls.crt"), folder.path().join("server.pem"));
    let given = |chain: &str| {
        std::fs::write(&certificate, chain).unwrap();
        let source = Source::Files { certificate: certificate.clone(), key: key.clone() };
        Certificates::open(source, clock.clone()).unwrap().authority().unwrap()
    };
    let authority = std::fs::read_to_string(folder.path().join(CA_FILE)).unwrap();
    assert_eq!(given(&whole), Some(authority), "it comes along with what it has signed");
    let alone = whole.split_inclusive("-----END CERTIFICATE-----\n").next().unwrap();
    assert_eq!(given(alone), None);
}

#[test]
fn nonsense_at_the_start_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(HandClock::new());
    let missing = Source::Files { certificate: "none.crt".into(), key: "none.key".into() };
    assert!(matches!(Certificates::open(missing, clock.clone()), Err(TlsError::Io { .. })));
    let result = Certificates::open(own(folder.path(), &["not a name\u{e9}"]), clock);
    assert!(matches!(result, Err(TlsError::Make(_))));
}
