//! The conformance suite on a store in memory.

use std::sync::Arc;

use concert_store::backend::Memory;
use concert_store::conformance::Own;

fn own() -> Own {
    let memory = Arc::new(Memory::new());
    Own::new(move || memory.clone())
}

concert_store::core_suite!(own);
concert_store::own_suite!(own);
