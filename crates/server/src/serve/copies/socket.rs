//! The side of a control plane that runs.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use concert_engine::{OnExit, Tasks};
use concert_store::Clock;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tracing::{info, warn};

use super::super::data::DataFolder;
use super::{Answer, Refusal, Request, SOCKET};

/// A request is two paths.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;
/// How long whoever connects may take to say what they want: requests are taken one after the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// A socket that only the folder's owner can use. It goes with the value.
pub(super) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    owner: u32,
}

impl Socket {
    /// Takes the place of one that was left behind.
    ///
    /// # Assumptions
    /// The store of the folder is open here: nobody else serves it.
    pub fn bind(folder: &DataFolder) -> io::Result<Self> {
        let path = folder.path().join(SOCKET);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let owner = std::fs::metadata(&path)?.uid();
        Ok(Self { listener, path, owner })
    }

    /// Answers with what `act` does, one request after the other.
    pub fn serve<A, F>(self, act: A, clock: Arc<dyn Clock>, tasks: &Tasks)
    where
        A: Fn(Request) -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), Refusal>> + Send,
    {
        let shutdown = tasks.shutdown().clone();
        tasks.spawn("control", OnExit::Stop, async move {
            loop {
                let stream = tokio::select! {
                    biased;
                    () = shutdown.requested() => return,
                    accepted = self.listener.accept() => accepted,
                };
                match stream {
                    Ok((stream, _)) => {
                        if let Err(error) = self.answer(stream, &act, &clock).await {
                            info!(%error, "a request for a copy was not answered");
                        }
                    }
                    Err(error) => {
                        warn!(%error, "cannot take requests for copies");
                        clock.sleep(PATIENCE).await;
                    }
                }
            }
        });
    }

    async fn answer<A, F>(&self, stream: UnixStream, act: &A, clock: &Arc<dyn Clock>) -> io::Result<()>
    where
        A: Fn(Request) -> F,
        F: Future<Output = Result<(), Refusal>>,
    {
        // Between bind and chmod others might have got in.
        let caller = stream.peer_cred()?.uid();
        if caller != self.owner && caller != 0 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let (read, mut write) = stream.into_split();
        let mut line = String::new();
        let mut read = BufReader::new(read.take(REQUEST_BYTES_MAX));
        tokio::select! {
            read = read.read_line(&mut line) => drop(read?),
            () = clock.sleep(PATIENCE) => return Err(io::ErrorKind::TimedOut.into()),
        }
        let answer = match serde_json::from_str(&line) {
            Ok(request) => act(request).await.map_or_else(Answer::Refused, |()| Answer::Done),
            Err(error) => Answer::Refused(Refusal::new(
                format!("the control plane does not understand: {error}"),
                "use the version of concert that it has",
            )),
        };
        write.write_all(&serde_json::to_vec(&answer)?).await
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // One that stays refuses connections.
        let _ = std::fs::remove_file(&self.path);
    }
}
