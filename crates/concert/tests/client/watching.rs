use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::world::{GROUP, World, bucket};

/// A watch that runs, and its lines as they come. It ends with the value.
struct Follow {
    child: Child,
    lines: Receiver<String>,
}

impl Follow {
    fn start(world: &World, arguments: &[&str]) -> Self {
        let mut child = world.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        // It ends with the process whose lines it reads.
        let read = move || output.lines().map_while(Result::ok).try_for_each(|it| sender.send(it));
        std::thread::Builder::new().name("watch".into()).spawn(read).unwrap();
        Self { child, lines }
    }

    /// The words of the next line.
    fn next(&self) -> Vec<String> {
        let line = self.lines.recv_timeout(Duration::from_secs(60)).expect("another line");
        line.split_whitespace().map(str::to_owned).collect()
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn changes_are_shown_as_they_happen() {
    let Some(world) = World::enter("following") else { return };
    let apply =
        |name: &str, size| world.run_with(&["apply", "-f", "-"], &bucket(name, size).to_string()).fine();
    apply("a", 1);
    let follow = Follow::start(&world, &["watch", "buckets"]);
    assert_eq!(follow.next(), ["EVENT", "NAME", "SIZE"]);
    assert_eq!(follow.next(), ["-", "a", "1"]);
    apply("a", 2);
    assert_eq!(follow.next(), ["modified", "a", "2"]);
    apply("b", 7);
    assert_eq!(follow.next(), ["added", "b", "7"]);
    let named = Follow::start(&world, &["watch", "bucket/b", "-o", "name"]);
    assert_eq!(named.next(), [format!("bucket.{GROUP}/b")]);
    world.run(&["delete", "bucket/b"]).fine();
    assert_eq!(follow.next(), ["deleted", "b", "7"]);
    assert_eq!(named.next(), [format!("bucket.{GROUP}/b"), "deleted".to_owned()]);
}
