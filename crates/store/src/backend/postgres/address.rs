//! Where the database is, from a URL: what libpq takes, and `schema`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use super::trouble::Trouble;

/// The schema that has the tables, unless the URL names another.
const SCHEMA: &str = "concert";
/// How long connecting may take, and then again what a server says before it lets anybody in.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A server that does not take what was sent for so long is gone.
const UNSENT_LIMIT: Duration = Duration::from_secs(10);
/// A connection on which nothing happens is tried after this.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// Where the database is and how to get there. Shown without the password.
#[derive(Clone)]
pub struct Address {
    pub(super) config: Config,
    pub(super) schema: String,
    /// The authorities to trust, instead of the machine's.
    pub(super) authorities: Option<PathBuf>,
}

impl Address {
    /// True if this text is meant to be such an address.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…&sslrootcert=…&schema=…`.
    ///
    /// # Errors
    /// [`Trouble::Url`], which does not repeat the text: it may hold a password.
    pub fn parse(text: &str) -> Result<Self, Trouble> {
        if !Self::is_one(text) {
            return Err(url("it does not start with postgres://"));
        }
        let mut said = Said::default();
        let rest = said.take_from(text)?;
        let mut config = Config::from_str(&rest).map_err(|error| url(reason(&error)))?;
        if config.get_hosts().is_empty() {
            return Err(url("it names no host"));
        }
        if config.get_dbname().is_none() {
            return Err(url("it names no database"));
        }
        check_counts(&config)?;
        config.ssl_mode(said.ssl_mode(&config)?);
        if config.get_application_name().is_none() {
            config.application_name("concert");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_LIMIT);
        }
        config.tcp_user_timeout(UNSENT_LIMIT).keepalives_idle(IDLE_LIMIT);
        config.keepalives_interval(Duration::from_secs(2)).keepalives_retries(3);
        if config.get_hosts().len() > 1 {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let schema = said.schema.unwrap_or_else(|| SCHEMA.to_owned());
        check_schema(&schema)?;
        Ok(Self { config, schema, authorities: said.authorities })
    }

    /// Each server by itself, in the order in which they are asked. (The driver would ask them one after the
    /// other as well, and wait for the first as long as that one likes.)
    pub(super) fn servers(&self) -> Vec<Config> {
        let hosts = self.config.get_hosts().iter().enumerate();
        hosts.map(|(place, host)| alone(&self.config, place, host)).collect()
    }

    /// The role that connects.
    pub(super) fn role(&self) -> &str {
        self.config.get_user().unwrap_or_default()
    }

    pub(super) fn database(&self) -> &str {
        self.config.get_dbname().unwrap_or_default()
    }
}

/// What the driver of connections does not know, or knows otherwise.
#[derive(Default)]
struct Said {
    mode: Option<String>,
    authorities: Option<PathBuf>,
    schema: Option<String>,
}

impl Said {
    /// Takes our own parameters out of the text.
    fn take_from(&mut self, text: &str) -> Result<String, Trouble> {
        let Some((front, query)) = text.split_once('?') else { return Ok(text.to_owned()) };
        let mut kept = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = || decoded(value).ok_or_else(|| url(format!("{name} is not encoded correctly")));
            match name {
                "sslmode" => self.mode = Some(value()?),
                "sslrootcert" => self.authorities = Some(value()?.into()),
                "schema" => self.schema = Some(value()?),
                _ => kept.push(pair),
            }
        }
        Ok(if kept.is_empty() { front.to_owned() } else { format!("{front}?{}", kept.join("&")) })
    }

    /// TLS is used and verified unless it is switched off, or the server is on this machine.
    fn ssl_mode(&self, config: &Config) -> Result<SslMode, Trouble> {
        match self.mode.as_deref() {
            Some("disable") => Ok(SslMode::Disable),
            Some("require" | "verify-ca" | "verify-full") => Ok(SslMode::Require),
            Some("allow" | "prefer") => Err(url(
                "sslmode must be verify-full or disable: the others let anybody on the way switch it off",
            )),
            Some(_) => Err(url("sslmode must be verify-full or disable")),
            None if self.authorities.is_some() => Ok(SslMode::Require),
            None if config.get_hosts().iter().all(is_here) => Ok(SslMode::Disable),
            None => Ok(SslMode::Require),
        }
    }
}

/// What an address says of one of its servers, and of all of them.
fn alone(all: &Config, place: usize, host: &Host) -> Config {
    let mut one = Config::new();
    match host {
        Host::Tcp(name) => one.host(name),
        Host::Unix(path) => one.host_path(path),
    };
    if let Some(at) = all.get_hostaddrs().get(place) {
        one.hostaddr(*at);
    }
    if let Some(port) = all.get_ports().get(place).or(all.get_ports().first()) {
        one.port(*port);
    }
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(database) = all.get_dbname() {
        one.dbname(database);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    if let Some(limit) = all.get_connect_timeout() {
        one.connect_timeout(*limit);
    }
    if let Some(limit) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*limit);
    }
    one.keepalives(all.get_keepalives()).keepalives_idle(all.get_keepalives_idle());
    if let Some(interval) = all.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.ssl_mode(all.get_ssl_mode()).ssl_negotiation(all.get_ssl_negotiation());
    one.channel_binding(all.get_channel_binding()).load_balance_hosts(all.get_load_balance_hosts());
    one.target_session_attrs(all.get_target_session_attrs());
    one
}

