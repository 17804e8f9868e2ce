//! The plugin host: a program that runs plugins as workers, started and watched over.
//!
//! It gets the address of the API, a token of its own and the certificates to verify us with. When it
//! ends it is started again, later each time; when we end it is asked to, and after a while made to. Its
//! standard input stays open for as long as we live, so that it notices should we be killed.

use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use concert_api::auth::{PLUGIN_HOSTS, issue_for_user, token_kind};
use concert_engine::{OnExit, Shutdown, Tasks};
use concert_model::{Object, ObjectKey};
use concert_store::{By, Chance, Clock, Delete, Local, Part, Store};
use serde_json::json;
use tokio::process::{Child, Command};
use tracing::{info, warn};

use super::config::Plugins;
use super::data::DataFolder;
use super::error::Error;
use super::way_in::WayIn;
use crate::config;

/// Who the host is.
const USER: &str = "system:plugin-host";
/// What it is called when it is installed.
const PROGRAM: &str = "no8s-plugin-host";
/// The certificates it verifies us with.
const AUTHORITY: &str = "plugin-host-ca.crt";
/// What its token is called in the store: the next start of this process takes it back, and no other.
const TOKEN: &str = "plugin-host-token";
/// What is ours alone. Plugins are other people's programs, and have the host's token to work with.
const KEPT_BACK: [&str; 5] =
    ["JWT_SECRET_KEY", "INITIAL_ADMIN_USERNAME", "INITIAL_ADMIN_PASSWORD", "CONCERT_STORE", "CONCERT_TOKEN"];
/// Between its end and its next start, first and longest.
const DELAY_MIN: Duration = Duration::from_secs(1);
const DELAY_MAX: Duration = Duration::from_secs(60);
/// Who ran for so long did not fail at once.
const STEADY: Duration = Duration::from_secs(60);
/// How long it may take to end when asked to.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The program, and what it is told.
#[derive(Clone)]
struct Host {
    command: Vec<PathBuf>,
    variables: Vec<(&'static str, String)>,
    clock: Arc<dyn Clock>,
}

/// Starts the host that `plugins` says, among `tasks`. None is no reason not to serve.
pub(super) async fn start(
    plugins: &Plugins,
    way_in: &WayIn,
    folder: &DataFolder,
    (store, clock, chance): (&Local, &Arc<dyn Clock>, &Chance),
    is_dev: bool,
    tasks: &Tasks,
) -> Result<(), Error> {
    let Some(command) = find(plugins, config::variable("PATH").as_deref()).await else { return Ok(()) };
    let mut variables = vec![("CONCERT_URL", way_in.url()), ("CONCERT_SUPERVISED", "1".to_owned())];
    if let Some(authority) = way_in.authority() {
        let path = folder.path().join(AUTHORITY);
        std::fs::write(&path, authority).map_err(|error| Error::Data { path: path.clone(), error })?;
        variables.push(("CONCERT_CA", path.display().to_string()));
    }
    if !is_dev {
        let path = folder.path().join(TOKEN);
        variables.push(("CONCERT_TOKEN", token(&path, (store, clock, chance)).await?));
    }
    let host = Host { command, variables, clock: clock.clone() };
    let shutdown = tasks.shutdown().clone();
    tasks.spawn("plugin-host", OnExit::Log, async move { host.run(&shutdown).await });
    Ok(())
}

impl Host {
    /// Runs it again and again until asked to stop.
    async fn run(&self, shutdown: &Shutdown) {
        let mut delay = DELAY_MIN;
        while !shutdown.is_requested() {
            let started = self.clock.elapsed();
            match self.once(shutdown).await {
                Ok(status) if shutdown.is_requested() => info!(%status, "the plugin host has ended"),
                Ok(status) => warn!(%status, ?delay, "the plugin host ended and is started again"),
                Err(error) => warn!(%error, ?delay, "the plugin host cannot be started"),
            }
            if self.clock.elapsed().saturating_sub(started) >= STEADY {
                delay = DELAY_MIN;
            }
            tokio::select! {
                biased;
                () = shutdown.requested() => return,
                () = self.clock.sleep(delay) => {}
            }
            delay = delay.saturating_mul(2).min(DELAY_MAX);
        }
    }

