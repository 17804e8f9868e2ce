//! Rules from the outside: what is refused, what runs, what it says and that it ends.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::Schema;

fn schema(spec: Value) -> Result<Schema, Vec<String>> {
    Schema::compile(&json!({ "type": "object", "properties": { "spec": spec } }))
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

/// A spec of many types, with one rule.
fn with_rule(rule: Value) -> Result<Schema, Vec<String>> {
    let text = json!({ "type": "string", "maxLength": 100 });
    schema(json!({
        "type": "object",
        "properties": {
            "i": { "type": "integer" },
            "n": { "type": "number" },
            "b": { "type": "boolean" },
            "s": text,
            "in": text,
            "a-b": text,
            "null": { "type": "string", "nullable": true, "maxLength": 10 },
            "time": { "type": "string", "format": "date-time" },
            "span": { "type": "string", "format": "duration" },
            "list": { "type": "array", "maxItems": 20, "items": text },
            "set": { "type": "array", "maxItems": 20, "x-kubernetes-list-type": "set", "items": text },
            "map": { "type": "object", "maxProperties": 20, "additionalProperties": text },
            "items": {
                "type": "array", "maxItems": 20, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": { "type": "object", "required": ["name"], "properties": {
                    "name": text, "size": { "type": "integer" },
                }},
            },
            "any": { "x-kubernetes-int-or-string": true },
        },
        "x-kubernetes-validations": [rule],
    }))
}

fn compiled(rule: &str) -> Schema {
    with_rule(json!({ "rule": rule })).unwrap_or_else(|errors| panic!("{rule}: {errors:?}"))
}

fn sample() -> Value {
    json!({
        "i": 3, "n": 1, "b": true, "s": "hello", "in": "x", "a-b": "y", "null": null,
        "time": "2026-11-15T20:31:16Z", "span": "1h30m",
        "list": ["a", "b", "c"], "set": ["x", "y"], "map": { "k": "v" },
        "items": [{ "name": "a", "size": 1 }, { "name": "b", "size": 2 }],
        "any": "50%",
    })
}

