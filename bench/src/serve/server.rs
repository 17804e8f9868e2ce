//! A server under measurement, whoever made it. It ends with the value.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use concert_testbed::{Cluster, Options};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::process::Process;

/// How an answer comes.
#[derive(Clone, Copy)]
pub enum Version {
    /// Whole, and then the connection closes.
    Once,
    /// In pieces, for as long as there are any.
    GoesOn,
}

pub struct Server {
    pub name: &'static str,
    pub address: String,
    pub token: String,
    /// From the start of its processes to the first answer.
    pub start: Duration,
    pub connector: TlsConnector,
    pub runtime: tokio::runtime::Runtime,
    processes: Vec<u32>,
    _alive: Box<dyn std::any::Any>,
}

impl Server {
    pub fn concert() -> Result<Self> {
        let program = crate::process::neighbour("concert")?;
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("data");
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "0", "--log-format=json"]);
        // What is measured is the server, not what it allows one client.
        command.args(["--client-rate", "0"]);
        command.arg("--data-dir").arg(&data);
        let started = Instant::now();
        let mut process = Process::start(folder.path(), "concert", &mut command)?;
        let address = process.first(|line| {
            let is_it = line["message"] == "serving" && line["what"] == "api";
            line["address"].as_str().filter(|_| is_it).map(str::to_owned)
        })?;
        let config: Value = serde_saphyr::from_str(&std::fs::read_to_string(data.join("kubeconfig"))?)?;
        let token =
            config["users"][0]["user"]["token"].as_str().context("a kubeconfig has a token")?.to_owned();
        let authority = config["clusters"][0]["cluster"]["certificate-authority-data"].as_str();
        let authority = concert_model::base64::decode(authority.context("a kubeconfig has an authority")?);
        let connector = connector(&authority.context("base64")?)?;
        let processes = vec![process.id()];
        let alive = Box::new((process, folder));
        Self::ready("concert", address, token, connector, processes, started, alive)
    }

    pub fn kubernetes() -> Result<Self> {
        let started = Instant::now();
        let cluster =
            Cluster::start_with(&Options::default())?.context("there is no Go to build a cluster with")?;
        let address = cluster.url().trim_start_matches("https://").to_owned();
        let connector = connector(&std::fs::read(cluster.authority())?)?;
        let token = cluster.token().to_owned();
        let port = |url: &str| url.rsplit(':').next().unwrap_or_default().to_owned();
        let wanted = [format!("--secure-port={}", port(cluster.url())), cluster.etcd_url().to_owned()];
        let processes = processes_with(&wanted)?;
        ensure!(processes.len() == 2, "kube-apiserver and etcd are {processes:?}");
        Self::ready("kube-apiserver", address, token, connector, processes, started, Box::new(cluster))
    }

    fn ready(
        name: &'static str,
        address: String,
        token: String,
        connector: TlsConnector,
        processes: Vec<u32>,
        started: Instant,
        alive: Box<dyn std::any::Any>,
    ) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut server = Self {
            name,
            address,
            token,
            start: Duration::ZERO,
            connector,
            runtime,
            processes,
            _alive: alive,
        };
        server.get("/version")?;
        server.start = started.elapsed();
        Ok(server)
    }

    /// Defines the kind that is measured with, and waits until it is served.
    pub fn define(&mut self) -> Result<()> {
        let part = json!({"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}});
        let spec = json!({"type": "object", "properties": {"size": {"type": "integer"},
            "colour": {"type": "string"}, "note": {"type": "string"}, "parts": {"type": "array", "items": part}}});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.test.concert.dev"}, "spec": {"group": "test.concert.dev",
            "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets", "singular": "widget",
            "listKind": "WidgetList"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}}]}});
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.request("POST", path, &definition.to_string())?;
        let started = Instant::now();
        while self.get(super::WIDGETS).is_err() {
            ensure!(started.elapsed() < Duration::from_secs(60), "the kind is not served");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    pub fn get(&self, path: &str) -> Result<String> {
        self.request("GET", path, "")
    }

    pub fn request(&self, method: &str, path: &str, body: &str) -> Result<String> {
        self.runtime.block_on(async {
            let mut stream = self.send(method, path, body, Version::Once).await?;
            let mut answer = Vec::new();
            // Servers differ in whether they say goodbye.
            let _ = stream.read_to_end(&mut answer).await;
            let answer = String::from_utf8_lossy(&answer).into_owned();
            let (head, body) = answer.split_once("\r\n\r\n").context("an answer has a body")?;
            ensure!(
                head.split(' ').nth(1).is_some_and(|it| it.starts_with('2')),
                "{method} {path}: {answer}"
            );
            Ok(body.to_owned())
        })
    }

    /// Sends a request on a connection of its own.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        body: &str,
        version: Version,
    ) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let mut stream = self.connector.connect(ServerName::try_from("127.0.0.1")?, stream).await?;
        let version = match version {
            Version::Once => "1.0",
            Version::GoesOn => "1.1",
        };
        let (address, token, length) = (&self.address, &self.token, body.len());
        let head =
            format!("{method} {path} HTTP/{version}\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        let text = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await?;
        Ok(stream)
    }

    /// Memory that is really there, of all its processes.
    pub fn resident(&self) -> Result<u64> {
        let one = |id: &u32| -> Result<u64> {
            let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
            let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
            let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            Ok(kib.context("the kernel tells")? * 1024)
        };
        self.processes.iter().map(one).sum()
    }
}

fn connector(authority: &[u8]) -> Result<TlsConnector> {
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth())))
}

/// The processes whose command line has one of these in it.
fn processes_with(wanted: &[String]) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(id) = name.to_str().and_then(|it| it.parse::<u32>().ok()) else { continue };
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        let is_server = line.contains("/kube-apiserver\0") || line.contains("/etcd\0");
        if is_server && wanted.iter().any(|it| line.contains(it.as_str())) {
            found.push(id);
        }
    }
    Ok(found)
}