    async fn once(&self, shutdown: &Shutdown) -> io::Result<ExitStatus> {
        let mut child = self.spawn()?;
        // Closed when we end, however that happens: then the host ends too. Waiting would close it at once.
        let held = child.stdin.take();
        info!(program = %self.command[0].display(), pid = child.id(), "the plugin host runs");
        tokio::select! {
            biased;
            status = child.wait() => return status,
            () = shutdown.requested() => {}
        }
        terminate(&child).await;
        drop(held);
        tokio::select! {
            biased;
            status = child.wait() => status,
            () = self.clock.sleep(PATIENCE) => {
                child.kill().await?;
                child.wait().await
            }
        }
    }

    fn spawn(&self) -> io::Result<Child> {
        // What it says is talk, wherever it says it.
        let talk = || io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
        self.command().stdin(Stdio::piped()).stdout(talk()?).stderr(talk()?).kill_on_drop(true).spawn()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        for name in KEPT_BACK {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// Asks a process to end. The signal is sent by the shell's own `kill`, which every system has.
async fn terminate(child: &Child) {
    let Some(pid) = child.id() else { return };
    let mut kill = Command::new("/bin/sh");
    kill.args(["-c", "kill -TERM \"$1\"", "sh", &pid.to_string()]);
    if let Err(error) = kill.stdin(Stdio::null()).status().await {
        warn!(%error, pid, "cannot ask the plugin host to end");
    }
}

/// The command of the host; none if there is none, or none is wanted.
async fn find(plugins: &Plugins, path: Option<&str>) -> Option<Vec<PathBuf>> {
    match plugins {
        Plugins::Off => None,
        Plugins::Program(program) => Some(vec![program.clone()]),
        Plugins::Auto => {
            if let Some(program) = on_path(PROGRAM, path) {
                return Some(vec![program]);
            }
            let python = on_path("python3", path)?;
            if !has_package(&python).await {
                info!("no plugin host is installed");
                return None;
            }
            Some(vec![python, "-m".into(), "no8s_operator.host".into()])
        }
    }
}

fn on_path(program: &str, path: Option<&str>) -> Option<PathBuf> {
    std::env::split_paths(path?).map(|folder| folder.join(program)).find(|it| it.is_file())
}

async fn has_package(python: &Path) -> bool {
    let look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('no8s_operator') is None)";
    let quiet = Stdio::null;
    let mut command = Command::new(python);
    command.args(["-c", look]).stdin(quiet()).stdout(quiet()).stderr(quiet()).kill_on_drop(true);
    command.status().await.is_ok_and(|it| it.success())
}

/// A token that lets the host register workers and, as one of [`PLUGIN_HOSTS`], read and write resources,
/// and nothing else.
async fn token(
    path: &Path,
    (store, clock, chance): (&Local, &Arc<dyn Clock>, &Chance),
) -> Result<String, Error> {
    let by = By { manager: "concert".into(), ..By::actor("concert") }.because("the plugin host starts");
    let api = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRole", "metadata": {"name": USER},
        "rules": [
            {"apiGroups": ["concert.dev"], "resources": ["workers"], "verbs": ["*"]},
        ],
    });
    let binding = json!({
        "apiVersion": format!("{api}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": USER},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": USER},
        "subjects": [{"apiGroup": api, "kind": "User", "name": USER}],
    });
    for value in [role, binding] {
        let object = Object::from_value(value).map_err(Error::store)?;
        store.apply(object, Part::Main, true, &by).await.map_err(Error::store)?;
    }
    forget_token(path, store, &by).await.map_err(Error::store)?;
    let issued = issue_for_user(store, &**clock, chance, USER, &[PLUGIN_HOSTS], Some(LIFETIME), &by).await;
    let issued = issued.map_err(Error::store)?;
    std::fs::write(path, &*issued.key.name).map_err(|error| Error::Data { path: path.into(), error })?;
    Ok(issued.token)
}

/// Takes back what the host of the last start had. Other replicas have hosts with tokens of their own.
async fn forget_token(path: &Path, store: &Local, by: &By) -> Result<(), concert_store::Error> {
    let Ok(name) = std::fs::read_to_string(path) else { return Ok(()) };
    let key = ObjectKey::cluster(token_kind(), name.trim());
    match store.get(&key).await {
        // What somebody wrote into the file must not end the token of somebody else.
        Ok(token) if token.decode().spec()["user"] == USER => {}
        Ok(_) | Err(concert_store::Error::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error),
    }
    match store.delete(&key, &Delete::default(), by).await {
        Ok(_) | Err(concert_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// How long a token of the host lives; each start makes one.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use concert_engine::TokioSpawn;
    use concert_store::SystemClock;

    use super::*;

    fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("host");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn host(program: PathBuf, file: &Path) -> Host {
        let clock = Arc::new(SystemClock::new());
        let variables = vec![("CONCERT_URL", file.display().to_string())];
        Host { command: vec![program], variables, clock }
    }

    #[test]
    fn what_is_ours_alone_does_not_reach_the_host() {
        let host = host("/x".into(), Path::new("here"));
        let command = host.command();
        let said: Vec<_> = command.as_std().get_envs().collect();
        for name in ["JWT_SECRET_KEY", "INITIAL_ADMIN_PASSWORD", "CONCERT_STORE", "CONCERT_TOKEN"] {
            assert!(said.contains(&(name.as_ref(), None)), "{name}: {said:?}");
        }
        let host = Host { variables: vec![("CONCERT_TOKEN", "its own".into())], ..host };
        let command = host.command();
        let own = command.as_std().get_envs().find(|(name, _)| *name == "CONCERT_TOKEN");
        assert_eq!(own, Some(("CONCERT_TOKEN".as_ref(), Some("its own".as_ref()))));
    }

    #[tokio::test]
    async fn a_start_takes_back_its_own_token_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let chance = Chance::seeded(1);
        let config = concert_store::Config::new(clock.clone(), Chance::seeded(2)).inline();
        let store = Local::open(Arc::new(concert_store::backend::memory::Memory::new()), config).unwrap();
        let gate = concert_api::auth::Gate::guarded(store.clone(), clock.clone());
        let counts = async |token: &str| {
            let value: http::HeaderValue = format!("Bearer {token}").parse().unwrap();
            let headers: http::HeaderMap = [(http::header::AUTHORIZATION, value)].into_iter().collect();
            gate.authenticate(&headers).await.is_ok()
        };
        let around = (&store, &clock, &chance);
        let (here, there) = (folder.path().join("here"), folder.path().join("there"));
        let first = token(&here, around).await.unwrap();
        let other = token(&there, around).await.unwrap();
        assert!(counts(&first).await && counts(&other).await);
        let second = token(&here, around).await.unwrap();
        assert!(!counts(&first).await && counts(&other).await && counts(&second).await);
    }

    #[tokio::test]
    async fn nothing_is_started_that_is_not_there_or_not_wanted() {
        assert_eq!(find(&Plugins::Off, None).await, None);
        assert_eq!(find(&Plugins::Auto, Some("/nowhere")).await, None);
        assert_eq!(find(&Plugins::Program("/x".into()), None).await, Some(vec!["/x".into()]));
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join(PROGRAM);
        std::fs::write(&program, "").unwrap();
        let path = format!("/nowhere:{}", folder.path().display());
        assert_eq!(find(&Plugins::Auto, Some(&path)).await, Some(vec![program]));
    }

    #[tokio::test]
    async fn a_host_that_ends_is_started_again_and_ends_with_us() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("starts");
        // Ends at once the first time; then waits to be asked, and says that it was.
        let text = "trap 'echo asked >> \"$CONCERT_URL\"; exit 0' TERM\necho start >> \"$CONCERT_URL\"\n\
                    [ $(wc -l < \"$CONCERT_URL\") -lt 2 ] && exit 3\nwhile :; do sleep 0.05; done";
        let host = host(script(folder.path(), text), &file);
        let tasks = Tasks::new(Arc::new(TokioSpawn::current()), Arc::new(SystemClock::new()));
        let shutdown = tasks.shutdown().clone();
        tasks.spawn("plugin-host", OnExit::Log, async move { host.run(&shutdown).await });
        let clock = SystemClock::new();
        while std::fs::read_to_string(&file).unwrap_or_default().lines().count() < 2 {
            assert!(clock.elapsed() < Duration::from_secs(60), "it is not started again");
            clock.sleep(Duration::from_millis(10)).await;
        }
        assert!(tasks.stop(Duration::from_secs(30)).await.is_empty());
        let told = std::fs::read_to_string(&file).unwrap();
        assert_eq!(told.lines().collect::<Vec<_>>(), ["start", "start", "asked"]);
    }
}
