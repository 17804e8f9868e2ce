//! The wire format: numbered parts, one after the other.

use super::malformed;
use crate::error::Error;

/// The content of one field.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads the parts of a message; ends after its first error.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, count: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn part(&mut self) -> Option<(u32, Part<'a>)> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok()?;
        let part = match tag & 7 {
            0 => Part::Number(self.varint()?),
            1 => Part::Bytes(self.take(8)?),
            2 => {
                let count = self.varint()?;
                Part::Bytes(self.take(count)?)
            }
            5 => Part::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((number, part))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Part<'a>), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let part = self.part();
        if part.is_none() {
            self.0 = &[];
        }
        Some(part.ok_or_else(|| malformed("it ends in the middle")))
    }
}

/// Bytes as JSON holds them.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits =
            chunk.iter().enumerate().fold(0u32, |bits, (i, byte)| bits | u32::from(*byte) << (16 - 8 * i));
        for i in 0..4 {
            let digit = char::from(DIGITS[((bits >> (18 - 6 * i)) & 63) as usize]);
            out.push(if i <= chunk.len() { digit } else { '=' });
        }
    }
    out
}
