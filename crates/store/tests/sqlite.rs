//! The conformance suite on a store in a file.

use std::sync::Arc;

use concert_store::backend::Sqlite;
use concert_store::backend::sqlite::Options;
use concert_store::conformance::Own;

fn own() -> Own {
    let folder = tempfile::tempdir().expect("a folder for the file");
    Own::new(move || {
        let path = folder.path().join("store.db");
        Arc::new(Sqlite::open(path, &Options::default()).expect("the file can be opened"))
    })
}

concert_store::core_suite!(own);
concert_store::own_suite!(own);
