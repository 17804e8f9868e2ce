//! The texts, word for word: whoever changes one sees here what people will read.

mod blocked;
mod claims;
mod deletion;
mod fleet;
mod scene;
mod settled;
mod shown;
mod working;
