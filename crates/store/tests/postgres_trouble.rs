//! Everything that can be wrong with a database is said, with what to do about it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod database;

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use concert_store::backend::postgres::{Address, Options, Trouble};
use concert_store::{By, Chance, Config, Error, Local, Store, SystemClock};
use concert_testbed::Postgres;
use database::{connect, key, keyring, map, open};

/// The refusal, after a look that it says nothing secret and ends with something to try.
fn refusal(url: &str) -> Trouble {
    let trouble = connect(url).expect_err("this must not work");
    let said = format!("{trouble} {:?} {}", trouble.source().map(ToString::to_string), trouble.hint());
    assert!(!said.contains("secret"), "{said}");
    assert!(!trouble.hint().is_empty());
    trouble
}

/// The URL of a role of its own.
fn role(server: &Postgres, name: &str, more: &str) -> String {
    server.sql("postgres", &format!("CREATE ROLE {name} LOGIN PASSWORD 'pw-secret'; {more}")).unwrap();
    format!("postgres://{name}:pw-secret@127.0.0.1:{}/postgres?schema=of_{name}", server.port())
}

#[test]
fn a_way_that_leads_nowhere_is_said() {
    let Some(server) = Postgres::shared() else { return };
    assert!(matches!(refusal("postgres://u:secret@127.0.0.1:1/d"), Trouble::Unreachable { .. }));
    assert!(matches!(refusal("http://u:secret@127.0.0.1:1/d"), Trouble::Url { .. }));
    let wrong = format!("postgres://postgres:secret@127.0.0.1:{}/postgres", server.port());
    assert!(matches!(refusal(&wrong), Trouble::Rejected { .. }));
    assert!(matches!(refusal(&server.url("nowhere")), Trouble::Missing { .. }));
}

#[test]
fn missing_rights_and_a_read_only_server_are_said() {
    let Some(server) = Postgres::shared() else { return };
    let url = role(server, "weak", "");
    let trouble = refusal(&url);
    let Trouble::Forbidden { role: who, .. } = &trouble else { panic!("it may not make a schema") };
    assert_eq!(who, "weak");
    assert!(trouble.hint().contains("CREATE SCHEMA of_weak AUTHORIZATION weak"), "{}", trouble.hint());
    server.sql("postgres", "CREATE SCHEMA of_weak AUTHORIZATION weak").unwrap();
    drop(connect(&url).unwrap());
    let url = role(server, "standing_by", "ALTER ROLE standing_by SET default_transaction_read_only = on");
    assert!(matches!(refusal(&url), Trouble::ReadOnly { .. }));
    // Of several the driver looks for one that takes writes.
    let all = url.replace("@127.0.0.1:", &format!("@127.0.0.1:{},127.0.0.1:", server.port()));
    let trouble = refusal(&all);
    assert!(matches!(trouble, Trouble::ReadOnly { .. }), "{trouble:?}");
}

