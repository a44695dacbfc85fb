//! One function after the other is broken in a schema that is there, and a history has to
//! notice: a test that cannot fail is not a test.
//!
//! `cargo xtask mutants` has the functions of all its mutants looked at in this way, which
//! costs a few steps of a history where a test program of its own costs a schema. With
//! `TENURE_BROKEN=<folder>` they are the files of that folder, `1.sql` and so on: the
//! function's name in the first line, its body in the others. What became of each is
//! printed, a line for each. Besides histories there are the checks that need nothing but a
//! schema; `TENURE_BROKEN_BY=<text>,<text>` takes only those named by one of the texts, and
//! `TENURE_WORKERS=6` has as many broken at a time.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;

use crate::common::checks;
use crate::place::Place;
use crate::{HISTORIES, Site, WORKERS, run, setting, steps, world};

/// What a history may take: one that takes longer goes round in a circle.
const PATIENCE: Duration = Duration::from_secs(60);
/// How many of those that noticed something look before all others.
const KEENEST: usize = 12;

/// One function, broken.
#[derive(Clone, Debug)]
struct Broken {
    number: usize,
    function: String,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    /// In full.
    Whole(String),
    /// As it is, but for one text.
    Instead(&'static str, &'static str),
}

/// What became of it.
#[derive(Debug, PartialEq, Eq)]
enum Became {
    /// By this one.
    Noticed(String),
    Unnoticed,
    /// The server does not take it.
    Refused,
}

/// One that may notice.
#[derive(Clone, Copy)]
enum Looks {
    History(u64),
    Check(&'static str, checks::Check),
}

impl Looks {
    fn name(self) -> String {
        match self {
            Looks::History(seed) => {
                format!("histories random_histories_go_by_the_rules\t{seed}")
            }
            Looks::Check(name, _) => name.to_owned(),
        }
    }

    /// After how many steps it finds something wrong here, if it does; it takes no more steps
    /// than this.
    async fn objects(self, place: &Place, steps: usize) -> Option<usize> {
        let looked = tokio::time::timeout(PATIENCE, async {
            match self {
                Looks::History(seed) => {
                    let mut history = steps::history(seed);
                    history.truncate(steps);
                    run(place, seed, &history).await.err().map(|found| found.after)
                }
                Looks::Check(_, check) => {
                    place.sql(world::RESET).await;
                    tokio::spawn(check(place.spot())).await.is_err().then_some(steps)
                }
            }
        });
        looked.await.unwrap_or(Some(steps))
    }
}

/// All that may look, in their order, and how often each noticed something.
struct Keen {
    all: Vec<Looks>,
    often: Mutex<BTreeMap<(String, usize), u32>>,
}

impl Keen {
    fn new(upto: u64) -> Self {
        let by = std::env::var("TENURE_BROKEN_BY").unwrap_or_default();
        let by: Vec<_> = by.split(',').collect();
        let checks = checks::all().into_iter().map(|(name, check)| Looks::Check(name, check));
        let all = checks.chain((1..=upto).map(Looks::History));
        let named = |looks: &Looks| by.iter().any(|text| looks.name().contains(text));
        Self { all: all.filter(named).collect(), often: Mutex::default() }
    }

    fn noticed(&self, function: &str, place: usize) {
        *self.often.lock().unwrap().entry((function.to_owned(), place)).or_default() += 1;
    }

