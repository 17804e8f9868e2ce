//! A PostgreSQL server, and ways to talk to it.

use std::sync::Arc;

use concert_model::Object;
use concert_provider::{Configuration, Details};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_postgres::{Client, NoTls};

pub struct Cluster {
    server: concert_testbed::Postgres,
    pub port: u16,
}

/// A connection that ends with this value.
pub struct Connected {
    pub client: Client,
    _driver: JoinSet<()>,
}

impl std::ops::Deref for Connected {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Cluster {
    /// A new server; none where there is none to start, which is said.
    pub fn start() -> Option<Self> {
        let server = concert_testbed::Postgres::start(&["log_statement=all"]).unwrap()?;
        Some(Self { port: server.port(), server })
    }

    /// Every statement that the server has seen.
    pub fn statements(&self) -> String {
        self.server.log().unwrap()
    }

    /// The account of its administrator.
    pub fn account(&self) -> Arc<Configuration> {
        account(&self.url())
    }

    /// Where its administrator gets in.
    pub fn url(&self) -> String {
        format!("{}\n", self.server.url("postgres"))
    }

    pub async fn admin(&self, database: &str) -> Connected {
        self.connect("postgres", self.server.password(), database).await.unwrap()
    }

    /// Connects with nothing but connection details, as an application would.
    pub async fn application(&self, details: &Details) -> Result<Connected, tokio_postgres::Error> {
        let text = |name: &str| String::from_utf8(details.get(name).unwrap().to_vec()).unwrap();
        assert_eq!((text("host"), text("port")), ("127.0.0.1".to_owned(), self.port.to_string()));
        self.connect(&text("username"), &text("password"), &text("database")).await
    }

    pub async fn connect(
        &self,
        user: &str,
        password: &str,
        database: &str,
    ) -> Result<Connected, tokio_postgres::Error> {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.port).user(user).password(password).dbname(database);
        let (client, connection) = config.connect(NoTls).await?;
        let mut driver = JoinSet::new();
        driver.spawn(async move { drop(connection.await) });
        Ok(Connected { client, _driver: driver })
    }
}

/// An account with these credentials.
pub fn account(url: &str) -> Arc<Configuration> {
    let object = json!({"apiVersion": "local.concert.dev/v1alpha1", "kind": "ProviderConfig",
        "metadata": {"name": "default"}});
    Arc::new(Configuration {
        name: "default".into(),
        fingerprint: "1".into(),
        object: Object::from_value(object).unwrap(),
        credentials: Details::new().with("credentials", url),
    })
}
