//! A CA of our own and a certificate of it.
//!
//! Each is one file with its key, so that no crash leaves a key without its certificate. The CA keeps
//! its key when it is renewed: whoever trusts the old one trusts what the new one signs.

use std::path::Path;
use std::time::Duration;

use concert_model::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SerialNumber,
};
use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::error::TlsError;
use super::{Pair, certificates, file};

/// The CA's certificate, for clients.
pub const CA_FILE: &str = "ca.crt";
const CA_PAIR: &str = "ca.pem";
const SERVER_PAIR: &str = "server.pem";

const DAY: i64 = 24 * 60 * 60;
const CA_DAYS: i64 = 3_650;
const SERVER_DAYS: i64 = 365;
/// Certificates hold from a little earlier, for clients whose clock is behind.
const SKEW: i64 = 60 * 60;

/// The certificate of the server, made or renewed if it has to be.
pub(super) fn ensure(directory: &Path, names: &[String], now: Timestamp) -> Result<Pair, TlsError> {
    let authority = ensure_authority(directory, now)?;
    let path = directory.join(SERVER_PAIR);
    if let Some(text) = file::read_private(&path)?
        && is_good(&text, names, &authority.certificate, now)
    {
        return Ok(Pair { chain: text.clone(), key: text });
    }
    let text = make_server(&authority, names, now).map_err(TlsError::Make)?;
    file::replace(&path, &text, 0o600)?;
    Ok(Pair { chain: text.clone().into(), key: text.into() })
}

struct Authority {
    key: KeyPair,
    certificate: CertificateDer<'static>,
    pem: String,
}

fn ensure_authority(directory: &Path, now: Timestamp) -> Result<Authority, TlsError> {
    file::make_directory(directory)?;
    let path = directory.join(CA_PAIR);
    let stored = match file::read_private(&path)? {
        Some(text) => Some(read_authority(&text)?),
        None => None,
    };
    let authority = match stored {
        Some(authority) if is_lasting(&authority.certificate, CA_DAYS, now) => authority,
        stored => {
            let key = stored.map_or_else(KeyPair::generate, |it| Ok(it.key)).map_err(TlsError::Make)?;
            let certificate = authority_params(now).self_signed(&key).map_err(TlsError::Make)?;
            let pem = certificate.pem();
            file::replace(&path, &format!("{pem}{}", key.serialize_pem()), 0o600)?;
            Authority { key, certificate: certificate.into(), pem }
        }
    };
    let public = directory.join(CA_FILE);
    if std::fs::read(&public).ok().as_deref() != Some(authority.pem.as_bytes()) {
        file::replace(&public, &authority.pem, 0o644)?;
    }
    Ok(authority)
}

fn read_authority(text: &[u8]) -> Result<Authority, TlsError> {
    let text = String::from_utf8_lossy(text);
    let end = "-----END CERTIFICATE-----\n";
    let at = text.find(end).map(|at| at + end.len());
    let at = at.ok_or_else(|| TlsError::Unfit("there is no certificate in the CA's file".into()))?;
    let (pem, key) = text.split_at(at);
    let key = KeyPair::from_pem(key).map_err(TlsError::Make)?;
    let certificate = certificates(pem.as_bytes())?.remove(0);
    Ok(Authority { key, certificate, pem: pem.to_owned() })
}

/// The first of these certificates that nobody else has signed.
pub(super) fn own_signed(chain: &str) -> Result<Option<String>, TlsError> {
    const END: &str = "-----END CERTIFICATE-----";
    for part in chain.split_inclusive(END).filter(|it| it.ends_with(END)) {
        let certificate = certificates(part.as_bytes())?.remove(0);
        let Ok((_, parsed)) = X509Certificate::from_der(&certificate) else { continue };
        if parsed.issuer() == parsed.subject() {
            return Ok(Some(format!("{}\n", part.trim_start())));
        }
    }
    Ok(None)
}

fn authority_params(now: Timestamp) -> CertificateParams {
    let mut params = lasting(CertificateParams::default(), CA_DAYS, now);
    params.distinguished_name.push(DnType::CommonName, "Concert CA");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn make_server(authority: &Authority, names: &[String], now: Timestamp) -> Result<String, rcgen::Error> {
    let mut params = lasting(CertificateParams::new(names)?, SERVER_DAYS, now);
    params.distinguished_name.push(DnType::CommonName, "concert");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let issuer = Issuer::new(authority_params(now), &authority.key);
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(format!("{}{}{}", certificate.pem(), authority.pem, key.serialize_pem()))
}

fn lasting(mut params: CertificateParams, days: i64, now: Timestamp) -> CertificateParams {
    let at = |second: i64| {
        let second = u64::try_from(second).unwrap_or_default();
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(second)
    };
    params.not_before = at(now.as_second() - SKEW);
    params.not_after = at(now.as_second() + days * DAY);
    // A renewed CA has the same name and key, and must not have the same number.
    params.serial_number = Some(SerialNumber::from_slice(&now.as_microsecond().to_be_bytes()));
    params
}

fn is_good(text: &[u8], names: &[String], authority: &CertificateDer<'_>, now: Timestamp) -> bool {
    let Ok(chain) = certificates(text) else { return false };
    let [server, issuer] = &chain[..] else { return false };
    issuer == authority && is_lasting(server, SERVER_DAYS, now) && has_names(server, names)
}

/// Whether more than a third of its time is left, and it has begun.
fn is_lasting(certificate: &CertificateDer<'_>, days: i64, now: Timestamp) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return false };
    let validity = certificate.validity();
    let left = validity.not_after.timestamp() - now.as_second();
    validity.not_before.timestamp() <= now.as_second() && left > days * DAY / 3
}

fn has_names(certificate: &CertificateDer<'_>, names: &[String]) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return false };
    let Ok(Some(alternatives)) = certificate.subject_alternative_name() else { return false };
    let mut held: Vec<String> = alternatives.value.general_names.iter().filter_map(name).collect();
    held.sort();
    let mut wanted = names.to_vec();
    wanted.sort();
    held == wanted
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(std::net::IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(std::net::IpAddr::from));
            address.ok().map(|it| it.to_string())
        }
        _ => None,
    }
}
