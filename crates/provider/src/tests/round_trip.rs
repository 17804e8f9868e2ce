use std::sync::Arc;

use futures_util::StreamExt;
use serde_json::json;

use super::stage::*;
use crate::*;

const LARGE: i64 = 9_007_199_254_740_993;

fn memory() -> Arc<Memory> {
    Arc::new(Memory::new([bucket()]))
}

/// A whole life, as a reconciler leads it.
async fn live(connector: &dyn Connector, memory: &Memory) {
    let mut object = object("a");
    let mut external = connector.connect(&object, None, &call()).await.unwrap();
    external.validate(&object, &call()).await.unwrap();
    assert!(!external.observe(&object, &call()).await.unwrap().exists);
    assert_eq!(external.plan(&object, &call()).await.unwrap().action, PlanAction::Create);

    let made = external.create(&object, &token("t"), &call()).await.unwrap();
    assert_eq!(made.delta.external_name.as_deref(), Some("bucket-1"));
    assert_eq!(made.connection.get("endpoint"), Some(&b"memory://bucket-1"[..]));
    object = named(object, &made.delta);

    let seen = external.observe(&object, &call()).await.unwrap();
    assert!(seen.exists && seen.is_up_to_date);
    assert_eq!(seen.delta.status.unwrap()["atProvider"]["seen"], json!({"size": 3}));
    assert_eq!(external.plan(&object, &call()).await.unwrap().action, PlanAction::None);

    object.change(|whole| whole["spec"]["forProvider"]["size"] = json!(4));
    assert!(!external.observe(&object, &call()).await.unwrap().is_up_to_date);
    assert_eq!(external.plan(&object, &call()).await.unwrap().action, PlanAction::Update);
    external.update(&object, &call()).await.unwrap();
    assert!(external.observe(&object, &call()).await.unwrap().is_up_to_date);

    external.delete(&object, &call()).await.unwrap();
    external.delete(&object, &call()).await.unwrap();
    assert!(!external.observe(&object, &call()).await.unwrap().exists);
    external.disconnect(&call()).await.unwrap();
    assert!(memory.names().is_empty());
}

#[tokio::test]
async fn a_life_in_v1() {
    let memory = memory();
    let server = Running::of(memory.clone()).await;
    let client = server.client();
    assert_eq!(client.handshake(&call()).await.unwrap(), memory.handshake());
    live(&client, &memory).await;
    drop(client);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn a_life_in_v1alpha1() {
    let memory = memory();
    let server = Running::of(memory.clone()).await;
    let client = server.client_of(Protocol::V1Alpha1);
    let shake = client.handshake(&call()).await.unwrap();
    assert_eq!((shake.protocol, shake.kinds), (Protocol::V1Alpha1, vec![Served::new(bucket())]));
    live(&client, &memory).await;
    drop(client);
    server.stop().await.unwrap();
}

#[tokio::test]
async fn the_protocol_is_found_out() {
    let alpha = server::Server::new(memory()).address("127.0.0.1:0").protocols(&[Protocol::V1Alpha1]);
    let server = Running::start(alpha).await;
    assert_eq!(server.client().handshake(&call()).await.unwrap().protocol, Protocol::V1Alpha1);
    let error = server.client_of(Protocol::V1).handshake(&call()).await.unwrap_err();
    assert_eq!(error.class, Class::NotServed);
}

#[tokio::test]
async fn a_unix_socket_serves_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!("unix:{}", folder.path().join("p.sock").display());
    let bound = server::Server::new(memory()).address(&address).bind().await.unwrap();
    let client = client::connect(client::Endpoint::new(&address)).unwrap();
    let call = call();
    tokio::select! {
        result = bound.serve(std::future::pending()) => panic!("{result:?}"),
        shake = client.handshake(&call) => assert_eq!(shake.unwrap().name, "memory"),
    }
}

#[tokio::test]
async fn what_is_sent_has_no_managed_fields_and_all_unknown_ones() {
    let recorder = Arc::new(Recorder::new(memory()));
    let server = Running::of(recorder.clone()).await;
    for protocol in [Protocol::V1, Protocol::V1Alpha1] {
        let client = server.client_of(protocol);
        client.handshake(&call()).await.unwrap();
        let mut object = object("a");
        object.change(|whole| whole["spec"]["newer"] = json!({"field": [1, 2.5, "x"]}));
        let mut external = client.connect(&object, None, &call()).await.unwrap();
        external.observe(&object, &call()).await.unwrap();
        let record = recorder.take().pop().unwrap();
        assert!(record.object.metadata("managedFields").is_null());
        assert_eq!(record.object.spec(), object.spec());
    }
}

#[tokio::test]
async fn large_integers_survive_both_protocols() {
    let server = Running::of(memory()).await;
    for protocol in [Protocol::V1, Protocol::V1Alpha1] {
        let client = server.client_of(protocol);
        client.handshake(&call()).await.unwrap();
        let mut object = object("a");
        object.change(|whole| {
            whole["spec"]["forProvider"] = json!({"size": LARGE});
            whole["status"] = json!({"kept": LARGE, "atProvider": {"seen": {"size": LARGE}}});
        });
        let mut external = client.connect(&object, None, &call()).await.unwrap();
        let made = external.create(&object, &token(&format!("{protocol:?}")), &call()).await.unwrap();
        let status = made.delta.status.unwrap();
        assert_eq!(status["atProvider"]["seen"]["size"], json!(LARGE), "{protocol:?}");
        if protocol == Protocol::V1Alpha1 {
            assert_eq!(status["kept"], json!(LARGE));
        }
    }
}

