//! Connections for readers: a few, each used by one at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::connect::{Connection, Connector};
use super::patience::Patience;
use super::trouble::Trouble;
use super::wait::wait;

/// Most connections for readers. The server does so many reads at once and no more; others wait their turn,
/// which on a server with a few processors is no slower.
const READERS_MAX: usize = 8;
/// How long a reader waits for a connection: as long as the slowest statement may take.
const TURN_LIMIT: Duration = Duration::from_secs(40);

pub(super) struct Pool {
    connector: Connector,
    state: Mutex<State>,
    freed: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    /// Open ones, idle or not.
    open: usize,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Self {
        Self { connector, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Reads over some connection, and again over a new one if the connection was lost.
    pub(super) fn read<T>(
        &self,
        patience: &Patience,
        work: impl AsyncFn(&mut Connection) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let turn = self.turn()?;
        wait(&self.connector.runtime, async {
            let mut tries = patience.begin();
            let mut turn = turn;
            loop {
                let result = match self.connection(&mut turn).await {
                    Ok(connection) => work(connection).await,
                    Err(trouble) => Err(trouble),
                };
                match result {
                    Ok(value) => {
                        turn.is_sound = true;
                        return Ok(value);
                    }
                    Err(trouble) if trouble.is_passing() => {
                        turn.connection = None;
                        tries.pause(trouble).await?;
                    }
                    Err(trouble) => return Err(trouble),
                }
            }
        })
    }

    async fn connection<'a>(&self, turn: &'a mut Turn<'_>) -> Result<&'a mut Connection, Trouble> {
        if turn.connection.as_ref().is_none_or(Connection::is_closed) {
            turn.connection = Some(self.connector.connect().await?);
        }
        Ok(turn.connection.as_mut().expect("it was just set"))
    }

    fn turn(&self) -> Result<Turn<'_>, Trouble> {
        let is_full = |state: &mut State| state.idle.is_empty() && state.open >= READERS_MAX;
        let waited = self.freed.wait_timeout_while(self.lock(), TURN_LIMIT, is_full);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(Trouble::Late { at: self.connector.address.to_string() });
        }
        let connection = state.idle.pop();
        state.open += usize::from(connection.is_none());
        Ok(Turn { pool: self, connection, is_sound: false })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to use a connection, which goes back to the others with it.
struct Turn<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
    /// What it was used for has ended well, so that others may use it.
    is_sound: bool,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        match self.connection.take().filter(|_| self.is_sound) {
            Some(connection) => state.idle.push(connection),
            None => state.open -= 1,
        }
        drop(state);
        self.pool.freed.notify_one();
    }
}
