//! Whether the service keeps up with the settings.

use std::time::Duration;

use tenure_core::Settings;
use tenure_store::Result;

use crate::cloud::Cloud;
use crate::options::refuse;

/// Refuses settings by which one object would be written more often than the
/// service lets it, with the arithmetic (F3). A throttled heartbeat is a lost
/// leadership.
pub(crate) fn check(cloud: Cloud, settings: Option<&Settings>) -> Result<()> {
    let (Some(least), Some(settings)) = (cloud.least_pace(), settings) else { return Ok(()) };
    let every = settings.heartbeat();
    if every >= least {
        return Ok(());
    }
    let text = format!(
        "{} lets one object be written {} a second; a heartbeat every {every:?} writes its \
         member's object {} times a second and would be throttled",
        cloud.service(),
        rate(least),
        rate(every),
    );
    Err(refuse(text).remedy(format!(
        "let heartbeats be {least:?} apart or more: a ttl of {:?}, or the preset normal",
        least * 4
    )))
}

/// Times a second, to two digits, without floating point.
fn rate(every: Duration) -> String {
    let hundredths = 100_000_000_000 / every.as_nanos().max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use tenure_core::{Preset, SettingsBuilder};

    use super::*;

    /// F3: at, below and above the bound, and only where there is one.
    #[test]
    fn a_heartbeat_that_would_be_throttled_is_refused_with_the_arithmetic() {
        let of = |ttl: u64| SettingsBuilder::ttl(Duration::from_millis(ttl)).build().unwrap();
        assert!(check(Cloud::Gcs, Some(&of(4_000))).is_ok());
        assert!(check(Cloud::Gcs, Some(&of(3_996))).is_err());
        assert!(check(Cloud::Gcs, None).is_ok());
        let fast = SettingsBuilder::preset(Preset::Fast).build().unwrap();
        let said = check(Cloud::Gcs, Some(&fast)).unwrap_err().to_string();
        assert!(said.contains("750ms") && said.contains("1.33 times a second"), "{said}");
        assert!(said.contains("a ttl of 4s"), "{said}");
        for cloud in [Cloud::S3, Cloud::Azure] {
            assert!(check(cloud, Some(&fast)).is_ok());
        }
    }
}