#[test]
fn what_is_advised_gives_the_right_that_is_missing() {
    let Some(server) = Postgres::shared() else { return };
    let at = |url: String| url.split_once("?schema=").unwrap().0.to_owned() + "?schema=of_somebody";
    drop(connect(&format!("{}?schema=of_somebody", server.url("postgres"))).unwrap());
    let stranger = at(role(server, "stranger", ""));
    let guest = at(role(server, "guest", "GRANT USAGE ON SCHEMA of_somebody TO guest"));
    for (url, who) in [(stranger, "stranger"), (guest, "guest")] {
        let trouble = refusal(&url);
        assert!(matches!(trouble, Trouble::Forbidden { .. }), "{trouble:?}");
        let takes_over = format!("ALTER SCHEMA of_somebody OWNER TO {who}");
        assert!(trouble.hint().contains(&takes_over), "{}", trouble.hint());
    }
    let outside = role(server, "outside", "");
    server.sql("postgres", "CREATE DATABASE closed").unwrap();
    server.sql("postgres", "REVOKE CONNECT ON DATABASE closed FROM PUBLIC").unwrap();
    let trouble = refusal(&outside.replace("/postgres?", "/closed?"));
    assert!(trouble.hint().contains("GRANT CONNECT ON DATABASE closed TO outside"), "{trouble:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_ended_is_not_taken_for_a_broken_connection() {
    let Some(server) = Postgres::shared() else { return };
    let (clock, chance) = (Arc::new(SystemClock::new()), Chance::from_system());
    let options = Options { patience: Duration::ZERO, ..Options::new(clock.clone(), chance.fork()) };
    let address = Address::parse(&format!("{}?schema=slow", server.url("postgres"))).unwrap();
    let backend = concert_store::backend::Postgres::open(&address, options).unwrap();
    let store = Local::open(Arc::new(backend), Config::new(clock, chance).sealed(keyring())).unwrap();
    let by = By::actor("test");
    store.create(map("a", "1"), &by).await.unwrap();
    server
        .sql(
            "postgres",
            "CREATE FUNCTION slow.fail() RETURNS trigger LANGUAGE plpgsql AS \
             $$BEGIN RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'; END$$; \
             CREATE TRIGGER fail BEFORE INSERT ON slow.bodies EXECUTE FUNCTION slow.fail()",
        )
        .unwrap();
    let Err(Error::Unavailable(why)) = store.create(map("b", "1"), &by).await else { panic!("it was ended") };
    assert!(why.to_string().contains("gave up"), "{why}");
    server.sql("postgres", "DROP TRIGGER fail ON slow.bodies").unwrap();
    store.create(map("b", "1"), &by).await.unwrap();
}

#[test]
fn other_tables_and_newer_ones_are_left_alone() {
    let Some(server) = Postgres::shared() else { return };
    server.sql("postgres", "CREATE SCHEMA theirs; CREATE TABLE theirs.meta (a int)").unwrap();
    let theirs = format!("{}?schema=theirs", server.url("postgres"));
    assert!(matches!(refusal(&theirs), Trouble::Foreign { .. }));
    let ours = format!("{}?schema=newer", server.url("postgres"));
    drop(connect(&ours).unwrap());
    server.sql("postgres", "UPDATE newer.meta SET value = value + 1 WHERE name = 'version'").unwrap();
    // A newer version that leaves what this one needs.
    drop(connect(&ours).unwrap());
    server.sql("postgres", "UPDATE newer.meta SET value = 99 WHERE name = 'oldest'").unwrap();
    let Trouble::Newer { version, known, .. } = refusal(&ours) else { panic!("it is too new") };
    assert!((version, known) == (99, 1));
}

#[test]
fn a_server_that_is_too_old_is_said() {
    let Some(server) = Postgres::shared() else { return };
    server.sql("postgres", "CREATE DATABASE elderly").unwrap();
    // In this database the server says of itself that it is an older one.
    let pretend = "ALTER FUNCTION pg_catalog.current_setting(text) RENAME TO present_setting; \
                   CREATE FUNCTION pg_catalog.current_setting(text) RETURNS text LANGUAGE sql STABLE STRICT \
                   AS $$SELECT CASE $1 WHEN 'server_version_num' THEN '140011' ELSE present_setting($1) END$$";
    server.sql("elderly", pretend).unwrap();
    let trouble = refusal(&server.url("elderly"));
    assert!(matches!(trouble, Trouble::TooOld { version: 14, .. }), "{trouble:?}");
    assert!(trouble.hint().contains("upgrade PostgreSQL"), "{}", trouble.hint());
}

#[test]
fn encodings_that_cannot_hold_every_text_are_refused() {
    let Some(server) = Postgres::shared() else { return };
    let make = "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0";
    server.sql("postgres", make).unwrap();
    assert!(matches!(refusal(&server.url("latin")), Trouble::Encoding { .. }));
}

#[test]
fn certificates_are_verified() {
    let Some(server) = Postgres::shared() else { return };
    let fresh = server.fresh_url();
    let authority = server.authority().display().to_string().replace('/', "%2F");
    drop(connect(&format!("{fresh}&sslmode=verify-full&sslrootcert={authority}")).unwrap());
    // Without the authority the server is a stranger, and under another name as well.
    let unknown = refusal(&format!("{fresh}&sslmode=verify-full"));
    assert!(matches!(unknown, Trouble::Unreachable { .. }), "{unknown:?}");
    let other = fresh.replace("127.0.0.1", "127.0.0.2");
    assert!(connect(&format!("{other}&sslmode=verify-full&sslrootcert={authority}")).is_err());
    let missing = refusal(&format!("{fresh}&sslrootcert=%2Fnowhere"));
    assert!(matches!(missing, Trouble::Authorities(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_fails_writes_only_and_passes() {
    let Some(server) = Postgres::shared() else { return };
    let store = open(&format!("{}?schema=filling", server.url("postgres")), &keyring());
    let by = By::actor("test");
    store.create(map("a", "1"), &by).await.unwrap();
    server
        .sql(
            "postgres",
            "CREATE FUNCTION filling.fail() RETURNS trigger LANGUAGE plpgsql AS \
             $$BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END$$; \
             CREATE TRIGGER fail BEFORE INSERT ON filling.bodies EXECUTE FUNCTION filling.fail()",
        )
        .unwrap();
    assert!(matches!(store.create(map("b", "1"), &by).await, Err(Error::Full)));
    assert_eq!(store.get(&key("a")).await.unwrap().key(), &key("a"));
    server.sql("postgres", "DROP TRIGGER fail ON filling.bodies").unwrap();
    store.create(map("b", "1"), &by).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newer_program_ends_the_writes_of_this_one() {
    let Some(server) = Postgres::shared() else { return };
    let store = open(&format!("{}?schema=overtaken", server.url("postgres")), &keyring());
    let by = By::actor("test");
    store.create(map("a", "1"), &by).await.unwrap();
    server.sql("postgres", "UPDATE overtaken.meta SET value = 99 WHERE name = 'oldest'").unwrap();
    let Err(Error::Unavailable(why)) = store.create(map("b", "1"), &by).await else {
        panic!("it is too old")
    };
    assert!(why.to_string().contains("as new as the others"), "{why}");
    assert_eq!(store.get(&key("a")).await.unwrap().key(), &key("a"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_of_the_role_do_not_cut_statements_off() {
    let Some(server) = Postgres::shared() else { return };
    let limits = "ALTER ROLE hasty SET statement_timeout = '1ms'; ALTER ROLE hasty SET lock_timeout = '1ms'; \
                  ALTER ROLE hasty SET synchronous_commit = off; CREATE SCHEMA of_hasty AUTHORIZATION hasty";
    let store = open(&role(server, "hasty", limits), &keyring());
    store.create(map("a", "1"), &By::actor("test")).await.unwrap();
    store.verify().await.unwrap();
}
