//! Everything that can be wrong with a database is said, with what to do about it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

mod database;

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use concert_store::backend::postgres::{Address, Options, Trouble};
use concert_store::seal::Keyring;
use concert_store::{
    By, Chance, Config, Error, Event, Events, Local, PageRequest, Query, Store, SystemClock,
};
use concert_testbed::Postgres;
use database::{Written, connect, key, keyring, map, maps, open};
use tokio::task::JoinSet;

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

/// A store that tries again for so long, and whose statements may take so long.
fn bounded(url: &str, keyring: &Keyring, patience: Duration, statement_limit: Duration) -> Local {
    let (clock, chance) = (Arc::new(SystemClock::new()), Chance::from_system());
    let options = Options { patience, statement_limit, ..Options::new(clock.clone(), chance.fork()) };
    let backend = concert_store::backend::Postgres::open(&Address::parse(url).unwrap(), options).unwrap();
    Local::open(Arc::new(backend), Config::new(clock, chance).sealed(keyring.clone())).unwrap()
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_a_connection_and_says_nothing_is_given_up_for_the_next() {
    let Some(server) = Postgres::shared() else { return };
    // The system takes connections for whoever does not, as it does for a server that was stopped.
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = silent.local_addr().unwrap().port();
    let alone = refusal(&format!("postgres://u:secret@127.0.0.1:{port}/d?connect_timeout=1"));
    assert!(matches!(alone, Trouble::Late { .. }), "{alone:?}");

    let next = server.fresh_url().replace("@127.0.0.1:", &format!("@127.0.0.1:{port},127.0.0.1:"));
    let store = open(&format!("{next}&connect_timeout=1"), &keyring());
    store.create(map("a", "1"), &By::actor("test")).await.unwrap();
    assert_eq!(store.get(&key("a")).await.unwrap().key(), &key("a"));
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
    let url = format!("{}?schema=slow", server.url("postgres"));
    let store = bounded(&url, &keyring(), Duration::ZERO, Duration::from_secs(30));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_waits_too_long_for_a_lock_is_ended_and_not_done() {
    let Some(server) = Postgres::start(&[]).unwrap() else { return };
    // Ours is the limit that counts, and not that of the role.
    let limits = "ALTER ROLE waiting SET statement_timeout = '1s'; \
                  CREATE SCHEMA of_waiting AUTHORIZATION waiting";
    let (url, keyring, by) = (role(&server, "waiting", limits), keyring(), By::actor("test"));
    let limit = Duration::from_secs(3);
    let hasty = bounded(&url, &keyring, Duration::ZERO, limit);
    let patient = bounded(&url, &keyring, Duration::from_secs(600), limit);
    hasty.create(map("a", "1"), &by).await.unwrap();
    let held = server.session("postgres", "LOCK TABLE of_waiting.bodies IN SHARE MODE").unwrap();

    let refused = hasty.create(map("b", "1"), &by).await.unwrap_err();
    assert!(refused.is_transient(), "{refused}");
    let Error::Unavailable(why) = refused else { panic!("it is not for ever") };
    for part in ["gave up", "hint: look for long transactions", "statement timeout", "SQLSTATE 57014"] {
        assert!(why.to_string().contains(part), "{part:?} is not in {why}");
    }
    assert_eq!(hasty.get(&key("a")).await.unwrap().key(), &key("a"));

    // Who may try for longer is ended as often as it takes, and writes once.
    let mut waiting = JoinSet::new();
    let store = patient.clone();
    waiting.spawn(async move { store.create(map("c", "1"), &By::actor("test")).await });
    let ended = |log: &str| log.matches("canceling statement due to statement timeout").count();
    while ended(&server.log().unwrap()) < 2 {
        assert!(waiting.try_join_next().is_none(), "nobody can write there");
        server.sql("postgres", "SELECT 1").unwrap();
    }
    drop(held);
    waiting.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(patient.history(&key("c"), None, 10).await.unwrap().len(), 1);
    // What was refused was not done.
    hasty.create(map("b", "2"), &by).await.unwrap();
    patient.verify().await.unwrap();
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

/// Room for a few hundred large objects.
const DISK_BYTES: u64 = 16 * 1024 * 1024;

fn large(name: &str) -> concert_model::Object {
    map(name, &"x".repeat(50_000))
}

async fn next(events: &mut Events) -> Event {
    loop {
        match events.next().await.unwrap().unwrap() {
            Event::Bookmark { .. } => {}
            event => return event,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_without_room_fails_writes_only_until_there_is_some() {
    // Nobody else makes room.
    let server = Postgres::start_with_disk_of(DISK_BYTES, &["autovacuum=off"]).unwrap();
    let Some(server) = server else { return };
    let (url, keyring, by) = (server.fresh_url(), keyring(), By::actor("test"));
    let stores = [open(&url, &keyring), open(&url, &keyring)];
    let (query, page) = (Query::all(maps()), PageRequest::whole());
    let start = stores[0].newest().await.unwrap();
    let mut events = stores[1].watch(&query, Some(&start.into())).await.unwrap();
    let mut stored = Vec::new();
    loop {
        let number = stored.len();
        assert!(number < 10_000, "the disk does not end");
        match stores[number % 2].create(large(&format!("m{number:04}")), &by).await {
            Ok(object) => {
                assert_eq!(next(&mut events).await.object(), Some(&object));
                stored.push(object);
            }
            Err(Error::Full) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(stored.len() > 100, "only {}", stored.len());
    let log = server.log().unwrap();
    assert!(log.contains("could not extend file"), "the server itself has said so: {log}");
    let newest = stores[0].newest().await.unwrap();
    for store in &stores {
        assert!(matches!(store.create(large("more"), &by).await, Err(Error::Full)));
        assert_eq!(store.list(&query, &page).await.unwrap().items, stored);
        assert_eq!(store.get(stored[0].key()).await.unwrap(), stored[0]);
        assert_eq!(store.newest().await.unwrap(), newest);
    }

    server.resize_disk(4 * DISK_BYTES).unwrap();
    let more = stores[0].create(large("more"), &by).await.unwrap();
    assert_eq!(Written::of(&more).revision, newest.0 + 1);
    assert_eq!(next(&mut events).await.object(), Some(&more));
    stored.push(more);
    let again = open(&url, &keyring);
    assert_eq!(again.list(&query, &page).await.unwrap().items, stored);
    again.verify().await.unwrap();
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
