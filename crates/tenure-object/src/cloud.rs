//! The three clouds, and what is different about them.

use std::time::Duration;

use tenure_cas::Version;

/// Whose interface a bucket speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cloud {
    /// Amazon S3, and what speaks its language: `s3://`.
    S3,
    /// Google Cloud Storage: `gs://`.
    Gcs,
    /// Azure Blob Storage: `az://`.
    Azure,
}

impl Cloud {
    pub(crate) const ALL: [Self; 3] = [Self::S3, Self::Gcs, Self::Azure];

    /// As URLs begin.
    #[must_use]
    pub fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Gcs => "gs",
            Self::Azure => "az",
        }
    }

    /// What a bucket is called there.
    pub(crate) fn bucket(self) -> &'static str {
        match self {
            Self::S3 | Self::Gcs => "bucket",
            Self::Azure => "container",
        }
    }

    pub(crate) fn service(self) -> &'static str {
        match self {
            Self::S3 => "S3",
            Self::Gcs => "Google Cloud Storage",
            Self::Azure => "Azure Blob Storage",
        }
    }

    /// How far apart the writes of one object must be in the long run. Google
    /// says so and answers 429; the others bound a prefix or a partition by
    /// thousands a second, which one object does not reach.
    #[must_use]
    pub fn least_pace(self) -> Option<Duration> {
        match self {
            Self::Gcs => Some(Duration::from_secs(1)),
            Self::S3 | Self::Azure => None,
        }
    }

    /// A version that no object of this cloud can have.
    pub(crate) fn never(self) -> Version {
        Version::new(match self {
            Self::S3 => "\"00000000000000000000000000000000\"",
            // Generations are microseconds of the time of writing.
            Self::Gcs => "1",
            Self::Azure => "\"0x8D0000000000000\"",
        })
    }
}
