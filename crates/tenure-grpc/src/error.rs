//! Why a channel could not be built.

/// Why a channel could not be built. Nothing was connected.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use tenure_grpc::{BuildError, LeaderChannel};
///
/// let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let tenure = runtime.block_on(tenure::Tenure::connect("memory:"))?;
/// // Outside of a tokio runtime no election can be followed.
/// let built = LeaderChannel::builder(tenure.election("greeter")).build();
/// assert!(matches!(built, Err(BuildError::NoRuntime)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The election cannot be followed.
    #[error("the election cannot be followed: {0}")]
    Election(#[from] tenure::Error),
    /// The settings that were given to `Builder::endpoint` cannot be used.
    #[error("the settings of the endpoints cannot be used: {0}")]
    Endpoint(String),
    /// `build` was called outside of a tokio runtime.
    #[error(
        "a channel follows its election in a tokio runtime: call build() inside of one, with I/O \
         and time enabled"
    )]
    NoRuntime,
}
