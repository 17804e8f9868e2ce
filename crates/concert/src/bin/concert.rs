//! `concert`: the control plane and the commands that talk to it.

fn main() -> std::process::ExitCode {
    concert::concert()
}
