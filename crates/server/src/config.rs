//! Every environment variable and well-known file that is read, in one place.

use std::path::{Path, PathBuf};

/// Where a pod finds the namespace it runs in.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

/// Where a machine keeps its name.
const HOSTNAME_FILE: &str = "/etc/hostname";

/// One variable, for those whose names come from elsewhere, such as from a ProviderConfig whose
/// credentials are in the environment.
#[expect(clippy::disallowed_methods, reason = "this is the place that everybody else is sent to")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What this machine or pod is called: `HOSTNAME`, else the file; `unknown` if neither says.
pub fn host_name() -> String {
    let name = variable("HOSTNAME").or_else(|| first_word(Path::new(HOSTNAME_FILE)));
    name.filter(|it| !it.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// The namespace that this process runs in, if it runs in a cluster.
pub fn namespace_in_cluster() -> Option<String> {
    first_word(Path::new(NAMESPACE_FILE))
}

/// Where programs of this user keep what they own: `XDG_DATA_HOME`, else in the home directory.
pub fn data_folder() -> Option<PathBuf> {
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let base = named("XDG_DATA_HOME").or_else(|| named("HOME").map(|it| it.join(".local/share")))?;
    Some(base.join("concert"))
}

fn first_word(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.split_whitespace().next().map(str::to_owned)
}
