//! Quantities of Kubernetes: `500m`, `1Gi`, `1e3`.

/// A quantity in billionths, which is as fine as they get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quantity(i128);

const BILLION: i128 = 1_000_000_000;

impl Quantity {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let sign = if text.starts_with('-') { -1 } else { 1 };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (numerator, denominator) = scale(suffix)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || whole.len() > 20 {
            return None;
        }
        let read = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i128>().ok() };
        let digits = &fraction[..fraction.len().min(9)];
        if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let part = read(digits)?.checked_mul(10_i128.pow(9 - u32::try_from(digits.len()).ok()?))?;
        let billionths = read(whole)?.checked_mul(BILLION)?.checked_add(part)?;
        Some(Self(sign * billionths.checked_mul(numerator)? / denominator))
    }

    pub(super) fn from_int(value: i64) -> Self {
        Self(i128::from(value) * BILLION)
    }

    pub(super) fn checked_add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub(super) fn checked_sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    pub(super) fn sign(self) -> i64 {
        self.0.signum() as i64
    }

    /// None when it has a fraction or is too large.
    pub(super) fn as_integer(self) -> Option<i64> {
        if self.0 % BILLION == 0 { i64::try_from(self.0 / BILLION).ok() } else { None }
    }

    pub(super) fn as_float(self) -> f64 {
        self.0 as f64 / BILLION as f64
    }
}

/// What a suffix multiplies by and divides by.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let up = |power: u32| Some((10_i128.pow(power), 1));
    let binary = |power: u32| Some((1_i128 << (10 * power), 1));
    match suffix {
        "" => up(0),
        "n" => Some((1, BILLION)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1_000)),
        "k" => up(3),
        "M" => up(6),
        "G" => up(9),
        "T" => up(12),
        "P" => up(15),
        "E" => up(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            match power {
                0..=18 => up(power.unsigned_abs()),
                -9..0 => Some((1, 10_i128.pow(power.unsigned_abs()))),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_compare_whatever_their_suffix() {
        let quantity = |text| Quantity::parse(text).unwrap();
        assert_eq!(quantity("1"), quantity("1000m"));
        assert_eq!(quantity("1.5Gi"), quantity("1536Mi"));
        assert_eq!(quantity("1e3"), quantity("1k"));
        assert!(quantity("-1") < quantity("0.1"));
        assert_eq!(quantity("2k").as_integer(), Some(2000));
        assert_eq!(quantity("1m").as_integer(), None);
        for text in ["", "k", "1kk", "1.2.3", "e3", "é", "1e99", "99999999999999999999999"] {
            assert_eq!(Quantity::parse(text), None, "{text}");
        }
    }
}
