use super::*;

/// A field with bytes in it.
fn part(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
    out.extend_from_slice(bytes);
    out
}

fn envelope(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [part(1, api_version.as_bytes()), part(2, kind.as_bytes())].concat();
    [MAGIC.to_vec(), part(1, &type_meta), part(2, raw), part(3, b""), part(4, b"")].concat()
}

#[test]
fn a_secret_is_read_as_its_json() {
    // In Go every text and every embedded time is written, set or not.
    let metadata = [part(1, b"s"), part(2, b""), part(3, b"default"), part(8, b"")].concat();
    let entry = [part(1, b"k"), part(2, b"v")].concat();
    let raw = [part(1, &metadata), part(2, &entry), part(3, b"Opaque"), vec![5 << 3, 1]].concat();
    assert_eq!(
        read(&envelope("v1", "Secret", &raw)).unwrap(),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
            "data": {"k": "dg=="}, "type": "Opaque", "immutable": true})
    );
}

#[test]
fn lists_keep_empty_texts_and_times_are_written_out() {
    let rule = [part(1, b"get"), part(2, b""), part(3, b"secrets")].concat();
    let role = [part(1, &part(1, b"r")), part(2, &rule)].concat();
    let role = read(&envelope("rbac.authorization.k8s.io/v1", "Role", &role)).unwrap();
    assert_eq!(role["rules"], json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}]));
    let time = [vec![1 << 3, 60], vec![2 << 3, 0]].concat();
    let spec = [part(1, b""), vec![2 << 3, 15], part(4, &time), vec![5 << 3, 0]].concat();
    let lease = read(&envelope("coordination.k8s.io/v1", "Lease", &part(2, &spec))).unwrap();
    let expected = json!({"holderIdentity": "", "leaseDurationSeconds": 15,
        "renewTime": "1970-01-01T00:01:00.000000Z", "leaseTransitions": 0});
    assert_eq!(lease["spec"], expected);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let good = envelope("v1", "ConfigMap", &part(1, &part(1, b"a")));
    assert!(read(&good).is_ok());
    assert_eq!(
        read(&envelope("v1", "Pod", b"")).unwrap_err().reason,
        crate::error::Reason::UnsupportedMediaType
    );
    for bad in [
        &b""[..],
        b"k8s",
        b"{}",
        b"k8s\0\x0a\xff",
        &good[..good.len() / 2],
        &envelope("v1", "ConfigMap", &part(15, b"")),
        &envelope("v1", "ConfigMap", &[4 << 3 | 2, 1, 0]),
        &envelope("v1", "ConfigMap", &part(1, &part(1, b"\xff"))),
        &envelope("v1", "ConfigMap", &[0xff; 20]),
    ] {
        assert_eq!(read(bad).unwrap_err().reason, crate::error::Reason::BadRequest, "{bad:?}");
    }
}
