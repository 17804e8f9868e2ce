//! As much of the Redis protocol as it takes to look at a server and to tell it what to be.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

/// How long a server on the same machine may take to answer. One that is busy longer is shown as such.
const PATIENCE: Duration = Duration::from_secs(3);

/// Longest reply that is read: `INFO` has a few thousand bytes.
const BYTES_MAX: usize = 1 << 20;

/// Why there was no answer that helps.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("nobody listens")]
    NobodyListens,
    #[error("it does not accept the password")]
    WrongPassword,
    #[error("it did not answer within {} s", PATIENCE.as_secs())]
    Late,
    #[error("it refused: {0}")]
    Refused(String),
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    #[error("whoever listens does not speak the Redis protocol")]
    NotRedis,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

/// A connection that has shown its password.
pub(super) struct Client(BufStream<TcpStream>);

impl Client {
    /// Connects to a port of this machine.
    pub(super) async fn open(port: u16, password: &str) -> Result<Self, Fault> {
        let connecting = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        let stream = match in_time(async { Ok(connecting.await) }).await? {
            Ok(stream) => stream,
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                return Err(Fault::NobodyListens);
            }
            Err(error) => return Err(error.into()),
        };
        let mut client = Self(BufStream::new(stream));
        match client.call(&["AUTH", password]).await {
            Ok(_) => Ok(client),
            // Also what it says when somebody took its password away.
            Err(Fault::Refused(_)) => Err(Fault::WrongPassword),
            Err(fault) => Err(fault),
        }
    }

    /// One setting.
    pub(super) async fn setting(&mut self, name: &str) -> Result<String, Fault> {
        let mut pair = self.call(&["CONFIG", "GET", name]).await?;
        pair.pop().filter(|_| pair.len() == 1).ok_or(Fault::NotRedis)
    }

    /// Changes one setting until the server ends.
    pub(super) async fn set(&mut self, name: &str, value: &str) -> Result<(), Fault> {
        self.call(&["CONFIG", "SET", name, value]).await.map(drop)
    }

    /// What it says of itself.
    pub(super) async fn about(&mut self) -> Result<BTreeMap<String, String>, Fault> {
        let text = self.call(&["INFO"]).await?.pop().unwrap_or_default();
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        Ok(pairs.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect())
    }

    /// One command; its answer as a list, of one for answers that are none.
    async fn call(&mut self, words: &[&str]) -> Result<Vec<String>, Fault> {
        in_time(async {
            self.0.write_all(&command(words)).await?;
            self.0.flush().await?;
            self.reply().await
        })
        .await
    }

    async fn reply(&mut self) -> Result<Vec<String>, Fault> {
        let (mark, rest) = self.line().await?;
        if mark != '*' {
            return Ok(vec![self.single(mark, rest).await?]);
        }
        let count: usize = rest.parse().map_err(|_| Fault::NotRedis)?;
        let mut replies = Vec::new();
        for _ in 0..count.min(BYTES_MAX) {
            let (mark, rest) = self.line().await?;
            replies.push(self.single(mark, rest).await?);
        }
        Ok(replies)
    }

    async fn single(&mut self, mark: char, rest: String) -> Result<String, Fault> {
        match mark {
            '+' | ':' => Ok(rest),
            '-' => Err(Fault::Refused(rest)),
            '$' => {
                let length: usize = rest.parse().map_err(|_| Fault::NotRedis)?;
                if length > BYTES_MAX {
                    return Err(Fault::NotRedis);
                }
                let mut bytes = vec![0; length + 2];
                self.0.read_exact(&mut bytes).await?;
                bytes.truncate(length);
                String::from_utf8(bytes).map_err(|_| Fault::NotRedis)
            }
            _ => Err(Fault::NotRedis),
        }
    }

    async fn line(&mut self) -> Result<(char, String), Fault> {
        let mut line = String::new();
        let mut limited = (&mut self.0).take(4096);
        match limited.read_line(&mut line).await {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(Fault::NotRedis),
            read => read?,
        };
        if line.is_empty() {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let mark = line.remove(0);
        line.strip_suffix("\r\n").map(|rest| (mark, rest.to_owned())).ok_or(Fault::NotRedis)
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or(Err(Fault::Late))
}

fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Somebody who answers every connection with the same bytes.
    async fn against(answer: &'static [u8]) -> Result<Client, Fault> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(answer).await.unwrap();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            client = Client::open(port, "secret") => client,
            () = answering => unreachable!("it answers until it is dropped"),
        }
    }

    #[test]
    fn words_are_counted_so_that_none_can_break_out() {
        assert_eq!(command(&["AUTH", "a\r\nb"]), b"*2\r\n$4\r\nAUTH\r\n$4\r\na\r\nb\r\n");
    }

    #[tokio::test]
    async fn strangers_on_the_port_are_told_apart() {
        assert!(against(b"+OK\r\n").await.is_ok());
        let refused = b"-WRONGPASS invalid username-password pair\r\n";
        assert!(matches!(against(refused).await, Err(Fault::WrongPassword)));
        for garbage in [b"HTTP/1.1 400\r\n".as_slice(), b"$99999999999\r\n", b"$-1\r\n", b"\xff\xff\r\n"] {
            assert!(matches!(against(garbage).await, Err(Fault::NotRedis)), "{garbage:?}");
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        assert!(matches!(Client::open(port, "secret").await, Err(Fault::NobodyListens)));
    }
}
