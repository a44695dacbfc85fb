//! How a member leaves.

/// How a member left, from [`Tenure::shutdown`](crate::Tenure::shutdown).
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::{Left, Tenure};
///
/// let tenure = Tenure::connect("memory:").await?;
/// assert_eq!(tenure.shutdown().await?, Left::Confirmed);
/// assert_eq!(tenure.shutdown().await?, Left::Already);
/// # Ok(()) })
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Left {
    /// The store has answered: the member is gone, and holds nothing.
    Confirmed,
    /// The store has not answered in time. If the member is still there, it is gone after
    /// its ttl, and with it what it holds.
    Unconfirmed,
    /// The member had been shut down before.
    Already,
}
