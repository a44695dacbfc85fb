//! One watch on the feed for all observers of a client.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::{
    ElectionName, Entry, Happening, Hint, Incarnation, Mono, Profile, Query, Seq, Snapshot,
};
use tenure_store::{Page, SharedStore};
use tokio::sync::mpsc;

use super::super::entries::{Entries, Told};
use super::super::follow::{PAUSES, Source, sleep_until};
use super::Wanted;
use super::track::{Subscribed, Track};
use crate::client::Client;
use crate::{Error, Result};

/// The way to the watch: started with the first observer.
#[derive(Debug, Default)]
pub(crate) struct Observations {
    watch: Mutex<Option<mpsc::UnboundedSender<New>>>,
    tracks: Arc<Mutex<Shared>>,
}

/// The tracks that observers share: by election, and by whether they are told of renewals.
type Shared = HashMap<(ElectionName, bool), Arc<Track>>;

/// A new observer.
#[derive(Debug)]
struct New {
    election: ElectionName,
    /// Whether it must first catch up with the journal.
    resumes: bool,
    track: Arc<Track>,
}

/// New observers on their way to the watch. Those who never get there, because
/// the member is gone, see their stream end.
#[derive(Debug)]
struct Arrivals(mpsc::UnboundedReceiver<New>);

impl Drop for Arrivals {
    fn drop(&mut self) {
        self.0.close();
        while let Ok(new) = self.0.try_recv() {
            new.track.close();
        }
    }
}

impl Observations {
    /// The track of an election; a private one for an observer that resumes,
    /// since it must hear again what the others have heard. It is subscribed
    /// to before the task can post to it or forget it.
    pub(super) fn watch(
        &self,
        client: &Client,
        election: ElectionName,
        wanted: Wanted,
    ) -> Result<(Arc<Track>, Subscribed)> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let give = match watch.take() {
            Some(give) => give,
            None => self.start(client)?,
        };
        // Where there is no journal there is nothing to resume from.
        let after = wanted.after.filter(|_| client.first_capabilities().journal);
        let (track, subscribed) = match after {
            Some(after) => {
                let track = Arc::new(Track::resumed(after, wanted.renewals));
                let subscribed = track.subscribe();
                (track, subscribed)
            }
            None => {
                let mut tracks = self.tracks.lock().unwrap_or_else(PoisonError::into_inner);
                let track = tracks.entry((election.clone(), wanted.renewals));
                let track = track.or_insert_with(|| Arc::new(Track::new(wanted.renewals))).clone();
                let subscribed = track.subscribe();
                (track, subscribed)
            }
        };
        let new = New { election, resumes: after.is_some(), track: track.clone() };
        give.send(new).map_err(|_| Error::ShutDown)?;
        *watch = Some(give);
        Ok((track, subscribed))
    }

    fn start(&self, client: &Client) -> Result<mpsc::UnboundedSender<New>> {
        let (give, take) = mpsc::unbounded_channel();
        let watch = Watch {
            new: Arrivals(take),
            store: client.store()?,
            source: client.feed()?.source(),
            shared_tracks: self.tracks.clone(),
            tracks: HashMap::new(),
            resuming: Vec::new(),
            profiles: HashMap::new(),
            look: HashSet::new(),
            cursor: None,
        };
        client.run_in_background(watch.run());
        Ok(give)
    }
}

/// The watch itself: a task on the driver's runtime.
struct Watch {
    new: Arrivals,
    store: SharedStore,
    source: Arc<Source>,
    shared_tracks: Arc<Mutex<Shared>>,
    /// All tracks, with the private ones of those who resumed.
    tracks: HashMap<ElectionName, Vec<Arc<Track>>>,
    /// Those who have not caught up yet.
    resuming: Vec<(ElectionName, Arc<Track>)>,
    profiles: HashMap<Incarnation, Profile>,
    /// Elections to look at.
    look: HashSet<ElectionName>,
    /// Up to where the journal was read.
    cursor: Option<Seq>,
}

impl Drop for Watch {
    /// The member is gone: every observer's stream ends.
    fn drop(&mut self) {
        let resuming = self.resuming.iter().map(|(_, track)| track);
        self.tracks.values().flatten().chain(resuming).for_each(|track| track.close());
    }
}

