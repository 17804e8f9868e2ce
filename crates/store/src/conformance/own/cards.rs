//! How kinds present themselves.

use std::sync::Arc;

use concert_model::{GroupKind, Object};
use serde_json::json;

use crate::card::Card;
use crate::conformance::expect::refused;
use crate::conformance::{Definition, Own, invalid_fields};
use crate::contract::{By, Delete, Store};
use crate::error::Error;
use crate::local::CLEANUP_FINALIZER;

fn by() -> By {
    By::actor("suite")
}

fn told(spec: &mut serde_json::Value) {
    spec["names"]["shortNames"] = json!(["wd", "wdg"]);
    spec["names"]["categories"] = json!(["all"]);
    spec["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1}]);
    let mut old = spec["versions"][0].clone();
    (old["name"], old["storage"], old["deprecated"]) = (json!("v1beta1"), json!(false), json!(true));
    old["subresources"] = json!({});
    old["additionalPrinterColumns"] = json!(null);
    spec["versions"].as_array_mut().unwrap().push(old);
}

/// There is one for each kind, in order of group and kind, built-in ones included.
pub async fn are_there_for_every_kind(own: &Own) {
    let widgets = own.subject.widgets().await;
    let cards = own.store.cards();
    let kinds: Vec<GroupKind> = cards.iter().map(|card| card.kind.group_kind.clone()).collect();
    assert!(kinds.is_sorted());
    assert!(kinds.contains(&widgets.kind));
    for (group, kind) in [
        ("", "Secret"),
        ("", "ServiceAccount"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("concert.dev", "Token"),
    ] {
        assert!(own.store.card(&GroupKind::new(group, kind)).unwrap().is_built_in);
    }
    assert!(!own.store.card(&widgets.kind).unwrap().is_built_in);
    refused!(own.store.card(&GroupKind::new("no.dev", "None")), Error::UnknownKind { .. });
}

/// They tell all that a definition says to people.
pub async fn tell_what_the_definition_says(own: &Own) {
    let widgets = own.subject.widgets_of(Definition::usual().changed(told)).await;
    let card = own.store.card(&widgets.kind).unwrap();
    assert_eq!((&*card.singular, &*card.list_kind), ("widget", "WidgetList"));
    assert_eq!(card.short_names, ["wd", "wdg"].map(Arc::from));
    assert_eq!(card.categories, ["all"].map(Arc::from));
    let (now, old) = (card.view("v1").unwrap(), card.view("v1beta1").unwrap());
    assert!(now.is_served && now.has_status && now.deprecation.is_none());
    assert_eq!(now.schema["properties"]["spec"]["properties"]["n"]["type"], "integer");
    assert_eq!((now.columns[0].name.as_str(), now.columns[0].priority), ("N", 1));
    assert!(old.is_served && !old.has_status);
    assert_eq!(old.columns[0].name, "Age");
    let expected = format!("{}/v1beta1 Widget is deprecated", widgets.kind.group);
    assert_eq!(old.deprecation.as_deref(), Some(expected.as_str()));
}

/// A number tells when to look again, and a card that somebody holds does not change.
pub async fn change_with_their_definitions(own: &Own) {
    let widgets = own.subject.widgets().await;
    let (before, version) = (own.store.card(&widgets.kind).unwrap(), own.store.cards_version());
    widgets.create("a", json!({"n": 1})).await;
    assert_eq!(own.store.cards_version(), version);
    let mut definition = own.store.get(&widgets.definition).await.unwrap().decode();
    definition.get_mut("spec")["names"]["shortNames"] = json!(["wd"]);
    own.store.update(definition, &by()).await.unwrap();
    assert!(own.store.cards_version() > version);
    assert!(before.short_names.is_empty());
    assert_eq!(own.store.card(&widgets.kind).unwrap().short_names, ["wd"].map(Arc::from));
    let version = own.store.cards_version();
    own.store.delete(&widgets.definition, &Delete::default(), &by()).await.unwrap();
    let mut definition = own.store.get(&widgets.definition).await.unwrap().decode();
    definition.remove_finalizer(CLEANUP_FINALIZER);
    own.store.update(definition, &by()).await.unwrap();
    assert!(own.store.cards_version() > version);
    let is_it = |card: &Arc<Card>| card.kind.group_kind == widgets.kind;
    assert!(!own.store.cards().iter().any(is_it));
}

/// A kind that is served stays so when its definition asks for names that are taken; it goes by those that
/// it had.
pub async fn keep_the_names_that_were_accepted(own: &Own) {
    let widgets = own
        .subject
        .widgets_of(Definition::usual().changed(|spec| spec["names"]["shortNames"] = json!(["wd"])));
    let widgets = widgets.await;
    let gadgets = Definition::usual().changed(|spec| {
        spec["names"] = json!({"kind": "Gadget", "plural": "gadgets", "shortNames": ["g"]});
    });
    let created = own.store.create(gadgets.object(&widgets.kind.group, "x"), &by()).await.unwrap();
    let mut definition = created.decode();
    definition.get_mut("spec")["names"]["shortNames"] = json!(["wd"]);
    let stored = own.store.update(definition, &by()).await.unwrap().decode();
    assert_eq!(stored.status()["acceptedNames"]["shortNames"], json!(["g"]));
    let kind = GroupKind::new(widgets.kind.group.clone(), "Gadget");
    assert_eq!(own.store.card(&kind).unwrap().short_names, ["g"].map(Arc::from));
    own.store.create(Object::new(&kind.at_version("v1"), "default", "a"), &by()).await.unwrap();
}

/// Columns and names that make no sense are refused by field.
pub async fn are_refused_where_they_make_no_sense(own: &Own) {
    let definition = Definition::usual().changed(|spec| {
        spec["names"]["shortNames"] = json!(["Not A Name"]);
        spec["versions"][0]["additionalPrinterColumns"] =
            json!([{"name": "N", "type": "colour", "jsonPath": ".spec.n"}]);
    });
    let fields = invalid_fields(own.store.create(definition.object("odd.dev", "x"), &by()).await);
    let expected = ["spec.names.shortNames[0]", "spec.versions[0].additionalPrinterColumns[0].type"];
    assert_eq!(fields, expected);
}
