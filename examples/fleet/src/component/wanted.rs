//! What the component consists of.

use serde_json::{Value, json};

/// Its objects, by what the settings of the entry say: `version`, `replicas`, `dashboard`.
pub fn objects(settings: &Value) -> Vec<Value> {
    let version = settings["version"].as_str().unwrap_or("1.0.0");
    let replicas = settings["replicas"].as_u64().unwrap_or(1);
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "component"},
            "data": {"version": version}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "component"},
            "spec": {"selector": {"app": "component"}, "ports": [{"name": "http", "port": 80}]}}),
        deployment("component", &format!("component:{version}"), replicas),
    ];
    if settings["dashboard"] == true {
        objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dashboard"},
            "data": {"version": version}}));
    }
    objects
}

/// A Deployment of one container.
pub fn deployment(name: &str, image: &str, replicas: u64) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": name, "image": image}]}}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_decide_what_there_is() {
        let names = |settings: Value| {
            let all = objects(&settings);
            all.iter()
                .map(|it| format!("{}/{}", it["kind"], it["metadata"]["name"]))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert!(!names(Value::Null).contains("dashboard"));
        assert!(names(json!({"dashboard": true})).contains("dashboard"));
        let deployment = &objects(&json!({"version": "2.1.0", "replicas": 3}))[2];
        assert_eq!(deployment["spec"]["replicas"], 3);
        assert_eq!(deployment.pointer("/spec/template/spec/containers/0/image").unwrap(), "component:2.1.0");
    }
}