#[tokio::test]
async fn accounts_are_configured_once_and_again_when_they_change() {
    let recorder = Arc::new(Recorder::new(Arc::new(Memory::new([bucket()]).with_accounts())));
    let server = Running::of(recorder.clone()).await;
    let client = server.client();
    client.handshake(&call()).await.unwrap();
    let configured =
        |records: Vec<Record>| records.iter().filter(|it| matches!(it.event, Event::Configure(_))).count();
    for _ in 0..3 {
        let mut external = client.connect(&object("a"), Some(&account()), &call()).await.unwrap();
        external.observe(&object("a"), &call()).await.unwrap();
    }
    assert_eq!(configured(recorder.take()), 1);
    let changed = Arc::new(Configuration { fingerprint: "2".into(), ..Configuration::clone(&account()) });
    client.connect(&object("a"), Some(&changed), &call()).await.unwrap();
    assert_eq!(configured(recorder.take()), 1);
    let mut none = client.connect(&object("a"), None, &call()).await.unwrap();
    assert_eq!(none.observe(&object("a"), &call()).await.unwrap_err().class, Class::Denied);
}

#[tokio::test]
async fn tokens_are_remembered_and_burnt() {
    let memory = memory();
    let server = Running::of(memory.clone()).await;
    let client = server.client();
    client.handshake(&call()).await.unwrap();
    let object = object("a");
    let mut external = client.connect(&object, None, &call()).await.unwrap();
    let first = external.create(&object, &token("t"), &call()).await.unwrap();
    let second = external.create(&object, &token("t"), &call()).await.unwrap();
    assert_eq!((first == second, memory.names().len()), (true, 1));
    assert!(matches!(external.lookup(&object, &token("t"), &call()).await.unwrap(), Lookup::Found(_)));
    assert_eq!(external.lookup(&object, &token("u"), &call()).await.unwrap(), Lookup::CertainlyNone);
    let error = external.create(&object, &token("u"), &call()).await.unwrap_err();
    assert_eq!((error.class, error.effect), (Class::Conflict, Effect::None));
}

#[tokio::test]
async fn a_writer_that_was_replaced_is_refused() {
    let server = Running::of(memory()).await;
    let client = server.client();
    client.handshake(&call()).await.unwrap();
    let object = object("a");
    let mut external = client.connect(&object, None, &call()).await.unwrap();
    let claim = |fence| Call { fence: Some(fence), ..call() };
    external.create(&object, &token("t"), &claim(2)).await.unwrap();
    let error = external.delete(&object, &claim(1)).await.unwrap_err();
    assert_eq!((error.class, error.effect), (Class::Conflict, Effect::None));
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_refused() {
    let server = Running::of(memory()).await;
    let mut other = object("a");
    other.set("kind", json!("Queue"));
    for protocol in [Protocol::V1, Protocol::V1Alpha1] {
        let client = server.client_of(protocol);
        client.handshake(&call()).await.unwrap();
        let error = match client.connect(&other, None, &call()).await {
            Err(error) => error,
            Ok(mut external) => external.observe(&other, &call()).await.unwrap_err(),
        };
        assert_eq!(error.class, Class::NotServed, "{error}");
    }
}

#[tokio::test]
async fn changes_are_pushed_and_strangers_listed() {
    let memory = memory();
    let server = Running::of(memory.clone()).await;
    let client = server.client();
    client.handshake(&call()).await.unwrap();
    let mut changes = client.watch(&bucket()).await.unwrap();
    // The stream is subscribed once it was polled and the call has arrived; so push until it is seen.
    let push = async {
        loop {
            memory.put(&bucket(), "found", json!({"size": 1}));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        moved = changes.next() => assert_eq!(moved.unwrap().unwrap().external_name, "found"),
        () = push => {}
    }
    let what = Enumerate { kind: bucket(), prefix: "f".into(), configuration: None };
    let founds: Vec<_> = client.enumerate(&what, &call()).await.unwrap().collect().await;
    assert_eq!(founds.len(), 1);
    assert_eq!(founds[0].as_ref().unwrap().object.name(), "found");
}

#[tokio::test]
async fn what_is_too_large_to_send_is_the_objects_fault() {
    let server = Running::of(memory()).await;
    for protocol in [Protocol::V1, Protocol::V1Alpha1] {
        let endpoint = client::Endpoint {
            message_bytes_max: 10_000,
            protocol: Some(protocol),
            ..client::Endpoint::new(&server.address)
        };
        let client = client::connect(endpoint).unwrap();
        client.handshake(&call()).await.unwrap();
        let mut object = object("a");
        let mut external = client.connect(&object, None, &call()).await.unwrap();
        object.change(|whole| whole["spec"]["text"] = json!("x".repeat(20_000)));
        let error = external.create(&object, &token("t"), &call()).await.unwrap_err();
        assert_eq!((error.class, error.effect), (Class::Terminal, Effect::None), "{error}");
    }
}
