//! The verbs, carried to the server. Each is one round trip.

use std::time::Duration;

use tenure_core::{
    Amend, Amended, Beat, Bid, Claim, Claimed, Claims, ElectionName, ElectionView, Heartbeat,
    Holder, Join, Joined, MemberRef, Namespace, Profile, Query, Release, Seq, Snapshot, Term,
    TermNumber, Timestamp, Which,
};
use tenure_store::Result;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::beat::Figures;
use crate::error::{Effect, damaged};
use crate::link::Link;
use crate::rows::{
    JournalPage, Life, PageRow, SnapshotRow, ViewRow, member, micros, parse, signed, span,
    term_beats, timestamp, unsigned,
};
use crate::store::PAGE;
use crate::texts::Texts;
use crate::watch::Place;

/// The verbs on one link: the statements for them, and how long each may wait for locks.
pub(crate) struct Verbs<'a> {
    pub(crate) link: &'a Link,
    pub(crate) texts: &'a Texts,
    pub(crate) lock_wait: i32,
}

pub(crate) fn one(rows: Vec<Row>) -> Result<Row> {
    let count = rows.len();
    rows.into_iter().next().ok_or_else(|| damaged(format_args!("{count} rows instead of one")))
}

/// A column, whatever was done to the functions.
pub(crate) fn get<'a, T: tokio_postgres::types::FromSql<'a>>(
    row: &'a Row,
    column: &str,
) -> Result<T> {
    row.try_get(column).map_err(|error| damaged(format_args!("an unexpected column: {error}")))
}

/// A claim's answer, with what could not be won because it is fenced.
pub(crate) struct Bids {
    pub(crate) claims: Claims,
    pub(crate) fenced: usize,
}

