//! One server: requests and whole answers, bounded in time and size.

use std::time::Duration;

use bytes::Bytes;
use concert_model::Address;
use concert_server::{Clock as _, SystemClock};
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http::{Method, Response};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

use super::connection::{Connection, Flags};
use super::error::{Error, Refusal};
use crate::cli::Advice;
use crate::exit::Exit;

/// Longest that an answer may take to come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest that a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(10);
/// Longest answer: a page of a list.
const BYTES_MAX: usize = 256 * 1024 * 1024;
/// How often a busy server is asked again, and how long it may wish to be left alone.
const BUSY_TRIES: usize = 4;
const BUSY_WAIT_MAX: Duration = Duration::from_secs(10);

const JSON: &str = "application/json";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    method: Method,
    address: Address,
    accept: &'static str,
    content: Option<(&'static str, Bytes)>,
}

impl Ask {
    pub fn new(method: Method, address: Address) -> Self {
        Self { method, address, accept: JSON, content: None }
    }

    pub fn get(address: Address) -> Self {
        Self::new(Method::GET, address)
    }

    /// The same; the answer should be one of these.
    pub fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    /// The same; the answer should be columns.
    pub fn in_columns(self) -> Self {
        self.accept(TABLE)
    }

    /// The same, with something to send.
    pub fn with(mut self, kind: &'static str, content: &Value) -> Self {
        self.content = Some((kind, Bytes::from(content.to_string())));
        self
    }

    pub fn with_json(self, content: &Value) -> Self {
        self.with(JSON, content)
    }
}

/// A connection to one server.
pub struct Session {
    client: kube::Client,
    server: String,
    source: String,
    namespace: String,
    pub clock: SystemClock,
}

impl Session {
    /// Runs `work` with the server that `flags` mean.
    pub fn run(
        flags: &Flags,
        work: impl AsyncFnOnce(Session) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let connection = Connection::find(flags)?;
        Self::run_on(&connection, work)
    }

    /// Runs `work` with a server that was found.
    pub fn run_on(
        connection: &Connection,
        work: impl AsyncFnOnce(Session) -> anyhow::Result<Exit>,
    ) -> anyhow::Result<Exit> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let session = Self::open(connection).await?;
            work(session).await
        })
    }

    async fn open(connection: &Connection) -> anyhow::Result<Self> {
        let unusable = |error: &dyn std::error::Error| {
            let what = format!("what {} says cannot be used: {}", connection.source, causes(error));
            Advice::new(what, "--kubeconfig FILE or --server URL uses something else")
        };
        // JSON is YAML.
        let file = Kubeconfig::from_yaml(&connection.document.to_string()).map_err(|e| unusable(&e))?;
        let options = KubeConfigOptions::default();
        let mut config =
            kube::Config::from_custom_kubeconfig(file, &options).await.map_err(|e| unusable(&e))?;
        config.connect_timeout = Some(CONNECT);
        config.default_retry = false;
        Ok(Self {
            client: kube::Client::try_from(config).map_err(|e| unusable(&e))?,
            server: connection.server().to_owned(),
            source: connection.source.clone(),
            namespace: connection.namespace.clone(),
            clock: SystemClock::new(),
        })
    }

    /// Its address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Where what has no namespace of its own goes.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Sends `ask` and reads the answer, which must be a good one.
    ///
    /// # Errors
    /// The server's refusal, or that there is none.
    pub async fn value(&self, ask: &Ask) -> Result<Value, Error> {
        self.answer(ask).await.map(|(_, value)| value)
    }

    /// The same with the status code.
    pub async fn answer(&self, ask: &Ask) -> Result<(u16, Value), Error> {
        let (status, body) = self.within_time(async { self.read(self.stream(ask).await?).await }).await?;
        if body.is_empty() {
            return Ok((status, Value::Null));
        }
        let value = serde_json::from_slice(&body).map_err(|_| Error::Odd { server: self.server.clone() })?;
        Ok((status, value))
    }

    /// The same, where it may be that the thing does not exist.
    pub async fn find(&self, ask: &Ask) -> Result<Option<Value>, Error> {
        match self.value(ask).await {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends `ask` and answers as soon as a good answer begins. A busy server is asked again when it
    /// wishes to be: it has not done anything yet.
    pub async fn stream(&self, ask: &Ask) -> Result<Response<Body>, Error> {
        let mut tries = BUSY_TRIES;
        loop {
            let response = self.within_time(self.send(ask)).await?;
            tries -= 1;
            let is_busy = response.status().as_u16() == 429;
            match retry_after(&response).filter(|_| is_busy && tries > 0) {
                Some(wait) => self.clock.sleep(wait).await,
                None if response.status().is_success() => return Ok(response),
                None => {
                    let (code, body) = self.within_time(self.read(response)).await?;
                    return Err(Error::Refused(Box::new(Refusal::of(&self.server, code, &body))));
                }
            }
        }
    }

    async fn send(&self, ask: &Ask) -> Result<Response<Body>, Error> {
        let mut request = http::Request::builder().method(ask.method.clone()).uri(ask.address.as_str());
        request = request.header(ACCEPT, ask.accept);
        let mut body = Body::empty();
        if let Some((kind, content)) = &ask.content {
            request = request.header(CONTENT_TYPE, *kind);
            body = Body::from(content.clone());
        }
        let request = request.body(body).map_err(|error| self.unreachable(error))?;
        self.client.send(request).await.map_err(|error| self.unreachable(error))
    }

    async fn read(&self, response: Response<Body>) -> Result<(u16, Bytes), Error> {
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), BYTES_MAX).collect().await;
        let body = body.map_err(|error| self.unreachable(error))?;
        Ok((status, body.to_bytes()))
    }

    pub(super) fn unreachable(&self, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Unreachable { server: format!("{} (of {})", self.server, self.source), why: why.into() }
    }

    async fn within_time<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match tokio::time::timeout(PATIENCE, work).await {
            Ok(result) => result,
            Err(_) => Err(Error::Silent { server: self.server.clone(), seconds: PATIENCE.as_secs() }),
        }
    }
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(seconds)).filter(|wait| *wait <= BUSY_WAIT_MAX)
}

fn causes(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |it| it.source());
    let texts: Vec<String> = chain.map(ToString::to_string).collect();
    texts.join(": ")
}
