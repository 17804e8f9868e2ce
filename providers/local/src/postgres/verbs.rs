//! The calls.

use async_trait::async_trait;
use concert_model::{GroupVersionKind, Object};
use concert_provider::{
    Call, Changes, Class, Configuration, Created, Deleted, Delta, Details, Enumerate, Error, Founds,
    Handshake, Lookup, Observation, Plan, Provider, Token, Updated,
};
use futures_util::stream;
use postgres_protocol::password::scram_sha_256;
use serde_json::json;
use tokio_postgres::Client;

use super::Postgres;
use super::actual::{Actual, marked_roles, unmarked_databases};
use super::deviation::{Deviation, Repair, deviations};
use super::mark::Mark;
use super::quote;
use super::server::{Server, Session, failed};
use super::target::{RESERVED, Target};
use crate::found::found;
use crate::owner::{Owner, external_name, takes_over};
use crate::status::{self, Readiness};
use crate::{Result, kinds, plan};

/// Repairs are looked at again: what the last look could not show, such as the privileges that come with a
/// new database, is repaired in the next. Two looks are enough, and one more shows that nothing is left.
const ROUNDS: usize = 4;

/// Held while it is decided what a token makes. The number is ours by convention.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7165065861828654)";

/// What was found of an object's database.
struct Found {
    server: Server,
    session: Session,
    target: Target,
    actual: Actual,
}

impl Found {
    async fn look(account: Option<&Configuration>, target: Target) -> Result<Self> {
        let server = Server::of(account)?;
        let session = server.connect().await?;
        let actual = Actual::read(&session.client, &target).await.map_err(|e| failed(&e))?;
        Ok(Self { server, session, target, actual })
    }

    fn owner(&self) -> Owner {
        self.actual.mark.as_ref().map(|it| it.owner.clone()).unwrap_or_default()
    }

    /// The mark that there should be: a new owner takes over, nobody else changes it.
    fn mark(&self, object: &Object) -> Mark {
        let is_taken_over = takes_over(object) && self.owner() != Owner::of(object);
        match &self.actual.mark {
            Some(mark) if !is_taken_over => mark.clone(),
            mark => Mark {
                owner: Owner::of(object),
                token: mark.as_ref().map(|it| it.token.clone()).unwrap_or_default(),
                database: self.target.database.clone(),
            },
        }
    }

    fn name(&self) -> String {
        format!("database {}", self.target.database)
    }

    /// The role to connect as: its own, or whoever owns it.
    fn username(&self) -> &str {
        match (&self.actual.mark, &self.actual.database) {
            (None, Some(database)) => &database.owner,
            _ => &self.actual.role_name,
        }
    }
}

impl Postgres {
    fn password(&self, mark: &Mark, role: &str) -> String {
        self.passwords.of(&mark.owner.uid, role)
    }

    async fn deviations(&self, object: &Object, found: &Found) -> Vec<Deviation> {
        let mark = found.mark(object);
        let may_know = found.owner().admits(object);
        // Of somebody else's database only what its fields say is looked at.
        let mut all = deviations(&found.target, &found.actual, &mark);
        if found.actual.mark.is_none() && !may_know {
            all.retain(|it| matches!(it, Deviation::Name(_) | Deviation::Encoding(_)));
        }
        let can_log_in = found.actual.role.is_some_and(|it| it.0[0]) && found.actual.database.is_some();
        if may_know && can_log_in {
            let role = &found.actual.role_name;
            let password = self.password(&mark, role);
            if found.server.refuses(role, &password, &found.target.database).await {
                all.push(Deviation::Password);
            }
        }
        all
    }

    /// Makes everything as wanted.
    async fn converge(&self, object: &Object, found: &mut Found) -> Result<()> {
        for _ in 0..ROUNDS {
            let all = self.deviations(object, found).await;
            if all.is_empty() {
                return Ok(());
            }
            self.repair(object, found, &all).await?;
            let client = &found.session.client;
            found.actual = Actual::read(client, &found.target).await.map_err(|e| failed(&e))?;
        }
        let left = self.deviations(object, found).await;
        let fields: Vec<String> = left.iter().map(|it| it.change(&found.target).path).collect();
        if fields.is_empty() {
            return Ok(());
        }
        let message = format!("{} does not stay as it is made: {}", found.name(), fields.join(", "));
        Err(Error::new(Class::NeedsHuman, message))
    }

    async fn repair(&self, object: &Object, found: &Found, all: &[Deviation]) -> Result<()> {
        let mark = found.mark(object);
        let role = &found.actual.role_name;
        let verifier = scram_sha_256(self.password(&mark, role).as_bytes());
        let repair = Repair { target: &found.target, role, mark: &mark, verifier: &verifier };
        for statement in all.iter().filter_map(|it| it.statement(&repair)) {
            found.session.client.batch_execute(&statement).await.map_err(|e| failed(&e))?;
        }
        Ok(())
    }