fn broken(rule: &str) -> Vec<String> {
    let errors = compiled(rule).check_rules(&json!({ "spec": sample() }), None);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn what_holds_holds() {
    for rule in [
        "self.i == 3 && self.n == 1.0 && self.b",
        "self.i > 2 && self.i >= 3 && self.i < 4 && self.i <= 3 && self.i != 4",
        "self.i + 1 == 4 && self.i * 2 - 1 == 5 && self.i / 2 == 1 && self.i % 2 == 1 && -self.i == -3",
        "self.n + 0.5 == 1.5 && self.n < 2",
        "self.__in__ == 'x' && self.a__dash__b == 'y'",
        "has(self.s) && !has(self.time) || true",
        "self.s.startsWith('he') && self.s.endsWith('lo') && self.s.contains('ell')",
        "self.s.matches('^h.*o$') && !self.s.matches('^x')",
        "size(self.s) == 5 && self.list.size() == 3 && size(self.map) == 1",
        "self.s.upperAscii() == 'HELLO' && self.s.replace('l', 'L') == 'heLLo' && self.s.substring(1, 3) == 'el'",
        "self.s.indexOf('l') == 2 && self.s.lastIndexOf('l') == 3 && self.s.charAt(0) == 'h'",
        "'a,b'.split(',') == ['a', 'b'] && self.list.join('-') == 'a-b-c' && ' x '.trim() == 'x'",
        "self.list.all(x, x != '') && self.list.exists(x, x == 'b') && self.list.exists_one(x, x == 'b')",
        "self.list.map(x, x + x) == ['aa', 'bb', 'cc'] && self.list.filter(x, x > 'a') == ['b', 'c']",
        "self.list.map(x, x > 'a', size(x)).sum() == 2 && self.list.isSorted() && self.list.max() == 'c'",
        "'a' in self.list && 'k' in self.map && !('z' in self.map) && self.map['k'] == 'v' && self.map.k == 'v'",
        "self.map.all(k, k == 'k') && self.list[0] == 'a' && self.list + ['d'] == ['a', 'b', 'c', 'd']",
        "self.items.all(i, i.size > 0) && self.items.exists(i, i.name == 'b' && i.size == 2)",
        "self.items.map(i, i.size).sum() == 3",
        "self.time > timestamp('2020-01-01T00:00:00Z') && self.time.getFullYear() == 2026",
        "self.span == duration('90m') && self.span < duration('2h') && self.span.getHours() == 1",
        "self.time + self.span > self.time && self.time - self.time == duration('0s')",
        "type(self.any) == string ? self.any.endsWith('%') : self.any > 0",
        "quantity('1Gi').isGreaterThan(quantity('500Mi')) && isQuantity('1k') && !isQuantity('x')",
        "ip('10.1.2.3').family() == 4 && ip('::1').isLoopback() && isIP('::1') && !isIP(self.s)",
        "ip('192.168.0.1').isGlobalUnicast() && !ip('169.254.0.1').isGlobalUnicast() && ip('0.0.0.0').isUnspecified()",
        "ip('224.0.0.1').isLinkLocalMulticast() && ip('fe80::1').isLinkLocalUnicast() && ip('::1') == ip('0:0::1')",
        "ip.isCanonical('::1') && !ip.isCanonical('0:0::1') && string(ip('0:0::1')) == '::1'",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))",
        "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.0.0.0/8').containsCIDR(cidr('0.0.0.0/0'))",
        "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
        "['10.1.2.3'].all(ip, ip.startsWith('10.') && isIP(ip))",
        "cidr('10.0.0.0/8').prefixLength() == 8 && isCIDR('::/0') && !isCIDR('10.0.0.1')",
        "string(cidr('10.1.2.3/8').masked()) == '10.0.0.0/8' && type(ip('::1')) != string",
        "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.0.0').isGreaterThan(semver('1.0.0-rc.1'))",
        "semver('1.0.0').compareTo(semver('1.0.0')) == 0 && isSemver('1.0.0-a+b') && !isSemver('v1.0')",
        "self.?s.orValue('none') == 'hello' && self.?s.hasValue()",
        "int('7') == 7 && string(7) == '7' && double('1.5') == 1.5 && bool('true')",
        "cel.bind(x, self.i, x * x == 9)",
        "sets.contains(self.set, ['y']) && sets.equivalent(self.set, ['y', 'x']) && sets.intersects([1], [1, 2])",
        "{'a': 1}['a'] == 1 && {'a': 1}.a == 1 && 1 == 1.0 && 1u == 1",
        // One side decides, whatever the other side does.
        "true || self.list[9] == 'x'",
        "self.list[9] == 'x' || true",
        "self.list.exists(x, x == 'c' || [1][int(x)] == 1)",
        "self.s == 'hello' ? true : self.list[99] == 'x'",
    ] {
        assert_eq!(broken(rule), [""; 0], "{rule}");
    }
}

#[test]
fn what_does_not_hold_is_said() {
    assert_eq!(broken("self.i > 3"), ["spec: Invalid value: \"object\": failed rule: self.i > 3"]);
    for (rule, why) in [
        ("self.list[9] == 'x'", "index out of bounds: 9"),
        ("self.map['z'] == 'x'", "no such key: z"),
        ("self.i / 0 == 1", "division by zero"),
        ("9223372036854775807 + self.i == 1", "overflow"),
        ("self.any + 1 == 1", "no such overload"),
        ("int(self.s) == 1", "type conversion error from 'string' to 'int'"),
        ("ip(self.s).family() == 4", "type conversion error from 'string' to 'ip'"),
        ("cidr(self.s).prefixLength() == 4", "type conversion error from 'string' to 'cidr'"),
        ("semver(self.s).major() == 4", "type conversion error from 'string' to 'semver'"),
    ] {
        let expected = format!("spec: Invalid value: \"object\": {why} evaluating rule: failed rule: {rule}");
        assert_eq!(broken(rule), [expected]);
    }
}

