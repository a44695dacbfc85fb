//! What is traced: messages, spans and field names that people search for. A
//! binary of its own, since there is one subscriber for a whole process.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use common::{secs, within};
use tenure::testing::{Fault, Stage, StoreVerb};
use tracing::field::{Field, Visit};

/// The fields of one event or span, and their values.
#[derive(Clone, Debug, Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

/// Keeps everything that is traced, in order. A span's name is its message.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Fields>>>);

impl tracing::Subscriber for Kept {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "tenure"
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        fields.0.insert("message", format!("span {}", span.metadata().name()));
        self.0.lock().unwrap().push(fields);
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push(fields);
    }
}

impl Kept {
    /// The first with this message, which must have exactly these fields.
    fn find(&self, message: &str, names: &[&str]) -> Fields {
        let kept = self.0.lock().unwrap();
        let found = kept.iter().find(|fields| fields.0["message"] == message);
        let found = found.unwrap_or_else(|| panic!("no {message:?} in {kept:#?}"));
        let mut wanted: Vec<_> = names.iter().copied().chain(["message"]).collect();
        wanted.sort_unstable();
        let has: Vec<_> = found.0.keys().copied().collect();
        assert_eq!(has, wanted, "the fields of {message:?}");
        found.clone()
    }
}

impl Fields {
    fn has(&self, name: &str, value: &str) {
        assert_eq!(self.0[name], value, "{name} of {self:?}");
    }
}

/// L7: from joining to leaving, with all that can go wrong between: each word of it
/// is traced with its fields, under their names.
#[tokio::test]
async fn every_event_and_span_carries_its_fields() {
    let kept = Kept::default();
    // The driver's thread is another than this one.
    tracing::subscriber::set_global_default(kept.clone()).unwrap();
    let stage = Stage::new();
    let tenure = stage.connect("traced").await.unwrap();
    stage.faults().script(StoreVerb::Join, [Fault::FailBefore]);
    stage.faults().script(StoreVerb::Follow, [Fault::FailBefore]);
    let election = tenure.election("fields");
    let campaign = tokio::spawn({
        let election = election.clone();
        async move { election.campaign().await.unwrap() }
    });
    within(stage.faults().called(StoreVerb::Join, 1)).await;
    stage.advance(secs(5)).await;
    let leadership = within(campaign).await.unwrap();

    kept.find("span campaign", &["election"]).has("election", "fields");
    let failed = ["verb", "error", "may_have_applied", "failures"];
    let failed = kept.find("a request to the store failed", &failed);
    failed.has("verb", "\"join\"");
    failed.has("may_have_applied", "false");
    failed.has("failures", "1");
    kept.find("the store answers again", &["failures"]).has("failures", "1");
    kept.find("following the store is interrupted", &["error"]);
    let member = kept.find("joined", &["member"]).0["member"].clone();
    assert!(member.starts_with("traced/"), "{member}");
    let elected = kept.find("elected", &["election", "term", "member"]);
    elected.has("election", "fields");
    elected.has("term", "1");
    elected.has("member", &member);

    // A process that goes by the same id.
    let namesake = stage.connect("traced").await.unwrap();
    let other = namesake.election("other");
    let standing = tokio::spawn(async move { other.campaign().await });
    within(stage.faults().called(StoreVerb::Join, 3)).await;
    stage.settle().await;
    kept.find("the member id is taken", &["incarnation"]);
    standing.abort();
    drop(namesake);

    within(stage.ask_to_step_down("fields", "for a test")).await.unwrap();
    let asked = kept.find("asked to stop leading", &["election", "term", "reason"]);
    asked.has("election", "fields");
    asked.has("term", "1");
    assert!(asked.0["reason"].contains("for a test"), "{asked:?}");
    within(leadership.resign()).await.unwrap();
    let lost = kept.find("no longer leads", &["election", "term", "reason"]);
    lost.has("election", "fields");
    lost.has("term", "1");
    lost.has("reason", "SteppedDown");

    // A membership that ends behind its member's back.
    let evicted = stage.connect("evicted").await.unwrap();
    let leadership = within(evicted.election("e").campaign()).await.unwrap();
    within(stage.lose("e")).await.unwrap();
    within(leadership.lost()).await;
    let over = kept.find("this membership is over", &["member", "superseded"]);
    assert!(over.0["member"].starts_with("evicted/"), "{over:?}");
    over.has("superseded", "false");

    within(tenure.shutdown()).await.unwrap();
    kept.find("left", &["confirmed"]).has("confirmed", "true");
}
