//! Points in time, in milliseconds. Nothing here reads a clock.

use std::fmt;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z, up to the end of year 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// 9999-12-31T23:59:59.999Z: RFC 3339 has four digits for the year.
const MAX_MS: u64 = 253_402_300_799_999;

impl Time {
    /// The last point there is. A lease that ends here ends nobody knows when.
    pub const MAX: Self = Self(MAX_MS);

    /// The point that lies this many milliseconds after the epoch; later than year 9999 is cut to it.
    pub const fn from_ms(ms: u64) -> Self {
        Self(if ms < MAX_MS { ms } else { MAX_MS })
    }

    /// Milliseconds since the epoch.
    pub fn ms(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch, as they stand in a token.
    pub fn epoch_s(self) -> u64 {
        self.0 / 1000
    }

    /// This point plus a duration in milliseconds.
    #[must_use]
    pub fn plus_ms(self, ms: u64) -> Self {
        Self::from_ms(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this point; 0 if `earlier` is later.
    pub fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads an RFC 3339 time with any offset, cut to milliseconds. `None` for anything else,
    /// and for points before 1970.
    pub fn parse(text: &str) -> Option<Self> {
        let ms = text.parse::<jiff::Timestamp>().ok()?.as_millisecond();
        u64::try_from(ms).ok().filter(|ms| *ms <= MAX_MS).map(Self)
    }
}

/// RFC 3339, UTC, milliseconds: `2026-09-13T02:00:00.000Z`.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.write_str(text))
    }
}

impl Time {
    /// Appends the text of this point.
    pub(crate) fn push_to(self, out: &mut String) {
        self.with_text(|text| out.push_str(text));
    }

    fn with_text<T>(self, then: impl FnOnce(&str) -> T) -> T {
        let (days, ms) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil(days);
        let (h, m, s, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let places = [(0..4, year), (5..7, month), (8..10, day), (11..13, h), (14..16, m)];
        for (place, mut number) in places.into_iter().chain([(17..19, s), (20..23, ms)]) {
            for digit in text[place].iter_mut().rev() {
                *digit = b'0' + (number % 10) as u8;
                number /= 10;
            }
        }
        then(std::str::from_utf8(&text).expect("digits are ASCII"))
    }
}

/// Days since the epoch to year, month and day. Written out because a line is rendered for
/// every event on the writer thread, and a calendar library costs more than the hash of it.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_until_2200_is_written_as_the_calendar_library_writes_it() {
        for day in 0..84_000_u64 {
            let time = Time::from_ms(day * 86_400_000 + 45_296_789);
            let by_library = jiff::Timestamp::from_millisecond(time.ms() as i64).unwrap();
            assert_eq!(time.to_string(), format!("{by_library:.3}"));
            assert_eq!(Time::parse(&time.to_string()), Some(time));
        }
    }

    #[test]
    fn bounds_are_kept() {
        assert_eq!(Time::from_ms(u64::MAX).to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Time::parse("1969-12-31T23:59:59Z"), None);
        assert_eq!(Time::parse("2026-09-13"), None);
        assert_eq!(
            Time::parse("2026-09-13T04:00:00.0009+02:00").map(|t| t.to_string()),
            Some("2026-09-13T02:00:00.000Z".to_owned())
        );
    }
}