/// One port is for all servers; otherwise each has its own.
fn check_counts(config: &Config) -> Result<(), Trouble> {
    let hosts = config.get_hosts().len();
    if config.get_ports().len() > 1 && config.get_ports().len() != hosts {
        return Err(url("it must name one port, or as many as hosts"));
    }
    if !config.get_hostaddrs().is_empty() && config.get_hostaddrs().len() != hosts {
        return Err(url("hostaddr must name as many addresses as there are hosts"));
    }
    Ok(())
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|it| it.is_loopback())
        }
        Host::Unix(_) => true,
    }
}

/// A name that needs no quotes, so that nobody wonders which one is meant.
fn check_schema(name: &str) -> Result<(), Trouble> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let is_good = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(is_word)
        && name.len() <= 40
        && !name.starts_with("pg_");
    if is_good { Ok(()) } else { Err(url("schema must be 1 to 40 of a-z, 0-9 and _")) }
}

/// Per cent signs and two digits, back to what they stand for.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        rest = after;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}

fn url(why: impl Into<String>) -> Trouble {
    Trouble::Url { why: why.into() }
}

/// What the parser found, which names parameters but no values.
fn reason(error: &tokio_postgres::Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

/// Host, port, database and schema: what may be shown.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        for (i, host) in self.config.get_hosts().iter().enumerate() {
            let ports = self.config.get_ports();
            let port = ports.get(i).or(ports.first()).copied().unwrap_or(5432);
            let comma = if i == 0 { "" } else { "," };
            match host {
                Host::Tcp(name) => write!(f, "{comma}{name}:{port}")?,
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
            }
        }
        write!(f, "/{}?schema={}", self.database(), self.schema)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(text: &str) -> SslMode {
        Address::parse(text).unwrap().config.get_ssl_mode()
    }

    #[test]
    fn tls_is_verified_unless_switched_off_or_on_this_machine() {
        assert_eq!(mode("postgres://u@db.example.com/c"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example.com/c?sslmode=verify-full"), SslMode::Require);
        assert_eq!(mode("postgres://u@db.example.com/c?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://u@127.0.0.1/c"), SslMode::Disable);
        assert_eq!(mode("postgres://u@localhost/c?sslrootcert=%2Fca.crt"), SslMode::Require);
        assert_eq!(mode("postgres://u@localhost,db/c"), SslMode::Require);
    }

    #[test]
    fn what_is_shown_has_no_password() {
        let address = Address::parse("postgresql://me:s%40cret@a:1,b:2/things?schema=x&connect_timeout=3");
        let address = address.unwrap();
        assert_eq!(address.to_string(), "postgres://a:1,b:2/things?schema=x");
        assert_eq!(format!("{address:?}"), address.to_string());
        assert_eq!(address.config.get_password(), Some(b"s@cret".as_slice()));
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn each_server_keeps_what_is_said_of_all() {
        let said = "connect_timeout=3&options=-c%20geqo%3Doff&application_name=me&tcp_user_timeout=7&keepalives=0\
                    &keepalives_idle=8&keepalives_interval=9&keepalives_retries=4&channel_binding=require\
                    &load_balance_hosts=random&target_session_attrs=read-write&hostaddr=10.0.0.1";
        let one = Address::parse(&format!("postgres://me:secret@a:1/things?{said}")).unwrap();
        assert!(one.servers() == [one.config.clone()]);
        let here = Address::parse("postgres://me@%2Frun%2Fpostgresql/things").unwrap();
        assert!(here.servers() == [here.config.clone()]);

        let two = Address::parse(&format!("postgres://me:secret@a:1,b:2/things?{said},10.0.0.2")).unwrap();
        let servers = two.servers();
        let [first, second] = &servers[..] else { panic!("there are two") };
        assert!(*first == one.config);
        assert_eq!(second.get_hosts(), [Host::Tcp("b".into())]);
        assert_eq!(
            (second.get_ports(), second.get_hostaddrs()),
            (&[2][..], &["10.0.0.2".parse().unwrap()][..])
        );
        assert_eq!(second.get_password(), Some(b"secret".as_slice()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_without_repeating_it() {
        for (text, why) in [
            ("mysql://u:secret@h/d", "postgres://"),
            ("postgres:///d", "no host"),
            ("postgres://u:secret@h", "no database"),
            ("postgres://u:secret@h/d?sslmode=prefer", "verify-full or disable"),
            ("postgres://u:secret@h/d?sslmode=maybe", "verify-full or disable"),
            ("postgres://u:secret@h/d?schema=No", "schema must be"),
            ("postgres://u:secret@h/d?schema=%zz", "not encoded"),
            ("postgres://u:secret@h/d?colour=red", "colour"),
            ("postgres://u:secret@h,i/d?hostaddr=10.0.0.1", "hostaddr must name"),
        ] {
            let refusal = Address::parse(text).unwrap_err();
            let refusal = format!("{refusal}");
            assert!(refusal.contains(why) && !refusal.contains("secret"), "{text}: {refusal}");
        }
    }
}
