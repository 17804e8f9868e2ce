use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::stage::*;
use crate::client::{self, Client, Endpoint};
use crate::server::Server;
use crate::*;

/// Stands between client and server and can cut what goes through it.
struct Proxy {
    address: String,
    pipes: Arc<Mutex<JoinSet<()>>>,
    _accepting: JoinSet<()>,
}

impl Proxy {
    async fn to(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let pipes: Arc<Mutex<JoinSet<()>>> = Arc::default();
        let (server, into) = (server.to_owned(), pipes.clone());
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let Ok(mut far) = TcpStream::connect(&server).await else { continue };
                into.lock().unwrap().spawn(async move {
                    drop(tokio::io::copy_bidirectional(&mut near, &mut far).await);
                });
            }
        });
        Self { address, pipes, _accepting: accepting }
    }

    fn cut(&self) {
        self.pipes.lock().unwrap().abort_all();
    }
}

fn client_to(address: &str, protocol: Protocol) -> Client {
    client::connect(Endpoint { protocol: Some(protocol), ..Endpoint::new(address) }).unwrap()
}

#[tokio::test]
async fn one_that_hangs_holds_up_no_other() {
    for protocol in [Protocol::V1, Protocol::V1Alpha1] {
        let provider = Hanging::new();
        let server = Running::of(provider.clone()).await;
        let client = server.client_of(protocol);
        client.handshake(&call()).await.unwrap();
        // More than there are places for batches, so that the hanging ones hold every one of them.
        let mut hanging = JoinSet::new();
        for _ in 0..40 {
            let client = client.clone();
            hanging.spawn(async move {
                let mut external = client.connect(&object("hang"), None, &call()).await.unwrap();
                external.observe(&object("hang"), &call()).await
            });
        }
        // At least one call hangs inside the provider by now.
        provider.entered.acquire().await.unwrap().forget();
        for name in ["a", "b", "c"] {
            let mut external = client.connect(&object(name), None, &call()).await.unwrap();
            assert!(!external.observe(&object(name), &call()).await.unwrap().exists);
        }
        provider.gate.add_permits(100);
        while let Some(done) = hanging.join_next().await {
            assert!(!done.unwrap().unwrap().exists);
        }
    }
}

#[tokio::test]
async fn no_call_outlives_its_time() {
    for protocol in [Protocol::V1, Protocol::V1Alpha1] {
        let server = Running::of(Hanging::new()).await;
        let client = server.client_of(protocol);
        client.handshake(&call()).await.unwrap();
        let short = Call::within(Duration::from_millis(50));
        let mut external = client.connect(&object("hang"), None, &call()).await.unwrap();
        let error = external.observe(&object("hang"), &short).await.unwrap_err();
        assert_eq!((error.class, error.effect), (Class::Transient, Effect::None), "{error}");
        let error = external.create(&object("hang"), &token("t"), &short).await.unwrap_err();
        assert_eq!((error.class, error.effect), (Class::Transient, Effect::Unknown), "{error}");
    }
}

#[tokio::test]
async fn a_create_that_is_cut_off_is_in_doubt_and_the_provider_finishes_it() {
    for protocol in [Protocol::V1, Protocol::V1Alpha1] {
        let provider = Hanging::new();
        let server = Running::of(provider.clone()).await;
        let proxy = Proxy::to(&server.address).await;
        let client = client_to(&proxy.address, protocol);
        client.handshake(&call()).await.unwrap();
        let mut external = client.connect(&object("hang"), None, &call()).await.unwrap();
        let (object, call, token) = (object("hang"), call(), token("t"));
        let cut = async {
            provider.entered.acquire().await.unwrap().forget();
            proxy.cut();
        };
        let (result, ()) = tokio::join!(external.create(&object, &token, &call), cut);
        let error = result.unwrap_err();
        assert_eq!((error.class, error.effect), (Class::Unreachable, Effect::Unknown), "{error}");
        // What was begun is finished before the server ends.
        provider.gate.add_permits(1);
        drop((external, client));
        server.stop().await.unwrap();
        assert_eq!(provider.inner.names(), ["bucket-1"]);
    }
}

