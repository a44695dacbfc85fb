//! What came of an attempt to lead without waiting.

use tenure_core::{ElectionView, Holder};

use crate::Leadership;

/// The answer to [`Election::try_campaign`](crate::Election::try_campaign): this process
/// leads, or who does.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tenure::Attempt;
///
/// let tenure = tenure::Tenure::connect("memory:").await?;
/// let election = tenure.election("nightly");
/// let Attempt::Elected(leadership) = election.try_campaign().await? else { panic!() };
///
/// // Elsewhere in the same process: it leads, by that campaign.
/// let again = election.try_campaign().await?;
/// assert!(matches!(&again, Attempt::LedHere(held) if held.token() == leadership.token()));
/// # Ok(()) })
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
#[must_use = "dropping it gives up what was won"]
pub enum Attempt {
    /// This member was elected just now.
    Elected(Leadership),
    /// This process leads already, by another campaign of its own. It is a hold on that
    /// term: see [`Leadership::hold`].
    LedHere(Leadership),
    /// This member does not lead: another holds the election, or it is paused, kept for
    /// another candidate or held up, as the view of that moment says. There is no view if
    /// this member does not bid for now, since it stepped down a moment ago.
    NotNow(Option<Box<ElectionView>>),
}

impl Attempt {
    /// The leadership, if this process leads.
    #[must_use]
    pub fn leadership(self) -> Option<Leadership> {
        match self {
            Attempt::Elected(leadership) | Attempt::LedHere(leadership) => Some(leadership),
            Attempt::NotNow(_) => None,
        }
    }

    /// Who leads instead, if the store showed a leader.
    #[must_use]
    pub fn leader(&self) -> Option<&Holder> {
        match self {
            Attempt::NotNow(Some(view)) => view.holder.as_ref(),
            _ => None,
        }
    }
}
