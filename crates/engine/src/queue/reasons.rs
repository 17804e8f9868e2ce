//! Why a key is to run: a few words, each with a count.

use std::fmt;

/// One word for why a key is to run, such as `changed` or `poll`.
pub type Reason = &'static str;

/// What stands for the reasons that found no room.
const OTHER: Reason = "other";

/// Most different reasons that one item keeps apart. More than a controller has sources.
const PER_ITEM: usize = 6;

/// The reasons of one run, each with how often it was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reasons(Vec<(Reason, u16)>);

impl Reasons {
    /// Each reason with its count, in the order they first came.
    pub fn iter(&self) -> impl Iterator<Item = (Reason, u16)> {
        self.0.iter().copied()
    }

    /// Whether `reason` is among them.
    pub fn contains(&self, reason: &str) -> bool {
        self.0.iter().any(|(it, _)| *it == reason)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (reason, count)) in self.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            f.write_str(reason)?;
            if count > 1 {
                write!(f, " ×{count}")?;
            }
        }
        Ok(())
    }
}

/// The words in use, so that an item holds numbers of one byte.
#[derive(Default)]
pub(super) struct Vocabulary(Vec<Reason>);

impl Vocabulary {
    /// 0 stands for words that came after the table was full.
    fn number(&mut self, reason: Reason) -> u8 {
        if self.0.is_empty() {
            self.0.push(OTHER);
        }
        if let Some(at) = self.0.iter().position(|it| std::ptr::eq(*it, reason) || *it == reason) {
            return u8::try_from(at).unwrap_or(0);
        }
        match u8::try_from(self.0.len()) {
            Ok(number) => {
                self.0.push(reason);
                number
            }
            Err(_) => 0,
        }
    }

    fn word(&self, number: u8) -> Reason {
        self.0.get(usize::from(number)).copied().unwrap_or(OTHER)
    }
}

/// The reasons of one item in 20 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Compact {
    /// A count of 0 is a free place.
    counts: [u16; PER_ITEM],
    numbers: [u8; PER_ITEM],
}

impl Compact {
    pub fn add(&mut self, reason: Reason, vocabulary: &mut Vocabulary) {
        self.add_number(vocabulary.number(reason), 1);
    }

    pub fn merge(&mut self, other: &Compact) {
        for (&number, &count) in other.numbers.iter().zip(&other.counts).filter(|(_, count)| **count > 0) {
            self.add_number(number, count);
        }
    }

    pub fn spell(&self, vocabulary: &Vocabulary) -> Reasons {
        let pairs = self.numbers.iter().zip(&self.counts).filter(|(_, count)| **count > 0);
        Reasons(pairs.map(|(&number, &count)| (vocabulary.word(number), count)).collect())
    }

    fn add_number(&mut self, number: u8, count: u16) {
        let places = 0..PER_ITEM;
        let place = places
            .clone()
            .find(|&i| self.counts[i] > 0 && self.numbers[i] == number)
            .or_else(|| places.clone().find(|&i| self.counts[i] == 0));
        let (place, number) = match place {
            Some(place) => (place, number),
            // The last place becomes the one for all that find no room.
            None => (PER_ITEM - 1, 0),
        };
        self.numbers[place] = number;
        self.counts[place] = self.counts[place].saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_reason_is_counted_and_the_order_kept() {
        let (mut vocabulary, mut reasons) = (Vocabulary::default(), Compact::default());
        for reason in ["changed", "poll", "changed"] {
            reasons.add(reason, &mut vocabulary);
        }
        assert_eq!(reasons.spell(&vocabulary).to_string(), "changed ×2, poll");
    }

    #[test]
    fn more_reasons_than_fit_become_other() {
        let (mut vocabulary, mut reasons) = (Vocabulary::default(), Compact::default());
        for reason in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            reasons.add(reason, &mut vocabulary);
        }
        assert_eq!(reasons.spell(&vocabulary).to_string(), "a, b, c, d, e, other ×3");
    }

    #[test]
    fn a_full_vocabulary_still_counts() {
        let mut vocabulary = Vocabulary::default();
        for number in 0..400 {
            vocabulary.number(Box::leak(format!("reason {number}").into_boxed_str()));
        }
        let number = vocabulary.number("new");
        assert_eq!(vocabulary.word(number), OTHER);
    }
}
