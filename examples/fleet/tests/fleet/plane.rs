//! One process of `concert serve` in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::process::Process;
use crate::programs;
use crate::wait::eventually;
use crate::web::{Web, kubeconfig};

const RBAC: &str = "rbac.authorization.k8s.io/v1";

/// A control plane, or a part of one.
pub struct Plane {
    process: Process,
    data: PathBuf,
    flags: Vec<String>,
    pub address: String,
    pub admin: String,
    pub web: Web,
    kubectl: PathBuf,
}

impl Plane {
    /// Starts one and waits until it answers.
    pub fn start(folder: &Path, name: &str, flags: &[String]) -> Self {
        let data = folder.join(format!("{name}-data"));
        let flags = flags.to_vec();
        let mut process =
            Process::start(folder, name, &mut command(&data, "127.0.0.1:0", "127.0.0.1:0", &flags));
        let (address, admin) = (listening(&mut process, 0, "api"), listening(&mut process, 0, "admin"));
        let web = Web::open(&std::fs::read_to_string(data.join("kubeconfig")).unwrap());
        let kubectl = concert_testbed::kubectl().unwrap().expect("the clusters have one");
        Self { process, data, flags, address, admin, web, kubectl }
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate of its authority, in PEM.
    pub fn authority(&self) -> String {
        std::fs::read_to_string(self.data.join("tls/ca.crt")).unwrap()
    }

    /// Where it keeps everything.
    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn log(&self) -> String {
        self.process.log()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts it again where it was.
    pub fn start_again(&mut self) {
        let mark = self.process.mark();
        self.process.start_again(&mut command(&self.data, &self.address, "127.0.0.1:0", &self.flags));
        listening(&mut self.process, mark, "api");
        self.admin = listening(&mut self.process, mark, "admin");
    }

    /// What kubectl prints as the administrator; it must succeed.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(self.data.join("kubeconfig")).args(arguments);
        command.env("KUBECACHEDIR", self.data.join("kubectl-cache"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {} failed: {said}", arguments.join(" "));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A token of a service account that is made for it, with a role that is there.
    pub fn account_in_role(&self, name: &str, role: &str) -> String {
        let base = "/api/v1/namespaces/default/serviceaccounts";
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
        self.web.good("POST", base, &account);
        let binding = json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": name}]});
        self.web.good("POST", &format!("/apis/{RBAC}/clusterrolebindings"), &binding);
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200}});
        let answer = self.web.good("POST", &format!("{base}/{name}/token"), &request);
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    /// Lets a service account read the secrets of a namespace.
    pub fn show_secrets(&self, account: &str, namespace: &str) {
        let base = format!("/apis/{RBAC}/namespaces/{namespace}");
        let metadata = json!({"name": account, "namespace": namespace});
        let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
        let role = json!({"apiVersion": RBAC, "kind": "Role", "metadata": metadata, "rules": rules});
        self.web.good("POST", &format!("{base}/roles"), &role);
        let binding = json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": account}]});
        self.web.good("POST", &format!("{base}/rolebindings"), &binding);
    }

    /// The same server as the owner of a token.
    pub fn web_as(&self, token: &str) -> Web {
        Web::open(&kubeconfig(&self.url(), &self.authority(), token))
    }

    /// What the admin port says of all that is measured.
    pub fn metrics(&self) -> String {
        use std::io::{Read as _, Write as _};
        let mut stream = std::net::TcpStream::connect(&self.admin).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Waits for a good answer.
    pub fn wait_for<T>(&self, what: &str, path: &str, pick: impl Fn(&Value) -> Option<T>) -> T {
        eventually(what, || match self.web.try_ask("GET", path, &Value::Null)? {
            (200, body) => pick(&body).ok_or_else(|| body.to_string()),
            (status, body) => Err(format!("{status} {body}")),
        })
    }
}

fn listening(process: &mut Process, mark: usize, what: &str) -> String {
    process.find(&format!("the address of the {what}"), mark, |line| {
        let is_it = line["message"] == "serving" && line["what"] == what;
        line["address"].as_str().filter(|_| is_it).map(str::to_owned)
    })
}

fn command(data: &Path, listen: &str, admin: &str, flags: &[String]) -> Command {
    let mut command = Command::new(programs::concert());
    command.args([
        "serve",
        "--log-format=json",
        "--plugins=off",
        "--listen",
        listen,
        "--admin-listen",
        admin,
    ]);
    command.arg("--data-dir").arg(data).args(flags);
    command
}