impl Verbs<'_> {
    pub(crate) async fn join(&self, ns: &Namespace, join: &Join) -> Result<Joined> {
        let life = Life(join.member.incarnation);
        let endpoints = join.profile.endpoints();
        let rows = self
            .link
            .ask(
                "joining",
                Effect::Writes,
                &self.texts.join,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&join.member.id.as_str(), Type::TEXT),
                    (&life, Type::UUID),
                    (&micros(join.ttl), Type::INT8),
                    (&endpoints, Type::TEXT_ARRAY),
                    (&join.profile.metadata(), Type::BYTEA),
                    (&join.supersede, Type::BOOL),
                    (&self.lock_wait, Type::INT4),
                    (&join.inherits, Type::BOOL),
                    (&signed(join.seen.place.get()), Type::INT8),
                    (&signed(join.seen.number.get()), Type::INT8),
                ],
            )
            .await?;
        let row = one(rows)?;
        match get::<&str>(&row, "outcome")? {
            "in" => Ok(Joined::In {
                attention: unsigned(get(&row, "attention")?),
                seq: Seq::new(unsigned(get(&row, "seq")?)),
            }),
            "taken" => Ok(Joined::Taken {
                by: crate::rows::life(get(&row, "taken_by")?)?,
                remaining: span(get(&row, "left_us")?),
            }),
            other => Err(damaged(format_args!("{other:?} to a join"))),
        }
    }

    /// A heartbeat by the function: any role that takes part may call it. With what
    /// the next one by the bare statement expects.
    pub(crate) async fn heartbeat(
        &self,
        ns: &Namespace,
        beat: &Heartbeat,
    ) -> Result<(Beat, Option<Figures>)> {
        let life = Life(beat.member.incarnation);
        let some = !beat.held.is_empty();
        let names: Vec<_> = beat.held.iter().map(|term| term.election.as_str()).collect();
        let numbers: Vec<_> = beat.held.iter().map(|term| signed(term.number.get())).collect();
        let rows = self
            .link
            .ask(
                "beating",
                Effect::Writes,
                &self.texts.heartbeat,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&beat.member.id.as_str(), Type::TEXT),
                    (&life, Type::UUID),
                    (&micros(beat.ttl), Type::INT8),
                    (&self.lock_wait, Type::INT4),
                    (&some.then_some(names), Type::TEXT_ARRAY),
                    (&some.then_some(numbers), Type::INT8_ARRAY),
                ],
            )
            .await?;
        let row = one(rows)?;
        match get::<&str>(&row, "outcome")? {
            "alive" => {
                let attention = get(&row, "attention")?;
                let holds = get(&row, "holds")?;
                let figures = Figures { handle: get(&row, "handle")?, attention, holds };
                let alive = Beat::Alive {
                    attention: unsigned(attention),
                    holds: held(holds),
                    seq: Seq::new(unsigned(get(&row, "seq")?)),
                    terms: term_beats(&beat.held, get(&row, "terms")?)?,
                };
                Ok((alive, Some(figures)))
            }
            "ended" => Ok((Beat::Ended { superseded: false }, None)),
            "superseded" => Ok((Beat::Ended { superseded: true }, None)),
            other => Err(damaged(format_args!("{other:?} to a heartbeat"))),
        }
    }

    pub(crate) async fn leave(&self, ns: &Namespace, member: &MemberRef) -> Result<()> {
        let life = Life(member.incarnation);
        self.link
            .ask(
                "leaving",
                Effect::Writes,
                &self.texts.leave,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&member.id.as_str(), Type::TEXT),
                    (&life, Type::UUID),
                    (&self.lock_wait, Type::INT4),
                ],
            )
            .await
            .map(drop)
    }

    pub(crate) async fn claim(&self, ns: &Namespace, claim: &Claim) -> Result<Bids> {
        let life = Life(claim.member.incarnation);
        let names: Vec<_> = claim.bids.iter().map(|b| b.election.as_str()).collect();
        let priorities: Vec<_> = claim.bids.iter().map(|b| i32::from(b.priority.get())).collect();
        let nonces: Vec<_> = claim.bids.iter().map(|b| signed(b.nonce.get())).collect();
        let rows = self
            .link
            .ask_prepared(
                "claiming",
                Effect::Writes,
                &self.texts.claims,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&claim.member.id.as_str(), Type::TEXT),
                    (&life, Type::UUID),
                    (&micros(claim.ttl), Type::INT8),
                    (&names, Type::TEXT_ARRAY),
                    (&priorities, Type::INT4_ARRAY),
                    (&nonces, Type::INT8_ARRAY),
                    (&micros(claim.heir_grace), Type::INT8),
                    (&self.lock_wait, Type::INT4),
                    (&signed(claim.seen.place.get()), Type::INT8),
                    (&signed(claim.seen.number.get()), Type::INT8),
                ],
            )
            .await?;
        answers(claim, &one(rows)?)
    }

    pub(crate) async fn release(&self, ns: &Namespace, release: &Release) -> Result<()> {
        let items = &release.items;
        let life = Life(release.member.incarnation);
        let names: Vec<_> = items.iter().map(|i| i.election.as_str()).collect();
        let numbers: Vec<_> = items.iter().map(|i| i.number.map(|n| signed(n.get()))).collect();
        let causes: Vec<_> = items.iter().map(|i| i.cause.word()).collect();
        let successor = |i: usize| items[i].successor.as_ref();
        let ids: Vec<_> =
            (0..items.len()).map(|i| successor(i).map(|(id, _)| id.as_str())).collect();
        let graces: Vec<_> =
            (0..items.len()).map(|i| successor(i).map(|(_, grace)| micros(*grace))).collect();
        self.link
            .ask_prepared(
                "releasing",
                Effect::Writes,
                &self.texts.release,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&release.member.id.as_str(), Type::TEXT),
                    (&life, Type::UUID),
                    (&names, Type::TEXT_ARRAY),
                    (&numbers, Type::INT8_ARRAY),
                    (&causes, Type::TEXT_ARRAY),
                    (&ids, Type::TEXT_ARRAY),
                    (&graces, Type::INT8_ARRAY),
                    (&micros(release.heir_grace), Type::INT8),
                    (&self.lock_wait, Type::INT4),
                    (&micros(release.confirm_within), Type::INT8),
                    (&signed(release.seen.place.get()), Type::INT8),
                    (&signed(release.seen.number.get()), Type::INT8),
                ],
            )
            .await
            .map(drop)
    }

    pub(crate) async fn amend(&self, ns: &Namespace, amend: &Amend) -> Result<Amended> {
        let space = ns;
        let ns = ns.as_str();
        let wait = (&self.lock_wait as _, Type::INT4);
        let ns = (&ns as _, Type::TEXT);
        let amending = |call: &str| {
            let columns = "outcome, number, member, life::text, left_us";
            self.texts.of_operator(&format!("SELECT {columns} FROM {{schema}}.{call}"))
        };
        let rows = match amend {
            Amend::StepDown { election, number, to, reason, by } => {
                let number = number.map(|n| signed(n.get()));
                let to = to.as_ref().map(|id| id.as_str());
                self.link
                    .ask(
                        "asking to step down",
                        Effect::Writes,
                        &amending("ask_step_down($1, $2, $3, $4, $5, $6, $7)"),
                        &[
                            ns,
                            (&election.as_str(), Type::TEXT),
                            (&number, Type::INT8),
                            (&to, Type::TEXT),
                            (&reason.as_str(), Type::TEXT),
                            (&by.as_str(), Type::TEXT),
                            wait,
                        ],
                    )
                    .await?
            }
            Amend::Pause { election, reason, by } => {
                self.link
                    .ask(
                        "pausing",
                        Effect::Writes,
                        &amending("pause($1, $2, $3, $4, $5)"),
                        &[
                            ns,
                            (&election.as_str(), Type::TEXT),
                            (&reason.as_str(), Type::TEXT),
                            (&by.as_str(), Type::TEXT),
                            wait,
                        ],
                    )
                    .await?
            }
            Amend::Resume { election, by } => {
                let election = election.as_str();
                let by = by.as_str();
                let params = [ns, (&election as _, Type::TEXT), (&by as _, Type::TEXT), wait];
                let text = amending("resume($1, $2, $3, $4)");
                self.link.ask("resuming", Effect::Writes, &text, &params).await?
            }
            Amend::Evict { member, now, by } => {
                self.link
                    .ask(
                        "evicting",
                        Effect::Writes,
                        &amending("evict($1, $2, $3, $4, $5)"),
                        &[
                            ns,
                            (&member.as_str(), Type::TEXT),
                            (now, Type::BOOL),
                            (&by.as_str(), Type::TEXT),
                            wait,
                        ],
                    )
                    .await?
            }
            Amend::Purge(purge) => return self.purge(space, purge).await.map(Amended::Purged),
            Amend::Restored { by } => return self.restored(by, wait).await,
        };
        amended(&one(rows)?)
    }

    pub(crate) async fn read(&self, ns: &Namespace, query: &Query) -> Result<Snapshot> {
        if let Some((name, asker)) = query.as_candidates() {
            return self.look(ns, name, asker).await;
        }
        let mut names = Vec::new();
        let mut held = None;
        let which = match &query.which {
            Which::Nothing => "nothing",
            Which::All => "all",
            Which::Named(named) => {
                names = named.iter().map(|name| name.as_str()).collect();
                "named"
            }
            Which::HeldBy(life) => {
                held = Some(Life(*life));
                "held"
            }
        };
        let asker = query.asker.as_ref().map(|m| m.id.as_str());
        let asker_life = query.asker.as_ref().map(|m| Life(m.incarnation));
        let history = i64::try_from(query.history).unwrap_or(i64::MAX);
        let rows = self
            .link
            .ask_prepared(
                "reading",
                Effect::None,
                &self.texts.read,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&which, Type::TEXT),
                    (&names, Type::TEXT_ARRAY),
                    (&held, Type::UUID),
                    (&asker, Type::TEXT),
                    (&asker_life, Type::UUID),
                    (&query.candidates, Type::BOOL),
                    (&query.members, Type::BOOL),
                    (&history, Type::INT8),
                ],
            )
            .await?;
        let row = one(rows)?;
        let mut snapshot = parse::<SnapshotRow>(get(&row, "read")?)?.snapshot()?;
        if query.examine {
            snapshot.examined = Some(self.examine(ns).await?);
        }
        Ok(snapshot)
    }

    /// A candidate's look at an election.
    async fn look(
        &self,
        ns: &Namespace,
        name: &ElectionName,
        asker: &MemberRef,
    ) -> Result<Snapshot> {
        let life = Life(asker.incarnation);
        let rows = self
            .link
            .ask_prepared(
                "looking",
                Effect::None,
                &self.texts.look,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&name.as_str(), Type::TEXT),
                    (&asker.id.as_str(), Type::TEXT),
                    (&life, Type::UUID),
                ],
            )
            .await?;
        let row = one(rows)?;
        let Some(number) = get::<Option<i64>>(&row, "number")? else {
            return parse::<SnapshotRow>(get(&row, "seen")?)?.snapshot();
        };
        let holder = Holder {
            member: asker.clone(),
            profile: Profile::default(),
            elected_at: timestamp(get(&row, "elected_at")?),
            ttl: span(get(&row, "ttl_us")?),
            remaining: span(get(&row, "left_us")?),
            unconfirmed: get(&row, "unconfirmed")?,
        };
        let number = TermNumber::new(unsigned(number));
        let view =
            ElectionView { number, holder: Some(holder), ..ElectionView::vacant(name.clone()) };
        Ok(Snapshot { elections: vec![view], ..Snapshot::default() })
    }

    pub(crate) async fn journal(&self, ns: &Namespace, after: Seq) -> Result<JournalPage> {
        let rows = self
            .link
            .ask_prepared(
                "following the journal",
                Effect::None,
                &self.texts.journal,
                &[
                    (&ns.as_str(), Type::TEXT),
                    (&signed(after.get()), Type::INT8),
                    (&PAGE, Type::INT8),
                ],
            )
            .await?;
        let row = one(rows)?;
        parse::<PageRow>(get(&row, "journal")?)?.page()
    }

    pub(crate) async fn positions(&self, names: &[String]) -> Result<Vec<Place>> {
        let params = [(&names as _, Type::TEXT_ARRAY)];
        let rows = self.link.ask("looking for news", Effect::None, &self.texts.positions, &params);
        let place = |row: &Row| {
            let seq = unsigned(get(row, "seq")?);
            let rev = unsigned(get(row, "rev")?);
            Ok(Place { ns: get(row, "ns")?, seq, quiet: get(row, "quiet")?, rev })
        };
        rows.await?.iter().map(place).collect()
    }
}

