//! Connections to a cluster that somebody else named, which must not lead where only this machine can go.
//!
//! What a name leads to is decided anew for each connection, by whoever owns it. So it is looked at where the
//! connection is made, in the very answer that it is made by: a look before that proves nothing.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use concert_model::reach::is_refused;
use http::Request;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use kube::Client;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use tower::util::option_layer;
use tower::{BoxError, Service, ServiceExt};

type Found = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>>;

/// Says what a name leads to.
type Lookup = Arc<dyn Fn(&str) -> Found + Send + Sync>;

/// A client for the cluster of `config` that never connects to an address that is refused, whatever the name
/// of the server leads to by then. Addresses that the configuration gives as such are the caller's to check.
///
/// # Errors
/// Those of kube, for certificates and credentials that cannot be used.
pub fn careful(config: &kube::Config) -> Result<Client, kube::Error> {
    client(config, Arc::new(|name: &str| lookup(name.to_owned())))
}

fn lookup(name: String) -> Found {
    // The port is that of the address which is asked for.
    Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
}

fn client(config: &kube::Config, lookup: Lookup) -> Result<Client, kube::Error> {
    let mut connector = HttpConnector::new_with_resolver(Careful(lookup));
    // TLS is around it.
    connector.enforce_http(false);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(connector)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    let service: Http<_, Body> = Http::builder(TokioExecutor::new()).build(connector);
    let service = ServiceExt::<Request<Body>>::map_err(service, BoxError::from);
    // From the inside to the outside. Nothing is sent again by itself: what may be is for others to decide.
    let builder = ClientBuilder::new(service, config.default_namespace.clone());
    let builder = builder.with_layer(&config.extra_headers_layer()?);
    let builder = builder.with_layer(&option_layer(config.auth_layer()?));
    Ok(builder.with_layer(&config.base_uri_layer()).build())
}

/// Finds what a name leads to, unless any of that is refused: whoever can make it lead there is not asked at
/// all.
#[derive(Clone)]
struct Careful(Lookup);

impl Service<Name> for Careful {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let found = (self.0)(name.as_str());
        Box::pin(async move {
            let found = found.await?;
            if found.iter().any(|it| is_refused(it.ip())) {
                let why = "the server is at an address that is refused";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
            }
            Ok(found.into_iter())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request and closes the connection.
    async fn answer(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(stream.read_u8().await.unwrap());
        }
        let said = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok";
        stream.write_all(said.as_bytes()).await.unwrap();
    }

    fn causes(error: &dyn std::error::Error) -> String {
        let chain = std::iter::successors(Some(error), |it| it.source());
        chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    #[tokio::test]
    async fn a_name_that_leads_elsewhere_the_second_time_is_not_followed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let lookup: Lookup = Arc::new(move |_| {
            let first: SocketAddr = ([127, 0, 0, 1], 0).into();
            let later: SocketAddr = ([169, 254, 169, 254], 0).into();
            let place = if count.fetch_add(1, Ordering::Relaxed) == 0 { first } else { later };
            Box::pin(async move { Ok(vec![place]) })
        });
        let config = kube::Config::new(format!("http://cluster.example:{port}").parse().unwrap());
        let client = client(&config, lookup).unwrap();
        let ask = || Request::get("/version").body(Vec::new()).unwrap();
        let (text, ()) = tokio::join!(client.request_text(ask()), answer(&listener));
        assert_eq!(text.unwrap(), "ok");
        let refused = causes(&client.request_text(ask()).await.unwrap_err());
        assert!(refused.contains("an address that is refused"), "{refused}");
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn one_refused_address_among_good_ones_is_one_too_many() {
        let lookup: Lookup = Arc::new(|_| {
            let places = ["127.0.0.1:0", "[fe80::1]:0"].map(|it| it.parse().unwrap()).to_vec();
            Box::pin(async move { Ok(places) })
        });
        let refused = Careful(lookup).call("cluster.example".parse().unwrap()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
    }
}
