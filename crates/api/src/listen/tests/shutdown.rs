//! Stopping in order.

use super::*;

#[tokio::test]
async fn what_is_under_way_is_finished_and_watches_end_in_order() {
    let mut server = plain(Limits::default()).await;
    let mut idle = server.connect().await;
    idle.send(&format!("GET /hello HTTP/1.1\r\nhost: {}\r\n\r\n", server.address)).await;
    idle.until("hello").await;
    let mut watch = server.connect().await;
    watch.send(&server.request("GET /watch?watch=true", "")).await;
    watch.until("first").await;
    let mut held = server.connect().await;
    held.send(&server.request("GET /held", "")).await;
    for _ in 0..3 {
        server.next(Event::Entered).await;
    }

    server.tasks.shutdown().request();
    assert_eq!(idle.rest().await, "");
    assert!(watch.rest().await.ends_with("0\r\n\r\n"));
    server.release.notify_one();
    assert!(held.rest().await.ends_with("released"));
    assert!(server.tasks.stop(PATIENCE).await.is_empty());
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn who_takes_too_long_is_cut_off() {
    let mut server = plain(Limits::default()).await;
    let mut held = server.connect().await;
    held.send(&server.request("GET /held", "")).await;
    server.next(Event::Entered).await;
    let late = server.tasks.stop(Duration::from_millis(50)).await;
    assert_eq!(late, ["connection".into()]);
    assert_eq!(held.rest().await, "");
}