    fn delta(&self, object: &Object, found: &Found) -> Delta {
        let (state, ready) = match (&found.actual.database, &found.actual.role) {
            (None, _) => ("missing", Readiness::Unavailable("the database does not exist".to_owned())),
            (_, None) if found.actual.mark.is_some() => {
                ("locked", Readiness::Unavailable("its role does not exist".to_owned()))
            }
            (_, Some(role)) if found.actual.mark.is_some() && !role.0[0] => {
                ("locked", Readiness::Unavailable("its role may not log in".to_owned()))
            }
            _ => ("ready", Readiness::Ready),
        };
        let at_provider = json!({"name": found.target.database, "state": state, "host": found.server.host,
            "port": found.server.port, "username": found.username()});
        status::delta(object, &found.target.database, at_provider, &ready)
    }

    fn connection(&self, object: &Object, found: &Found) -> Details {
        let details = Details::new()
            .with("endpoint", found.server.host.as_str())
            .with("host", found.server.host.as_str())
            .with("port", found.server.port.to_string())
            .with("database", found.target.database.as_str())
            .with("username", found.username());
        match &found.actual.mark {
            Some(mark) if mark.owner.admits(object) => {
                // That of the owner it has now; one that takes it over gets another with the update.
                details.with("password", self.password(mark, &found.actual.role_name))
            }
            _ => details,
        }
    }

    fn done(&self, object: &Object, found: &Found) -> Created {
        Created {
            delta: self.delta(object, found),
            connection: self.connection(object, found),
            ..Created::default()
        }
    }

    /// Makes role and mark in one transaction, unless they are there.
    async fn begin(&self, object: &Object, found: &mut Found, token: &Token) -> Result<()> {
        let client = &mut found.session.client;
        let transaction = client.transaction().await.map_err(|e| failed(&e))?;
        transaction.batch_execute(LOCK).await.map_err(|e| failed(&e))?;
        self.tokens.check(token)?;
        let actual = Actual::read(transaction.client(), &found.target).await.map_err(|e| failed(&e))?;
        let owner = Owner::of(object);
        let is_ours = actual.mark.as_ref().is_some_and(|it| it.owner.uid == owner.uid);
        if !is_ours {
            check_is_free(&found.target, &actual)?;
        }
        let mark = Mark { owner, token: token.to_string(), database: found.target.database.clone() };
        let role = actual.role_name.clone();
        let verifier = scram_sha_256(self.password(&mark, &role).as_bytes());
        let repair = Repair { target: &found.target, role: &role, mark: &mark, verifier: &verifier };
        let missing = [Deviation::RoleMissing, Deviation::Unmarked(String::new())];
        // One that is there already is told the token that it answers to from now on.
        for deviation in missing.iter().skip(usize::from(is_ours)) {
            let statement = deviation.statement(&repair).unwrap_or_default();
            transaction.batch_execute(&statement).await.map_err(|e| failed(&e))?;
        }
        transaction.commit().await.map_err(|e| failed(&e).in_doubt())?;
        found.actual =
            Actual::read(&found.session.client, &found.target).await.map_err(|e| failed(&e).in_doubt())?;
        Ok(())
    }
}

/// A new database must not be somebody else's.
fn check_is_free(target: &Target, actual: &Actual) -> Result<()> {
    let what = match (&actual.mark, &actual.database, &actual.role) {
        // Whose it is concerns only its owner.
        (Some(_), ..) => format!("database {} belongs to another object", target.database),
        (None, Some(_), _) => format!("database {} exists already", target.database),
        (None, None, Some(_)) => format!("role {} exists already", actual.role_name),
        (None, None, None) => return Ok(()),
    };
    let message = format!(
        "{what}: choose another spec.forProvider.database or username, or import the database by its external name"
    );
    Err(Error::new(Class::Transient, message))
}

/// Drops the database and, if it is ours, its role.
async fn remove(client: &Client, found: &Found) -> Result<()> {
    let database = quote::name(&found.target.database);
    let drop_database = format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)");
    client.batch_execute(&drop_database).await.map_err(|e| failed(&e))?;
    if found.actual.mark.is_some() {
        let drop_role = format!("DROP ROLE IF EXISTS {}", quote::name(&found.actual.role_name));
        client.batch_execute(&drop_role).await.map_err(|e| failed(&e))?;
    }
    Ok(())
}

#[async_trait]
impl Provider for Postgres {
    fn handshake(&self) -> Handshake {
        kinds::handshake(vec![kinds::postgresql_served()])
    }

    async fn validate(&self, object: &Object) -> Result<()> {
        Target::of(object)?.check_is_not_reserved()
    }

