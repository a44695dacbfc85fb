//! The holder: one process that leads very many elections beside the one that is
//! fought for, and does nothing else. It is there to be killed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tenure::{Leadership, Tenure};

use crate::clock;
use crate::failure::{Doing, Failure, Outcome};
use crate::record::{Line, Log};
use crate::worker::{die_with, say};

/// How many of the elections are looked at.
pub(crate) const SAMPLE: u32 = 20;
/// Between two looks, and between two tries of something that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// What a holder is told.
#[derive(Clone, Debug)]
pub struct HolderOrders {
    /// The member's id.
    pub id: String,
    /// The store.
    pub url: String,
    /// Where it writes down what it won.
    pub log: PathBuf,
    /// Its ttl.
    pub ttl: Duration,
    /// How many elections there are.
    pub count: u32,
    /// Whether it stands for those only that are looked at.
    pub sample: bool,
    /// The process that started it.
    pub parent: u32,
}

impl HolderOrders {
    /// As arguments of a process.
    pub fn args(&self) -> Vec<String> {
        vec![
            self.id.clone(),
            self.url.clone(),
            self.log.display().to_string(),
            self.ttl.as_millis().to_string(),
            self.count.to_string(),
            u32::from(self.sample).to_string(),
            self.parent.to_string(),
        ]
    }

    /// Understands [`Self::args`].
    pub fn parse(args: &[String]) -> Outcome<Self> {
        let bad = || Failure::new("a holder is started by the program itself; leave it to that");
        let [id, url, log, ttl, count, sample, parent] = args else { return Err(bad()) };
        let number = |text: &String| text.parse::<u32>().map_err(|_| bad());
        Ok(Self {
            id: id.clone(),
            url: url.clone(),
            log: log.into(),
            ttl: Duration::from_millis(number(ttl)?.into()),
            count: number(count)?,
            sample: number(sample)? == 1,
            parent: number(parent)?,
        })
    }

    /// Whether an election is one of those that are looked at.
    fn looked_at(&self, election: u32) -> bool {
        election.is_multiple_of((self.count / SAMPLE).max(1))
    }

    fn elections(&self) -> impl Iterator<Item = u32> {
        (0..self.count).filter(|election| !self.sample || self.looked_at(*election))
    }
}

/// Stands for all its elections until it leads them, and keeps them until it is
/// killed.
pub fn hold(orders: &HolderOrders) -> Outcome {
    die_with(orders.parent)?;
    let mut log = Log::create(&orders.log)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.doing(|| "start the runtime".into())?;
    runtime.block_on(async {
        let tenure = connect(orders).await;
        let mut held: BTreeMap<u32, Leadership> = BTreeMap::new();
        loop {
            // The clock first: what is current after that was so at that moment.
            let at = clock::now();
            held.retain(|_, leadership| leadership.is_current());
            let missing: Vec<u32> =
                orders.elections().filter(|election| !held.contains_key(election)).collect();
            if missing.is_empty() {
                let count = u32::try_from(held.len()).unwrap_or(u32::MAX);
                log.write(&Line::Holds { count, at })?;
                tokio::time::sleep(PAUSE).await;
            } else {
                win(orders, &tenure, &missing, &mut held, &mut log).await?;
            }
        }
    })
}

async fn win(
    orders: &HolderOrders,
    tenure: &Tenure,
    missing: &[u32],
    held: &mut BTreeMap<u32, Leadership>,
    log: &mut Log,
) -> Outcome {
    let names = missing.iter().map(|election| format!("held-{election}"));
    let mut campaigns = tenure.campaign_all(names).doing(|| "stand for many".into())?;
    while let Some(won) = campaigns.next().await {
        match won {
            Ok(leadership) => {
                let name = leadership.term().election.to_string();
                let election = name.strip_prefix("held-").and_then(|n| n.parse().ok());
                let election =
                    election.ok_or_else(|| Failure::new(format!("{name} has no candidate")))?;
                if orders.looked_at(election) {
                    log.write(&Line::Won { election, term: leadership.token() })?;
                }
                held.insert(election, leadership);
            }
            Err(error) => {
                say(&error);
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    Ok(())
}

/// Tries until the store answers.
async fn connect(orders: &HolderOrders) -> Tenure {
    loop {
        match Tenure::builder(&orders.url).id(&orders.id).ttl(orders.ttl).connect().await {
            Ok(tenure) => return tenure,
            Err(error) => say(&error),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders(count: u32, sample: bool) -> HolderOrders {
        HolderOrders {
            id: "holder".into(),
            url: "sqlite:/a b.db".into(),
            log: "/logs/x.log".into(),
            ttl: Duration::from_secs(5),
            count,
            sample,
            parent: 77,
        }
    }

    /// What the parent says is what the holder hears.
    #[test]
    fn orders_come_through() {
        for sample in [false, true] {
            let orders = orders(20_000, sample);
            let heard = HolderOrders::parse(&orders.args()).unwrap();
            assert_eq!(format!("{heard:?}"), format!("{orders:?}"));
        }
        assert!(HolderOrders::parse(&orders(1, true).args()[1..]).is_err());
    }

    /// The sample is spread over all, and is all where there are few.
    #[test]
    fn a_sample_is_spread_over_all_elections() {
        let sample: Vec<u32> = orders(20_000, true).elections().collect();
        assert_eq!((sample.len(), sample[0], sample[19]), (20, 0, 19_000));
        assert_eq!(orders(20_000, false).elections().count(), 20_000);
        assert_eq!(orders(7, true).elections().count(), 7);
    }
}
