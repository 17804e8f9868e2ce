use std::sync::Arc;

use super::stage::*;
use crate::*;

#[tokio::test]
async fn the_contract_without_a_network() {
    let memory = Arc::new(Memory::new([bucket()]).with_accounts());
    let recorder = Arc::new(Recorder::new(memory.clone()));
    let connector = InProcess::new(recorder.clone());
    let mut external = connector.connect(&object("a"), Some(&account()), &call()).await.unwrap();
    let made = external.create(&object("a"), &token("t"), &call()).await.unwrap();
    let object = named(object("a"), &made.delta);
    external.delete(&object, &call()).await.unwrap();
    assert!(memory.names().is_empty());
    let records = recorder.take();
    assert!(matches!(records[0].event, Event::Configure(Ok(()))));
    assert!(matches!(&records[1].event, Event::Create(it, _, Ok(_)) if *it == token("t")));
    assert_eq!(records[1].account.as_deref(), Some("default"));
    assert!(!format!("{records:?}").contains("secret"));
}

#[tokio::test]
async fn a_timer_bounds_calls() {
    let provider = Hanging::new();
    let at_once: Timer = Arc::new(|_| Box::pin(std::future::ready(())));
    let connector = InProcess::new(provider.clone()).timer(at_once);
    let mut external = connector.connect(&object("hang"), None, &call()).await.unwrap();
    assert_eq!(external.observe(&object("hang"), &call()).await.unwrap_err().effect, Effect::None);
    let error = external.create(&object("hang"), &token("t"), &call()).await.unwrap_err();
    assert_eq!((error.class, error.effect), (Class::Transient, Effect::Unknown));
}
