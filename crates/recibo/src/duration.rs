//! Durations, as people write and read them.

/// Reads `90d`, `12h`, `5m`, `30s`, `1.5s`, `250ms`, or a plain number of seconds, into
/// milliseconds.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is no duration: write 250ms, 30s, 5m, 12h, 90d or seconds");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let ms_per_unit = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(bad()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || number.ends_with('.') || fraction.len() > 3 || fraction.contains('.') {
        return Err(bad());
    }
    // In thousandths of the unit, so that no float is needed.
    let thousandths = format!("{whole}{fraction:0<3}").parse::<u64>().map_err(|_| bad())?;
    let product = thousandths.checked_mul(ms_per_unit).ok_or_else(bad)?;
    if product % 1000 != 0 {
        return Err(bad());
    }
    Ok(product / 1000)
}

/// Two units at most: `842 ms`, `12.0 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
pub fn in_words(ms: u64) -> String {
    let two = |big: u64, big_unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{big} {big_unit}"),
        _ => format!("{big} {big_unit} {small} {small_unit}"),
    };
    let s = ms / 1000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{s}.{} s", ms % 1000 / 100),
        60_000..3_600_000 => two(s / 60, "min", s % 60, "s"),
        3_600_000..86_400_000 => two(s / 3600, "h", s / 60 % 60, "min"),
        _ => two(s / 86_400, "d", s / 3600 % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let cases = [
            ("90d", Some(7_776_000_000)),
            ("12h", Some(43_200_000)),
            ("5m", Some(300_000)),
            ("30s", Some(30_000)),
            ("30", Some(30_000)),
            ("0.5", Some(500)),
            ("1.25s", Some(1_250)),
            ("250ms", Some(250)),
            ("0", Some(0)),
            ("0.5ms", None),
            ("", None),
            ("s", None),
            ("1.", None),
            (".5", None),
            ("1.2.3", None),
            ("1.2345s", None),
            ("-1", None),
            ("1w", None),
            ("1 s", None),
            ("99999999999999999999", None),
            ("18446744073709551d", None),
        ];
        for (text, ms) in cases {
            assert_eq!(parse_ms(text).ok(), ms, "{text}");
        }
    }

    #[test]
    fn durations_are_written_with_two_units_at_most() {
        let cases = [
            (0, "0 ms"),
            (842, "842 ms"),
            (1_000, "1.0 s"),
            (12_049, "12.0 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min"),
            (200_000, "3 min 20 s"),
            (3_600_000, "1 h"),
            (7_500_000, "2 h 5 min"),
            (86_400_000, "1 d"),
            (273_600_000, "3 d 4 h"),
        ];
        for (ms, text) in cases {
            assert_eq!(in_words(ms), text);
        }
    }
}
