//! The example of the README runs.

#[path = "../examples/folders.rs"]
#[allow(dead_code, reason = "an example's main is not called by its test")]
mod folders;

#[test]
fn the_demo_tells_its_story_to_the_end() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(folders::demo()).expect("the demo succeeds");
}
