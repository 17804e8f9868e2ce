//! What columns show.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn cell(kind: &str, path: &str, object: &Value) -> Value {
    let source = json!([{ "name": "X", "type": kind, "jsonPath": path }]);
    Column::read(&source).unwrap()[0].cell(object)
}

fn refused(source: Value) -> Vec<String> {
    Column::read(&source).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn paths_lead_where_they_say() {
    let object = json!({
        "spec": { "size": 3, "a.b": "dot", "with space": "s", "list": ["x", "y", "z"] },
        "status": { "conditions": [
            { "type": "Synced", "status": "False", "n": 1 },
            { "type": "Ready", "status": "True", "n": 2 },
        ]},
        "metadata": { "labels": { "app.kubernetes.io/name": "web" } },
    });
    let cases = [
        (".spec.size", json!("3")),
        (".spec['size']", json!("3")),
        (".spec.a\\.b", json!("dot")),
        (".spec['a.b']", json!("dot")),
        (".spec[\"with space\"]", json!("s")),
        ("['spec'].size", json!("3")),
        (".metadata.labels.app\\.kubernetes\\.io/name", json!("web")),
        (".metadata.labels['app\\.kubernetes\\.io/name']", json!("web")),
        (".spec.list[0]", json!("x")),
        (".spec.list[-1]", json!("z")),
        (".spec.list[-4]", json!(null)),
        (".spec.list[3]", json!(null)),
        (".spec.list[*]", json!("x y z")),
        (".spec.list", json!("[\"x\",\"y\",\"z\"]")),
        (".status.conditions[?(@.type==\"Ready\")].status", json!("True")),
        (".status.conditions[?(@.type=='Ready')].status", json!("True")),
        (".status.conditions[?( @.type == 'Ready' )].status", json!("True")),
        (".status.conditions[?(@.type!='Ready')].status", json!("False")),
        (".status.conditions[?(@.n>1)].type", json!("Ready")),
        (".status.conditions[?(@.n<=1)].type", json!("Synced")),
        (".status.conditions[?(@.n)].type", json!("Synced Ready")),
        (".status.conditions[?(@['type']=='Ready')].n", json!("2")),
        (".status.conditions[?(@.type=='Gone')].status", json!(null)),
        (".status.conditions[*].type", json!("Synced Ready")),
        (".spec.size.deeper", json!(null)),
        (".nothing", json!(null)),
    ];
    for (path, expected) in cases {
        assert_eq!(cell("string", path, &object), expected, "{path}");
    }
}

#[test]
fn cells_have_the_type_of_their_column() {
    let object = json!({ "i": 3, "f": 1.5, "b": true, "s": "x", "n": null });
    assert_eq!(cell("integer", ".i", &object), json!(3));
    assert_eq!(cell("integer", ".f", &object), json!(1));
    assert_eq!(cell("number", ".f", &object), json!(1.5));
    assert_eq!(cell("boolean", ".b", &object), json!(true));
    assert_eq!(cell("integer", ".s", &object), json!(null));
    assert_eq!(cell("boolean", ".s", &object), json!(null));
    assert_eq!(cell("string", ".b", &object), json!("true"));
    assert_eq!(cell("string", ".n", &object), json!(null));
}

#[test]
fn a_date_is_shown_as_its_age() {
    let now = time::parse("2026-11-15T21:31:16Z").unwrap();
    let column = Column::new("Age", ColumnType::Date, ".at").unwrap();
    assert_eq!(column.cell_at(&json!({ "at": "2026-11-15T20:01:16Z" }), now), json!("90m"));
    assert_eq!(column.cell_at(&json!({ "at": "yesterday" }), now), json!("<invalid>"));
    assert_eq!(column.cell_at(&json!({}), now), json!(null));
    assert_eq!(column.cell(&json!({ "at": "2026-11-15T20:01:16Z" })), json!("2026-11-15T20:01:16Z"));
}

#[test]
fn a_cell_is_never_a_megabyte() {
    let object = json!({ "s": "é".repeat(1 << 20), "l": vec!["x".repeat(1000); 5000] });
    for path in [".s", ".l", ".l[*]"] {
        assert!(cell("string", path, &object).as_str().unwrap().len() < 4 * 1024, "{path}");
    }
}

#[test]
fn columns_are_read_whole() {
    let columns = Column::read(&json!([
        { "name": "Size", "type": "integer", "format": "int32", "description": "d", "priority": 1,
          "jsonPath": ".spec.size" },
    ]))
    .unwrap();
    let column = &columns[0];
    assert_eq!((column.name.as_str(), column.kind, column.priority), ("Size", ColumnType::Integer, 1));
    assert_eq!(column.format.as_deref(), Some("int32"));
    assert_eq!(column.description.as_deref(), Some("d"));
    assert_eq!(column.path.as_str(), ".spec.size");
    assert_eq!(Column::read(&Value::Null), Ok(vec![]));
}

#[test]
fn what_is_wrong_is_said_by_field() {
    assert_eq!(
        refused(json!([{}])),
        [
            "additionalPrinterColumns[0].name: Required value",
            "additionalPrinterColumns[0].type: Required value",
            "additionalPrinterColumns[0].jsonPath: Required value",
        ]
    );
    assert_eq!(
        refused(json!([{ "name": "X", "type": "colour", "jsonPath": ".a", "format": "pink" }])),
        [
            "additionalPrinterColumns[0].type: Unsupported value: \"colour\": supported values: \
             \"boolean\", \"date\", \"integer\", \"number\", \"string\"",
            "additionalPrinterColumns[0].format: Unsupported value: \"pink\": supported values: \"byte\", \
             \"date\", \"date-time\", \"double\", \"float\", \"int32\", \"int64\", \"password\"",
        ]
    );
    assert_eq!(refused(json!(3)), ["additionalPrinterColumns: Invalid value: 3: must be of type array"]);
    for path in
        ["a", "", ".a..b", ".a[", ".a[?(@.b==)]", ".a[?(@.b=='x]", ".a[1:2]", ".a[0,1]", ".a b", "..a"]
    {
        let source = json!([{ "name": "X", "type": "string", "jsonPath": path }]);
        assert_eq!(refused(source).len(), 1, "{path}");
    }
}

proptest! {
    #[test]
    fn no_text_does_harm(text in r#"[.\[\]()?@*'"\\a-cé0-9=<>! -]{0,40}"#) {
        if let Ok(path) = JsonPath::parse(&text) {
            path.find(&json!({ "a": [{ "b": 1 }], "b": { "c": [1, 2] } }));
        }
    }
}
