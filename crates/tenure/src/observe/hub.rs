//! One watch on the store for all observers of a process.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::{
    ElectionName, Entry, Happening, Hint, Incarnation, Mono, Namespace, Profile, Query, Seq,
};
use tenure_store::{Followed, Following, From, SharedStore};
use tokio::sync::mpsc;

use super::track::Track;
use crate::driver::Command;
use crate::member::Shared;
use crate::time::Time;
use crate::{Error, Result};

/// The first and the longest pause after a failed request.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The way to the watch: started with the first observer.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    watch: Mutex<Option<mpsc::UnboundedSender<New>>>,
    tracks: Arc<Mutex<HashMap<ElectionName, Arc<Track>>>>,
}

/// A new observer.
#[derive(Debug)]
struct New {
    election: ElectionName,
    after: Option<Seq>,
    track: Arc<Track>,
}

impl Hub {
    /// The track of an election; a private one for an observer that resumes,
    /// since it must hear again what the others have heard.
    pub(super) fn watch(
        &self,
        shared: &Shared,
        election: ElectionName,
        after: Option<Seq>,
    ) -> Result<Arc<Track>> {
        let mut watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let give = match watch.take() {
            Some(give) => give,
            None => self.start(shared)?,
        };
        let track = {
            let mut tracks = self.tracks.lock().unwrap_or_else(PoisonError::into_inner);
            match (after, tracks.get(&election)) {
                (None, Some(track)) => track.clone(),
                _ => {
                    let track = Arc::new(Track::new());
                    if after.is_none() {
                        tracks.insert(election.clone(), track.clone());
                    }
                    track
                }
            }
        };
        let new = New { election, after, track: track.clone() };
        give.send(new).map_err(|_| Error::ShutDown)?;
        *watch = Some(give);
        Ok(track)
    }

    fn start(&self, shared: &Shared) -> Result<mpsc::UnboundedSender<New>> {
        let (give, take) = mpsc::unbounded_channel();
        let time = shared.time.clone();
        let shared_tracks = self.tracks.clone();
        shared.send(Command::Call(Box::new(move |store, ns| {
            let watch = Watch {
                store,
                ns,
                time,
                shared_tracks,
                tracks: HashMap::new(),
                profiles: HashMap::new(),
                look: HashSet::new(),
                cursor: None,
            };
            Box::pin(watch.run(take))
        })))?;
        Ok(give)
    }
}

/// The watch itself: a task on the driver's runtime.
struct Watch {
    store: SharedStore,
    ns: Namespace,
    time: Time,
    shared_tracks: Arc<Mutex<HashMap<ElectionName, Arc<Track>>>>,
    /// All tracks, with the private ones of those who resumed.
    tracks: HashMap<ElectionName, Vec<Arc<Track>>>,
    profiles: HashMap<Incarnation, Profile>,
    /// Elections to look at.
    look: HashSet<ElectionName>,
    /// Up to where the journal was read.
    cursor: Option<Seq>,
}

