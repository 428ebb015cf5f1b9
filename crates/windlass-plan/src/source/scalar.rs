//! What a plain scalar is: the core schema of YAML 1.2.

/// What a plain scalar is. Only these: `yes`, `on` and dates are text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Plain {
    Null,
    Bool(bool),
    Int(i128),
    /// A whole number that nothing here can hold.
    Huge,
    /// May be infinite or not a number.
    Float(f64),
    Text,
}

impl Plain {
    pub(crate) fn of(text: &str) -> Plain {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Plain::Null,
            "true" | "True" | "TRUE" => Plain::Bool(true),
            "false" | "False" | "FALSE" => Plain::Bool(false),
            ".nan" | ".NaN" | ".NAN" => Plain::Float(f64::NAN),
            _ => number(text),
        }
    }
}

fn number(text: &str) -> Plain {
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let valid = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            return match i128::from_str_radix(digits, radix) {
                _ if !valid => Plain::Text,
                Ok(number) => Plain::Int(number),
                Err(_) => Plain::Huge,
            };
        }
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        let negative = text.starts_with('-');
        return Plain::Float(if negative {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        });
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_or(Plain::Huge, Plain::Int);
    }
    if looks_like_a_float(unsigned) {
        return text.parse().map_or(Plain::Text, Plain::Float);
    }
    Plain::Text
}

/// Digits with a point, an exponent or both; `text` has no sign.
fn looks_like_a_float(text: &str) -> bool {
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_is_valid = exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    });
    (!whole.is_empty() || !fraction.is_empty())
        && digits(whole)
        && digits(fraction)
        && exponent_is_valid
}

#[cfg(test)]
mod tests {
    use super::Plain;

    #[test]
    fn only_the_core_schema_is_known() {
        for text in [
            "yes",
            "no",
            "on",
            "off",
            "y",
            "1_000",
            "0b1",
            "012x",
            "1:30",
            "+",
            "-",
            ".",
            "e5",
            "1e",
            "1e+",
            "inf",
            "nan",
            "-.nan",
            "0x",
            "0xg",
            "-0x1",
            "1.2.3",
            "2001-01-01",
        ] {
            assert_eq!(Plain::of(text), Plain::Text, "{text}");
        }
        for (text, number) in [
            ("0", 0),
            ("012", 12),
            ("+5", 5),
            ("-7", -7),
            ("0x1F", 31),
            ("0o17", 15),
        ] {
            assert_eq!(Plain::of(text), Plain::Int(number), "{text}");
        }
        for (text, number) in [
            ("1.", 1.0),
            (".5", 0.5),
            ("-1.5e3", -1500.0),
            ("1E2", 100.0),
        ] {
            assert_eq!(Plain::of(text), Plain::Float(number), "{text}");
        }
        assert_eq!(Plain::of("-.inf"), Plain::Float(f64::NEG_INFINITY));
        assert_eq!(Plain::of("1e999"), Plain::Float(f64::INFINITY));
        assert!(matches!(Plain::of(".NaN"), Plain::Float(n) if n.is_nan()));
        assert_eq!(Plain::of(&"9".repeat(60)), Plain::Huge);
        assert_eq!(Plain::of(&format!("0x{}", "f".repeat(60))), Plain::Huge);
    }
}
