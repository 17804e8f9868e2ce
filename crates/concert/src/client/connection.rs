//! Which server, and as whom: flags, then `CONCERT_*` variables, then a kubeconfig, then a server that
//! runs on this machine.

use std::path::{Path, PathBuf};

use concert_server::config::variable;
use serde_json::{Value, json};

use super::kubeconfig::{self, Direct};
use crate::cli::Advice;

/// The flags that all commands have which talk to a server.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Flags {
    /// Address of the server, as https://HOST:PORT [variable: CONCERT_SERVER]
    #[arg(long, global = true, value_name = "URL", help_heading = "Connection")]
    pub server: Option<String>,
    /// Bearer token to identify with, or - for standard input [variable: CONCERT_TOKEN]
    #[arg(long, global = true, help_heading = "Connection")]
    pub token: Option<String>,
    /// Certificate of the authority that signed the server's [variable: CONCERT_CERTIFICATE_AUTHORITY]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub certificate_authority: Option<PathBuf>,
    /// Do not verify the server's certificate: whoever answers is believed
    #[arg(long, global = true, help_heading = "Connection")]
    pub insecure_skip_tls_verify: bool,
    /// kubeconfig to use [variables: CONCERT_KUBECONFIG, KUBECONFIG]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Connection")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use [variable: CONCERT_CONTEXT]
    #[arg(long, global = true, value_name = "NAME", help_heading = "Connection")]
    pub context: Option<String>,
    /// Namespace of what is meant [variable: CONCERT_NAMESPACE]
    #[arg(short, long, global = true, help_heading = "Connection")]
    pub namespace: Option<String>,
}

/// Where on this machine to look.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// What `KUBECONFIG` says.
    pub kubeconfig: Option<String>,
    pub home: Option<PathBuf>,
    pub config_home: Option<PathBuf>,
    pub data_home: Option<PathBuf>,
    /// What `CONCERT_DATA_DIR` says.
    pub data_dir: Option<PathBuf>,
}

/// A server, and who we are to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// A kubeconfig with just this.
    pub document: Value,
    pub namespace: String,
    /// Where that was found, for people.
    pub source: String,
}

impl Flags {
    /// What was given, and for the rest what variables say.
    pub fn with_variables(self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str| variable(name).filter(|it| !it.is_empty());
        // A server that was named goes with its own identity: one from a file belongs to another.
        let is_file_meant = self.kubeconfig.is_some() || self.context.is_some();
        let server = self.server.clone().or_else(|| text("CONCERT_SERVER").filter(|_| !is_file_meant));
        Self {
            token: self.token.or_else(|| text("CONCERT_TOKEN")),
            certificate_authority: self
                .certificate_authority
                .or_else(|| text("CONCERT_CERTIFICATE_AUTHORITY").map(Into::into)),
            kubeconfig: self
                .kubeconfig
                .or_else(|| text("CONCERT_KUBECONFIG").filter(|_| server.is_none()).map(Into::into)),
            context: self.context.or_else(|| text("CONCERT_CONTEXT").filter(|_| server.is_none())),
            namespace: self.namespace.or_else(|| text("CONCERT_NAMESPACE")),
            insecure_skip_tls_verify: self.insecure_skip_tls_verify,
            server,
        }
    }
}

impl Places {
    /// Of whoever runs this process.
    pub fn of_user() -> Self {
        let path = |name: &str| variable(name).filter(|it| !it.is_empty()).map(PathBuf::from);
        Self {
            kubeconfig: variable("KUBECONFIG").filter(|it| !it.is_empty()),
            home: path("HOME"),
            config_home: path("XDG_CONFIG_HOME"),
            data_home: path("XDG_DATA_HOME"),
            data_dir: path("CONCERT_DATA_DIR"),
        }
    }

    /// The file that `concert login` writes.
    pub fn login(&self) -> Option<PathBuf> {
        let base = self.config_home.clone().or_else(|| Some(self.home.as_ref()?.join(".config")))?;
        Some(base.join("concert/kubeconfig"))
    }

