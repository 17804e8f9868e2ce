//! Opening a database: making and migrating its tables.
//!
//! Migrations go forward only and leave what is there usable: replicas of the version before go on while the
//! first of the next one starts. What only a later version may take away is taken away by a migration that
//! raises `oldest`, and from then on programs that know less are refused.

use std::sync::{Arc, Mutex};

use tokio::runtime::Builder;

use super::address::Address;
use super::commit::{ORDER, Writer, hash};
use super::connect::{Connection, Connector};
use super::listen::{channel, listen};
use super::patience::Patience;
use super::pool::Pool;
use super::trouble::{Trouble, take_over};
use super::wait::wait;
use super::{Options, Postgres};
use crate::backend::Bell;

/// One step of the tables.
#[derive(Clone, Copy)]
pub(super) struct Migration {
    pub(super) sql: &'static str,
    /// The version that programs must know from then on.
    pub(super) oldest: i64,
}

/// What each version adds; tables of version n have had the first n applied.
pub(super) const MIGRATIONS: &[Migration] =
    &[Migration { sql: include_str!("../001_initial.sql"), oldest: 1 }];

/// The lock of whoever migrates.
const MIGRATING: i32 = ORDER + 1;

impl Postgres {
    /// Connects, and makes or migrates the tables where needed.
    ///
    /// # Guarantees
    /// Any number of processes may open the same database at once. Those that have it open already go on.
    ///
    /// # Errors
    /// [`Trouble`], with a hint at what to do.
    pub fn open(address: &Address, options: Options) -> Result<Self, Trouble> {
        Self::open_with(address, options, MIGRATIONS)
    }

    /// The same for a program that knows these migrations.
    pub(super) fn open_with(
        address: &Address,
        options: Options,
        migrations: &[Migration],
    ) -> Result<Self, Trouble> {
        let failed =
            |error: std::io::Error| Trouble::Failed { at: address.to_string(), source: error.into() };
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("postgres").enable_all().build();
        let runtime = super::Threads::new(runtime.map_err(failed)?);
        let Options { clock, chance, patience, statement_limit } = options;
        let connector = Connector::new(address.clone(), runtime.handle(), statement_limit)?;
        let patience = Patience { clock: clock.clone(), limit: patience };
        let connection = wait(&runtime.handle(), async {
            let mut connection = connector.connect().await?;
            prepare(&mut connection, address, migrations).await?;
            Ok(connection)
        })?;
        let bell = Arc::new(Bell::default());
        runtime.handle().spawn(listen(connector.clone(), bell.clone(), clock));
        let id = (chance.bits() as u64).cast_signed();
        let known = migrations.len() as i64;
        let writer = Writer::new(connector.clone(), connection, channel(&address.schema), id, known);
        Ok(Self {
            address: address.clone(),
            readers: Pool::new(connector),
            writer: Mutex::new(writer),
            patience,
            bell,
            _runtime: runtime,
        })
    }
}

async fn prepare(
    connection: &mut Connection,
    address: &Address,
    migrations: &[Migration],
) -> Result<(), Trouble> {
    connection.run("BEGIN").await?;
    // First of all: whoever comes while another migrates waits for as long as that takes.
    connection.be_patient().await?;
    // One at a time; whoever comes second finds everything done.
    connection.rows("SELECT pg_advisory_xact_lock($1, $2)", &[&MIGRATING, &hash(&address.schema)]).await?;
    let version = version(connection, address, migrations.len() as i64).await?;
    if version < migrations.len() as i64 {
        // Whoever commits looks up which version it must know under this lock: nobody who is shut out by what
        // follows may be between that look and its commit.
        connection.rows("SELECT pg_advisory_xact_lock($1, $2)", &[&ORDER, &hash(&address.schema)]).await?;
    }
    for (migration, next) in migrations.iter().zip(1_i64..) {
        if next <= version {
            continue;
        }
        connection.run(migration.sql).await?;
        let numbers = format!(
            "UPDATE meta SET value = {next} WHERE name = 'version'; \
             UPDATE meta SET value = {} WHERE name = 'oldest'",
            migration.oldest
        );
        connection.run(&numbers).await?;
    }
    connection.run("COMMIT").await?;
    connection.be_quick();
    Ok(())
}

/// The version of the tables; 0 where there are none yet.
async fn version(connection: &mut Connection, address: &Address, known: i64) -> Result<i64, Trouble> {
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1), \
        EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1 AND NOT has_schema_privilege(oid, 'USAGE')), \
        (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
            WHERE n.nspname = $1 AND c.relkind = 'r'), \
        (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
            WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname IN ('meta', 'objects', 'log', 'bodies'))";
    let row = connection.one(sql, &[&address.schema]).await?;
    let (is_there, is_closed): (bool, bool) = (row.get(0), row.get(1));
    let (tables, ours): (i64, i64) = (row.get(2), row.get(3));
    let (schema, role) = (&address.schema, address.role());
    if !is_there {
        let made = connection.run(&format!("CREATE SCHEMA {schema}")).await;
        let remedy = || format!("as the owner of the database: CREATE SCHEMA {schema} AUTHORIZATION {role}");
        made.map_err(|trouble| trouble.remedied(remedy()))?;
    }
    // Otherwise its tables would just not be found.
    if is_closed {
        return Err(Trouble::Forbidden {
            at: address.to_string(),
            role: role.to_owned(),
            remedy: take_over(schema, role),
            source: format!("it may not use the schema {schema}").into(),
        });
    }
    if tables == 0 {
        return Ok(0);
    }
    if ours != 4 {
        return Err(Trouble::Foreign { at: address.to_string() });
    }
    let sql = "SELECT (SELECT value FROM meta WHERE name = 'version'), \
               (SELECT value FROM meta WHERE name = 'oldest')";
    let row = connection.one(sql, &[]).await?;
    let (Some(version), Some(oldest)) = (row.get::<_, Option<i64>>(0), row.get::<_, Option<i64>>(1)) else {
        return Err(Trouble::Foreign { at: address.to_string() });
    };
    if oldest > known {
        return Err(Trouble::Newer { at: address.to_string(), version: oldest, known });
    }
    Ok(version)
}

#[cfg(test)]
mod tests;
