//! A real listener on loopback, and clients that behave or do not.

mod limits;
mod shutdown;
mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use concert_engine::{Tasks, TokioSpawn};
use concert_store::SystemClock;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

use super::*;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// What the service saw and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Entered,
    FloodDropped,
}

struct Server {
    address: SocketAddr,
    tasks: Tasks,
    events: mpsc::UnboundedReceiver<Event>,
    release: Arc<Notify>,
}

fn brief() -> Limits {
    Limits { header_time: Duration::from_millis(150), ..Limits::default() }
}

async fn start(limits: Limits, security: Security) -> Server {
    let clock = Arc::new(SystemClock::new());
    let tasks = Tasks::new(Arc::new(TokioSpawn::current()), clock.clone());
    let config = Config { address: "127.0.0.1:0".parse().unwrap(), security, limits, clock };
    let listener = Listener::bind(config).await.unwrap();
    let address = listener.address();
    let (sender, events) = mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let held = release.clone();
    listener.serve(move |request, _peer| answer(request, sender.clone(), held.clone()), &tasks);
    Server { address, tasks, events, release }
}

async fn plain(limits: Limits) -> Server {
    start(limits, Security::Development).await
}

async fn answer(
    request: Request<Inbound>,
    events: mpsc::UnboundedSender<Event>,
    release: Arc<Notify>,
) -> Response<Answer> {
    let _ = events.send(Event::Entered);
    match request.uri().path() {
        "/hello" => Response::new(text("hello")),
        "/body" => collected(request).await,
        "/held" => {
            release.notified().await;
            Response::new(text("released"))
        }
        "/watch" => {
            let first = stream::iter([Ok(Frame::data(Bytes::from_static(b"first\n")))]);
            let endless = futures_util::StreamExt::chain(first, stream::pending());
            Response::new(StreamBody::new(endless).boxed_unsync())
        }
        "/flood" => {
            let alarm = Alarm(events);
            let endless = stream::unfold(alarm, |alarm| async move {
                Some((Ok(Frame::data(Bytes::from(vec![b'x'; 64 * 1024]))), alarm))
            });
            Response::new(StreamBody::new(endless).boxed_unsync())
        }
        _ => panic!("as asked for"),
    }
}

struct Alarm(mpsc::UnboundedSender<Event>);

impl Drop for Alarm {
    fn drop(&mut self) {
        let _ = self.0.send(Event::FloodDropped);
    }
}

async fn collected(request: Request<Inbound>) -> Response<Answer> {
    let code = match request.into_body().collect().await {
        Ok(body) => return Response::new(text(&body.to_bytes().len().to_string())),
        Err(BodyError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
        Err(BodyError::TooSlow) => StatusCode::REQUEST_TIMEOUT,
        Err(BodyError::Broken(_)) => StatusCode::BAD_REQUEST,
    };
    let mut response = Response::new(text("refused"));
    *response.status_mut() = code;
    response
}

fn text(text: &str) -> Answer {
    Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed_unsync()
}

impl Server {
    async fn next(&mut self, wanted: Event) {
        let next = async { while self.events.recv().await.unwrap() != wanted {} };
        tokio::time::timeout(PATIENCE, next).await.unwrap();
    }

    async fn connect(&self) -> Client {
        Client { stream: TcpStream::connect(self.address).await.unwrap() }
    }

    /// A request on a connection of its own: head and body of the answer.
    async fn ask(&self, head: &str, body: &str) -> String {
        let mut client = self.connect().await;
        client.send(&self.request(head, body)).await;
        client.rest().await
    }

    fn request(&self, head: &str, body: &str) -> String {
        let length =
            if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let mut lines = head.split('\n');
        let first = lines.next().unwrap();
        let more: String = lines.map(|line| format!("{line}\r\n")).collect();
        format!("{first} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{length}{more}\r\n{body}", self.address)
    }
}

struct Client {
    stream: TcpStream,
}

impl Client {
    async fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// What comes until `end` has come.
    async fn until(&mut self, end: &str) -> String {
        let mut seen = Vec::new();
        let read = async {
            while !String::from_utf8_lossy(&seen).contains(end) {
                let mut buffer = [0; 1024];
                let count = self.stream.read(&mut buffer).await.unwrap();
                assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&seen));
                seen.extend_from_slice(&buffer[..count]);
            }
        };
        tokio::time::timeout(PATIENCE, read).await.unwrap();
        String::from_utf8(seen).unwrap()
    }

    /// What comes until the connection is closed, by whatever means.
    async fn rest(&mut self) -> String {
        let mut seen = Vec::new();
        let read = self.stream.read_to_end(&mut seen);
        let _ = tokio::time::timeout(PATIENCE, read).await.expect("the connection is closed in time");
        String::from_utf8_lossy(&seen).into_owned()
    }
}

fn code(answer: &str) -> u16 {
    let code = answer.strip_prefix("HTTP/1.1 ").and_then(|it| it.get(..3)).and_then(|it| it.parse().ok());
    code.unwrap_or_default()
}

const JSON: &str = "content-type: application/json";
