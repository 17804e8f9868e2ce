//! The way from the root to the value at hand, as links on the stack.
//!
//! A walk carries one of these at no cost. Only when there is something to report does it become a
//! [`FieldPath`].

use std::fmt::Write;

use concert_model::field::FieldPath;

/// Longest rendering of one name, in characters. Map keys are data: without a bound a long key above
/// many errors would be repeated in each.
const NAME_CHARS_MAX: usize = 256;

/// A place, linked to the place it is in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Path<'a> {
    Root(&'a FieldPath),
    Child(&'a Path<'a>, &'a str),
    Key(&'a Path<'a>, &'a str),
    Index(&'a Path<'a>, usize),
}

impl<'a> Path<'a> {
    pub(crate) fn child(&'a self, name: &'a str) -> Path<'a> {
        Path::Child(self, name)
    }

    pub(crate) fn key(&'a self, key: &'a str) -> Path<'a> {
        Path::Key(self, key)
    }

    pub(crate) fn index(&'a self, index: usize) -> Path<'a> {
        Path::Index(self, index)
    }

    /// The printable path.
    pub(crate) fn field(&self) -> FieldPath {
        let mut text = String::new();
        self.write(&mut text);
        FieldPath::new(text)
    }

    fn write(&self, text: &mut String) {
        match self {
            Path::Root(path) => text.push_str(path.as_str()),
            Path::Child(parent, name) => {
                parent.write(text);
                if !text.is_empty() {
                    text.push('.');
                }
                push_name(text, name);
            }
            Path::Key(parent, key) => {
                parent.write(text);
                text.push('[');
                push_name(text, key);
                text.push(']');
            }
            Path::Index(parent, index) => {
                parent.write(text);
                // Writing to a string cannot fail.
                let _ = write!(text, "[{index}]");
            }
        }
    }
}

fn push_name(text: &mut String, name: &str) {
    match name.char_indices().nth(NAME_CHARS_MAX) {
        None => text.push_str(name),
        Some((end, _)) => {
            text.push_str(&name[..end]);
            text.push('…');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_a_field_path_of_the_same_steps_prints() {
        let root = FieldPath::root();
        let root = Path::Root(&root);
        let spec = root.child("spec");
        let rules = spec.child("rules");
        let rule = rules.index(2);
        let host = rule.key("a.b");
        assert_eq!(host.field(), FieldPath::root().child("spec").child("rules").index(2).key("a.b"));
    }

    #[test]
    fn shortens_names_that_are_data() {
        let root = FieldPath::root();
        let name = "é".repeat(10_000);
        assert!(Path::Root(&root).child(&name).field().as_str().len() < 1000);
    }
}
