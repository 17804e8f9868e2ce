//! `dynamic-reconciler`: reconciles managed resources of any kind with providers over gRPC.

fn main() -> std::process::ExitCode {
    concert::reconciler("dynamic-reconciler")
}
