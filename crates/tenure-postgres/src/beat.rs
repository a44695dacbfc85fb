//! The heartbeat: a bare statement, which costs the least. A role that may not write the
//! table calls a function with nothing but that statement in it. Else it is the verb.
//!
//! The bare statement renews a member of which everything is as it was, and answers
//! nothing but that. If it is not, the verb says what changed. Nor does the bare
//! one say where the journal stands: it is only run while notifications arrive, so
//! there is nothing about others to be learnt from it.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::{Beat, Heartbeat, Incarnation, MemberId, Namespace, Seq};
use tenure_store::Result;
use tokio_postgres::Statement;
use tokio_postgres::types::{ToSql, Type};

use crate::error::Effect;
use crate::rows::{micros, unsigned};
use crate::session::Session;
use crate::store::Inner;
use crate::verbs::held;

/// How many members of one process may beat by the bare statement.
const MOST: usize = 1_000;

/// What the last full answer said of each member that beats here.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<Incarnation, Standing>>);

#[derive(Debug)]
struct Standing {
    ns: Namespace,
    id: MemberId,
    figures: Figures,
}

/// What the bare statement expects to find.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) handle: i64,
    /// How often something was asked of the member.
    pub(crate) attention: i64,
    /// How many terms it holds.
    pub(crate) holds: i32,
}

impl Known {
    fn map(&self) -> MutexGuard<'_, HashMap<Incarnation, Standing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, ns: &Namespace, beat: &Heartbeat) -> Option<Figures> {
        let map = self.map();
        let standing = map.get(&beat.member.incarnation)?;
        (standing.ns == *ns && standing.id == beat.member.id).then_some(standing.figures)
    }

    fn put(&self, ns: &Namespace, beat: &Heartbeat, figures: Option<Figures>) {
        let mut map = self.map();
        let life = beat.member.incarnation;
        match figures {
            Some(figures) if map.len() < MOST || map.contains_key(&life) => {
                let ns = ns.clone();
                let id = beat.member.id.clone();
                map.insert(life, Standing { ns, id, figures });
            }
            _ => drop(map.remove(&life)),
        }
    }
}

impl Inner {
    // One function for all of the usual way: what is awaited inside of another is
    // kept, and moved, once more.
    pub(crate) async fn heartbeat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        if beat.held.is_empty()
            && let Some(figures) = self.known.of(ns, beat)
            && self.requests.is_up()
            && let Some(session) = self.beats.present()
            && let Some(Some(statement)) = session.beat.get()
        {
            let Figures { handle, attention, holds } = figures;
            let ttl = micros(beat.ttl);
            let params: [&(dyn ToSql + Sync); 4] = [&handle, &ttl, &attention, &holds];
            // By itself it is just small enough to be allocated fast.
            let mut asked = Box::pin(session.client.execute_raw(statement, params));
            let done = self.beats.within("beating", Effect::Writes, &session, asked.as_mut());
            if done.await? == 1 {
                let attention = unsigned(attention);
                let holds = held(holds);
                return Ok(Beat::Alive { attention, holds, seq: Seq::START, terms: Vec::new() });
            }
        }
        Box::pin(self.full_beat(ns, beat)).await
    }

    /// The verb, whose answer is kept for the next heartbeat.
    async fn full_beat(&self, ns: &Namespace, beat: &Heartbeat) -> Result<Beat> {
        let session = self.beats.session().await?;
        self.beat_statement(&session).await?;
        let (answer, figures) = self.verbs(&self.beats).heartbeat(ns, beat).await?;
        self.known.put(ns, beat, figures);
        Ok(answer)
    }

    /// Prepares the bare statement, where it is allowed and safe.
    async fn beat_statement(&self, session: &Arc<Session>) -> Result<()> {
        if !self.notifications.is_native() {
            return Ok(());
        }
        let prepare = async {
            let schema = &self.options.schema;
            let text = if session.may("may_beat", schema).await? {
                &self.texts.beat
            } else if session.may("may_call_beat", schema).await? {
                &self.texts.call_beat
            } else {
                return Ok(None::<Statement>);
            };
            let types = [Type::INT8, Type::INT8, Type::INT8, Type::INT4];
            session.client.prepare_typed(text, &types).await.map(Some)
        };
        let prepare = pin!(prepare);
        let prepare = self.beats.within("preparing heartbeats", Effect::None, session, prepare);
        session.beat.get_or_try_init(|| prepare).await.map(drop)
    }
}