#[test]
fn messages_reasons_and_paths_are_those_of_the_rule() {
    let said = |rule: Value| {
        let errors = with_rule(rule).unwrap().check_rules(&json!({ "spec": sample() }), None);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        said(json!({ "rule": "self.i > 3", "message": "must be larger" })),
        ["spec: Invalid value: \"object\": must be larger"]
    );
    assert_eq!(
        said(json!({ "rule": "self.i > 3", "messageExpression": "'not ' + string(self.i)", "message": "m" })),
        ["spec: Invalid value: \"object\": not 3"]
    );
    assert_eq!(
        said(json!({ "rule": "self.i > 3", "messageExpression": "self.list[9]", "message": "m" })),
        ["spec: Invalid value: \"object\": m"]
    );
    assert_eq!(
        said(json!({ "rule": "self.i > 3", "reason": "FieldValueForbidden", "fieldPath": ".i" })),
        ["spec.i: Forbidden: failed rule: self.i > 3"]
    );
    assert_eq!(
        said(json!({ "rule": "self.i > 3", "reason": "FieldValueRequired", "message": "m" })),
        ["spec: Required value: m"]
    );
}

#[test]
fn rules_run_wherever_they_stand() {
    let rule = |text: &str| json!([{ "rule": text }]);
    let schema = Schema::compile(&json!({
        "type": "object",
        "x-kubernetes-validations": rule("self.metadata.name.startsWith('b') && self.kind == 'Bucket'"),
        "properties": { "spec": { "type": "object", "properties": {
            "list": { "type": "array", "maxItems": 9, "items":
                { "type": "integer", "x-kubernetes-validations": rule("self > 0") } },
            "map": { "type": "object", "maxProperties": 9, "additionalProperties":
                { "type": "string", "maxLength": 9, "x-kubernetes-validations": rule("self != 'x'") } },
        }}},
    }))
    .unwrap();
    let object = json!({
        "kind": "Bucket", "metadata": { "name": "a" }, "spec": { "list": [1, 0], "map": { "k": "x" } },
    });
    let errors: Vec<String> = schema.check_rules(&object, None).iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        [
            "<nil>: Invalid value: \"object\": failed rule: self.metadata.name.startsWith('b') && self.kind == \
             'Bucket'",
            "spec.list[1]: Invalid value: 0: failed rule: self > 0",
            "spec.map.k: Invalid value: \"x\": failed rule: self != 'x'",
        ]
    );
}

#[test]
fn transition_rules_compare_with_before() {
    let schema = compiled("self.i >= oldSelf.i");
    let object = |i: i64| json!({ "spec": { "i": i } });
    assert_eq!(schema.check_rules(&object(1), None).len(), 0);
    assert_eq!(schema.check_rules(&object(2), Some(&object(1))).len(), 0);
    assert_eq!(schema.check_rules(&object(1), Some(&object(2))).len(), 1);

    let optional = with_rule(json!({
        "rule": "oldSelf.hasValue() ? self.i == oldSelf.value().i : self.i == 0", "optionalOldSelf": true,
    }))
    .unwrap();
    assert_eq!(optional.check_rules(&object(0), None).len(), 0);
    assert_eq!(optional.check_rules(&object(1), None).len(), 1);
    assert_eq!(optional.check_rules(&object(1), Some(&object(1))).len(), 0);
}

#[test]
fn what_stays_as_it_was_is_not_asked_again() {
    let object =
        |i: i64, label: &str| json!({ "metadata": { "labels": { "a": label } }, "spec": { "i": i } });
    let schema = compiled("self.i < 5");
    assert_eq!(schema.check_rules(&object(9, "x"), None).len(), 1);
    assert_eq!(schema.check_rules(&object(9, "y"), Some(&object(9, "x"))).len(), 0);
    assert_eq!(schema.check_rules(&object(8, "x"), Some(&object(9, "x"))).len(), 1);
    // What compares with before is asked of every change.
    let rises = compiled("self.i > oldSelf.i");
    assert_eq!(rises.check_rules(&object(9, "y"), Some(&object(9, "x"))).len(), 1);
}

