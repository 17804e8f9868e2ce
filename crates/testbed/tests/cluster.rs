//! A cluster that starts, is talked to, and ends with its process.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use concert_testbed::{Cluster, Options};

#[test]
fn kubectl_works_and_objects_survive_a_restart() {
    let Some(cluster) = Cluster::shared() else { return };
    let version = cluster.kubectl(&["version", "-o", "json"]).unwrap();
    assert!(version.contains("v1.34.4"), "{version}");
    cluster.kubectl(&["create", "configmap", "a", "--from-literal=k=v"]).unwrap();
    cluster.restart_api_server().unwrap();
    let value = cluster.kubectl(&["get", "configmap", "a", "-o", "jsonpath={.data.k}"]).unwrap();
    assert_eq!(value, "v");
    let manifest = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}"#;
    cluster.kubectl_with(&["apply", "-f", "-"], manifest).unwrap();
    assert!(cluster.kubectl(&["get", "configmap", "missing"]).is_err());
}

#[test]
fn controllers_delete_namespaces_and_what_is_owned() {
    let options = Options { with_controllers: true, ..Options::default() };
    let Some(cluster) = Cluster::start_with(&options).unwrap() else { return };
    cluster.kubectl(&["create", "namespace", "gone"]).unwrap();
    cluster.kubectl(&["create", "configmap", "a", "-n", "gone"]).unwrap();
    // kubectl waits for the namespace to be really gone.
    cluster.kubectl(&["delete", "namespace", "gone", "--timeout=60s"]).unwrap();
}

#[test]
fn servers_end_with_the_process_that_wanted_them() {
    if Cluster::shared().is_none() {
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_concert-testbed"));
    let mut up = command.arg("up").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(up.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let kubeconfig = std::path::PathBuf::from(line.trim());
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let config: serde_json::Value = serde_json::from_str(&text).unwrap();
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let address = server.trim_start_matches("https://").to_owned();
    assert!(TcpStream::connect(&address).is_ok());
    // SIGKILL: no destructor, no handler.
    up.kill().unwrap();
    up.wait().unwrap();
    // The directory is removed last, after the servers have been waited for.
    while kubeconfig.exists() {
        std::thread::yield_now();
    }
    assert!(TcpStream::connect(&address).is_err());
}
