//! Hearing from other processes that they have written.

use std::sync::Arc;
use std::time::Duration;

use concert_model::Revision;

use super::connect::Connector;
use crate::backend::Bell;
use crate::clock::Clock;

/// Between two tries to listen. What is missed meanwhile is read from the log.
const PAUSE: Duration = Duration::from_secs(1);

/// The name of the channel that a schema's writers use.
pub(super) fn channel(schema: &str) -> String {
    format!("concert_{schema}")
}

/// Listens for as long as the runtime lives, over one connection after the other.
pub(super) async fn listen(connector: Connector, bell: Arc<Bell>, clock: Arc<dyn Clock>) {
    let channel = channel(&connector.address.schema);
    let mut is_told = false;
    loop {
        let hear = {
            let bell = bell.clone();
            move |payload: &str| match payload.parse() {
                Ok(newest) => bell.ring(Revision(newest)),
                Err(_) => bell.alarm(),
            }
        };
        match connector.listen(&channel, hear).await {
            Ok((_connection, driver)) => {
                is_told = false;
                // Something may have been written while nobody listened.
                bell.alarm();
                // Ends with the connection.
                let _ = driver.await;
                tracing::debug!(at = %connector.address, "no longer listening to other processes");
            }
            Err(trouble) if !is_told => {
                is_told = true;
                let error = trouble.to_string();
                tracing::warn!(error, hint = trouble.hint(), "cannot listen to other processes");
            }
            Err(_) => {}
        }
        clock.sleep(PAUSE).await;
    }
}
