//! Durations and moments as people write them.

use std::time::Duration;

use tenure::Timestamp;

const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
];

/// Understands `5s`, `250ms`, `1m30s`, `1.5h`. A number without a unit is
/// refused: nobody agrees on what it means.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let refuse = |why: &str| {
        Err(format!("{text:?} is not a duration: {why}; write it like 5s, 250ms or 1m30s"))
    };
    let mut rest = text.trim();
    if rest.is_empty() {
        return refuse("it is empty");
    }
    let mut nanos: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        if number.is_empty() {
            return refuse("it has a part without a number");
        }
        if unit.is_empty() {
            return refuse("it has no unit");
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return refuse(&format!("{unit:?} is not a unit (d, h, m, s, ms, us are)"));
        };
        let Some(part) = scaled(number, *scale) else {
            return refuse(&format!("{number:?} is not a number that fits"));
        };
        let Some(sum) = nanos.checked_add(part) else { return refuse("it is too long") };
        nanos = sum;
        rest = tail;
    }
    Ok(Duration::from_nanos(nanos))
}

/// `number × scale` in whole nanoseconds, without floating point.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && part.is_empty()) || part.contains('.') || part.len() > 12 {
        return None;
    }
    let value = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<u64>().ok() };
    let whole = value(whole)?.checked_mul(scale)?;
    let tens = 10_u128.pow(u32::try_from(part.len()).ok()?);
    let part = u128::from(value(part)?) * u128::from(scale) / tens;
    whole.checked_add(u64::try_from(part).ok()?)
}

/// As short as people would say it: `850ms`, `2.5s`, `4m10s`, `3h5m`, `2d4h`.
pub(crate) fn show(span: Duration) -> String {
    let millis = span.as_millis();
    let secs = span.as_secs();
    match secs {
        _ if span.is_zero() => "0s".into(),
        _ if millis == 0 => format!("{}us", span.as_micros()),
        0 => format!("{millis}ms"),
        1..60 => {
            let text = format!("{secs}.{:03}", span.subsec_millis());
            format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
        }
        60..3600 => two(secs / 60, "m", secs % 60, "s"),
        3600..86_400 => two(secs / 3600, "h", secs % 3600 / 60, "m"),
        _ => two(secs / 86_400, "d", secs % 86_400 / 3600, "h"),
    }
}

fn two(large: u64, unit: &str, small: u64, small_unit: &str) -> String {
    if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
}

/// What is left of something, to the tenth of a second: digits that change
/// faster than they are read help nobody.
pub(crate) fn roughly(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        return show(Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)));
    }
    let tenths = u64::try_from(span.as_millis() / 100).unwrap_or(u64::MAX);
    show(Duration::from_millis(tenths.saturating_mul(100)))
}

/// A moment in RFC 3339, UTC, to the millisecond.
pub(crate) fn moment(at: Timestamp) -> String {
    let millis = at.unix_millis();
    let (secs, millis) = (millis / 1000, millis % 1000);
    let (days, secs) = (secs / 86_400, secs % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (secs / 3600, secs % 3600 / 60, secs % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// A moment for a person: `2026-11-15 22:08:23`, UTC.
pub(crate) fn moment_short(at: Timestamp) -> String {
    moment(at).chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

/// The date of a day since 1 January 1970, by counting in eras of 400 years
/// that begin on 1 March.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day + 2) / 153;
    let date = day - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year + u64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in [
            ("5s", 5_000),
            ("250ms", 250),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("2d", 172_800_000),
            ("0s", 0),
            (" 3s ", 3_000),
            (".5s", 500),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for (text, why) in [
            ("", "empty"),
            ("5", "no unit"),
            ("5x", "\"x\" is not a unit"),
            ("s", "without a number"),
            ("-5s", "without a number"),
            ("1.2.3s", "not a number"),
            ("5 s", "no unit"),
            ("99999999999999d", "fits"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(why) && refused.contains("250ms"), "{text}: {refused}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for (millis, text) in [
            (0, "0s"),
            (850, "850ms"),
            (2_500, "2.5s"),
            (10_000, "10s"),
            (250_000, "4m10s"),
            (3_600_000, "1h"),
            (11_100_000, "3h5m"),
            (187_200_000, "2d4h"),
        ] {
            let span = Duration::from_millis(millis);
            assert_eq!(show(span), text);
            assert_eq!(parse(text), Ok(span));
        }
        assert_eq!(roughly(Duration::from_millis(8_765)), "8.7s");
        assert_eq!(roughly(Duration::from_millis(265)), "265ms");
    }

    #[test]
    fn moments_are_dates() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_826_271_001, "2000-02-29T12:11:11.001Z"),
            (1_700_000_000_000, "2023-11-14T22:13:20.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
        ] {
            assert_eq!(moment(Timestamp::from_unix_millis(millis)), text);
        }
        let at = Timestamp::from_unix_millis(1_700_000_000_000);
        assert_eq!(moment_short(at), "2023-11-14 22:13:20");
    }
}