    /// Where `concert serve` keeps everything unless told otherwise.
    pub fn data(&self) -> Option<PathBuf> {
        if self.data_dir.is_some() {
            return self.data_dir.clone();
        }
        let base = self.data_home.clone().or_else(|| Some(self.home.as_ref()?.join(".local/share")))?;
        Some(base.join("concert"))
    }

    /// The authority of `concert serve` on this machine, if there is one and we may read it. Whoever can
    /// write it owns that server, so nobody is believed on first sight.
    fn authority(&self) -> Option<PathBuf> {
        let path = self.data()?.join("tls/ca.crt");
        std::fs::File::open(&path).is_ok().then_some(path)
    }

    /// Files to look into, in this order, each with what it is called.
    fn files(&self) -> Vec<(Vec<PathBuf>, String)> {
        let listed = self.kubeconfig.as_ref().map(|list| {
            let paths = list.split(':').filter(|it| !it.is_empty()).map(PathBuf::from).collect();
            (paths, format!("KUBECONFIG ({list})"))
        });
        let one = |path: PathBuf, what: &str| {
            let name = format!("{what} ({})", path.display());
            (vec![path], name)
        };
        let login = self.login().map(|it| one(it, "concert login"));
        let user = self.home.as_ref().map(|it| one(it.join(".kube/config"), "kubectl's file"));
        let local = self.data().map(|it| one(it.join("kubeconfig"), "concert serve on this machine"));
        listed.into_iter().chain(login).chain(user).chain(local).collect()
    }
}

/// Finds the server that is meant.
pub fn resolve(flags: &Flags, places: &Places) -> Result<Connection, Advice> {
    let (mut document, source) = match (&flags.server, &flags.kubeconfig) {
        (Some(server), None) => (direct(flags, server, places)?.to_document(), "--server".to_owned()),
        (_, Some(path)) => (from_file(path, flags, places)?, path.display().to_string()),
        (None, None) => from_places(flags, places)?,
    };
    if let Some(token) = flags.token.as_ref().filter(|_| flags.server.is_none() || flags.kubeconfig.is_some())
    {
        document["users"][0]["user"] = json!({ "token": token });
    }
    refuse_clear_token(&document)?;
    let context = kubeconfig::namespace(&document).map(str::to_owned);
    let namespace = flags.namespace.clone().or(context).unwrap_or_else(|| "default".to_owned());
    Ok(Connection { document, namespace, source })
}

fn direct(flags: &Flags, server: &str, places: &Places) -> Result<Direct, Advice> {
    let is_url = server.starts_with("https://") || server.starts_with("http://");
    if !is_url || server.parse::<http::Uri>().map_or(true, |it| it.host().is_none()) {
        let what = format!("--server: {server} is no address");
        return Err(Advice::new(what, "--server https://HOST:PORT"));
    }
    let is_own = server.starts_with("https://") && is_here(server) && !flags.insecure_skip_tls_verify;
    let authority = flags.certificate_authority.clone();
    Ok(Direct {
        server: server.trim_end_matches('/').to_owned(),
        token: flags.token.clone(),
        certificate_authority: authority.or_else(|| places.authority().filter(|_| is_own)),
        is_unverified: flags.insecure_skip_tls_verify,
        namespace: None,
    })
}

/// A file that was named must be there; a server that was named takes the place of its own.
fn from_file(path: &Path, flags: &Flags, places: &Places) -> Result<Value, Advice> {
    let Some(document) = kubeconfig::read(&[path.to_owned()])? else {
        let what = format!("{} does not exist", path.display());
        return Err(Advice::new(what, "concert kubeconfig > FILE writes one"));
    };
    let mut picked = kubeconfig::pick(&document, flags.context.as_deref())?;
    if let Some(server) = &flags.server {
        picked["clusters"][0]["cluster"]["server"] = json!(direct(flags, server, places)?.server);
    }
    Ok(picked)
}

