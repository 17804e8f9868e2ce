//! A network namespace whose only way out can be taken away and given back.
//!
//! Packets vanish and nobody is told: neither side hears of the other until it is mended.

use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};

/// A namespace, joined with this one by a pair of links. It goes with the value.
#[derive(Debug)]
pub struct Network {
    name: String,
    link: String,
    /// The end of the link that is in the namespace.
    there: String,
    host: String,
}

impl Network {
    /// None where it may not be made, which is said on stderr; on CI that is a failure.
    ///
    /// # Errors
    /// There can be none, on CI.
    pub fn make() -> Result<Option<Self>> {
        match Self::join() {
            Ok(network) => Ok(Some(network)),
            Err(error) => {
                #[expect(clippy::disallowed_methods, reason = "a test asks where it runs")]
                let is_ci = std::env::var("CI").is_ok_and(|it| it == "true");
                ensure!(
                    !is_ci,
                    "network namespaces cannot be made here: {error:#}; run scripts/services as root"
                );
                eprintln!("skipped: network namespaces cannot be made here: {error:#}");
                Ok(None)
            }
        }
    }

    fn join() -> Result<Self> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let (id, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let mark = format!("{id}x{number}");
        let (name, link, there) = (format!("concert-{mark}"), format!("c{mark}h"), format!("c{mark}r"));
        // Addresses that are set aside for measurements, so nobody routes them.
        let subnet = format!("198.{}.{}", 18 + number % 2, id % 250);
        ip(&["netns", "add", &name])?;
        let network = Self { name, link, there, host: format!("{subnet}.1") };
        let Self { name, link, there, host } = &network;
        ip(&["link", "add", link, "type", "veth", "peer", "name", there, "netns", name])?;
        ip(&["addr", "add", &format!("{host}/30"), "dev", link])?;
        ip(&["link", "set", link, "up"])?;
        ip(&["-n", name, "addr", "add", &format!("{subnet}.2/30"), "dev", there])?;
        ip(&["-n", name, "link", "set", there, "up"])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        Ok(network)
    }

    /// What a process in the namespace starts with: the program and its arguments follow.
    pub fn command(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]);
        command
    }

    /// Takes the way out away.
    ///
    /// # Errors
    /// It cannot be.
    pub fn cut(&self) -> Result<()> {
        self.set("down")
    }

    /// Gives it back.
    ///
    /// # Errors
    /// It cannot be.
    pub fn mend(&self) -> Result<()> {
        self.set("up")
    }

    /// The far end: without the near one, packets would look for another way out of this machine.
    fn set(&self, state: &str) -> Result<()> {
        ip(&["-n", &self.name, "link", "set", &self.there, state])
    }

    /// Lets both sides reach a port of loopback; answers with where. It ends with the process.
    ///
    /// # Errors
    /// There is no port left.
    pub fn forward(&self, port: u16) -> Result<String> {
        let listener = TcpListener::bind((self.host.as_str(), 0))?;
        let at = listener.local_addr()?.to_string();
        aside(move || {
            for there in listener.incoming() {
                let pair = there.and_then(|there| Ok((there, TcpStream::connect(("127.0.0.1", port))?)));
                // Whoever is not there now may be there for the next one.
                let Ok((there, here)) = pair else { continue };
                if let (Ok(back), Ok(forth)) = (there.try_clone(), here.try_clone()) {
                    pump(back, forth);
                    pump(here, there);
                }
            }
        });
        Ok(at)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The other end goes with it.
        let _ = ip(&["link", "del", &self.link]);
        let _ = ip(&["netns", "del", &self.name]);
    }
}

fn ip(words: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(words).output().context("cannot run ip")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", words.join(" "), said.trim());
    Ok(())
}

/// On a thread that ends with the process: what it waits for cannot be waited for in another way.
fn aside(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().name("aside".to_owned()).spawn(work);
    drop(thread.expect("a test can have threads"));
}

/// Carries bytes one way, and the end of them.
fn pump(mut from: TcpStream, mut to: TcpStream) {
    aside(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}
