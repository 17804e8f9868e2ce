//! The side of whoever wants a copy.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use concert_store::{Chance, SystemClock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::super::config::LISTEN;
use super::super::data::{DataFolder, Entry};
use super::super::error::Error;
use super::refusal::chain;
use super::{Answer, Refusal, Request, SOCKET, Site};

/// Who did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The control plane that runs in the folder.
    Running,
    /// Nobody but us: none runs there.
    Alone,
}

/// Does what `request` says to the control plane in `data_dir`, whether one runs there or not.
///
/// # Errors
/// [`Refusal`]; the store is as it was.
pub async fn ask(data_dir: &Path, request: &Request) -> Result<Asked, Refusal> {
    let path = data_dir.join(SOCKET);
    match UnixStream::connect(&path).await {
        Ok(stream) => tell(stream, request).await.map(|()| Asked::Running),
        // What a process that was killed left behind refuses connections.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            alone(data_dir, request).await.map(|()| Asked::Alone)
        }
        // Too long for a socket: then nobody serves one there either.
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            alone(data_dir, request).await.map(|()| Asked::Alone)
        }
        Err(error) => Err(Refusal::new(
            format!("cannot reach the control plane at {}: {error}", path.display()),
            "ask as the user that runs `concert serve`",
        )),
    }
}

async fn tell(mut stream: UnixStream, request: &Request) -> Result<(), Refusal> {
    let lost = |error: io::Error| {
        let what = format!("the control plane has gone before it answered: {error}");
        Refusal::new(what, "look at its log, and try again when it runs or with it stopped")
    };
    let mut line = serde_json::to_vec(request).map_err(|error| lost(error.into()))?;
    line.push(b'\n');
    stream.write_all(&line).await.map_err(lost)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.map_err(lost)?;
    match serde_json::from_slice(&answer).map_err(|error| lost(error.into()))? {
        Answer::Done => Ok(()),
        Answer::Refused(refusal) => Err(refusal),
    }
}

async fn alone(data_dir: &Path, request: &Request) -> Result<(), Refusal> {
    let refused = |error: Error| Refusal::new(chain(&error), error.hint());
    if matches!(request, Request::Backup { .. }) && !DataFolder::has_store(data_dir) {
        let what = format!("there is no control plane in {}", data_dir.display());
        return Err(Refusal::new(what, "pass --data-dir with the folder that `concert serve` uses"));
    }
    let folder = DataFolder::open(data_dir).map_err(refused)?;
    let (clock, chance) = (Arc::new(SystemClock::new()) as _, Chance::from_system());
    let (store, _) = folder.open_store(&clock, &chance).map_err(refused)?;
    let site = Site { folder, store, clock, chance };
    match request {
        Request::Backup { file, with_key } => site.backup(file, *with_key).await,
        Request::Restore { file, key } => {
            site.restore(file, key.as_deref()).await?;
            // One for development lets everybody in.
            if site.folder.kubeconfig().exists() && site.folder.token_in_kubeconfig().is_none() {
                return Ok(());
            }
            // The next start writes down where it is then.
            let server = format!("https://{LISTEN}");
            site.admit_administrator(Entry { server, authority: None, token: None }).await
        }
    }
}