fn from_places(flags: &Flags, places: &Places) -> Result<(Value, String), Advice> {
    for (paths, source) in places.files() {
        if let Some(document) = kubeconfig::read(&paths)? {
            return Ok((kubeconfig::pick(&document, flags.context.as_deref())?, source));
        }
    }
    let what = "no server is known: none is named, there is no kubeconfig, and none runs on this machine";
    Err(Advice::new(what, "start one with `concert serve --dev`, or name one with --server URL"))
}

/// A token on a wire that anybody can read is nobody's secret any more.
fn refuse_clear_token(document: &Value) -> Result<(), Advice> {
    let server = kubeconfig::server(document);
    let has_token = document["users"][0]["user"]["token"].is_string();
    if has_token && server.starts_with("http://") && !is_here(server) {
        let what = format!("a token would cross the network in clear text on its way to {server}");
        return Err(Advice::new(what, "use https://, or leave the token out"));
    }
    Ok(())
}

/// Whether it is on this machine.
fn is_here(server: &str) -> bool {
    let host = server.parse::<http::Uri>().ok().and_then(|it| it.host().map(str::to_owned));
    let host = host.unwrap_or_default();
    // A name may begin like an address: 127.0.0.1.example.com is elsewhere.
    let is_loopback = |text: &str| text.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback());
    host == "localhost" || is_loopback(host.trim_start_matches('[').trim_end_matches(']'))
}

impl Connection {
    /// What flags and this machine say.
    pub fn find(flags: &Flags) -> Result<Self, Advice> {
        let mut flags = flags.clone().with_variables(variable);
        // A token on the command line can be seen by others on the machine, so it may come from elsewhere.
        if flags.token.as_deref() == Some("-") {
            let mut line = String::new();
            std::io::stdin().read_line(&mut line).map_err(|error| {
                Advice::new(format!("cannot read a token from standard input: {error}"), "--token TOKEN")
            })?;
            flags.token = Some(line.trim().to_owned());
        }
        resolve(&flags, &Places::of_user())
    }

    pub fn server(&self) -> &str {
        kubeconfig::server(&self.document)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(server: Option<&str>, token: Option<&str>) -> Flags {
        Flags { server: server.map(Into::into), token: token.map(Into::into), ..Flags::default() }
    }

    /// A kubeconfig that leads to `https://NAME`.
    fn write(path: &Path, name: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let direct = Direct {
            server: format!("https://{name}"),
            token: Some(format!("token of {name}")),
            namespace: Some(format!("{name}-namespace")),
            ..Direct::default()
        };
        std::fs::write(path, direct.to_document().to_string()).unwrap();
    }

    #[test]
    fn the_nearest_place_counts() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_owned();
        let mut places = Places { home: Some(home.clone()), ..Places::default() };
        let found = |flags: &Flags, places: &Places| resolve(flags, places).map(|it| it.server().to_owned());
        let none = resolve(&Flags::default(), &places).unwrap_err();
        assert!(none.to_string().contains("no server is known") && none.hint.contains("concert serve"));
        for (path, name) in [
            (".local/share/concert/kubeconfig", "local"),
            (".kube/config", "kubectl"),
            (".config/concert/kubeconfig", "login"),
        ] {
            write(&home.join(path), name);
            assert_eq!(found(&Flags::default(), &places).unwrap(), format!("https://{name}"));
        }
        write(&home.join("listed"), "listed");
        places.kubeconfig = Some(format!("{0}/absent:{0}/listed", home.display()));
        assert_eq!(found(&Flags::default(), &places).unwrap(), "https://listed");
        write(&home.join("named"), "named");
        let named = Flags { kubeconfig: Some(home.join("named")), ..Flags::default() };
        assert_eq!(found(&named, &places).unwrap(), "https://named");
        assert_eq!(found(&flags(Some("https://direct/"), None), &places).unwrap(), "https://direct");
        let absent = Flags { kubeconfig: Some(home.join("absent")), ..Flags::default() };
        assert!(found(&absent, &places).unwrap_err().to_string().contains("does not exist"));
    }