impl Watch {
    async fn run(mut self, mut new: mpsc::UnboundedReceiver<New>) {
        let mut following: Option<Box<dyn Following>> = None;
        let mut pause = PAUSES.0;
        loop {
            let outcome = self.turn(&mut new, &mut following).await;
            match outcome {
                Ok(true) => pause = PAUSES.0,
                Ok(false) => return,
                Err(error) => {
                    tracing::warn!(target: "tenure", %error, "observing is interrupted");
                    self.time.sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
        }
    }

    /// One thing at a time. `false` when nobody can ask for anything any more.
    async fn turn(
        &mut self,
        new: &mut mpsc::UnboundedReceiver<New>,
        following: &mut Option<Box<dyn Following>>,
    ) -> tenure_store::Result<bool> {
        if !self.look.is_empty() {
            self.look_now().await?;
        }
        if following.is_none() && !self.tracks.is_empty() {
            // The first look told where the journal stands: nothing falls
            // between it and what is followed.
            let from = From::After(self.cursor.unwrap_or(Seq::START));
            *following = Some(self.store.follow(&self.ns, from).await?);
        }
        let check = self.next_check();
        tokio::select! {
            biased;
            asked = new.recv() => {
                let Some(asked) = asked else { return Ok(false) };
                self.begin(asked).await?;
            }
            followed = next(following) => match followed? {
                Followed::Entries(entries) => self.on_entries(&entries).await?,
                Followed::Hint(hint) => self.on_hint(hint),
                Followed::Trimmed(up_to) => self.on_trimmed(up_to),
            },
            () = sleep_until(&self.time, check) => self.look_at_due(),
        }
        self.forget_unwatched();
        Ok(true)
    }

    /// Takes in a new observer. If the store fails here the observer is kept,
    /// and looked for with the next turn.
    async fn begin(&mut self, asked: New) -> tenure_store::Result<()> {
        let New { election, after, track } = asked;
        let known = self.tracks.entry(election.clone()).or_default();
        if !known.iter().any(|t| Arc::ptr_eq(t, &track)) {
            known.push(track.clone());
            self.look.insert(election.clone());
        }
        if let Some(after) = after {
            track.resume(after);
            self.replay(&election, &track, after).await?;
        }
        Ok(())
    }

    /// Tells an observer that resumes what happened since.
    async fn replay(
        &mut self,
        election: &ElectionName,
        track: &Track,
        after: Seq,
    ) -> tenure_store::Result<()> {
        let end = self.store.read(&self.ns, &Query::nothing()).await?.seq;
        let mut from = after;
        let mut following = self.store.follow(&self.ns, From::After(after)).await?;
        while from < end {
            match following.next().await? {
                Followed::Entries(entries) => {
                    for entry in &entries {
                        from = from.max(entry.seq);
                        if entry.what.election() == Some(election) {
                            let profile = self.profile_of(entry).await?;
                            track.on_entry(entry, profile);
                        }
                    }
                }
                Followed::Trimmed(up_to) => {
                    track.on_trimmed(up_to);
                    return Ok(());
                }
                Followed::Hint(_) if !self.store.capabilities().journal => return Ok(()),
                Followed::Hint(_) => {}
            }
        }
        Ok(())
    }

    async fn look_now(&mut self) -> tenure_store::Result<()> {
        let names: Vec<_> = self.look.iter().cloned().collect();
        let snapshot = self.store.read(&self.ns, &Query::elections(names.clone())).await?;
        let now = self.time.now();
        for view in &snapshot.elections {
            if let Some(holder) = &view.holder {
                self.profiles.insert(holder.member.incarnation, holder.profile.clone());
            }
            for track in self.tracks.get(&view.election).into_iter().flatten() {
                track.on_view(now, snapshot.seq, view);
            }
        }
        for name in names {
            self.look.remove(&name);
        }
        self.cursor = self.cursor.or(Some(snapshot.seq));
        Ok(())
    }

    async fn on_entries(&mut self, entries: &[Entry]) -> tenure_store::Result<()> {
        for entry in entries {
            if let Happening::Joined { member, profile } = &entry.what {
                self.profiles.insert(member.incarnation, profile.clone());
            }
            let Some(tracks) = entry.what.election().and_then(|e| self.tracks.get(e)) else {
                continue;
            };
            let tracks = tracks.clone();
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

    /// What the member that an entry elects publishes: remembered, or asked
    /// for; empty if it is gone already.
    async fn profile_of(&mut self, entry: &Entry) -> tenure_store::Result<Profile> {
        let Happening::Elected { term } = &entry.what else { return Ok(Profile::default()) };
        let incarnation = term.member.incarnation;
        if !self.profiles.contains_key(&incarnation) {
            let members = self.store.read(&self.ns, &Query::members()).await?.members;
            self.profiles =
                members.into_iter().map(|m| (m.member.incarnation, m.profile)).collect();
        }
        Ok(self.profiles.get(&incarnation).cloned().unwrap_or_default())
    }

    fn on_hint(&mut self, hint: Hint) {
        match hint {
            Hint::Anything => self.look.extend(self.tracks.keys().cloned()),
            Hint::Election(election) | Hint::Vacant { election, .. } => {
                if self.tracks.contains_key(&election) {
                    self.look.insert(election);
                }
            }
            Hint::Gone(incarnation) => {
                let led = |tracks: &[Arc<Track>]| tracks.iter().any(|t| t.is_led_by(incarnation));
                let led = self.tracks.iter().filter(|(_, tracks)| led(tracks));
                self.look.extend(led.map(|(election, _)| election.clone()));
            }
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

    /// Whoever led and has not been heard of for its ttl may be gone (B6).
    fn look_at_due(&mut self) {
        let now = self.time.now();
        let due = |tracks: &[Arc<Track>]| {
            tracks.iter().any(|track| track.check_at().is_some_and(|at| now >= at))
        };
        let due = self.tracks.iter().filter(|(_, tracks)| due(tracks));
        self.look.extend(due.map(|(election, _)| election.clone()));
    }

    fn forget_unwatched(&mut self) {
        let mut shared = self.shared_tracks.lock().unwrap_or_else(PoisonError::into_inner);
        // Under the lock of `Hub::watch`, nobody subscribes meanwhile; a track
        // that was just handed out is held by more than the two maps.
        self.tracks.retain(|election, tracks| {
            tracks.retain(|track| track.is_watched() || Arc::strong_count(track) > 2);
            if tracks.is_empty() {
                shared.remove(election);
            }
            !tracks.is_empty()
        });
        let most = 4 * self.tracks.len() + 64;
        if self.profiles.len() > most {
            self.profiles.clear();
        }
    }
}

async fn next(following: &mut Option<Box<dyn Following>>) -> tenure_store::Result<Followed> {
    match following {
        Some(following) => following.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(time: &Time, at: Option<Mono>) {
    match at {
        Some(at) => time.sleep(at.since(time.now()).max(Duration::from_millis(1))).await,
        None => std::future::pending().await,
    }
}