    async fn configure(&self, configuration: &Configuration) -> Result<()> {
        let session = Server::of(Some(configuration))?.connect().await?;
        let sql = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user";
        let row = session.client.query_one(sql, &[]).await.map_err(|e| failed(&e))?;
        if row.get(0) {
            return Ok(());
        }
        let message = format!("the credentials of {} must be those of a superuser", configuration.name);
        Err(Error::new(Class::Denied, message))
    }

    async fn observe(&self, object: &Object, account: Option<&Configuration>) -> Result<Observation> {
        if external_name(object).is_none() {
            return Ok(Observation::default());
        }
        let found = Found::look(account, Target::of(object)?).await?;
        if !found.actual.exists() {
            return Ok(Observation::default());
        }
        let all = self.deviations(object, &found).await;
        let diff: Vec<_> = all.iter().map(|it| it.change(&found.target)).collect();
        Ok(Observation {
            exists: true,
            is_up_to_date: diff.is_empty(),
            diff,
            delta: self.delta(object, &found),
            connection: self.connection(object, &found),
        })
    }

    async fn plan(&self, object: &Object, account: Option<&Configuration>) -> Result<Plan> {
        let fresh = Target::of(object)?.fresh();
        Ok(plan::plan(object, self.observe(object, account).await?, fresh))
    }

    async fn create(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
        _: &Call,
    ) -> Result<Created> {
        let target = Target::of(object)?;
        target.check_is_not_reserved()?;
        let mut found = Found::look(account, target).await?;
        self.begin(object, &mut found, token).await?;
        // From here on there is something, whatever else fails.
        self.converge(object, &mut found).await.map_err(Error::in_doubt)?;
        Ok(self.done(object, &found))
    }

    async fn update(&self, object: &Object, account: Option<&Configuration>, _: &Call) -> Result<Updated> {
        let target = Target::of(object)?;
        target.check_is_not_reserved()?;
        let mut found = Found::look(account, target).await?;
        if external_name(object).is_none() || !found.actual.exists() {
            let message = format!("there is no {} to update", found.name());
            return Err(Error::new(Class::Transient, message));
        }
        found.owner().check(object, &found.name())?;
        let all = self.deviations(object, &found).await;
        let changes: Vec<_> = all.iter().map(|it| it.change(&found.target)).collect();
        plan::check_in_place(&changes)?;
        self.converge(object, &mut found).await.map_err(Error::in_doubt)?;
        Ok(self.done(object, &found))
    }

    async fn delete(&self, object: &Object, account: Option<&Configuration>, _: &Call) -> Result<Deleted> {
        if external_name(object).is_none() {
            return Ok(Deleted::default());
        }
        let target = Target::of(object)?;
        let found = Found::look(account, target).await?;
        if !found.actual.exists() {
            return Ok(Deleted::default());
        }
        found.target.check_is_not_reserved()?;
        found.owner().check(object, &found.name())?;
        if let Some(mark) = &found.actual.mark {
            self.tokens.burn(&mark.token)?;
        }
        remove(&found.session.client, &found).await.map_err(Error::in_doubt)?;
        Ok(Deleted::default())
    }

    async fn lookup(
        &self,
        object: &Object,
        account: Option<&Configuration>,
        token: &Token,
    ) -> Result<Lookup> {
        let mut session = Server::of(account)?.connect().await?;
        let transaction = session.client.transaction().await.map_err(|e| failed(&e))?;
        // A create under way has it: what it does is seen, or did not happen.
        transaction.batch_execute(LOCK).await.map_err(|e| failed(&e))?;
        let marked = marked_roles(transaction.client()).await.map_err(|e| failed(&e))?;
        let Some((_, mark)) = marked.into_iter().find(|(_, mark)| mark.token == *token.0) else {
            self.tokens.burn(&token.0)?;
            return Ok(Lookup::CertainlyNone);
        };
        let target = Target { database: mark.database, ..Target::of(object)? };
        let found = Found::look(account, target).await?;
        Ok(Lookup::Found(self.delta(object, &found)))
    }

    /// Nothing is pushed: the server tells nobody.
    async fn watch(&self, _: &GroupVersionKind) -> Result<Changes> {
        Ok(Box::pin(stream::pending()))
    }

    async fn enumerate(&self, what: &Enumerate) -> Result<Founds> {
        let session = Server::of(what.configuration.as_deref())?.connect().await?;
        let names: Vec<String> = unmarked_databases(&session.client).await.map_err(|e| failed(&e))?;
        let is_wanted = |it: &String| it.starts_with(&what.prefix) && !RESERVED.contains(&it.as_str());
        let founds: Vec<_> =
            names.into_iter().filter(is_wanted).map(|it| Ok(found(&what.kind, &it))).collect();
        Ok(Box::pin(stream::iter(founds)))
    }
}