#[test]
fn elements_are_compared_with_the_element_of_the_same_key() {
    let schema = schema(json!({ "type": "array", "maxItems": 9, "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"], "items": {
        "type": "object", "required": ["name"],
        "properties": { "name": { "type": "string" }, "size": { "type": "integer" } },
        "x-kubernetes-validations": [{ "rule": "self.size >= oldSelf.size" }],
    }}))
    .unwrap();
    let old = json!({ "spec": [{ "name": "a", "size": 1 }, { "name": "b", "size": 5 }] });
    let new = json!({ "spec": [{ "name": "b", "size": 4 }, { "name": "c", "size": 0 }, { "name": "a", "size": 1 }] });
    let errors = schema.check_rules(&new, Some(&old));
    assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), ["spec[0]"]);
}

#[test]
fn sets_are_equal_in_any_order() {
    let schema = compiled("self.set == oldSelf.set && self.list != oldSelf.list");
    let object = |values: [&str; 2]| json!({ "spec": { "set": values, "list": values } });
    assert_eq!(schema.check_rules(&object(["x", "y"]), Some(&object(["y", "x"]))), []);
}

#[test]
fn what_does_not_compile_is_refused_with_the_definition() {
    let refused = |rule: Value| with_rule(rule).unwrap_err();
    let place = "properties[spec].x-kubernetes-validations[0]";
    for (rule, why) in [
        ("self.nothing == 1", "undefined field 'nothing'"),
        ("nobody == 1", "undeclared reference to 'nobody'"),
        ("self.i.frobnicate()", "undeclared reference to 'frobnicate'"),
        ("url(self.s).getHost() == 'x'", "undeclared reference to 'getHost'"),
        ("math.greatest(1, 2) == 2", "undeclared reference to 'math.greatest'"),
        ("self.s.format([1]) == ''", "undeclared reference to 'format'"),
        ("base64.encode(b'x') == ''", "bytes are not supported"),
        ("self.i", "cel expression must evaluate to a bool"),
        ("self.i &&", "syntax error: the expression ends too early"),
        ("self.i.all(x, true)", "this has no elements to go through"),
        ("has(self.zz)", "undefined field 'zz'"),
        ("self.items.all(i, i.colour == 'x')", "undefined field 'colour'"),
    ] {
        assert_eq!(
            refused(json!({ "rule": rule })),
            [format!("{place}.rule: Invalid value: {}: compilation failed: {why}", json!(rule))]
        );
    }
    assert_eq!(
        refused(json!({ "rule": "true", "messageExpression": "1" })),
        [format!(
            "{place}.messageExpression: Invalid value: \"1\": compilation failed: must evaluate to a string"
        )]
    );
    assert_eq!(
        refused(json!({ "rule": "true", "fieldPath": ".zz" })),
        [format!(
            "{place}.fieldPath: Invalid value: \".zz\": fieldPath must be a valid path to a field of the schema"
        )]
    );
    assert_eq!(
        refused(json!({ "rule": "true", "optionalOldSelf": true })),
        [format!(
            "{place}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule"
        )]
    );
    let metadata = Schema::compile(&json!({ "type": "object",
        "x-kubernetes-validations": [{ "rule": "self.metadata.labels.size() == 0" }] }));
    assert!(metadata.unwrap_err()[0].to_string().contains("undefined field 'labels'"));
}

#[test]
fn old_values_need_a_key_to_be_found_by() {
    let errors = schema(json!({ "type": "array", "maxItems": 9, "items": {
        "type": "integer", "x-kubernetes-validations": [{ "rule": "self >= oldSelf" }] } }))
    .unwrap_err();
    assert_eq!(
        errors,
        [
            "properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \"self >= oldSelf\": oldSelf \
          cannot be used on the uncorrelatable portion of the schema"
        ]
    );
}

#[test]
fn rules_that_could_cost_too_much_are_refused() {
    let nested = "self.all(x, self.all(y, x == y))";
    let list = |most: Option<u64>| {
        let mut list = json!({ "type": "array", "items": { "type": "string", "maxLength": 10 },
            "x-kubernetes-validations": [{ "rule": nested }] });
        if let Some(most) = most {
            list["maxItems"] = json!(most);
        }
        schema(list)
    };
    assert_eq!(
        list(None).unwrap_err()[0],
        "properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by \
         factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength \
         where arrays, maps, and strings are declared)"
    );
    assert!(list(Some(100)).is_ok());
    let many =
        schema(json!({ "type": "array", "maxItems": 1000, "items": { "type": "array", "maxItems": 1000,
        "items": { "type": "array", "maxItems": 1000, "items": { "type": "integer",
            "x-kubernetes-validations": [{ "rule": "self > 0" }] } } } }))
        .unwrap_err();
    assert!(many[0].contains("exceeds budget by factor of more than 100x"), "{many:?}");
    assert!(many[1].contains("cost total for entire OpenAPIv3 schema"), "{many:?}");
}

