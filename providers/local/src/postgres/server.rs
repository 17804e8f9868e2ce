//! One PostgreSQL server, as its administrator.

use std::net::IpAddr;
use std::str;
use std::time::Duration;

use concert_provider::{Class, Configuration, Error};
use tokio::task::JoinSet;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

use crate::Result;

/// How long it may take until a server on the same machine accepts a connection.
const CONNECTS_WITHIN: Duration = Duration::from_secs(5);

/// What every connection is set to. Time is bounded, and texts mean what [`super::quote`] takes them for.
const SETTINGS: &str = "SET statement_timeout = '50s'; SET lock_timeout = '20s'; \
                        SET standard_conforming_strings = on; SET client_encoding = 'UTF8'";

/// Where a server is and who its administrator is.
pub(super) struct Server {
    config: Config,
    pub(super) host: String,
    pub(super) port: u16,
}

/// A connection. Ends when it is dropped.
pub(super) struct Session {
    pub(super) client: Client,
    _driver: JoinSet<()>,
}

impl Server {
    /// The server of an account.
    ///
    /// # Errors
    /// [`Class::Denied`], and never with a word of the URL, which has a password in it.
    pub(super) fn of(account: Option<&Configuration>) -> Result<Self> {
        let account = account.ok_or_else(|| {
            let message = "a PostgreSQLDatabase needs a ProviderConfig: name it in spec.providerConfigRef";
            Error::new(Class::Denied, message)
        })?;
        let url = account.credentials.iter().next().and_then(|(_, bytes)| str::from_utf8(bytes).ok());
        let denied = |rule: &str| {
            let message = format!(
                "the credentials of {} {rule}: they must be the URL of a superuser on this machine, as in \
                 postgres://postgres:PASSWORD@127.0.0.1:5432/postgres",
                account.name
            );
            Error::new(Class::Denied, message)
        };
        let url = url.ok_or_else(|| denied("are missing"))?.trim();
        let config: Config = url.parse().map_err(|_| denied("cannot be read"))?;
        Self::at(config).ok_or_else(|| denied("lead to another machine or to several"))
    }

    /// Without TLS a password must not leave the machine.
    fn at(mut config: Config) -> Option<Self> {
        let [host] = config.get_hosts() else { return None };
        let host = match host {
            Host::Tcp(name) if is_loopback(name) => name.clone(),
            Host::Unix(path) => path.to_string_lossy().into_owned(),
            Host::Tcp(_) => return None,
        };
        if !config.get_hostaddrs().iter().all(IpAddr::is_loopback) {
            return None;
        }
        let port = config.get_ports().first().copied().unwrap_or(5432);
        if config.get_dbname().is_none() {
            config.dbname("postgres");
        }
        config.connect_timeout(CONNECTS_WITHIN).application_name("concert-provider-local");
        Some(Self { config, host, port })
    }

    /// Connects as the administrator.
    pub(super) async fn connect(&self) -> Result<Session> {
        let session = connect(&self.config).await.map_err(|error| {
            let class = if is_denied(&error) { Class::Denied } else { Class::Transient };
            let place = format!("{}:{}", self.host, self.port);
            Error::new(class, format!("cannot connect to PostgreSQL at {place}: {}", text(&error)))
        })?;
        session.client.batch_execute(SETTINGS).await.map_err(|error| failed(&error))?;
        Ok(session)
    }

    /// Whether a role has another password than this one. What else may be in the way of its connecting
    /// says nothing about that.
    pub(super) async fn refuses(&self, role: &str, password: &str, database: &str) -> bool {
        let mut config = self.config.clone();
        config.user(role).password(password).dbname(database);
        match connect(&config).await {
            Err(error) => error.code() == Some(&SqlState::INVALID_PASSWORD),
            Ok(_) => false,
        }
    }
}

async fn connect(config: &Config) -> Result<Session, tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    let mut driver = JoinSet::new();
    driver.spawn(async move {
        // Whoever waits for an answer is told.
        let _ = connection.await;
    });
    Ok(Session { client, _driver: driver })
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback())
}

fn is_denied(error: &tokio_postgres::Error) -> bool {
    let denied = [
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
        SqlState::INSUFFICIENT_PRIVILEGE,
    ];
    error.code().is_some_and(|code| denied.contains(code))
}

/// What the caller can do about an error of the server. One that the server did not send leaves open what
/// became of the statement.
pub(super) fn failed(error: &tokio_postgres::Error) -> Error {
    let class = match error.code() {
        Some(code) if *code == SqlState::DEPENDENT_OBJECTS_STILL_EXIST => Class::NeedsHuman,
        _ if is_denied(error) => Class::Denied,
        _ => Class::Transient,
    };
    let told = Error::new(class, format!("PostgreSQL: {}", text(error)));
    if error.as_db_error().is_some() { told } else { told.in_doubt() }
}

fn text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(told) => {
            let more = [told.detail(), told.hint()].into_iter().flatten().map(|it| format!("; {it}"));
            format!("{}{}", told.message(), more.collect::<String>())
        }
        None => {
            let cause = std::error::Error::source(error).map(|it| format!(": {it}")).unwrap_or_default();
            format!("{error}{cause}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(url: &str) -> Option<Server> {
        Server::at(url.parse().unwrap())
    }

    #[test]
    fn only_servers_on_this_machine_are_spoken_to() {
        for url in [
            "postgres://a@127.0.0.1",
            "postgres://a@localhost:5433/x",
            "postgres://a@[::1]",
            "host=/run user=a",
        ] {
            assert!(at(url).is_some(), "{url}");
        }
        for url in [
            "postgres://a@db.example.com",
            "postgres://a@10.0.0.1",
            "postgres://a@127.0.0.1,10.0.0.1",
            "host=localhost hostaddr=10.0.0.1 user=a",
            "user=a",
        ] {
            assert!(at(url).is_none(), "{url}");
        }
        assert_eq!(at("postgres://a@localhost:5433").unwrap().port, 5433);
    }
}