impl Watch {
    async fn run(mut self) {
        let mut entries: Option<Entries> = None;
        let mut pauses = PAUSES;
        loop {
            match self.turn(&mut entries).await {
                Ok(true) => pauses.reset(),
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(target: "tenure", %error, "observing is interrupted");
                    // What was taken from the journal but not passed on is
                    // read again, from the cursor.
                    entries = None;
                    self.source.time.sleep(pauses.pause()).await;
                }
            }
        }
    }

    /// One thing at a time. `false` when no observer can ask for anything any more.
    async fn turn(&mut self, entries: &mut Option<Entries>) -> tenure_store::Result<bool> {
        while let Some((election, track)) = self.resuming.last().cloned() {
            self.catch_up(&election, &track).await?;
            // Taken off only now: after a failure it goes on from the place it reached.
            self.resuming.pop();
            self.tracks.entry(election).or_default().push(track);
        }
        if !self.look.is_empty() {
            self.look_now().await?;
        }
        if self.tracks.is_empty() {
            // There is no observer: the journal need not be read.
            *entries = None;
            self.cursor = None;
        } else if entries.is_none() {
            // The first look told where the journal stands: nothing falls
            // between it and what is followed.
            let after = self.cursor.unwrap_or(Seq::START);
            let Ok(subscribed) = Source::entries(&self.source, Some(after)) else {
                return Ok(false);
            };
            *entries = Some(subscribed);
        }
        let check = self.next_check();
        tokio::select! {
            biased;
            asked = self.new.0.recv() => {
                let Some(asked) = asked else { return Ok(false) };
                self.begin(asked);
            }
            told = next(entries) => match told {
                Told::Entries(entries) => self.on_entries(&entries).await?,
                Told::Hint(hint) => self.on_hint(hint),
                Told::Trimmed(up_to) => self.on_trimmed(up_to),
                Told::Interrupted(_) | Told::Restored => {}
            },
            () = sleep_until(&self.source.time, check) => self.look_at_due(),
        }
        self.forget_unwatched();
        Ok(true)
    }

    async fn read(&self, query: Query) -> tenure_store::Result<Snapshot> {
        self.source.in_time(self.store.read(&self.source.ns, &query)).await
    }

    fn begin(&mut self, asked: New) {
        let New { election, resumes, track } = asked;
        if resumes {
            self.resuming.push((election, track));
            return;
        }
        let known = self.tracks.entry(election.clone()).or_default();
        if !known.iter().any(|t| Arc::ptr_eq(t, &track)) {
            known.push(track);
            self.look.insert(election);
        }
    }

    /// Tells an observer that resumes what happened since. If it fails midway,
    /// the next try goes on from there.
    async fn catch_up(
        &mut self,
        election: &ElectionName,
        track: &Track,
    ) -> tenure_store::Result<()> {
        let snapshot = self.read(Query::elections([election.clone()])).await?;
        // The end is read before the pages: what is written meanwhile is followed.
        let end = snapshot.seq;
        let mut at = track.seq();
        if at > end {
            // Not the journal its observer knows: the store was begun anew.
            track.start_over();
            at = end;
        }
        while at < end {
            let page = self.store.journal(&self.source.ns, at);
            match self.source.in_time(page).await? {
                // A store that was rolled back meanwhile.
                Page::Entries(entries) if entries.is_empty() => break,
                Page::Entries(entries) => {
                    for entry in entries.iter().filter(|entry| entry.seq <= end) {
                        if entry.what.election().is_none_or(|e| e == election) {
                            let profile = self.profile_of(entry).await?;
                            track.on_entry(entry, profile);
                        }
                    }
                    at = entries.last().map_or(at, |entry| entry.seq);
                }
                Page::Trimmed(up_to) => {
                    track.on_trimmed(up_to);
                    break;
                }
            }
        }
        // The view is of the very place that was caught up with.
        let now = self.source.time.now();
        snapshot.elections.iter().for_each(|view| track.caught_up(now, end, view));
        // Not moved where there is one: other observers may not have got as far.
        self.cursor = self.cursor.or(Some(end));
        Ok(())
    }

    async fn look_now(&mut self) -> tenure_store::Result<()> {
        let names: Vec<_> = self.look.iter().cloned().collect();
        let snapshot = self.read(Query::elections(names.clone())).await?;
        let now = self.source.time.now();
        for view in &snapshot.elections {
            if let Some(holder) = &view.holder {
                self.profiles.insert(holder.member.incarnation, holder.profile.clone());
            }
            for track in self.tracks.get(&view.election).into_iter().flatten() {
                track.on_view(now, snapshot.seq, view);
            }
        }
        // Those that were asked for while the answer was on its way stay.
        for name in names {
            self.look.remove(&name);
        }
        self.cursor = self.cursor.or(Some(snapshot.seq));
        Ok(())
    }

    async fn on_entries(&mut self, entries: &[Entry]) -> tenure_store::Result<()> {
        for entry in entries {
            if let Happening::Joined { member, profile, .. } = &entry.what {
                self.profiles.insert(member.incarnation, profile.clone());
            }
            let tracks = match &entry.what {
                Happening::Left { member, .. } | Happening::Ended { member, .. } => {
                    self.led_by(member.incarnation)
                }
                what => {
                    what.election().and_then(|e| self.tracks.get(e)).cloned().unwrap_or_default()
                }
            };
            if tracks.is_empty() {
                continue;
            }
            let profile = self.profile_of(entry).await?;
            for track in tracks {
                track.on_entry(entry, profile.clone());
            }
            if let (Happening::Elected { .. }, Some(election)) =
                (&entry.what, entry.what.election())
            {
                self.look.insert(election.clone());
            }
        }
        self.cursor = entries.last().map(|entry| entry.seq).or(self.cursor);
        Ok(())
    }

    /// The elections that this life leads, as far as is known.
    fn led_by(&self, life: Incarnation) -> Vec<Arc<Track>> {
        self.tracks.values().flatten().filter(|track| track.is_led_by(life)).cloned().collect()
    }

    /// What the member that an entry elects publishes: remembered, or asked
    /// for; empty if it is gone already.
    async fn profile_of(&mut self, entry: &Entry) -> tenure_store::Result<Profile> {
        let Happening::Elected { term, .. } = &entry.what else { return Ok(Profile::default()) };
        let incarnation = term.member.incarnation;
        // One read for all that are elected by the same page, and for those after it.
        if !self.profiles.contains_key(&incarnation) {
            let members = self.read(Query::members()).await?.members;
            self.profiles =
                members.into_iter().map(|m| (m.member.incarnation, m.profile)).collect();
        }
        Ok(self.profiles.get(&incarnation).cloned().unwrap_or_default())
    }

    fn on_hint(&mut self, hint: Hint) {
        match hint {
            Hint::Anything => self.look.extend(self.tracks.keys().cloned()),
            Hint::Election(election)
            | Hint::Vacant { election, .. }
            | Hint::Handed { election, .. } => {
                if self.tracks.contains_key(&election) {
                    self.look.insert(election);
                }
            }
            Hint::Gone(incarnation) => {
                let led = |tracks: &[Arc<Track>]| tracks.iter().any(|t| t.is_led_by(incarnation));
                let led = self.tracks.iter().filter(|(_, tracks)| led(tracks));
                self.look.extend(led.map(|(election, _)| election.clone()));
            }
            Hint::Names => {}
        }
    }

    fn on_trimmed(&mut self, up_to: Seq) {
        for track in self.tracks.values().flatten() {
            track.on_trimmed(up_to);
        }
        self.look.extend(self.tracks.keys().cloned());
        self.cursor = Some(up_to);
    }

    fn next_check(&self) -> Option<Mono> {
        self.tracks.values().flatten().filter_map(|track| track.check_at()).min()
    }

    /// A leader that has not beaten for its ttl may be gone (B6).
    fn look_at_due(&mut self) {
        let now = self.source.time.now();
        let due = |tracks: &[Arc<Track>]| {
            tracks.iter().any(|track| track.check_at().is_some_and(|at| now >= at))
        };
        let due = self.tracks.iter().filter(|(_, tracks)| due(tracks));
        self.look.extend(due.map(|(election, _)| election.clone()));
    }

    fn forget_unwatched(&mut self) {
        let mut shared = self.shared_tracks.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock of `Observations::watch`, no observer subscribes meanwhile.
        self.tracks.retain(|election, tracks| {
            tracks.retain(|track| {
                let watched = track.is_watched();
                let key = (election.clone(), track.tells_renewals());
                if !watched && shared.get(&key).is_some_and(|t| Arc::ptr_eq(t, track)) {
                    shared.remove(&key);
                }
                watched
            });
            !tracks.is_empty()
        });
        // What was forgotten is asked for again: a bound is worth more than a look now and then.
        let most = 4 * self.tracks.len() + 64;
        if self.profiles.len() > most {
            self.profiles.clear();
        }
    }
}

async fn next(entries: &mut Option<Entries>) -> Told {
    match entries {
        Some(entries) => entries.next().await,
        None => std::future::pending().await,
    }
}