pub(crate) fn held(count: i32) -> Option<u32> {
    Some(u32::try_from(count).unwrap_or(0))
}

fn answers(claim: &Claim, row: &Row) -> Result<Bids> {
    if let Some(outcome) = get::<Option<&str>>(row, "outcome")? {
        let superseded = match outcome {
            "ended" => false,
            "superseded" => true,
            other => return Err(damaged(format_args!("{other:?} to a claim"))),
        };
        return Ok(Bids { claims: Claims::Ended { superseded }, fenced: 0 });
    }
    let numbers: Option<Vec<Option<i64>>> = get(row, "numbers")?;
    let elected: Option<Vec<Option<i64>>> = get(row, "elected")?;
    let views: Option<Vec<Option<&str>>> = get(row, "views")?;
    let fenced = get::<Option<Vec<&str>>>(row, "fenced")?.unwrap_or_default();
    let numbers = numbers.unwrap_or_default();
    let elected = elected.unwrap_or_default();
    let mut answers = Vec::with_capacity(claim.bids.len());
    for (place, bid) in claim.bids.iter().enumerate() {
        let won = numbers.get(place).copied().flatten();
        let answer = match (won, place_in(&views, place)) {
            (Some(number), _) => {
                Claimed::Won(term(claim, bid, number, elected.get(place).copied().flatten())?)
            }
            (None, Some(view)) => {
                let is_fenced = fenced.contains(&bid.election.as_str());
                Claimed::Held(parse::<ViewRow>(view)?.lost(is_fenced)?)
            }
            (None, None) => return Err(damaged(format_args!("nothing to bid {place}"))),
        };
        answers.push(answer);
    }
    Ok(Bids { claims: Claims::Answered(answers), fenced: fenced.len() })
}

