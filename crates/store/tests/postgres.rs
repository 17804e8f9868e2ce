//! The conformance suite on a store in a PostgreSQL database.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed, and the panic says where")]

use std::sync::Arc;

use concert_store::backend::Postgres;
use concert_store::backend::postgres::{Address, Options};
use concert_store::conformance::Own;
use concert_store::{Chance, SystemClock};

/// A schema of its own for each case, in the server of this process; none where there is none to start.
async fn own() -> Option<Own> {
    let address = Address::parse(&concert_testbed::Postgres::shared()?.fresh_url()).unwrap();
    Some(Own::new(move || {
        let options = Options::new(Arc::new(SystemClock::new()), Chance::from_system());
        Arc::new(Postgres::open(&address, options).unwrap())
    }))
}

concert_store::core_suite!(async own);
concert_store::own_suite!(async own);
