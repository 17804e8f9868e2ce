//! Just enough of Rust's grammar to see which modules a file declares.
//!
//! Comments, strings, characters and lifetimes are told apart, so that `mod` in prose, in a test's
//! string or in a doc example is not taken for a module. A module made by a macro is not seen.

/// One module that a file declares.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Module {
    /// Names of the inline modules around it, outermost first.
    pub(crate) inside: Vec<String>,
    pub(crate) name: String,
    /// The value of a `#[path]` attribute.
    pub(crate) path: Option<String>,
    /// `mod name { … }`, which has no file of its own.
    pub(crate) inline: bool,
}

/// The modules declared in `text`, in order.
pub(crate) fn modules(text: &str) -> Vec<Module> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut inside: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut path = None;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Mark('{') => depth += 1,
            Token::Mark('}') => {
                depth = usize::saturating_sub(depth, 1);
                inside.pop_if(|(_, opened)| *opened == depth);
            }
            Token::Word("path") if is_path_attribute(&tokens, at) => path = text_at(&tokens, at + 2),
            Token::Word("mod") => {
                let (Some(Token::Word(name)), Some(Token::Mark(end @ (';' | '{')))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                else {
                    continue;
                };
                let name = name.trim_start_matches("r#").to_owned();
                let inline = *end == '{';
                let around = inside.iter().map(|(name, _)| name.clone()).collect();
                if inline {
                    inside.push((name.clone(), depth));
                }
                found.push(Module { inside: around, name, path: path.take(), inline });
            }
            Token::Mark(';') => path = None,
            _ => {}
        }
    }
    found
}

/// The files that `text` takes in with `include_str!` and `include_bytes!`, as they are written there.
pub(crate) fn includes(text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let opening = [Token::Mark('!'), Token::Mark('(')];
    let file = |(at, token): (usize, &Token<'_>)| {
        let is_it = matches!(token, Token::Word("include_str" | "include_bytes"));
        let is_call = is_it && tokens.get(at + 1..at + 3) == Some(&opening[..]);
        is_call.then(|| text_at(&tokens, at + 3)).flatten()
    };
    tokens.iter().enumerate().filter_map(file).collect()
}

/// Whether the word at `at` starts `path = "…"` right after `#[`.
fn is_path_attribute(tokens: &[Token<'_>], at: usize) -> bool {
    at >= 2
        && tokens[at - 2..at] == [Token::Mark('#'), Token::Mark('[')]
        && tokens.get(at + 1) == Some(&Token::Mark('='))
}

fn text_at(tokens: &[Token<'_>], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(Token::Text(text)) => Some((*text).to_owned()),
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// What is between the quotes of a string, escapes untouched.
    Text(&'a str),
    Mark(char),
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment_length(rest)
        } else if let Some((opening, body, length)) = string(rest) {
            found.push(Token::Text(&rest[opening..opening + body]));
            length
        } else if first == '\'' {
            character_length(rest)
        } else if is_word(first) {
            let length = word_length(rest);
            found.push(Token::Word(&rest[..length]));
            length
        } else {
            if !first.is_whitespace() {
                found.push(Token::Mark(first));
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

fn is_word(it: char) -> bool {
    it.is_alphanumeric() || it == '_'
}

/// The length of a word, a raw one (`r#mod`) included.
fn word_length(rest: &str) -> usize {
    let raw = if rest.starts_with("r#") { 2 } else { 0 };
    rest[raw..].find(|it| !is_word(it)).map_or(rest.len(), |end| end + raw)
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// If a string literal starts here: where its body starts, the length of the body, and of the whole.
fn string(rest: &str) -> Option<(usize, usize, usize)> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|after| {
            after.starts_with('"') || prefix.ends_with('r') && after.trim_start_matches('#').starts_with('"')
        })
    })?;
    let after = &rest[prefix.len()..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let opening = prefix.len() + hashes + 1;
    let body = &rest[opening..];
    let body_length = if prefix.ends_with('r') {
        body.find(&format!("\"{}", "#".repeat(hashes))).unwrap_or(body.len())
    } else {
        escaped_length(body, '"')
    };
    Some((opening, body_length, (opening + body_length + 1 + hashes).min(rest.len())))
}

/// The length up to the first `quote` that no backslash escapes.
fn escaped_length(body: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, it) in body.char_indices() {
        if it == quote && !escaped {
            return at;
        }
        escaped = it == '\\' && !escaped;
    }
    body.len()
}

/// The length of a character literal, or of the quote alone if a lifetime starts here.
fn character_length(rest: &str) -> usize {
    let body = &rest[1..];
    let mut chars = body.chars();
    let first = chars.next();
    match (first, chars.next()) {
        (Some('\\'), _) => (escaped_length(body, '\'') + 2).min(rest.len()),
        (Some(only), Some('\'')) => only.len_utf8() + 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Modules written as `outer::name` for one with a file, `outer::name{}` for an inline one.
    fn found(text: &str) -> Vec<String> {
        let line = |it: Module| {
            let mut parts = it.inside;
            parts.push(it.name);
            let path = it.path.map(|it| format!("={it}")).unwrap_or_default();
            format!("{}{}{path}", parts.join("::"), if it.inline { "{}" } else { "" })
        };
        modules(text).into_iter().map(line).collect()
    }

    #[test]
    fn sees_modules_with_any_visibility_and_attributes() {
        let text = "mod a;\npub mod b;\n#[cfg(test)]\nmod tests;\npub(crate) mod r#type; mod\n  c ;";
        assert_eq!(found(text), ["a", "b", "tests", "type", "c"]);
    }

    #[test]
    fn sees_modules_inside_inline_modules() {
        let text = "mod a { fn f() { if x { } } mod b; mod c { mod d; } } mod e;";
        assert_eq!(found(text), ["a{}", "a::b", "a::c{}", "a::c::d", "e"]);
    }

    #[test]
    fn sees_the_path_attribute_of_the_next_module_only() {
        let text = "#[path = \"x/y.rs\"]\n#[cfg(test)]\nmod a;\nmod b;\n#[doc = \"mod z;\"] mod c;";
        assert_eq!(found(text), ["a=x/y.rs", "b", "c"]);
    }

    #[test]
    fn is_not_fooled_by_comments_and_strings() {
        for text in [
            "// mod a;\n/// mod a;",
            "/* mod a; /* nested */ mod a; */",
            "let s = \"mod a; \\\" mod a;\";",
            "let s = r#\"mod a; \" mod a;\"#; let b = br\"\\\"; let c = b\"mod a;\";",
            "const Q: char = '\"'; // mod a; \"",
            "let model = 1; modest; r#mod a;",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn goes_on_after_characters_lifetimes_and_braces_in_strings() {
        for text in [
            "fn f<'a>(x: &'a str) {} mod a;",
            "const C: [char; 4] = ['\\'', '{', '\\u{1F600}', '\"']; mod a;",
            "const S: &str = \"{\"; mod a;",
            "const B: u8 = b'{'; mod a;",
            "'label: loop { break 'label; } mod a;",
            "const Ü: &str = \"ü\\\\\"; mod a;",
        ] {
            assert_eq!(found(text), ["a"], "{text}");
        }
    }
}
