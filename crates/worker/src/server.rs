//! The mothership: where it is, and who we are to it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use concert_model::Address;
use http::{HeaderValue, Method};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::error::Error;
use crate::http::{Ask, Http, PATIENCE, bearer};

const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// A server, and who we are to it.
#[derive(Clone)]
pub struct Server {
    url: String,
    token: Token,
    http: Http,
}

/// Who we are.
#[derive(Clone)]
enum Token {
    Nobody,
    Fixed(HeaderValue),
    /// In a file that somebody replaces now and then.
    File(Arc<Kept>),
}

struct Kept {
    path: PathBuf,
    newest: Mutex<HeaderValue>,
}

impl Token {
    fn now(&self) -> Option<HeaderValue> {
        match self {
            Token::Nobody => None,
            Token::Fixed(token) => Some(token.clone()),
            Token::File(kept) => Some(kept.lock().clone()),
        }
    }

    /// Reads the file again. Says whether there is another token than `refused` in it.
    fn renew(&self, refused: Option<&HeaderValue>) -> bool {
        let Token::File(kept) = self else { return false };
        match read(&kept.path) {
            Ok(token) => {
                let is_other = Some(&token) != refused;
                *kept.lock() = token;
                is_other
            }
            Err(error) => {
                warn!(error = %error.chain(), "the token was refused and there is no other one");
                false
            }
        }
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, HeaderValue> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Result<HeaderValue, Error> {
    let text = std::fs::read_to_string(path);
    let text = text.map_err(|error| Error::Unusable(format!("cannot read {}: {error}", path.display())))?;
    bearer(text.trim())
}

impl Server {
    /// The one at this address, such as `https://concert.example.com`.
    ///
    /// # Errors
    /// It is no address.
    pub fn new(url: &str) -> Result<Self, Error> {
        let url = url.trim_end_matches('/');
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        if !is_web || url.parse::<http::Uri>().map_or(true, |it| it.host().is_none()) {
            return Err(Error::Unusable(format!("{url} is no address such as https://HOST:PORT")));
        }
        Ok(Self { url: url.to_owned(), token: Token::Nobody, http: Http::new(None)? })
    }

    /// The same, identified by a bearer token.
    ///
    /// # Errors
    /// The token has a line break or another character that cannot be sent.
    pub fn token(self, token: &str) -> Result<Self, Error> {
        Ok(Self { token: Token::Fixed(bearer(token.trim())?), ..self })
    }

    /// The same, identified by the token in a file, which is read again when the server refuses it.
    ///
    /// # Errors
    /// The file cannot be read, or has something else in it than a token.
    pub fn token_file(self, path: &Path) -> Result<Self, Error> {
        let newest = Mutex::new(read(path)?);
        Ok(Self { token: Token::File(Arc::new(Kept { path: path.to_owned(), newest })), ..self })
    }

    /// The same, verified with these certificates (PEM) and no others. An inventory apart has an authority
    /// of its own: put both into one file.
    ///
    /// # Errors
    /// There is no certificate in it.
    pub fn authority(self, pem: &[u8]) -> Result<Self, Error> {
        Ok(Self { http: Http::new(Some(pem))?, ..self })
    }

    pub(crate) fn http(&self) -> &Http {
        &self.http
    }

    pub(crate) async fn post(
        &self,
        address: &Address,
        body: &Value,
        patience: Duration,
    ) -> Result<Value, Error> {
        let token = self.token.now();
        match self.try_post(address, body, patience, token.as_ref()).await {
            Err(error) if error.status() == Some(401) && self.token.renew(token.as_ref()) => {
                self.try_post(address, body, patience, self.token.now().as_ref()).await
            }
            answer => answer,
        }
    }

    async fn try_post(
        &self,
        address: &Address,
        body: &Value,
        patience: Duration,
        token: Option<&HeaderValue>,
    ) -> Result<Value, Error> {
        let ask = Ask {
            method: Method::POST,
            url: format!("{}{}", self.url, address.as_str()),
            token,
            if_match: None,
            body: Some(body),
            patience,
        };
        self.http.ask(ask).await.map(|it| it.body)
    }

    /// `post`, repeated with growing pauses while the server is away; none once `stop` was asked for.
    pub(crate) async fn post_until(
        &self,
        address: &Address,
        body: &Value,
        patience: Duration,
        stop: &CancellationToken,
    ) -> Result<Option<Value>, Error> {
        let mut pause = Pause::default();
        loop {
            let answer = tokio::select! {
                answer = self.post(address, body, patience) => answer,
                () = stop.cancelled() => return Ok(None),
            };
            match answer {
                Ok(body) => {
                    if pause.is_used() {
                        info!(server = %self.url, "the server answers again");
                    }
                    return Ok(Some(body));
                }
                Err(error) if error.is_passing() => {
                    if !pause.is_used() {
                        warn!(server = %self.url, error = %error.chain(), "no answer, trying again");
                    }
                    pause.wait(stop).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Server").field(&self.url).finish()
    }
}

/// The address of one worker's calls.
pub(crate) fn address(worker: &str, call: &str) -> Address {
    Address::new("/api/v1/workers").step(worker).step(call)
}

/// Pauses that grow.
#[derive(Default)]
pub(crate) struct Pause(Option<Duration>);

impl Pause {
    pub fn is_used(&self) -> bool {
        self.0.is_some()
    }

    /// The next one, cut short by a stop.
    pub async fn wait(&mut self, stop: &CancellationToken) {
        let pause = self.0.map_or(PAUSE_FIRST, |it| (it * 2).min(PAUSE_MAX));
        self.0 = Some(pause);
        let _ = tokio::time::timeout(pause, stop.cancelled()).await;
    }
}

/// How long a call may take that waits at the server for `wait`.
pub(crate) fn patience_of(wait: Duration) -> Duration {
    wait + PATIENCE
}
