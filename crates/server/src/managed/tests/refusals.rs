//! What does not start, and what it says.

use std::error::Error as _;

use super::*;
use crate::managed::{Controller, Error};

async fn refusal(config: ControllerConfig, options: Options) -> Error {
    Controller::new(config, options).start().await.map(drop).unwrap_err()
}

#[tokio::test]
async fn half_a_pair_of_certificates_refuses_to_start() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tls.crt"), "half").unwrap();
    let options = options(&store(), &Cloud::default()).with_cert_dir(folder.path());
    let error = refusal(config(), options).await;
    assert!(error.to_string().contains("tls.key is missing"), "{error}");
    assert!(error.hint().contains("--cert-dir"));
}

#[tokio::test]
async fn certificates_that_are_none_and_folders_that_are_not_there_refuse_to_start() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ca.crt"), "no certificate").unwrap();
    let with = |path: &std::path::Path| options(&store(), &Cloud::default()).with_cert_dir(path);
    let error = refusal(config(), with(folder.path())).await;
    assert!(error.to_string().contains("ca.crt"), "{error}");
    let error = refusal(config(), with(&folder.path().join("missing"))).await;
    assert!(error.to_string().contains("no such folder"), "{error}");
}

#[tokio::test]
async fn an_address_that_somebody_has_refuses_to_start() {
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: Address = taken.local_addr().unwrap().to_string().parse().unwrap();
    let options = options(&store(), &Cloud::default()).with_health_address(address.clone());
    let error = refusal(config(), options).await;
    assert_eq!(error.to_string(), format!("cannot listen on {address}"));
    assert!(error.source().unwrap().to_string().contains("in use"));
}

#[tokio::test]
async fn a_configuration_that_makes_no_sense_refuses_to_start() {
    let mut config = config();
    config.providers.push(config.providers[0].clone());
    let error = refusal(config, options(&store(), &Cloud::default())).await;
    let text = error.source().unwrap().to_string();
    assert!(text.contains("providers[1].name: \"a\" is used twice"), "{text}");
}