/// The view at a bid's place.
fn place_in<'a>(views: &Option<Vec<Option<&'a str>>>, place: usize) -> Option<&'a str> {
    views.as_ref()?.get(place).copied().flatten()
}

fn term(claim: &Claim, bid: &Bid, number: i64, elected: Option<i64>) -> Result<Term> {
    let elected = elected.ok_or_else(|| damaged(format_args!("a term without its beginning")))?;
    Ok(Term {
        election: bid.election.clone(),
        number: TermNumber::new(unsigned(number)),
        member: claim.member.clone(),
        elected_at: Timestamp::from_unix_millis(unsigned(elected)),
    })
}

fn amended(row: &Row) -> Result<Amended> {
    let number = get::<Option<i64>>(row, "number")?.map(|n| TermNumber::new(unsigned(n)));
    Ok(match get::<&str>(row, "outcome")? {
        "done" => {
            let id = get::<Option<&str>>(row, "member")?;
            let uuid = get::<Option<&str>>(row, "life")?;
            let concerned = id.zip(uuid).map(|(id, uuid)| member(id, uuid)).transpose()?;
            let left = get::<Option<i64>>(row, "left_us")?;
            let remaining = left.map_or(Duration::ZERO, span);
            Amended::Done { number, member: concerned, remaining }
        }
        "unchanged" => Amended::Unchanged,
        "vacant" => Amended::Vacant,
        "superseded" => Amended::Superseded { number: number.unwrap_or_default() },
        "no such candidate" => Amended::NoSuchCandidate,
        "no such member" => Amended::NoSuchMember,
        other => return Err(damaged(format_args!("{other:?} to an operator's request"))),
    })
}
