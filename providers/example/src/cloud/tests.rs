use std::collections::BTreeSet;
use std::time::Duration;

use concert_model::Timestamp;
use concert_store::Chance;
use serde_json::{Map, Value, json};

use super::{Account, Cloud, Create, Event, Fault, Lookup, Owner, Quota, Settings, State, ThingKey};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap()
}

fn cloud(settings: Settings) -> Cloud {
    Cloud::new(settings, Chance::seeded(7))
}

fn properties(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn mine() -> Account {
    Account::default()
}

fn bucket(uid: &str, token: &str) -> Create {
    Create {
        kind: "bucket".into(),
        token: Some(token.into()),
        owner: Owner { kind: "Bucket.cloud.concert.dev".into(), object: "team/logs".into(), uid: uid.into() },
        properties: properties(json!({"size": 1, "region": "north"})),
        ..Create::default()
    }
}

fn network(uid: &str, name: &str) -> Create {
    Create { kind: "network".into(), name: Some(name.into()), token: None, ..bucket(uid, "") }
}

#[test]
fn generated_ids_count_up_and_cannot_be_guessed() {
    let mut cloud = cloud(Settings::default());
    let first = cloud.create(bucket("a", "1"), at(0)).unwrap().key.id;
    let second = cloud.create(bucket("b", "2"), at(0)).unwrap().key.id;
    assert!(first.starts_with("bkt-0000001-") && second.starts_with("bkt-0000002-"), "{first} {second}");
    assert_ne!(first[12..], second[12..]);
}

#[test]
fn the_same_seed_gives_the_same_cloud() {
    let settings = Settings { error_rate: 0.3, lost_answers: 0.3, ..Settings::default() };
    let life = || {
        let mut cloud = cloud(settings.clone());
        (0..50).map(|i| cloud.create(bucket("a", &i.to_string()), at(i))).collect::<Vec<_>>()
    };
    assert_eq!(life(), life());
}

#[test]
fn the_same_token_makes_one_thing() {
    let mut cloud = cloud(Settings::default());
    let first = cloud.create(bucket("a", "t"), at(0)).unwrap();
    assert_eq!(cloud.create(bucket("a", "t"), at(5)), Ok(first));
    assert_eq!(cloud.truth().summary().created, 1);
}

#[test]
fn a_token_is_of_one_account() {
    let mut cloud = cloud(Settings::default());
    let first = cloud.create(bucket("a", "t"), at(0)).unwrap();
    let other = Create { account: Account("other".into()), ..bucket("b", "t") };
    assert_ne!(cloud.create(other, at(0)).unwrap().key, first.key);
}

#[test]
fn a_lookup_that_finds_nothing_burns_the_token() {
    let mut cloud = cloud(Settings::default());
    assert_eq!(cloud.lookup("t", &mine(), at(0)), Ok(Lookup::CertainlyNone));
    assert_eq!(cloud.create(bucket("a", "t"), at(1)), Err(Fault::TokenSpent { token: "t".into() }));
    assert_eq!(cloud.lookup("t", &mine(), at(2)), Ok(Lookup::CertainlyNone));
    assert_eq!(cloud.truth().summary().burnt, 1);
}

#[test]
fn a_lookup_sees_what_reads_do_not_see_yet() {
    let mut cloud = cloud(Settings { visible_after: Duration::from_secs(5), ..Settings::default() });
    let thing = cloud.create(bucket("a", "t"), at(0)).unwrap();
    assert_eq!(cloud.read(&thing.key, &mine(), at(0)), Ok(None));
    assert_eq!(cloud.lookup("t", &mine(), at(0)), Ok(Lookup::Found(Box::new(thing))));
}

#[test]
fn a_token_whose_thing_is_gone_makes_no_other() {
    let mut cloud = cloud(Settings::default());
    let thing = cloud.create(bucket("a", "t"), at(0)).unwrap();
    cloud.delete(&thing.key, &mine(), None, at(1)).unwrap();
    assert_eq!(cloud.create(bucket("a", "t"), at(2)), Err(Fault::TokenSpent { token: "t".into() }));
    assert_eq!(cloud.lookup("t", &mine(), at(2)), Ok(Lookup::CertainlyNone));
}

#[test]
fn a_lost_answer_leaves_the_effect_behind() {
    let mut cloud = cloud(Settings { lost_answers: 1.0, ..Settings::default() });
    assert_eq!(cloud.create(bucket("a", "t"), at(0)), Err(Fault::AnswerLost));
    assert_eq!(cloud.truth().summary().live, 1);
    let Ok(Lookup::Found(thing)) = cloud.lookup("t", &mine(), at(1)) else { panic!("not found") };
    assert_eq!(
        cloud.update(&thing.key, properties(json!({"size": 2})), &mine(), None, at(2)),
        Err(Fault::AnswerLost)
    );
    assert_eq!(cloud.delete(&thing.key, &mine(), None, at(3)), Err(Fault::AnswerLost));
    assert_eq!(cloud.truth().summary().live, 0);
}

#[test]
fn an_error_comes_before_any_effect() {
    let mut cloud = cloud(Settings { error_rate: 1.0, ..Settings::default() });
    assert_eq!(cloud.create(bucket("a", "t"), at(0)), Err(Fault::OutOfOrder));
    assert_eq!(cloud.truth().since(0), []);
}

#[test]
fn a_name_belongs_to_who_had_it_first() {
    let mut cloud = cloud(Settings::default());
    let first = cloud.create(network("a", "backbone"), at(0)).unwrap();
    assert_eq!(first.key.id, "backbone");
    assert_eq!(cloud.create(network("a", "backbone"), at(1)), Ok(first));
    assert_eq!(cloud.create(network("b", "backbone"), at(1)), Err(Fault::Taken { name: "backbone".into() }));
    // The same name for another type of thing is another thing.
    let other = Create { kind: "another".into(), ..network("b", "backbone") };
    assert!(cloud.create(other, at(1)).is_ok());
}

#[test]
fn a_new_thing_is_invisible_for_a_while_and_cannot_be_deleted_meanwhile() {
    let mut cloud = cloud(Settings { visible_after: Duration::from_secs(5), ..Settings::default() });
    let key = cloud.create(bucket("a", "t"), at(0)).unwrap().key;
    assert_eq!(cloud.delete(&key, &mine(), None, at(4_999)), Ok(()));
    assert_eq!(cloud.list("bucket", "", &mine(), at(4_999)), Ok(vec![]));
    assert!(cloud.read(&key, &mine(), at(5_000)).unwrap().is_some());
    assert_eq!(cloud.list("bucket", "bkt-", &mine(), at(5_000)).unwrap().len(), 1);
    assert_eq!(cloud.list("bucket", "xyz", &mine(), at(5_000)).unwrap().len(), 0);
}

#[test]
fn a_new_thing_becomes_ready_after_a_while() {
    let mut cloud = cloud(Settings { ready_after: Duration::from_secs(2), ..Settings::default() });
    let thing = cloud.create(bucket("a", "t"), at(0)).unwrap();
    assert_eq!((thing.state(at(1_999)), thing.state(at(2_000))), (State::Creating, State::Ready));
    assert_eq!(cloud.settles_next(at(0)), Some(at(2_000)));
    assert_eq!(cloud.settled(at(0), at(1_999)), []);
    assert_eq!(cloud.settled(at(1_999), at(2_000)), [thing]);
    assert_eq!(cloud.settled(at(2_000), at(9_000)), []);
    assert_eq!(cloud.settles_next(at(2_000)), None);
}

#[test]
fn reads_are_stale_for_a_while_after_an_update_but_not_after_drift() {
    let mut cloud = cloud(Settings { stale_for: Duration::from_secs(5), ..Settings::default() });
    let key = cloud.create(bucket("a", "t"), at(0)).unwrap().key;
    let size = |cloud: &mut Cloud, now| {
        cloud.read(&key, &mine(), at(now)).unwrap().unwrap().properties["size"].clone()
    };
    cloud.update(&key, properties(json!({"size": 2})), &mine(), None, at(1_000)).unwrap();
    assert_eq!((size(&mut cloud, 5_999), size(&mut cloud, 6_000)), (json!(1), json!(2)));
    cloud.drift(&key, properties(json!({"size": 3})), None, at(7_000)).unwrap();
    assert_eq!(size(&mut cloud, 7_000), json!(3));
}

#[test]
fn an_update_that_changes_nothing_is_no_event() {
    let mut cloud = cloud(Settings::default());
    let key = cloud.create(bucket("a", "t"), at(0)).unwrap().key;
    cloud.update(&key, properties(json!({"size": 1})), &mine(), None, at(1)).unwrap();
    assert_eq!(cloud.truth().summary().updated, 0);
}

#[test]
fn the_region_is_for_life() {
    let mut cloud = cloud(Settings::default());
    let key = cloud.create(bucket("a", "t"), at(0)).unwrap().key;
    let south = properties(json!({"region": "south"}));
    assert_eq!(
        cloud.update(&key, south, &mine(), None, at(1)),
        Err(Fault::Immutable { field: "region".into() })
    );
    assert!(cloud.update(&key, properties(json!({"region": "north"})), &mine(), None, at(1)).is_ok());
}

#[test]
fn accounts_do_not_see_each_other_and_have_their_own_quota() {
    let mut cloud =
        cloud(Settings { quota: Some(Quota { per_second: 1.0, burst: 2 }), ..Settings::default() });
    let other = Account("other".into());
    let key = cloud.create(bucket("a", "t"), at(0)).unwrap().key;
    assert!(cloud.read(&key, &mine(), at(0)).unwrap().is_some());
    let Err(Fault::Throttled { retry_after, .. }) = cloud.read(&key, &mine(), at(0)) else {
        panic!("not throttled")
    };
    assert_eq!(cloud.read(&key, &other, at(0)), Ok(None));
    let later = at(i64::try_from(retry_after.as_millis()).unwrap());
    assert!(cloud.read(&key, &mine(), later).unwrap().is_some());
    cloud.set_settings(Settings::default());
    assert!((0..100).all(|_| cloud.read(&key, &mine(), later).is_ok()));
}

#[test]
fn two_things_of_one_owner_at_a_time_are_a_double() {
    let mut cloud = cloud(Settings::default());
    let first = cloud.create(bucket("a", "1"), at(0)).unwrap().key;
    cloud.vanish(&first, at(1)).unwrap();
    let second = cloud.create(bucket("a", "2"), at(2)).unwrap().key;
    cloud.create(bucket("b", "3"), at(3)).unwrap();
    assert_eq!(cloud.truth().doubles(), [], "one after the other is fine");

    let third = cloud.create(bucket("a", "4"), at(4)).unwrap().key;
    cloud.delete(&second, &mine(), None, at(5)).unwrap();
    let doubles = cloud.truth().doubles();
    assert_eq!(doubles.len(), 1, "even when one is gone by now");
    assert_eq!(
        (doubles[0].owner.uid.as_str(), &doubles[0].ids),
        ("a", &vec![second.id.clone(), third.id.clone()])
    );
    assert_eq!(cloud.truth().created_for("a"), [first, second, third]);
}

#[test]
fn a_change_under_an_older_claim_than_one_before_is_late() {
    let mut cloud = cloud(Settings::default());
    let size = |size: i64| properties(json!({ "size": size }));
    let key = cloud.create(Create { fence: Some(3), ..bucket("a", "1") }, at(0)).unwrap().key;
    let other = cloud.create(Create { fence: Some(1), ..bucket("b", "2") }, at(0)).unwrap().key;
    cloud.update(&key, size(2), &mine(), Some(7), at(1)).unwrap();
    cloud.update(&key, size(3), &mine(), Some(7), at(2)).unwrap();
    cloud.update(&other, size(2), &mine(), Some(1), at(2)).unwrap();
    cloud.update(&key, size(4), &mine(), None, at(3)).unwrap();
    cloud.drift(&key, size(5), None, at(3)).unwrap();
    assert_eq!(cloud.truth().summary().late, 0, "each object has its own, and who tells none is not judged");

    cloud.update(&key, size(6), &mine(), Some(3), at(4)).unwrap();
    cloud.delete(&key, &mine(), Some(6), at(5)).unwrap();
    let late: Vec<u64> = cloud.truth().late().iter().map(|it| it.sequence).collect();
    assert_eq!((late, cloud.truth().summary().late), (vec![8, 9], 2));
}

#[test]
fn a_thing_whose_object_nobody_knows_is_a_leak() {
    let mut cloud = cloud(Settings::default());
    let leaked = cloud.create(bucket("a", "1"), at(0)).unwrap();
    cloud.create(bucket("b", "2"), at(0)).unwrap();
    cloud.create(Create { owner: Owner::default(), ..bucket("", "3") }, at(0)).unwrap();
    assert_eq!(cloud.truth().leaks(&BTreeSet::from(["b".to_owned()])), [leaked]);
}

#[test]
fn drift_and_theft_are_marked_as_done_by_hand() {
    let mut cloud = cloud(Settings::default());
    let key = cloud.create(bucket("a", "t"), at(0)).unwrap().key;
    let thing =
        cloud.drift(&key, properties(json!({"size": null, "colour": "red"})), Some(true), at(1)).unwrap();
    assert_eq!(
        Value::from(thing.properties.clone()),
        json!({"colour": "red", "region": "north", "tier": "standard"})
    );
    assert_eq!(thing.state(at(1)), State::Unavailable);
    cloud.vanish(&key, at(2)).unwrap();
    assert!(matches!(cloud.truth().since(2)[0].event, Event::Deleted { by_hand: true, .. }));
    assert_eq!(cloud.vanish(&key, at(3)), Err(Fault::Missing { id: key.id.clone() }));
}

#[test]
fn a_cloud_that_was_killed_finds_its_things_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth.jsonl");
    let open = || Cloud::open(Settings::default(), Chance::seeded(7), &path).unwrap();
    let mut cloud = open();
    let kept = cloud.create(bucket("a", "1"), at(0)).unwrap();
    let gone = cloud.create(bucket("b", "2"), at(0)).unwrap();
    cloud.update(&kept.key, properties(json!({"size": 9})), &mine(), None, at(1)).unwrap();
    cloud.delete(&gone.key, &mine(), None, at(1)).unwrap();
    cloud.lookup("never", &mine(), at(1)).unwrap();
    let before = cloud.truth().since(0).to_vec();
    drop(cloud);
    // The kill came in the middle of a line; nobody was told of it.
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(b"{\"sequence\":6,\"ti");
    std::fs::write(&path, text).unwrap();

    let mut again = open();
    assert_eq!(again.truth().since(0), before);
    assert_eq!(again.read(&kept.key, &mine(), at(2)).unwrap().unwrap().properties["size"], json!(9));
    assert_eq!(again.read(&gone.key, &mine(), at(2)), Ok(None));
    assert_eq!(again.create(bucket("a", "1"), at(2)).unwrap().key, kept.key);
    assert!(again.create(bucket("c", "never"), at(2)).is_err());
    let third = again.create(bucket("c", "3"), at(2)).unwrap().key.id;
    assert!(third.starts_with("bkt-0000003-"), "{third}");
    drop(again);
    assert_eq!(open().truth().summary().created, 3, "the line after the cut one is whole");
}

#[test]
fn a_file_that_is_something_else_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    for text in ["hello\nworld\n", "hello"] {
        std::fs::write(&path, text).unwrap();
        let error = Cloud::open(Settings::default(), Chance::seeded(7), &path).unwrap_err();
        assert_eq!(error.to_string(), "line 1 of the truth log is not an entry");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn the_key_of_a_thing_says_type_and_id() {
    assert_eq!(ThingKey::new("bucket", "bkt-1").to_string(), "bucket bkt-1");
}
