//! One line that says what is waited for, on a terminal only.

use std::io::{IsTerminal as _, Write as _};

/// A line of standard error that is written over and over. It goes with the value.
pub struct Progress {
    is_on: bool,
    last: String,
}

impl Progress {
    /// Says nothing where nobody watches.
    pub fn new() -> Self {
        Self { is_on: std::io::stderr().is_terminal(), last: String::new() }
    }

    /// Says `text`, which has one line, in the place of what was said before.
    pub fn say(&mut self, text: String) {
        if self.is_on && text != self.last {
            self.write(&format!("\r\x1b[K{text}"));
            self.last = text;
        }
    }

    /// Makes room for something else.
    pub fn clear(&mut self) {
        if !self.last.is_empty() {
            self.write("\r\x1b[K");
            self.last.clear();
        }
    }

    fn write(&self, text: &str) {
        let mut stderr = std::io::stderr();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
