//! Which known name a user may have meant by an unknown one.

/// The known name that differs least from `given`, if it differs little: by one letter in
/// three, by one at least and by three at most. A letter more, one less, another one, and
/// two that changed places each count as one.
///
/// ```
/// use tenure_store::nearest;
///
/// let known = ["nightly", "hourly", "reports"];
/// assert_eq!(nearest("nigthly", known), Some("nightly"));
/// assert_eq!(nearest("report", known), Some("reports"));
/// assert_eq!(nearest("backup", known), None);
/// ```
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = (given.chars().count() / 3).clamp(1, 3);
    let distances = known.into_iter().map(|name| (strsim::osa_distance(given, name), name));
    let (distance, name) = distances.min()?;
    (distance <= most).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_near_by_one_letter_and_long_ones_by_three() {
        assert_eq!(nearest("s4", ["gs", "s3", "az"]), Some("s3"));
        assert_eq!(nearest("xy", ["gs", "s3", "az"]), None);
        assert_eq!(nearest("postgersql", ["postgres", "postgresql"]), Some("postgresql"));
        assert_eq!(nearest("abcdefghijklmno", ["abcdefghijklxxx"]), Some("abcdefghijklxxx"));
        assert_eq!(nearest("abcdefghijklmno", ["abcdefghijkxxxx"]), None);
        assert_eq!(nearest("x", []), None);
    }
}
