//! One connection, and what it must find at the other end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::net::lookup_host;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls, Row, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::address::{Address, CONNECT_LIMIT};
use super::tls;
use super::trouble::Trouble;

/// The oldest server that has all that is used.
const VERSION_MIN: i32 = 150_000;
/// A process that stops in the middle of a commit keeps all others waiting; after this long the server ends
/// it. Longer than any pause of a healthy one.
const PAUSE_LIMIT: Duration = Duration::from_secs(5);
/// What the server's own limits must have decided before: the way there and back included.
const ANSWER_LIMIT: Duration = Duration::from_secs(40);

/// What moves or changes whole tables.
const LONG_LIMIT: Duration = Duration::from_secs(6 * 60 * 60);

/// Values of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Makes connections to one database.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) address: Arc<Address>,
    /// In the order in which they are asked.
    servers: Arc<[Config]>,
    tls: Option<MakeRustlsConnect>,
    pub(super) runtime: Handle,
    /// After how long the server ends a statement.
    statement_limit: Duration,
}

/// An open connection. Dropped while a statement runs it is of no further use.
pub(super) struct Connection {
    client: Client,
    address: Arc<Address>,
    statements: HashMap<&'static str, Statement>,
    /// How long an answer may take.
    limit: Duration,
}

type Driver = BoxFuture<'static, ()>;

impl Connector {
    pub(super) fn new(address: Address, runtime: Handle, statement_limit: Duration) -> Result<Self, Trouble> {
        let is_plain = address.config.get_ssl_mode() == SslMode::Disable;
        let tls = if is_plain { None } else { Some(tls::connector(address.authorities.as_deref())?) };
        let servers = address.servers().into();
        Ok(Self { address: Arc::new(address), servers, tls, runtime, statement_limit })
    }

    /// A connection whose server will do.
    pub(super) async fn connect(&self) -> Result<Connection, Trouble> {
        let (connection, driver) = self.open(|_| {}).await?;
        // It ends with the connection, and with the runtime.
        self.runtime.spawn(driver);
        connection.check(self.statement_limit).await?;
        Ok(connection)
    }

    /// A connection that tells `hear` what is sent on `channel`, and the work that does so, which ends when
    /// the connection does.
    pub(super) async fn listen(
        &self,
        channel: &str,
        hear: impl FnMut(&str) + Send + 'static,
    ) -> Result<(Connection, tokio::task::JoinHandle<()>), Trouble> {
        let (connection, driver) = self.open(hear).await?;
        let driver = self.runtime.spawn(driver);
        connection.check(self.statement_limit).await?;
        connection.run(&format!("LISTEN {channel}")).await?;
        Ok((connection, driver))
    }

    async fn open(&self, hear: impl FnMut(&str) + Send + 'static) -> Result<(Connection, Driver), Trouble> {
        let (client, driver) = match &self.tls {
            None => {
                let (client, connection) = self.dial(NoTls).await?;
                (client, drive(connection, hear).boxed())
            }
            Some(tls) => {
                let (client, connection) = self.dial(tls.clone()).await?;
                (client, drive(connection, hear).boxed())
            }
        };
        let address = self.address.clone();
        Ok((Connection { client, address, statements: HashMap::new(), limit: ANSWER_LIMIT }, driver))
    }

    /// The first server that lets us in. One that takes a connection and then says nothing, as one that was
    /// stopped does, must not keep us from the next.
    async fn dial<T>(
        &self,
        tls: T,
    ) -> Result<(Client, tokio_postgres::Connection<Socket, T::Stream>), Trouble>
    where
        T: MakeTlsConnect<Socket> + Clone,
    {
        let at = || self.address.to_string();
        let mut last = Trouble::Late { at: at() };
        for server in &*self.servers {
            // Once to reach it, and once more for what it answers.
            let limit = 2 * server.get_connect_timeout().copied().unwrap_or(CONNECT_LIMIT);
            let addresses = match timeout(limit, addresses(server)).await {
                Ok(Ok(addresses)) => addresses,
                Ok(Err(error)) => {
                    last = Trouble::Unreachable { at: at(), source: error.into() };
                    continue;
                }
                Err(_) => {
                    last = Trouble::Late { at: at() };
                    continue;
                }
            };
            for address in addresses {
                match timeout(limit, address.connect(tls.clone())).await {
                    Ok(Ok(connected)) => return Ok(connected),
                    Ok(Err(error)) => last = self.trouble(error),
                    Err(_) => last = Trouble::Late { at: at() },
                }
            }
        }
        Err(last)
    }

    fn trouble(&self, error: tokio_postgres::Error) -> Trouble {
        let (database, role) = (self.address.database(), self.address.role());
        let connect = format!("as the owner of the database: GRANT CONNECT ON DATABASE {database} TO {role}");
        Trouble::of(&self.address, error).remedied(connect)
    }
}

