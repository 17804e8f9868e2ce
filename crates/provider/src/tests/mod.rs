//! Both sides over real sockets of this machine, and peers that do not keep to the rules.

mod connection;
mod discover;
mod hostile;
mod hostile_v1;
mod in_process;
mod round_trip;
pub(crate) mod stage;
mod tls;
