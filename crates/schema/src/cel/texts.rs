//! What rules do with texts. Positions count characters.

use super::Fault;
use super::eval::Run;
use super::functions::piece;
use super::value::Val;

pub(super) fn of_text<'a>(
    run: &mut Run<'a>,
    name: &str,
    text: &str,
    rest: &[Val<'a>],
) -> Result<Val<'a>, Fault> {
    match (name, rest) {
        ("contains", [Val::Text(part)]) => {
            run.charge(product(text, part.as_str()))?;
            Ok(Val::Bool(text.contains(part.as_str())))
        }
        ("startsWith", [Val::Text(part)]) => Ok(Val::Bool(text.starts_with(part.as_str()))),
        ("endsWith", [Val::Text(part)]) => Ok(Val::Bool(text.ends_with(part.as_str()))),
        ("lowerAscii", []) => Ok(Val::text(text.to_ascii_lowercase())),
        ("upperAscii", []) => Ok(Val::text(text.to_ascii_uppercase())),
        ("trim", []) => Ok(piece(text.trim())),
        ("reverse", []) => Ok(Val::text(text.chars().rev().collect::<String>())),
        ("replace", [Val::Text(from), Val::Text(to)]) => replace(run, text, from.as_str(), to.as_str(), -1),
        ("replace", [Val::Text(from), Val::Text(to), Val::Int(most)]) => {
            replace(run, text, from.as_str(), to.as_str(), *most)
        }
        ("split", [Val::Text(separator)]) => split(run, text, separator.as_str(), -1),
        ("split", [Val::Text(separator), Val::Int(most)]) => split(run, text, separator.as_str(), *most),
        ("substring", [Val::Int(from)]) => substring(text, *from, None),
        ("substring", [Val::Int(from), Val::Int(to)]) => substring(text, *from, Some(*to)),
        ("charAt", [Val::Int(at)]) => substring(text, *at, Some(at.saturating_add(1))).or_else(|fault| {
            let is_end = usize::try_from(*at).is_ok_and(|at| at == text.chars().count());
            if is_end { Ok(piece("")) } else { Err(fault) }
        }),
        ("indexOf", [Val::Text(part)]) => index_of(run, text, part.as_str(), 0),
        ("indexOf", [Val::Text(part), Val::Int(from)]) => index_of(run, text, part.as_str(), *from),
        ("lastIndexOf", [Val::Text(part)]) => {
            run.charge(product(text, part.as_str()))?;
            Ok(position(text, text.rfind(part.as_str())))
        }
        _ => Err(Fault::overload()),
    }
}

/// The price of looking for one text in another.
fn product(text: &str, part: &str) -> usize {
    (text.len() / 10 + 1).saturating_mul(part.len() / 10 + 1)
}

fn position<'a>(text: &str, byte: Option<usize>) -> Val<'a> {
    Val::Int(byte.map_or(-1, |byte| i64::try_from(text[..byte].chars().count()).unwrap_or(i64::MAX)))
}

fn index_of<'a>(run: &mut Run<'a>, text: &str, part: &str, from: i64) -> Result<Val<'a>, Fault> {
    run.charge(product(text, part))?;
    let start = byte_at(text, from).ok_or_else(|| Fault::error(format!("index out of range: {from}")))?;
    Ok(position(text, text[start..].find(part).map(|byte| start + byte)))
}

fn replace<'a>(run: &mut Run<'a>, text: &str, from: &str, to: &str, most: i64) -> Result<Val<'a>, Fault> {
    // Every character may become a whole `to`.
    run.charge(product(text, from))?;
    let found = text.matches(from).count();
    run.charge(found.saturating_mul(to.len() / 10 + 1))?;
    Ok(Val::text(match usize::try_from(most) {
        Ok(most) => text.replacen(from, to, most),
        Err(_) => text.replace(from, to),
    }))
}

fn split<'a>(run: &mut Run<'a>, text: &str, separator: &str, most: i64) -> Result<Val<'a>, Fault> {
    run.charge(product(text, separator))?;
    let pieces: Vec<&str> = match (separator, usize::try_from(most)) {
        (_, Ok(0)) => Vec::new(),
        ("", Ok(most)) => {
            let mut ends: Vec<usize> = text.char_indices().map(|(at, _)| at).take(most).collect();
            ends.push(text.len());
            ends.windows(2).map(|ends| &text[ends[0]..ends[1]]).collect()
        }
        ("", Err(_)) => text.split("").filter(|piece| !piece.is_empty()).collect(),
        (separator, Ok(most)) => text.splitn(most, separator).collect(),
        (separator, Err(_)) => text.split(separator).collect(),
    };
    run.charge(pieces.len())?;
    Ok(Val::list(pieces.into_iter().map(piece).collect()))
}

fn substring<'a>(text: &str, from: i64, to: Option<i64>) -> Result<Val<'a>, Fault> {
    let out = || Fault::error(format!("index out of range: {}", to.unwrap_or(from)));
    let start = byte_at(text, from).ok_or_else(out)?;
    let end = to.map_or(Some(text.len()), |to| byte_at(text, to)).ok_or_else(out)?;
    text.get(start..end).map(piece).ok_or_else(out)
}

/// Where the character at `position` begins; the end counts as a position.
fn byte_at(text: &str, position: i64) -> Option<usize> {
    let position = usize::try_from(position).ok()?;
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(position)
}
