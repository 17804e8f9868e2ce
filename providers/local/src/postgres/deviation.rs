//! Everything that can be other than wanted: how it is told, and the statement that repairs it.

use concert_provider::Change;
use serde_json::{Value, json};

use super::actual::{Actual, Database, OPTIONS};
use super::mark::Mark;
use super::quote;
use super::target::{Grant, Target};
use crate::plan::{change, drift, password, replacing};

/// One thing that is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deviation {
    /// It has another name than asked for.
    Name(String),
    /// Its role has another name than asked for.
    RoleName(String),
    /// It has another encoding than asked for.
    Encoding(String),
    RoleMissing,
    /// The role is not marked as the object's.
    Unmarked(String),
    /// The role has an option that it should not have, or the other way round.
    RoleOption {
        option: &'static str,
        wanted: bool,
    },
    Password,
    DatabaseMissing,
    Owner(String),
    ConnectionLimit(i32),
    Excessive(Grant),
    Missing(Grant),
}

/// What is needed to repair.
pub(super) struct Repair<'a> {
    pub(super) target: &'a Target,
    pub(super) role: &'a str,
    pub(super) mark: &'a Mark,
    /// The role's password as the server keeps it, so that no log of statements has it in clear.
    pub(super) verifier: &'a str,
}

/// What is not as wanted, in the order in which it is repaired.
pub(super) fn deviations(target: &Target, actual: &Actual, mark: &Mark) -> Vec<Deviation> {
    let mut found = names(target, actual);
    match &actual.role {
        None => found.push(Deviation::RoleMissing),
        Some(role) => {
            let options = OPTIONS.iter().zip(role.0).filter(|((_, wanted), is)| wanted != is);
            found.extend(options.map(|(&(option, wanted), _)| Deviation::RoleOption { option, wanted }));
        }
    }
    match &actual.mark {
        Some(is) if is == mark => {}
        is => {
            let owner = is.as_ref().map(|it| it.owner.object.clone());
            found.push(Deviation::Unmarked(owner.unwrap_or_default()));
        }
    }
    match &actual.database {
        None => found.push(Deviation::DatabaseMissing),
        Some(database) => found.extend(of_database(target, &actual.role_name, database)),
    }
    found
}

fn names(target: &Target, actual: &Actual) -> Vec<Deviation> {
    let mut found = Vec::new();
    if target.asked_database.as_ref().is_some_and(|it| *it != target.database) {
        found.push(Deviation::Name(target.database.clone()));
    }
    if target.asked_role.as_ref().is_some_and(|it| *it != actual.role_name) {
        found.push(Deviation::RoleName(actual.role_name.clone()));
    }
    if let (Some(wanted), Some(database)) = (target.encoding, &actual.database)
        && database.encoding != wanted
    {
        found.push(Deviation::Encoding(database.encoding.clone()));
    }
    found
}

fn of_database(target: &Target, role: &str, is: &Database) -> Vec<Deviation> {
    let mut found = Vec::new();
    if is.owner != role {
        // The privileges of the old owner go over to the new one, so they are looked at after that.
        found.push(Deviation::Owner(is.owner.clone()));
    }
    if is.connection_limit != target.connection_limit {
        found.push(Deviation::ConnectionLimit(is.connection_limit));
    }
    if is.owner == role {
        let wanted = target.privileges(role);
        found.extend(is.grants.difference(&wanted).cloned().map(Deviation::Excessive));
        found.extend(wanted.difference(&is.grants).cloned().map(Deviation::Missing));
    }
    found
}

impl Deviation {
    /// In the words of the object.
    pub(super) fn change(&self, target: &Target) -> Change {
        match self {
            Self::Name(is) => replacing(change("database", json!(is), json!(target.asked_database))),
            Self::RoleName(is) => replacing(change("username", json!(is), json!(target.asked_role))),
            Self::Encoding(is) => replacing(change("encoding", json!(is), json!(target.encoding))),
            Self::RoleMissing => drift("role", "missing", "present"),
            Self::Unmarked(owner) => drift("owner", owner.as_str(), "this object"),
            Self::RoleOption { option, wanted } => drift(&format!("role.{option}"), !wanted, *wanted),
            Self::Password => password(),
            Self::DatabaseMissing => drift("status.atProvider.state", "missing", "ready"),
            Self::Owner(is) => drift("database.owner", is.as_str(), target.new_role()),
            Self::ConnectionLimit(is) => {
                let limit = |it: i32| if it < 0 { Value::Null } else { json!(it) };
                change("connectionLimit", limit(*is), limit(target.connection_limit))
            }
            Self::Excessive(grant) => change("grants", json!(in_words(grant)), Value::Null),
            Self::Missing(grant) => change("grants", Value::Null, json!(in_words(grant))),
        }
    }

    /// The statement that repairs it; none for what cannot be changed in place.
    pub(super) fn statement(&self, repair: &Repair) -> Option<String> {
        let (database, role) = (quote::name(&repair.target.database), quote::name(repair.role));
        let limit = repair.target.connection_limit;
        Some(match self {
            Self::Name(_) | Self::RoleName(_) | Self::Encoding(_) => return None,
            Self::RoleMissing => {
                let options: Vec<String> = OPTIONS.iter().map(|&(it, wanted)| option(it, wanted)).collect();
                let verifier = quote::text(repair.verifier);
                format!("CREATE ROLE {role} {} PASSWORD {verifier}", options.join(" "))
            }
            Self::Unmarked(_) => {
                format!("COMMENT ON ROLE {role} IS {}", quote::text(&repair.mark.write()))
            }
            Self::RoleOption { option: it, wanted } => format!("ALTER ROLE {role} {}", option(it, *wanted)),
            Self::Password => format!("ALTER ROLE {role} PASSWORD {}", quote::text(repair.verifier)),
            Self::DatabaseMissing => {
                // A text of another encoding than the locale's cannot be sorted by it.
                let encoding = match repair.target.encoding {
                    None | Some("UTF8") => "ENCODING 'UTF8'".to_owned(),
                    Some(other) => format!("ENCODING '{other}' LC_COLLATE 'C' LC_CTYPE 'C'"),
                };
                format!(
                    "CREATE DATABASE {database} OWNER {role} TEMPLATE template0 {encoding} CONNECTION LIMIT {limit}"
                )
            }
            Self::Owner(_) => format!("ALTER DATABASE {database} OWNER TO {role}"),
            Self::ConnectionLimit(_) => format!("ALTER DATABASE {database} CONNECTION LIMIT {limit}"),
            Self::Excessive(grant) => {
                format!("REVOKE {} ON DATABASE {database} FROM {}", grant.privilege, grantee(grant))
            }
            Self::Missing(grant) => {
                format!("GRANT {} ON DATABASE {database} TO {}", grant.privilege, grantee(grant))
            }
        })
    }
}

fn option(name: &str, is_on: bool) -> String {
    if is_on { name.to_owned() } else { format!("NO{name}") }
}

fn grantee(grant: &Grant) -> String {
    if grant.role.is_empty() { "PUBLIC".to_owned() } else { quote::name(&grant.role) }
}

fn in_words(grant: &Grant) -> String {
    let to = if grant.role.is_empty() { "everybody" } else { &grant.role };
    format!("{} to {to}", grant.privilege)
}
