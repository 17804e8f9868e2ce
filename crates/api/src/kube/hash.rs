//! Documents with short names: the same text has the same one.

use bytes::Bytes;

/// A document and its hash.
#[derive(Clone, Debug)]
pub(crate) struct Hashed {
    pub(crate) bytes: Bytes,
    pub(crate) hash: String,
}

impl Hashed {
    pub(crate) fn new(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self { hash: of(&bytes), bytes }
    }
}

/// The 64-bit FNV-1a hash of `bytes`, in hexadecimal. Against mistakes, not against enemies: it only tells
/// a client whether its copy is current.
fn of(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016X}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn is_the_published_function() {
        assert_eq!(super::of(b""), "CBF29CE484222325");
        assert_eq!(super::of(b"foobar"), "85944171F73967E8");
    }
}