#[test]
fn a_rule_that_costs_too_much_while_running_ends() {
    let mut rule = "self.i == 1".to_owned();
    for name in ["a", "b", "c", "d", "e"] {
        rule = format!("[1,2,3,4,5,6,7,8,9,10,11,12,13].all({name}, {rule} || true)");
    }
    assert_eq!(
        broken(&rule),
        [format!(
            "spec: Invalid value: \"object\": call cost exceeds limit evaluating rule: failed rule: {rule}"
        )]
    );
}

#[test]
fn the_budget_of_an_object_ends_all_rules() {
    let rule =
        json!({ "rule": "self.list.all(x, self.list.all(y, self.list.all(z, x != y || y != z || true)))" });
    let spec = json!({ "type": "object", "properties": {
        "list": { "type": "array", "maxItems": 90, "items": { "type": "string", "maxLength": 5 } },
    }, "x-kubernetes-validations": vec![rule; 12] });
    let schema = schema(spec).unwrap();
    let object = json!({ "spec": { "list": (0..90).map(|n| n.to_string()).collect::<Vec<_>>() } });
    let errors = schema.check_rules(&object, None);
    assert_eq!(errors.len(), 10);
    assert!(errors[8].detail.starts_with("call cost exceeds limit"));
    assert!(errors[9].detail.starts_with("validation failed due to running out of cost budget"));
}

#[test]
fn large_patterns_are_dearer_and_very_large_ones_refused() {
    let refused = |rule: &str| with_rule(json!({ "rule": rule })).unwrap_err();
    assert!(refused("self.s.matches('(a{100}){100}')")[0].contains("the pattern of matches() is too large"));
    let unbounded = |pattern: &str| {
        let rule = format!("self.matches('{pattern}')");
        schema(json!({ "type": "string", "x-kubernetes-validations": [{ "rule": rule }] }))
    };
    assert!(unbounded("^[a-z]+$").is_ok());
    assert!(unbounded("^(ab?c{2,20}){1,40}$").unwrap_err()[0].contains("exceeds budget"));
}

#[test]
fn values_of_the_wrong_type_do_no_harm() {
    let schema =
        compiled("self.items.all(i, i.size > 0) && self.i == 1 && self.time != self.time && self.set == [1]");
    for spec in [json!(1), json!([]), json!({ "items": 7 }), json!({ "items": [1, null, {}] }), json!(null)] {
        schema.check_rules(&json!({ "spec": spec }), Some(&json!({ "spec": 3 })));
    }
}

proptest! {
    #[test]
    fn no_text_does_harm(text in r#"[a-z.()\[\]{}?:&|=!<>+*/%'"\\0-9é, -]{0,60}"#) {
        if let Ok(schema) = with_rule(json!({ "rule": text })) {
            schema.check_rules(&json!({ "spec": sample() }), None);
        }
    }

    /// Texts made of what rules are made of get further than random ones.
    #[test]
    fn no_combination_does_harm(parts in proptest::collection::vec(proptest::sample::select(vec![
        "self", ".i", ".s", ".list", ".items", ".map", ".any", "[0]", "['k']", " + ", " == ", " < ", " && ", " in ",
        "!", "-", "(", ")", "1", "'x'", ".size()", ".all(x, ", ".map(x, ", "x", ".split('')", ".join()", "has(",
        " ? ", " : ", "1.5", "null", ".time", ".span", ".replace('', self.s)", ".?s", ".orValue(1)", "quantity('1')",
    ]), 0..14)) {
        if let Ok(schema) = with_rule(json!({ "rule": parts.concat() })) {
            schema.check_rules(&json!({ "spec": sample() }), None);
        }
    }
}
