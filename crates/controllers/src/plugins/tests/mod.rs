//! Workers against a real store, on a clock that moves when everybody waits.

mod ends;
mod hosts;
mod targets;
mod world;
