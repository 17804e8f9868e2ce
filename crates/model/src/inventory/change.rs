//! What a write of a section does.

use super::section::Section;

/// Which version a writer bases a write on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Whichever is there, or none.
    Anything,
    /// One must be there, whichever.
    Something,
    /// This one; 0 if there must be none.
    Version(u64),
}

/// The section is not at the version that was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the section is at version {0}")]
pub struct Moved(pub u64);

/// What is there of a section before it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept<'a> {
    /// Its version; 0 if it is not there.
    pub version: u64,
    /// What the next version must be above, even if it is not there.
    pub floor: u64,
    /// Of its contents.
    pub hash: &'a str,
    /// Whether they lie in a secret.
    pub is_secret: bool,
}

impl<'a> Kept<'a> {
    /// What is there, of an entry in which this section was taken away at `floor`.
    pub fn of(section: Option<Section<'a>>, floor: u64) -> Self {
        let Some(section) = section else { return Self { floor, ..Self::default() } };
        let (version, hash, is_secret) = (section.version(), section.hash(), section.is_secret());
        Self { version, floor, hash, is_secret }
    }
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Nothing: it has these contents at this version.
    Not(u64),
    /// The contents are written as this version.
    To(u64),
}

/// What a write of contents with `hash` does. Equal contents change nothing, whoever writes them: neither
/// version nor writer, and nobody is woken.
///
/// # Errors
/// [`Moved`] if the section is not where the writer believes it to be.
pub fn decide(kept: Kept<'_>, expected: Expected, hash: &str, is_secret: bool) -> Result<Changed, Moved> {
    let is_expected = match expected {
        Expected::Anything => true,
        Expected::Something => kept.version > 0,
        Expected::Version(version) => version == kept.version,
    };
    if !is_expected {
        return Err(Moved(kept.version));
    }
    if kept.version > 0 && kept.hash == hash && kept.is_secret == is_secret {
        return Ok(Changed::Not(kept.version));
    }
    Ok(Changed::To(kept.version.max(kept.floor) + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Kept<'_> = Kept { version: 12, floor: 0, hash: "a", is_secret: false };

    #[test]
    fn a_write_is_based_on_what_the_writer_saw() {
        for (expected, outcome) in [
            (Expected::Anything, Ok(Changed::To(13))),
            (Expected::Something, Ok(Changed::To(13))),
            (Expected::Version(12), Ok(Changed::To(13))),
            (Expected::Version(11), Err(Moved(12))),
            (Expected::Version(13), Err(Moved(12))),
            (Expected::Version(0), Err(Moved(12))),
        ] {
            assert_eq!(decide(KEPT, expected, "b", false), outcome, "{expected:?}");
        }
    }

    #[test]
    fn equal_contents_change_nothing() {
        assert_eq!(decide(KEPT, Expected::Version(12), "a", false), Ok(Changed::Not(12)));
        assert_eq!(decide(KEPT, Expected::Version(11), "a", false), Err(Moved(12)));
        // The same contents in another place are a change.
        assert_eq!(decide(KEPT, Expected::Anything, "a", true), Ok(Changed::To(13)));
    }

    #[test]
    fn versions_go_on_where_they_ended() {
        let gone = Kept { floor: 14, ..Kept::default() };
        assert_eq!(decide(gone, Expected::Anything, "a", false), Ok(Changed::To(15)));
        assert_eq!(decide(gone, Expected::Version(0), "a", false), Ok(Changed::To(15)));
        assert_eq!(decide(gone, Expected::Something, "a", false), Err(Moved(0)));
        assert_eq!(decide(Kept::default(), Expected::Anything, "", false), Ok(Changed::To(1)));
        // It was to go and did not.
        let stayed = Kept { floor: 14, ..KEPT };
        assert_eq!(decide(stayed, Expected::Version(12), "b", false), Ok(Changed::To(15)));
    }
}
