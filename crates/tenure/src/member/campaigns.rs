//! Standing for many elections at once.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tenure_core::ElectionName;
use tokio::sync::mpsc;

use crate::member::Shared;
use crate::member::driver::{CampaignOutcome, Campaigned, Command};
use crate::{Error, Leadership, Result};

/// Campaigns for many elections, made by
/// [`Tenure::campaign_all`](crate::Tenure::campaign_all): a stream of their
/// leaderships, each as it is won. It ends when every campaign has come to its
/// end. Drop it to withdraw from those that have not; what was won and taken
/// from it stays.
#[derive(Debug)]
#[must_use = "dropping it withdraws from the elections"]
pub struct Campaigns {
    shared: Arc<Shared>,
    ticket: u64,
    /// Those without an outcome that was taken from here.
    open: BTreeSet<ElectionName>,
    outcomes: mpsc::UnboundedReceiver<(ElectionName, CampaignOutcome)>,
}

impl Campaigns {
    pub(crate) fn begin(shared: Arc<Shared>, open: BTreeSet<ElectionName>) -> Result<Self> {
        let (reply, outcomes) = mpsc::unbounded_channel();
        let ticket = shared.ticket();
        let elections = open.iter().cloned().collect();
        shared.send(Command::StandForAll { elections, ticket, reply })?;
        Ok(Self { shared, ticket, open, outcomes })
    }

    /// The next election that was won, or whose campaign cannot go on: because
    /// this member stands for it or leads it already, or shuts down. `None` at the
    /// [end](crate#streams): once there is none left. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Leadership>> {
        poll_fn(|context| self.poll(context)).await
    }

    /// How many elections are neither won nor given up yet.
    #[must_use]
    pub fn standing(&self) -> usize {
        self.open.len()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Leadership>>> {
        while !self.open.is_empty() {
            let Some((election, outcome)) = ready!(self.outcomes.poll_recv(context)) else {
                // The driver is gone, and every campaign with it.
                self.open.clear();
                return Poll::Ready(Some(Err(Error::ShutDown)));
            };
            self.open.remove(&election);
            match outcome {
                Ok(Campaigned::Won(reign)) => {
                    let leadership = Leadership::new(reign, self.shared.clone());
                    return Poll::Ready(Some(Ok(leadership)));
                }
                // Only a caller that does not want to wait is told so.
                Ok(Campaigned::NotNow(_)) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        Poll::Ready(None)
    }
}

impl Stream for Campaigns {
    type Item = Result<Leadership>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll(context)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.open.len()))
    }
}

impl Drop for Campaigns {
    fn drop(&mut self) {
        for election in std::mem::take(&mut self.open) {
            // If the driver is gone, so is the candidacy.
            let _ = self.shared.send(Command::Withdraw { election, ticket: self.ticket });
        }
    }
}
