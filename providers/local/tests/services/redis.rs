//! A Redis client of a few lines, which shares nothing with the provider's.

use concert_provider::Details;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection made from nothing but connection details, as an application would.
pub struct Talk(TcpStream);

impl Talk {
    pub async fn open(details: &Details) -> Self {
        let text = |name: &str| String::from_utf8(details.get(name).unwrap().to_vec()).unwrap();
        let stream = TcpStream::connect(format!("{}:{}", text("endpoint"), text("port"))).await.unwrap();
        let mut talk = Self(stream);
        assert_eq!(talk.say(&format!("AUTH {}", text("password"))).await, "+OK\r\n");
        talk
    }

    /// One command in one line; its answer as it comes.
    pub async fn say(&mut self, command: &str) -> String {
        self.0.write_all(format!("{command}\r\n").as_bytes()).await.unwrap();
        let mut bytes = vec![0; 65_536];
        let count = self.0.read(&mut bytes).await.unwrap();
        String::from_utf8(bytes[..count].to_vec()).unwrap()
    }
}
