//! Base64 as Secrets hold it (RFC 4648, with padding).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().enumerate().fold(0u32, |bits, (i, b)| bits | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            let sextet = (bits >> (18 - 6 * i)) & 63;
            out.push(if i <= chunk.len() { char::from(ALPHABET[sextet as usize]) } else { '=' });
        }
    }
    out
}

/// Text as bytes; none if it is not base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    let (mut bits, mut count) = (0u32, 0);
    for digit in digits.bytes() {
        bits = bits << 6 | u32::from(value(digit)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            // What is above was given out before.
            out.push((bits >> count & 0xff) as u8);
        }
    }
    Some(out)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_survives_the_round_trip() {
        let bytes: Vec<u8> = (0..=255).rev().collect();
        for length in 0..bytes.len() {
            assert_eq!(decode(&encode(&bytes[..length])).as_deref(), Some(&bytes[..length]));
        }
        assert_eq!((encode(b"foob"), decode("Zm9v")), ("Zm9vYg==".into(), Some(b"foo".to_vec())));
    }

    #[test]
    fn what_is_not_base64_is_refused() {
        for bad in ["Zg", "Zg=", "Z===", "====", "Zm9v=", "Zm 9", "Zm-_", "=Zm9"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
