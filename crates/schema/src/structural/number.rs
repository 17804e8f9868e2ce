//! Numbers compared without losing digits.
//!
//! JSON numbers arrive as i64, u64 or f64. An f64 cannot tell 9223372036854775807 from its neighbour,
//! so integers stay integers, and a comparison of an integer with a float is made exactly.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Number;

/// Largest float that is certainly the integer it was written as: 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// How far a quotient may be from a whole number in [`Num::is_multiple_of`]: 0.3 / 0.1 is not 3.
const QUOTIENT_TOLERANCE: f64 = 1e-9;

/// A JSON number. A float without fraction, such as `1.0`, is the integer it stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Num {
    /// Fits i64 or u64.
    Integer(i128),
    Float(f64),
}

impl Num {
    pub(super) fn of(number: &Number) -> Self {
        if let Some(integer) = number.as_i128() {
            return Num::Integer(integer);
        }
        let float = number.as_f64().unwrap_or(f64::NAN);
        if float.fract() == 0.0 && float.abs() <= EXACT_MAX {
            return Num::Integer(float as i128);
        }
        Num::Float(float)
    }

    pub(super) fn is_integer(self) -> bool {
        matches!(self, Num::Integer(_))
    }

    pub(super) fn is_positive(self) -> bool {
        self > Num::Integer(0)
    }

    /// True when `factor` goes into this number without rest. Whole numbers exactly, others nearly.
    pub(super) fn is_multiple_of(self, factor: Num) -> bool {
        match (self, factor) {
            (_, Num::Integer(0)) => false,
            (Num::Integer(number), Num::Integer(factor)) => number % factor == 0,
            _ => {
                let quotient = self.as_f64() / factor.as_f64();
                (quotient - quotient.round()).abs() <= QUOTIENT_TOLERANCE * quotient.abs().max(1.0)
            }
        }
    }

    pub(super) fn as_f64(self) -> f64 {
        match self {
            Num::Integer(integer) => integer as f64,
            Num::Float(float) => float,
        }
    }
}

impl PartialEq for Num {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Num {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (*self, *other) {
            (Num::Integer(a), Num::Integer(b)) => Some(a.cmp(&b)),
            (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b),
            (Num::Integer(a), Num::Float(b)) => compare(a, b),
            (Num::Float(a), Num::Integer(b)) => compare(b, a).map(Ordering::reverse),
        }
    }
}

/// Compares the whole part first. The cast saturates, and no integer of ours reaches i128's ends.
fn compare(integer: i128, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    let whole = integer.cmp(&(float.trunc() as i128));
    Some(whole.then_with(|| 0.0_f64.partial_cmp(&float.fract()).unwrap_or(Ordering::Equal)))
}

impl fmt::Display for Num {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Num::Integer(integer) => integer.fmt(f),
            Num::Float(float) => write!(f, "{float:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn num(text: &str) -> Num {
        Num::of(&text.parse().unwrap())
    }

    #[test]
    fn neighbours_beyond_2_to_53_differ() {
        assert!(num("9223372036854775807") > num("9223372036854775806"));
        assert!(num("18446744073709551615") > num("18446744073709551614"));
        assert!(num("-9223372036854775808") < num("-9223372036854775807"));
    }

    #[test]
    fn integers_and_floats_compare_exactly() {
        assert!(num("1") < num("1.5"));
        assert!(num("2") > num("1.5"));
        assert!(num("-1") > num("-1.5"));
        assert!(num("-2") < num("-1.5"));
        assert!(num("18446744073709551615") < num("1e300"));
        assert!(num("-9223372036854775808") > num("-1e300"));
        assert!(num("9007199254740993") > num("9007199254740992.0"));
    }

    #[test]
    fn a_float_without_fraction_is_an_integer() {
        assert!(num("1.0").is_integer());
        assert_eq!(num("1.0"), num("1"));
        assert!(!num("1.5").is_integer());
        assert!(!num("1e300").is_integer());
    }

    #[test]
    fn multiples_of_integers_are_exact_and_those_of_floats_are_not_fussy() {
        assert!(num("9223372036854775806").is_multiple_of(num("2")));
        assert!(!num("9223372036854775807").is_multiple_of(num("2")));
        assert!(num("0.3").is_multiple_of(num("0.1")));
        assert!(num("2").is_multiple_of(num("0.5")));
        assert!(!num("0.35").is_multiple_of(num("0.1")));
        assert!(!num("1").is_multiple_of(num("0")));
    }

    #[test]
    fn prints_short() {
        assert_eq!(num("1.0").to_string(), "1");
        assert_eq!(num("1e300").to_string(), "1e300");
        assert_eq!(num("-0.5").to_string(), "-0.5");
    }
}
