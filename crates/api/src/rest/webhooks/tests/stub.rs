//! A small real HTTP server that answers as a test tells it to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What to answer to a question.
pub enum Reply {
    Json(u16, Value),
    Text(u16, String),
    Redirect(String),
    Hang,
}

type Answers = Arc<dyn Fn(&str, &Value) -> Reply + Send + Sync>;

/// Ends with its last task.
pub struct Stub {
    pub address: SocketAddr,
    /// Path and body of every question, in the order they came.
    pub asked: Arc<Mutex<Vec<(String, Value)>>>,
    /// One word for each question.
    pub arrivals: mpsc::UnboundedReceiver<()>,
    _tasks: JoinSet<()>,
}

impl Stub {
    pub async fn start(answers: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(None, Arc::new(answers)).await
    }

    pub async fn start_tls(
        config: ServerConfig,
        answers: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Some(TlsAcceptor::from(Arc::new(config))), Arc::new(answers)).await
    }

    async fn listen(tls: Option<TlsAcceptor>, answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, (arrived, arrivals)) = (Arc::new(Mutex::new(Vec::new())), mpsc::unbounded_channel());
        let mut tasks = JoinSet::new();
        let held = asked.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (answers, asked, arrived, tls) =
                    (answers.clone(), held.clone(), arrived.clone(), tls.clone());
                let service = service_fn(move |request| {
                    answer(answers.clone(), asked.clone(), arrived.clone(), request)
                });
                connections.spawn(async move {
                    // A client that goes away is what some tests are about.
                    let _ = match tls {
                        None => http1::Builder::new().serve_connection(TokioIo::new(stream), service).await,
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => {
                                http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
                            }
                            Err(_) => Ok(()),
                        },
                    };
                });
            }
        });
        Self { address, asked, arrivals, _tasks: tasks }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn paths(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(path, _)| path.clone()).collect()
    }
}

async fn answer(
    answers: Answers,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
    arrived: mpsc::UnboundedSender<()>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let reply = answers(&path, &body);
    asked.lock().unwrap().push((path, body));
    let _ = arrived.send(());
    let (code, text, location) = match reply {
        Reply::Json(code, value) => (code, value.to_string(), None),
        Reply::Text(code, text) => (code, text, None),
        Reply::Redirect(to) => (302, String::new(), Some(to)),
        Reply::Hang => std::future::pending().await,
    };
    let mut response = Response::builder().status(code);
    if let Some(location) = location {
        response = response.header("location", location);
    }
    Ok(response.body(Full::new(text.into())).unwrap())
}
