//! All collectors on a store in memory.

mod background;
mod crashes;
mod definitions;
mod events;
mod foreground;
mod idle;
mod namespaces;
mod orphan;
mod shaky;
mod world;