    /// Those first that noticed most so far: in this function, and anywhere.
    fn in_order(&self, function: &str) -> Vec<usize> {
        let often = self.often.lock().unwrap();
        let mut keen: BTreeMap<usize, (u32, u32)> = BTreeMap::new();
        for ((of, place), count) in often.iter() {
            let keen = keen.entry(*place).or_default();
            keen.0 += if of == function { *count } else { 0 };
            keen.1 += count;
        }
        let mut first: Vec<_> = keen.into_iter().map(|(place, often)| (often, place)).collect();
        first.sort_by(|a, b| b.cmp(a));
        let mut places: Vec<_> = first.into_iter().map(|(_, place)| place).take(KEENEST).collect();
        let others: Vec<_> = (0..self.all.len()).filter(|place| !places.contains(place)).collect();
        places.extend(others);
        places
    }
}

/// Breaks one function, and mends it again. Who objects has to do so twice, and not when
/// nothing is broken.
async fn judge(site: &Site, place: &mut Place, broken: &Broken, keen: &Keen) -> Became {
    let whole = place.body(&broken.function).await;
    let body = match &broken.body {
        Body::Whole(body) => place.put(body),
        Body::Instead(text, by) => {
            assert!(whole.contains(text), "{} has {text:?}", broken.function);
            whole.replacen(text, by, 1)
        }
    };
    if place.replace(&broken.function, &body).await.is_err() {
        return Became::Refused;
    }
    for at in keen.in_order(&broken.function) {
        let looks = keen.all[at];
        let Some(steps) = looks.objects(place, usize::MAX).await else { continue };
        if looks.objects(place, steps).await.is_none() {
            continue;
        }
        place.replace(&broken.function, &whole).await.unwrap();
        place.mend().await;
        if looks.objects(place, steps).await.is_some() {
            // What was broken left something behind.
            *place = site.place().await;
            if looks.objects(place, steps).await.is_some() {
                place.replace(&broken.function, &body).await.unwrap();
                continue;
            }
        }
        keen.noticed(&broken.function, at);
        return Became::Noticed(looks.name());
    }
    place.replace(&broken.function, &whole).await.unwrap();
    place.mend().await;
    Became::Unnoticed
}

/// Judges all of them, some at a time.
async fn judge_all(all: Vec<Broken>, upto: u64, told: impl Fn(&Broken, &Became) + Send + Sync) {
    let site = Arc::new(Site::find());
    site.end_what_hangs().await;
    let all = Arc::new(Mutex::new(all.into_iter()));
    let keen = Arc::new(Keen::new(upto));
    let mut workers = JoinSet::new();
    let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..setting("TENURE_WORKERS").unwrap_or(WORKERS) {
        let site = Arc::clone(&site);
        let all = Arc::clone(&all);
        let keen = Arc::clone(&keen);
        let say = say.clone();
        workers.spawn(async move {
            let mut place = site.place().await;
            loop {
                let Some(broken) = all.lock().unwrap().next() else { break };
                let became = judge(&site, &mut place, &broken, &keen).await;
                say.send((broken, became)).unwrap();
            }
        });
    }
    drop(say);
    while let Some((broken, became)) = said.recv().await {
        told(&broken, &became);
    }
    while let Some(done) = workers.join_next().await {
        done.unwrap();
    }
}

/// What is broken where nothing else is asked for: a rule of each kind.
fn examples() -> Vec<Broken> {
    let all = [
        // E1, of names.
        ("_judge", "n.token = t.token", "true"),
        // What is changed is not made once more.
        ("_bind_some", "FROM wanted w WHERE w.did = 'new'", "FROM wanted w"),
    ];
    let broken = |(number, (function, text, by)): (usize, (&str, _, _))| Broken {
        number,
        function: function.to_owned(),
        body: Body::Instead(text, by),
    };
    all.into_iter().enumerate().map(broken).collect()
}

fn given(folder: &Path) -> Vec<Broken> {
    let number = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let number = path.file_stem()?.to_str()?.parse().ok()?;
        let text = std::fs::read_to_string(&path).unwrap();
        let (function, body) = text.split_once('\n').unwrap();
        let function = function.to_owned();
        let body = Body::Whole(body.to_owned());
        Some(Broken { number, function, body })
    };
    let mut all: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().filter_map(number).collect();
    all.sort_by_key(|broken| broken.number);
    all
}

/// The histories notice what is broken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_history_notices_what_is_broken() {
    let upto = setting("TENURE_HISTORIES").unwrap_or(HISTORIES);
    // That one objects is what is asked for.
    std::panic::set_hook(Box::new(|_| {}));
    let Some(folder) = std::env::var_os("TENURE_BROKEN") else {
        let unnoticed = Mutex::new(Vec::new());
        judge_all(examples(), upto, |broken, became| {
            if !matches!(became, Became::Noticed(_)) {
                unnoticed.lock().unwrap().push(format!("{broken:?}: {became:?}"));
            }
        })
        .await;
        drop(std::panic::take_hook());
        let unnoticed = unnoticed.into_inner().unwrap();
        assert!(unnoticed.is_empty(), "{unnoticed:?}");
        return;
    };
    judge_all(given(Path::new(&folder)), upto, |broken, became| {
        let what = match became {
            Became::Noticed(by) => format!("noticed {by}"),
            Became::Unnoticed => "unnoticed".into(),
            Became::Refused => "refused".into(),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "\nbroken {} {what}", broken.number).unwrap();
    })
    .await;
}
