//! A server under measurement, whoever made it. It ends with the value.

use std::path::Path;
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

/// Memory that is really there, in bytes.
pub struct Memory {
    /// Of the process that answers requests.
    pub alone: u64,
    /// Of all processes that are needed for it, with pages that several share counted once.
    pub whole: u64,
}

impl Server {
    /// Concert with its own file.
    pub fn concert() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let data = folder.path().join("data");
        Self::serve("concert", &data, &[], Box::new(folder))
    }

    /// One of several replicas on a database, whose number counts from 0. They share the keys in `folder` and
    /// the administrator's token, which the first has made.
    pub fn replica(url: &str, folder: &Path, number: usize) -> Result<Self> {
        let data = folder.join(format!("data-{number}"));
        std::fs::create_dir(&data)?;
        if number > 0 {
            std::fs::copy(folder.join("data-0/kubeconfig"), data.join("kubeconfig"))?;
        }
        let keys = folder.join("keys").to_string_lossy().into_owned();
        Self::serve("concert on PostgreSQL", &data, &["--store", url, "--key-file", &keys], Box::new(()))
    }

    fn serve(name: &'static str, data: &Path, more: &[&str], alive: Box<dyn std::any::Any>) -> Result<Self> {
        let mut command = Command::new(crate::process::neighbour("concert")?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "0", "--log-format=json"]);
        // What is measured is the server, not what it allows one client.
        command.args(["--client-rate", "0"]).args(more);
        command.arg("--data-dir").arg(data);
        let (folder, log) = (data.parent().context("a folder")?, data.file_name().context("a name")?);
        let started = Instant::now();
        let mut process = Process::start(folder, &log.to_string_lossy(), &mut command)?;
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
        let alive = Box::new((process, alive));
        Self::ready(name, address, token, connector, processes, started, alive)
    }

    pub fn kubernetes(options: &Options) -> Result<Self> {
        let started = Instant::now();
        let cluster = Cluster::start_with(options)?.context("there is no Go to build a cluster with")?;
        let address = cluster.url().trim_start_matches("https://").to_owned();
        let connector = connector(&std::fs::read(cluster.authority())?)?;
        let token = cluster.token().to_owned();
        let port = cluster.url().rsplit(':').next().unwrap_or_default();
        let processes = vec![
            process_with("kube-apiserver", &format!("--secure-port={port}"))?,
            process_with("etcd", cluster.etcd_url())?,
        ];
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
    pub fn define(&self) -> Result<()> {
        let part = json!({"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}});
        let spec = json!({"type": "object", "properties": {"size": {"type": "integer"},
            "colour": {"type": "string"}, "note": {"type": "string"}, "parts": {"type": "array", "items": part}}});
        let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.test.concert.dev"}, "spec": {"group": "test.concert.dev",
            "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets", "singular": "widget",
            "listKind": "WidgetList"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}}]}});
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.request("POST", path, &definition.to_string())?;
        self.await_kind()
    }

    /// Waits until the kind that is measured with is served here.
    pub fn await_kind(&self) -> Result<()> {
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
        let mut stream = self.connect().await?;
        self.send_on(&mut stream, method, path, body, version).await?;
        Ok(stream)
    }

    /// A connection that nothing was asked on yet.
    pub async fn connect(&self) -> Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        Ok(self.connector.connect(ServerName::try_from("127.0.0.1")?, stream).await?)
    }

    /// Sends a request on a connection.
    pub async fn send_on(
        &self,
        stream: &mut TlsStream<TcpStream>,
        method: &str,
        path: &str,
        body: &str,
        version: Version,
    ) -> Result<()> {
        let version = match version {
            Version::Once => "1.0",
            Version::GoesOn => "1.1",
        };
        let (address, token, length) = (&self.address, &self.token, body.len());
        let head =
            format!("{method} {path} HTTP/{version}\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n");
        let text = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
        Ok(stream.write_all(text.as_bytes()).await?)
    }

    /// Memory that is really there, of all its processes.
    pub fn resident(&self) -> Result<u64> {
        self.processes.iter().map(|id| kernel_says(*id, "status", "VmRSS:")).sum()
    }

    /// Memory of the server, alone and with its database, whose other processes may be given.
    pub fn memory(&self, more: &[u32]) -> Result<Memory> {
        let alone = kernel_says(self.processes[0], "status", "VmRSS:")?;
        let all = self.processes.iter().chain(more);
        let whole = all.map(|id| kernel_says(*id, "smaps_rollup", "Pss:")).sum::<Result<u64>>()?;
        Ok(Memory { alone, whole })
    }
}

/// A size in a file that the kernel keeps about a process.
fn kernel_says(process: u32, file: &str, field: &str) -> Result<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/{file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.with_context(|| format!("{field} of process {process}"))? * 1024)
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

/// A process and all that it has started.
pub fn family(first: u32) -> Result<Vec<u32>> {
    let parent = |id: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name may hold anything, so fields are counted from its closing bracket.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let children = processes()?.into_iter().filter(|id| parent(*id) == Some(first));
    Ok(std::iter::once(first).chain(children).collect())
}

/// The process of a program whose command line has this in it.
fn process_with(program: &str, wanted: &str) -> Result<u32> {
    let is_it = |id: &u32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains(&format!("/{program}\0")) && line.contains(wanted)
    };
    processes()?.into_iter().find(is_it).with_context(|| format!("{program} does not run"))
}

fn processes() -> Result<Vec<u32>> {
    let entries = std::fs::read_dir("/proc")?.collect::<Result<Vec<_>, _>>()?;
    Ok(entries.iter().filter_map(|it| it.file_name().to_str()?.parse().ok()).collect())
}