    #[test]
    fn an_identity_does_not_follow_to_another_server() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join(".kube/config"), "kubectl");
        let places = Places { home: Some(folder.path().to_owned()), ..Places::default() };
        let direct = resolve(&flags(Some("https://other"), None), &places).unwrap();
        assert_eq!(direct.document["users"][0]["user"], json!({}));
        assert_eq!(direct.namespace, "default");
        let token = resolve(&flags(None, Some("mine")), &places).unwrap();
        assert_eq!(token.document["users"][0]["user"]["token"], "mine");
        assert_eq!(token.namespace, "kubectl-namespace");
    }

    #[test]
    fn variables_fill_what_flags_leave_open() {
        let variable = |name: &str| match name {
            "CONCERT_SERVER" => Some("https://variable".to_owned()),
            "CONCERT_TOKEN" => Some("t".to_owned()),
            "CONCERT_KUBECONFIG" => Some("file".to_owned()),
            _ => None,
        };
        let filled = Flags::default().with_variables(variable);
        assert_eq!((filled.server.as_deref(), filled.kubeconfig), (Some("https://variable"), None));
        assert_eq!(
            flags(Some("https://flag"), None).with_variables(variable).server.as_deref(),
            Some("https://flag")
        );
        let file = Flags { kubeconfig: Some("mine".into()), ..Flags::default() }.with_variables(variable);
        assert_eq!((file.server, file.kubeconfig), (None, Some("mine".into())));
    }

    #[test]
    fn a_server_of_ours_on_this_machine_is_verified_with_its_own_authority() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places { data_dir: Some(folder.path().to_owned()), ..Places::default() };
        let authority = |flags: &Flags| {
            let found = resolve(flags, &places).unwrap();
            found.document["clusters"][0]["cluster"]["certificate-authority"].as_str().map(str::to_owned)
        };
        assert_eq!(authority(&flags(Some("https://127.0.0.1:8000"), None)), None, "there is none");
        let own = folder.path().join("tls/ca.crt");
        std::fs::create_dir(folder.path().join("tls")).unwrap();
        std::fs::write(&own, "-----BEGIN").unwrap();
        for server in ["https://127.0.0.1:8000", "https://localhost:8000", "https://[::1]:8000"] {
            assert_eq!(authority(&flags(Some(server), None)).as_deref(), own.to_str(), "{server}");
        }
        for server in ["https://far.example.com", "https://127.0.0.1.example.com", "http://127.0.0.1:8000"] {
            assert_eq!(authority(&flags(Some(server), None)), None, "{server}");
        }
        let named = Flags {
            certificate_authority: Some("mine.crt".into()),
            ..flags(Some("https://127.0.0.1:8000"), None)
        };
        assert_eq!(authority(&named).as_deref(), Some("mine.crt"));
        let unverified =
            Flags { insecure_skip_tls_verify: true, ..flags(Some("https://127.0.0.1:8000"), None) };
        assert_eq!(authority(&unverified), None);
    }

    #[test]
    fn what_is_no_address_and_tokens_in_clear_are_refused() {
        let refused =
            |server, token| resolve(&flags(Some(server), token), &Places::default()).unwrap_err().to_string();
        for server in ["localhost:8000", "ftp://x", "https://", "nonsense"] {
            assert!(refused(server, None).contains("no address"), "{server}");
        }
        assert!(refused("http://far.example.com", Some("t")).contains("clear text"));
        assert!(resolve(&flags(Some("http://127.0.0.1:8000"), Some("t")), &Places::default()).is_ok());
        assert!(resolve(&flags(Some("http://far.example.com"), None), &Places::default()).is_ok());
    }
}
