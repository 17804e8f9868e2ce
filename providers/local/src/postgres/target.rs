//! What an object wants to exist.

use std::collections::BTreeSet;

use concert_model::Object;
use concert_provider::Change;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::owner::external_name;
use crate::plan::change;
use crate::tokens::hex;
use crate::{Result, fields};

/// Longer names are cut off silently by the server, and then name something else.
const NAME_BYTES_MAX: usize = 63;

const ENCODINGS: &[&str] = &["UTF8", "SQL_ASCII", "LATIN1"];
pub(super) const PRIVILEGES: [&str; 3] = ["CONNECT", "CREATE", "TEMPORARY"];

/// Databases of the server itself.
pub(super) const RESERVED: [&str; 3] = ["postgres", "template0", "template1"];

/// A privilege and who has it; everybody, if the name is empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grant {
    pub(super) role: String,
    pub(super) privilege: String,
}

/// A database and its role, as they are wanted.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) database: String,
    /// The name that was asked for, where one was.
    pub(super) asked_database: Option<String>,
    /// The owner that was asked for, where one was.
    pub(super) asked_role: Option<String>,
    pub(super) encoding: Option<&'static str>,
    /// -1 for no limit, as the server says it.
    pub(super) connection_limit: i32,
    pub(super) grants: BTreeSet<Grant>,
}

impl Target {
    pub(super) fn of(object: &Object) -> Result<Self> {
        let asked_database = fields::text(object, "database")?.map(str::to_owned);
        let named = external_name(object).map(str::to_owned).or_else(|| asked_database.clone());
        let target = Self {
            database: named.unwrap_or_else(|| made_up_name(object)),
            asked_database,
            asked_role: fields::text(object, "username")?.map(str::to_owned),
            encoding: encoding(object)?,
            connection_limit: fields::whole(object, "connectionLimit", 0, 262_143)?.unwrap_or(-1) as i32,
            grants: grants(object)?,
        };
        check_name("database", &target.database)?;
        if let Some(role) = &target.asked_role {
            check_role("username", role)?;
        }
        Ok(target)
    }

    /// The role, where none is known to be there: as asked for, else named like the database.
    pub(super) fn new_role(&self) -> &str {
        self.asked_role.as_deref().unwrap_or(&self.database)
    }

    /// The privileges on the database that there should be, those of its owner included.
    pub(super) fn privileges(&self, role: &str) -> BTreeSet<Grant> {
        let own = PRIVILEGES.map(|it| Grant { role: role.to_owned(), privilege: it.to_owned() });
        self.grants.iter().cloned().chain(own).collect()
    }

    /// Refuses to do anything to what the server itself needs.
    pub(super) fn check_is_not_reserved(&self) -> Result<()> {
        if RESERVED.contains(&self.database.as_str()) {
            return Err(fields::refuse("database", "must not be a database of the server itself"));
        }
        if self.new_role().starts_with("pg_") {
            return Err(fields::refuse(
                "username",
                "must not start with pg_, which the server keeps for itself",
            ));
        }
        Ok(())
    }

    /// The fields of a database that is to be made.
    pub(super) fn fresh(&self) -> Vec<Change> {
        let limit = if self.connection_limit < 0 { Value::Null } else { json!(self.connection_limit) };
        let grants = self.grants.iter().map(|it| json!(format!("{} to {}", it.privilege, it.role)));
        let grants: Vec<Value> = grants.collect();
        let all = [
            change("database", Value::Null, json!(self.database)),
            change("username", Value::Null, json!(self.new_role())),
            change("encoding", Value::Null, json!(self.encoding.unwrap_or(ENCODINGS[0]))),
            change("connectionLimit", Value::Null, limit),
            change("grants", Value::Null, if grants.is_empty() { Value::Null } else { json!(grants) }),
        ];
        all.into_iter().filter(|it| it.to.is_some()).collect()
    }
}

fn encoding(object: &Object) -> Result<Option<&'static str>> {
    if fields::field(object, "encoding").is_null() {
        return Ok(None);
    }
    fields::choice(object, "encoding", ENCODINGS).map(Some)
}

fn grants(object: &Object) -> Result<BTreeSet<Grant>> {
    let rule = || fields::refuse("grants", "must be a list of {role, privileges}");
    let list = match fields::field(object, "grants") {
        Value::Null => return Ok(BTreeSet::new()),
        list => list.as_array().ok_or_else(rule)?,
    };
    let mut grants = BTreeSet::new();
    for grant in list {
        let role = grant["role"].as_str().ok_or_else(rule)?;
        check_role("grants", role)?;
        for privilege in grant["privileges"].as_array().ok_or_else(rule)? {
            let privilege = privilege.as_str().filter(|it| PRIVILEGES.contains(it)).ok_or_else(|| {
                fields::refuse("grants", &format!("privileges must be of {}", PRIVILEGES.join(", ")))
            })?;
            grants.insert(Grant { role: role.to_owned(), privilege: privilege.to_owned() });
        }
    }
    Ok(grants)
}

fn check_name(field: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
        let rule = format!("a name must have 1 to {NAME_BYTES_MAX} bytes, and none of them zero");
        return Err(fields::refuse(field, &rule));
    }
    Ok(())
}

fn check_role(field: &str, role: &str) -> Result<()> {
    // The server takes these for keywords even in quotes: a grant to "public" is one to everybody.
    if role == "public" || role == "none" {
        return Err(fields::refuse(field, "must not be public or none, which mean something else"));
    }
    check_name(field, role)
}

/// A name that another object does not have, and this one has again.
fn made_up_name(object: &Object) -> String {
    let readable = object.name().replace(['-', '.'], "_");
    let readable: String = readable.chars().take(50).collect();
    let uid = object.uid().map(|uid| uid.to_string()).unwrap_or_default();
    let suffix = hex(&digest(&SHA256, uid.as_bytes()).as_ref()[..4]);
    format!("{readable}_{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(fields: Value) -> Result<Target> {
        let whole = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "team-a.orders", "uid": "1"},
            "spec": {"forProvider": fields}});
        Target::of(&Object::from_value(whole).unwrap())
    }

    #[test]
    fn a_made_up_name_can_be_read_and_is_the_same_again() {
        let name = target(json!({})).unwrap().database;
        assert!(name.starts_with("team_a_orders_") && name.len() == 22, "{name}");
        assert_eq!(name, target(json!({})).unwrap().database);
        assert_eq!(target(json!({"database": "x"})).unwrap().database, "x");
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for fields in [
            json!({"database": "a".repeat(64)}),
            json!({"database": "a\0b"}),
            json!({"username": "public"}),
            json!({"grants": [{"role": "public", "privileges": ["CONNECT"]}]}),
            json!({"grants": [{"role": "a", "privileges": ["ALL; DROP ROLE b"]}]}),
            json!({"grants": "all"}),
            json!({"encoding": "UTF8'; --"}),
            json!({"connectionLimit": -1}),
        ] {
            assert!(target(fields.clone()).is_err(), "{fields}");
        }
        for fields in [json!({"database": "template1"}), json!({"username": "pg_monitor"})] {
            assert!(target(fields.clone()).unwrap().check_is_not_reserved().is_err(), "{fields}");
        }
    }
}
