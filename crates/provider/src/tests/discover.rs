//! What Discover of the older protocol says of a kind, written and read.

use std::time::Duration;

use prost::Message;
use prost_types::Duration as WireDuration;

use super::stage::bucket;
use crate::client::v1alpha1::served;
use crate::codec::readable;
use crate::wire::v1alpha1 as wire;
use crate::*;

/// All that the older protocol has words for.
fn full() -> Served {
    let watched = |name: &str, namespace: &str| WatchedKind {
        kind: bucket(),
        name: name.into(),
        namespace: namespace.into(),
    };
    let mut full = Served::new(bucket());
    full.owns = vec![bucket()];
    full.watches = vec![watched("", ""), watched("n", "ns")];
    full.concurrency = Some(3);
    full.poll = Some(Duration::from_secs(7));
    full.timeout = Some(Duration::from_millis(1500));
    full
}

fn written() -> wire::Reconciler {
    crate::server::v1alpha1::reconciler(&full())
}

#[test]
fn what_is_said_of_a_kind_survives_the_wire() {
    let bytes = written().encode_to_vec();
    assert_eq!(served(wire::Reconciler::decode(&*bytes).unwrap()).unwrap(), full());
}

#[test]
fn hints_have_the_numbers_of_the_prototype() {
    // max_concurrent = 100, poll_interval = 101, session_timeout = 102.
    let bytes = [0xa0, 0x06, 3, 0xaa, 0x06, 2, 0x08, 7, 0xb2, 0x06, 2, 0x08, 9];
    let read = wire::Reconciler::decode(&bytes[..]).unwrap();
    let seconds = |seconds| Some(WireDuration { seconds, nanos: 0 });
    assert_eq!((read.max_concurrent, read.poll_interval), (3, seconds(7)));
    assert_eq!(read.session_timeout, seconds(9));
    let whole = written();
    let (obj, watch) = (whole.owns[0].obj.clone().unwrap(), whole.watches[1].obj.clone().unwrap());
    assert_eq!((&*obj.api_version, &*obj.kind), ("example.dev/v1", "Bucket"));
    assert_eq!((&*watch.name, &*watch.namespace), ("n", "ns"));
}

#[test]
fn hints_of_nothing_are_none() {
    let nothing = Some(WireDuration::default());
    let silent = wire::Reconciler {
        max_concurrent: -1,
        poll_interval: nothing,
        session_timeout: Some(WireDuration { seconds: -5, nanos: 0 }),
        owns: Vec::new(),
        watches: Vec::new(),
        ..written()
    };
    assert_eq!(served(silent).unwrap(), Served::new(bucket()));
}

#[test]
fn a_kind_that_makes_no_sense_is_left_out_and_complained_of() {
    let nameless = wire::Reconciler { r#for: None, ..written() };
    let mut astray = written();
    astray.owns[0].obj = None;
    let (kinds, refused) = readable([nameless, written(), astray].map(served));
    assert_eq!(kinds, [full()]);
    let missing = "a kind is missing in Discover's answer";
    let told = format!("what is said of example.dev/v1, Kind=Bucket makes no sense: {missing}");
    assert_eq!(refused, [missing.to_owned(), told]);
}