/// Each address of a server: behind one name there may be several, and each has its own limit.
async fn addresses(server: &Config) -> std::io::Result<Vec<Config>> {
    let ([Host::Tcp(name)], []) = (server.get_hosts(), server.get_hostaddrs()) else {
        return Ok(vec![server.clone()]);
    };
    let port = server.get_ports().first().copied().unwrap_or(5432);
    let found = lookup_host((name.as_str(), port)).await.map_err(|error| {
        std::io::Error::new(error.kind(), format!("cannot look up the address of {name}: {error}"))
    })?;
    let at = |address: std::net::SocketAddr| {
        let mut one = server.clone();
        one.hostaddr(address.ip());
        one
    };
    Ok(found.map(at).collect())
}

/// Moves bytes until the connection ends, for whatever reason: whoever uses it next is told.
async fn drive<S, T>(mut connection: tokio_postgres::Connection<S, T>, mut hear: impl FnMut(&str))
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut messages = futures_util::stream::poll_fn(|context| connection.poll_message(context));
    while let Some(Ok(message)) = futures_util::StreamExt::next(&mut messages).await {
        if let AsyncMessage::Notification(notification) = message {
            hear(notification.payload());
        }
    }
}

impl Connection {
    /// Sets up the session, and refuses servers that will not do.
    async fn check(&self, statement_limit: Duration) -> Result<(), Trouble> {
        let at = || self.address.to_string();
        let setup = format!(
            "SET search_path TO {}; SET statement_timeout TO {}; SET lock_timeout TO {}; \
             SET idle_in_transaction_session_timeout TO {}; SET client_min_messages TO warning; \
             SET bytea_output TO hex; SET default_transaction_isolation TO 'read committed'; \
             SELECT set_config('synchronous_commit', 'on', false) \
             WHERE current_setting('synchronous_commit') = 'off'",
            self.address.schema,
            statement_limit.as_millis(),
            statement_limit.as_millis(),
            PAUSE_LIMIT.as_millis(),
        );
        self.run(&setup).await?;
        let sql = "SELECT current_setting('server_version_num')::int4, current_setting('server_encoding'), \
                   pg_is_in_recovery() OR current_setting('transaction_read_only')::bool";
        let answer = self.bounded(self.client.query_one(sql, &[])).await?;
        let version: i32 = answer.get(0);
        if version < VERSION_MIN {
            return Err(Trouble::TooOld { at: at(), version: version / 10_000 });
        }
        let encoding: &str = answer.get(1);
        if encoding != "UTF8" {
            return Err(Trouble::Encoding { at: at(), encoding: encoding.to_owned() });
        }
        if answer.get(2) {
            return Err(Trouble::ReadOnly { at: at() });
        }
        Ok(())
    }

    /// Lets statements take as long as they need, until the end of the transaction that has begun.
    pub(super) async fn be_patient(&mut self) -> Result<(), Trouble> {
        self.limit = LONG_LIMIT;
        let limits = "SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO 0; \
                      SET LOCAL idle_in_transaction_session_timeout TO 0";
        self.run(limits).await
    }

    /// From now on they may take no longer than usual.
    pub(super) fn be_quick(&mut self) {
        self.limit = ANSWER_LIMIT;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Statements that need no values and give none back.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Trouble> {
        self.bounded(self.client.batch_execute(sql)).await
    }

    /// The rows that a statement gives.
    pub(super) async fn rows(&mut self, sql: &'static str, values: Values<'_>) -> Result<Vec<Row>, Trouble> {
        let statement = self.prepared(sql).await?;
        self.send(&statement, values).await
    }

    /// The one row that a statement gives.
    pub(super) async fn one(&mut self, sql: &'static str, values: Values<'_>) -> Result<Row, Trouble> {
        let mut rows = self.rows(sql, values).await?;
        let none = || Trouble::Failed { at: self.address.to_string(), source: "a row is missing".into() };
        rows.pop().ok_or_else(none)
    }

    /// A statement that is understood once and then used again and again.
    pub(super) async fn prepared(&mut self, sql: &'static str) -> Result<Statement, Trouble> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.bounded(self.client.prepare(sql)).await?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    /// Sends a statement. Several may be under way: they are done in the order in which they were first
    /// waited for.
    pub(super) async fn send(&self, statement: &Statement, values: Values<'_>) -> Result<Vec<Row>, Trouble> {
        self.bounded(self.client.query(statement, values)).await
    }

    /// The same, if there is anything to ask.
    pub(super) async fn send_if(
        &self,
        is_asked: bool,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Vec<Row>, Trouble> {
        if is_asked { self.send(statement, values).await } else { Ok(Vec::new()) }
    }

    async fn bounded<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Trouble> {
        match timeout(self.limit, work).await {
            Ok(result) => result.map_err(|error| Trouble::of(&self.address, error)),
            Err(_) => Err(Trouble::Late { at: self.address.to_string() }),
        }
    }
}
