//! What there is, from the server's own tables.

use std::collections::BTreeSet;

use tokio_postgres::{Client, Error};

use super::mark::{Mark, PREFIX};
use super::target::{Grant, Target};

/// All that is known of a database and its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Actual {
    /// The name of the role that is or should be its own.
    pub(super) role_name: String,
    pub(super) mark: Option<Mark>,
    pub(super) database: Option<Database>,
    pub(super) role: Option<Role>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Database {
    pub(super) owner: String,
    pub(super) encoding: String,
    pub(super) connection_limit: i32,
    pub(super) grants: BTreeSet<Grant>,
}

/// What a role may, in the order of [`OPTIONS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Role(pub(super) [bool; 6]);

/// The options of a role, as they are said in SQL, and whether one of ours has them.
pub(super) const OPTIONS: [(&str, bool); 6] = [
    ("LOGIN", true),
    ("SUPERUSER", false),
    ("CREATEDB", false),
    ("CREATEROLE", false),
    ("REPLICATION", false),
    ("BYPASSRLS", false),
];

impl Actual {
    /// Looks at what a target is about.
    pub(super) async fn read(client: &Client, target: &Target) -> Result<Self, Error> {
        let marked = marked_roles(client).await?;
        let ours = marked.into_iter().find(|(_, mark)| mark.database == target.database);
        let (role_name, mark) = match ours {
            Some((role, mark)) => (role, Some(mark)),
            None => (target.new_role().to_owned(), None),
        };
        Ok(Self {
            database: database(client, &target.database).await?,
            role: role(client, &role_name).await?,
            role_name,
            mark,
        })
    }

    /// Whether there is anything of it.
    pub(super) fn exists(&self) -> bool {
        self.database.is_some() || self.mark.is_some()
    }
}

/// All roles that are ours.
pub(super) async fn marked_roles(client: &Client) -> Result<Vec<(String, Mark)>, Error> {
    let sql = "SELECT r.rolname::text, s.description FROM pg_roles r \
               JOIN pg_shdescription s ON s.objoid = r.oid AND s.classoid = 'pg_authid'::regclass \
               WHERE starts_with(s.description, $1) ORDER BY r.oid";
    let rows = client.query(sql, &[&PREFIX]).await?;
    Ok(rows.iter().filter_map(|row| Some((row.get(0), Mark::read(row.get(1))?))).collect())
}

/// All databases that hold something of somebody else: neither templates nor ours.
pub(super) async fn unmarked_databases(client: &Client) -> Result<Vec<String>, Error> {
    let ours = marked_roles(client).await?;
    let sql = "SELECT datname::text FROM pg_database WHERE NOT datistemplate AND datallowconn ORDER BY 1";
    let names: Vec<String> = client.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect();
    Ok(names.into_iter().filter(|name| ours.iter().all(|(_, mark)| mark.database != *name)).collect())
}

async fn database(client: &Client, name: &str) -> Result<Option<Database>, Error> {
    let sql = "SELECT pg_get_userbyid(datdba)::text, pg_encoding_to_char(encoding)::text, datconnlimit \
               FROM pg_database WHERE datname = $1::text";
    let Some(row) = client.query_opt(sql, &[&name]).await? else { return Ok(None) };
    let sql = "SELECT coalesce(r.rolname::text, ''), a.privilege_type FROM pg_database d \
               CROSS JOIN aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a \
               LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE d.datname = $1::text";
    let grants = client.query(sql, &[&name]).await?;
    Ok(Some(Database {
        owner: row.get(0),
        encoding: row.get(1),
        connection_limit: row.get(2),
        grants: grants.iter().map(|it| Grant { role: it.get(0), privilege: it.get(1) }).collect(),
    }))
}

async fn role(client: &Client, name: &str) -> Result<Option<Role>, Error> {
    let sql = "SELECT rolcanlogin, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls \
               FROM pg_roles WHERE rolname = $1::text";
    let row = client.query_opt(sql, &[&name]).await?;
    Ok(row.map(|row| Role(std::array::from_fn(|at| row.get(at)))))
}