#[tokio::test]
async fn a_lost_connection_is_noticed_and_made_again() {
    let recorder = Arc::new(Recorder::new(Arc::new(Memory::new([bucket()]).with_accounts())));
    let server = Running::of(recorder.clone()).await;
    let proxy = Proxy::to(&server.address).await;
    let client = client_to(&proxy.address, Protocol::V1);
    assert!(!client.is_connected());
    client.handshake(&call()).await.unwrap();
    let first = *client.link().borrow();
    assert!(first.is_up);
    client.connect(&object("a"), Some(&account()), &call()).await.unwrap();

    proxy.cut();
    client.lost().await;
    assert!(!client.is_connected());

    client.handshake(&call()).await.unwrap();
    assert!(client.link().borrow().epoch > first.epoch);
    recorder.take();
    let mut external = client.connect(&object("a"), Some(&account()), &call()).await.unwrap();
    external.observe(&object("a"), &call()).await.unwrap();
    assert!(matches!(recorder.take()[0].event, Event::Configure(Ok(()))), "told again after the reconnect");
}

#[tokio::test]
async fn a_provider_that_restarted_is_told_of_accounts_in_the_middle_of_a_reconcile() {
    let provider = || Arc::new(Memory::new([bucket()]).with_accounts());
    let server = Running::of(provider()).await;
    let address = server.address.clone();
    let client = server.client();
    client.handshake(&call()).await.unwrap();
    let mut external = client.connect(&object("a"), Some(&account()), &call()).await.unwrap();
    server.stop().await.unwrap();
    let server = Running::start(Server::new(provider()).address(address)).await;
    assert!(!external.observe(&object("a"), &call()).await.unwrap().exists);
    assert_eq!(client.handshake(&call()).await.unwrap().name, "memory");
    drop((external, client));
    server.stop().await.unwrap();
}

#[tokio::test]
async fn nobody_there_is_unreachable_and_certainly_without_effect() {
    let server = Running::of(Hanging::new()).await;
    let client = server.client();
    client.handshake(&call()).await.unwrap();
    let mut external = client.connect(&object("a"), None, &call()).await.unwrap();
    server.stop().await.unwrap();
    client.lost().await;
    for _ in 0..2 {
        let error = external.create(&object("a"), &token("t"), &call()).await.unwrap_err();
        assert_eq!((error.class, error.effect), (Class::Unreachable, Effect::None), "{error}");
    }
}

#[tokio::test]
async fn a_server_waits_for_what_is_under_way_and_ends_watches() {
    use futures_util::StreamExt;
    let provider = Hanging::new();
    let memory = Arc::new(Memory::new([bucket()]));
    let watched = Running::of(memory).await;
    let client = watched.client();
    client.handshake(&call()).await.unwrap();
    let mut changes = client.watch(&bucket()).await.unwrap();
    let (end, stopped) = tokio::join!(changes.next(), watched.stop());
    assert_eq!(end.unwrap().unwrap_err().class, Class::Unreachable);
    stopped.unwrap();

    let server = Running::of(provider.clone()).await;
    let client = server.client();
    client.handshake(&call()).await.unwrap();
    let mut external = client.connect(&object("hang"), None, &call()).await.unwrap();
    let (object, call, token) = (object("hang"), call(), token("t"));
    let stop = async {
        provider.entered.acquire().await.unwrap().forget();
        let stopping = server.stop();
        provider.gate.add_permits(1);
        stopping.await
    };
    let (made, stopped) = tokio::join!(external.create(&object, &token, &call), stop);
    assert_eq!(made.unwrap().delta.external_name.as_deref(), Some("bucket-1"));
    stopped.unwrap();
}
