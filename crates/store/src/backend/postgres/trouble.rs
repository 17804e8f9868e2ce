//! What can be wrong with a database, by what somebody can do about it.

use std::error::Error as _;

use tokio_postgres::error::SqlState;

use super::address::Address;
use crate::backend::Failure;
use crate::error::BoxError;

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The address makes no sense.
    #[error("the address of the database cannot be used: {why}")]
    Url {
        /// Why not.
        why: String,
    },
    /// Nobody answers, or the connection broke.
    #[error("cannot reach PostgreSQL at {at}")]
    Unreachable {
        /// Where.
        at: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The role does not get in.
    #[error("PostgreSQL at {at} does not let {role} in")]
    Rejected {
        /// Where.
        at: String,
        /// Who.
        role: String,
        /// What it said.
        #[source]
        source: BoxError,
    },
    /// There is no such database.
    #[error("there is no database {database} at {at}")]
    Missing {
        /// Where.
        at: String,
        /// Which.
        database: String,
    },
    /// It is older than what is supported.
    #[error("PostgreSQL at {at} is version {version}, and 15 is the oldest that will do")]
    TooOld {
        /// Where.
        at: String,
        /// What it is.
        version: i32,
    },
    /// It is a standby, or set to read only.
    #[error("PostgreSQL at {at} is read-only")]
    ReadOnly {
        /// Where.
        at: String,
    },
    /// It cannot hold every text.
    #[error("the database at {at} has the encoding {encoding}, and must have UTF8")]
    Encoding {
        /// Where.
        at: String,
        /// What it has.
        encoding: String,
    },
    /// The role may not do what is needed.
    #[error("{role} may not do what is needed in {at}")]
    Forbidden {
        /// Where.
        at: String,
        /// Who.
        role: String,
        /// What gives the right that is missing.
        remedy: String,
        /// What was refused.
        #[source]
        source: BoxError,
    },
    /// A newer Concert has changed the tables.
    #[error("the tables in {at} have version {version}, and this program knows {known}")]
    Newer {
        /// Where.
        at: String,
        /// The oldest version that programs must know.
        version: i64,
        /// What this one knows.
        known: i64,
    },
    /// The tables are somebody else's.
    #[error("{at} has tables that are not Concert's")]
    Foreign {
        /// Where.
        at: String,
    },
    /// There is a store already where an empty place was wanted.
    #[error("{at} has a store already")]
    Taken {
        /// Where.
        at: String,
    },
    /// What is to be taken over cannot be read.
    #[error("cannot take a store over into {at}")]
    Source {
        /// Where.
        at: String,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The server takes no more connections.
    #[error("PostgreSQL at {at} takes no more connections")]
    Crowded {
        /// Where.
        at: String,
        /// What it said.
        #[source]
        source: BoxError,
    },
    /// There is no room on the server's disk.
    #[error("the disk of PostgreSQL at {at} is full")]
    Full {
        /// Where.
        at: String,
    },
    /// It took too long, and nothing was heard.
    #[error("PostgreSQL at {at} did not answer in time")]
    Late {
        /// Where.
        at: String,
    },
    /// It ended a statement that took too long, or waited too long for a lock. What the statement was part
    /// of is rolled back.
    #[error("PostgreSQL at {at} gave up on a statement")]
    Cancelled {
        /// Where.
        at: String,
        /// What it said.
        #[source]
        source: BoxError,
    },
    /// Certificates cannot be used.
    #[error("cannot use the certificates of authorities")]
    Authorities(#[source] BoxError),
    /// Anything else.
    #[error("PostgreSQL at {at} failed")]
    Failed {
        /// Where.
        at: String,
        /// How.
        #[source]
        source: BoxError,
    },
}

impl Trouble {
    /// What the driver of connections says, in our words.
    pub(super) fn of(address: &Address, error: tokio_postgres::Error) -> Self {
        let at = address.to_string();
        let Some(code) = error.code().cloned() else {
            if is_without_writer(&error) {
                return Trouble::ReadOnly { at };
            }
            let source: BoxError = said(&error).into();
            return Trouble::Unreachable { at, source };
        };
        let role = address.role().to_owned();
        let source: BoxError = said(&error).into();
        match &code {
            c if *c == SqlState::INVALID_PASSWORD || *c == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
                Trouble::Rejected { at, role, source }
            }
            c if *c == SqlState::INVALID_CATALOG_NAME => {
                Trouble::Missing { at, database: address.database().to_owned() }
            }
            // The second is said of a schema that may not be looked into.
            c if *c == SqlState::INSUFFICIENT_PRIVILEGE || *c == SqlState::INVALID_SCHEMA_NAME => {
                let remedy = take_over(&address.schema, &role);
                Trouble::Forbidden { at, role, remedy, source }
            }
            c if *c == SqlState::READ_ONLY_SQL_TRANSACTION => Trouble::ReadOnly { at },
            c if *c == SqlState::DISK_FULL => Trouble::Full { at },
            c if *c == SqlState::TOO_MANY_CONNECTIONS => Trouble::Crowded { at, source },
            c if *c == SqlState::QUERY_CANCELED || *c == SqlState::LOCK_NOT_AVAILABLE => {
                Trouble::Cancelled { at, source }
            }
            c if is_going_away(c) => Trouble::Unreachable { at, source },
            _ => Trouble::Failed { at, source },
        }
    }

    /// The same, with what gives the right that is missing, if one is.
    pub(super) fn remedied(mut self, by: impl Into<String>) -> Self {
        if let Trouble::Forbidden { remedy, .. } = &mut self {
            *remedy = by.into();
        }
        self
    }

    /// Something to try.
    pub fn hint(&self) -> String {
        match self {
            Trouble::Url { .. } => "postgres://USER:PASSWORD@HOST:5432/DATABASE?sslmode=verify-full".into(),
            Trouble::Unreachable { .. } => {
                "psql with the same address, but without schema=, shows whether it is reachable".into()
            }
            Trouble::Rejected { role, .. } => {
                format!("check user and password in the address, and pg_hba.conf for {role}")
            }
            Trouble::Missing { database, .. } => format!("CREATE DATABASE {database}, as an administrator"),
            Trouble::TooOld { .. } => "upgrade PostgreSQL, or keep the store in --data-dir".into(),
            Trouble::ReadOnly { .. } => {
                "name the primary, or all servers: postgres://…@A:5432,B:5432/DATABASE finds it".into()
            }
            Trouble::Encoding { .. } => "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0".into(),
            Trouble::Forbidden { remedy, .. } => remedy.clone(),
            Trouble::Newer { .. } => "run a Concert that is as new as the others on this database".into(),
            Trouble::Foreign { .. } | Trouble::Taken { .. } => {
                "choose another schema: add ?schema=NAME to the address".into()
            }
            Trouble::Source { .. } => "stop `concert serve`, and give the key file of its folder".into(),
            Trouble::Crowded { .. } => "raise max_connections, or run fewer replicas".into(),
            Trouble::Full { .. } => "make room on the server's disk; reading goes on meanwhile".into(),
            Trouble::Late { .. } => {
                "psql with the same address, but without schema=, shows whether it answers at all; if it does, \
                 look for long transactions in pg_stat_activity"
                    .into()
            }
            Trouble::Cancelled { .. } => "look for long transactions in pg_stat_activity".into(),
            Trouble::Authorities(_) => "sslrootcert must name a file of certificates in PEM".into(),
            Trouble::Failed { .. } => "the log of PostgreSQL says more".into(),
        }
    }

    /// True if the same call may succeed over a new connection a moment later.
    pub(super) fn is_passing(&self) -> bool {
        matches!(
            self,
            Trouble::Unreachable { .. }
                | Trouble::ReadOnly { .. }
                | Trouble::Crowded { .. }
                | Trouble::Late { .. }
                | Trouble::Cancelled { .. }
        )
    }
}

/// Of several servers none takes writes: the driver asks each of them, and says so in its own words.
fn is_without_writer(error: &tokio_postgres::Error) -> bool {
    let source = error.source().and_then(|it| it.downcast_ref::<std::io::Error>());
    source.is_some_and(|it| it.to_string() == "database does not allow writes")
}

/// What gives a role all rights on a schema that is there, and on the tables in it.
pub(super) fn take_over(schema: &str, role: &str) -> String {
    format!(
        "as an administrator: ALTER SCHEMA {schema} OWNER TO {role}, and ALTER TABLE … OWNER TO {role} for each \
         table in it"
    )
}

/// The server is stopping, or not up yet, or has thrown everybody out.
fn is_going_away(code: &SqlState) -> bool {
    *code == SqlState::ADMIN_SHUTDOWN
        || *code == SqlState::CRASH_SHUTDOWN
        || *code == SqlState::CANNOT_CONNECT_NOW
        || *code == SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
        || *code == SqlState::T_R_SERIALIZATION_FAILURE
        || *code == SqlState::T_R_DEADLOCK_DETECTED
        || code.code().starts_with("08")
}

/// The whole chain, in one line.
fn said(error: &tokio_postgres::Error) -> String {
    if let Some(error) = error.as_db_error() {
        return format!("{} (SQLSTATE {})", error.message(), error.code().code());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Full { .. } => Failure::Full,
            other => {
                let hint = other.hint();
                Failure::Broken(Box::new(Hinted { trouble: other, hint }))
            }
        }
    }
}

/// Trouble while serving: whoever reads of it in a log has nobody else to ask.
#[derive(Debug)]
struct Hinted {
    trouble: Trouble,
    hint: String,
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (hint: {})", self.trouble, self.hint)
    }
}

impl std::error::Error for Hinted {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.trouble.source()
    }
}
