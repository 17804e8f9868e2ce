//! Colours, where they are wanted. Everything printed makes sense without them.

use std::io::IsTerminal as _;

use concert_server::config::variable;

/// Puts text into colours, or leaves it as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paint {
    is_on: bool,
}

impl Paint {
    /// On a terminal that nobody said about that it must not be coloured.
    pub fn for_stdout() -> Self {
        let has = |name: &str| variable(name).is_some_and(|it| !it.is_empty());
        let is_dumb = variable("TERM").is_none_or(|it| it == "dumb");
        Self { is_on: std::io::stdout().is_terminal() && !is_dumb && !has("NO_COLOR") }
    }

    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    pub fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    pub fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colours_text_stays_as_it_is() {
        assert_eq!(Paint::default().red("x"), "x");
        assert_eq!(Paint { is_on: true }.red("x"), "\x1b[31mx\x1b[0m");
    }
}
