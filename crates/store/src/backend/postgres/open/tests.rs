//! Programs of several versions on one database.

use std::sync::Barrier;

use concert_model::{GroupKind, Object};
use concert_testbed::Postgres as Server;
use serde_json::json;

use super::*;
use crate::chance::Chance;
use crate::clock::SystemClock;
use crate::contract::{By, Events, PageRequest, Query, Store};
use crate::error::Error;
use crate::local::{Config, Local};
use crate::seal::Keyring;

/// What the next version adds: the one before can live with it.
const WIDER: Migration = Migration {
    sql: "ALTER TABLE log ADD COLUMN origin text; ALTER TABLE bodies ADD COLUMN note text DEFAULT ''; \
          ALTER TABLE work ADD COLUMN seen bigint NOT NULL DEFAULT 0; CREATE TABLE more (a bigint)",
    oldest: 1,
};
/// What the one after that adds: only programs that know it may write.
const BEYOND: Migration = Migration { sql: "ALTER TABLE more ADD COLUMN b bigint", oldest: 3 };

fn connect(url: &str, migrations: &[Migration]) -> Result<Postgres, Trouble> {
    let options = Options::new(Arc::new(SystemClock::new()), Chance::from_system());
    Postgres::open_with(&Address::parse(url)?, options, migrations)
}

fn store(url: &str, migrations: &[Migration], keyring: &Keyring) -> Local {
    let config = Config::new(Arc::new(SystemClock::new()), Chance::from_system()).sealed(keyring.clone());
    Local::open(Arc::new(connect(url, migrations).unwrap()), config).unwrap()
}

fn maps() -> GroupKind {
    GroupKind::new("", "ConfigMap")
}

async fn create(store: &Local, name: &str) -> Result<(), Error> {
    let mut object = Object::new(&maps().at_version("v1"), "default", name);
    object.set("data", json!({ "name": name }));
    store.create(object, &By::actor("test")).await.map(drop)
}

/// The name of what the next event of a watch is about.
async fn next(events: &mut Events) -> String {
    loop {
        let event = events.next().await.unwrap().unwrap();
        if let Some(object) = event.object() {
            return object.key().name.to_string();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_neighbouring_versions_work_side_by_side_and_a_third_ends_the_writes_of_the_first() {
    let Some(server) = Server::shared() else { return };
    let (url, keyring) = (server.fresh_url(), Keyring::in_memory(&Chance::from_system()));
    let old = store(&url, MIGRATIONS, &keyring);
    let start = old.newest().await.unwrap();
    let mut watching = old.watch(&Query::all(maps()), Some(&start.into())).await.unwrap();
    create(&old, "a").await.unwrap();

    let next_steps = [MIGRATIONS, &[WIDER]].concat();
    let new = store(&url, &next_steps, &keyring);
    for (n, it) in [&new, &old, &new, &old].into_iter().enumerate() {
        create(it, &format!("b{n}")).await.unwrap();
    }
    // A restart of the old one finds the tables of the new one, and leaves them.
    create(&store(&url, MIGRATIONS, &keyring), "c").await.unwrap();
    old.maintain(&Default::default()).await.unwrap();
    let told = ["a", "b0", "b1", "b2", "b3", "c"];
    for name in told {
        assert_eq!(next(&mut watching).await, name);
    }
    for it in [&old, &new] {
        let page = it.list(&Query::all(maps()), &PageRequest::whole()).await.unwrap();
        let names: Vec<&str> = page.items.iter().map(|it| &*it.key().name).collect();
        assert_eq!(names, told);
    }

    let newer = store(&url, &[&next_steps[..], &[BEYOND]].concat(), &keyring);
    for it in [&old, &new] {
        let Err(Error::Unavailable(why)) = create(it, "late").await else { panic!("it may not write") };
        assert!(why.to_string().contains("as new as the others"), "{why}");
        assert!(it.maintain(&Default::default()).await.is_err(), "nor tidy up");
    }
    create(&newer, "d").await.unwrap();
    assert_eq!(next(&mut watching).await, "d", "it still hears and reads");
    assert_eq!(old.list(&Query::all(maps()), &PageRequest::whole()).await.unwrap().items.len(), 7);
    let refused = connect(&url, MIGRATIONS).err();
    assert!(matches!(refused, Some(Trouble::Newer { version: 3, known: 1, .. })), "{refused:?}");
}

#[test]
fn many_may_open_an_empty_database_at_once() {
    const OPENERS: usize = 4;
    let Some(server) = Server::shared() else { return };
    let (url, barrier) = (server.fresh_url(), Barrier::new(OPENERS));
    std::thread::scope(|scope| {
        let open = || {
            barrier.wait();
            connect(&url, MIGRATIONS).map(drop)
        };
        let openers: Vec<_> = (0..OPENERS).map(|_| scope.spawn(open)).collect();
        openers.into_iter().for_each(|it| it.join().unwrap().unwrap());
    });
}

#[test]
fn whoever_comes_while_another_migrates_has_no_limit_before_it_waits() {
    let Some(server) = Server::start(&["log_statement=all"]).unwrap() else { return };
    drop(connect(&server.fresh_url(), MIGRATIONS).unwrap());
    let log = server.log().unwrap();
    let place = |what: &str| log.find(what).unwrap_or_else(|| panic!("{what} is not in\n{log}"));
    assert!(place("SET LOCAL lock_timeout TO 0") < place("pg_advisory_xact_lock"), "{log}");
}

#[test]
fn a_migration_waits_for_the_commit_that_is_under_way() {
    let Some(server) = Server::shared() else { return };
    let url = server.fresh_url();
    drop(connect(&url, MIGRATIONS).unwrap());
    let schema = hash(&Address::parse(&url).unwrap().schema);
    let lock = format!("SELECT pg_advisory_xact_lock({ORDER}, {schema})");
    let waiting = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted \
         AND classid = {ORDER} AND objid = {}",
        schema.cast_unsigned()
    );
    // As a writer has it from its look at the version that it must know until it has committed.
    let commit = server.session("postgres", &lock).unwrap();
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| connect(&url, &[MIGRATIONS, &[WIDER]].concat()).map(drop));
        while server.sql("postgres", &waiting).unwrap().trim() == "0" {
            assert!(!opener.is_finished(), "it does not wait");
        }
        drop(commit);
        opener.join().unwrap().unwrap();
    });
}
