//! Durations as people write them.
//!
//! ```
//! use std::time::Duration;
//! use tenure_api::span;
//!
//! assert_eq!(span::parse("1m30s"), Ok(Duration::from_secs(90)));
//! assert_eq!(span::show(Duration::from_millis(2_500)), "2.5s");
//! ```

use std::time::Duration;

use jiff::{Span, SpanRelativeTo};

/// Understands `5s`, `250ms`, `1m30s`, `1.5h`, `2d`. A number without a unit is
/// refused: readers would differ on what it means.
///
/// # Errors
///
/// The text is none of these; the message says how to write one.
pub fn parse(text: &str) -> Result<Duration, String> {
    let span = text.trim().parse::<Span>().ok();
    let exact = span.and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()).ok());
    // A negative one is none.
    exact.and_then(|exact| Duration::try_from(exact).ok()).ok_or_else(|| {
        format!(
            "{text:?} is not a duration: write it like 5s, 250ms or 1m30s, with the units d, h, \
             m, s, ms and us"
        )
    })
}

/// As short as people would say it: `850ms`, `2.5s`, `4m10s`, `3h5m`, `2d4h`.
#[must_use]
pub fn show(span: Duration) -> String {
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
/// faster than they are read are of no use.
#[must_use]
pub fn roughly(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        return show(Duration::from_millis(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)));
    }
    let tenths = u64::try_from(span.as_millis() / 100).unwrap_or(u64::MAX);
    show(Duration::from_millis(tenths.saturating_mul(100)))
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
            ("0.5s", 500),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "5", "5x", "s", "-5s", "1.2.3s", "1month", "99999999999999d"] {
            let refused = parse(text).unwrap_err();
            assert!(refused.starts_with(&format!("{text:?} is not a duration")), "{refused}");
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
}
