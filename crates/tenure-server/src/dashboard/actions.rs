//! What an operator may ask for, each in a dialog that spells out what will happen, and is
//! carried out once the name was typed.
//!
//! A step-down names the term that the operator saw: if another has begun meanwhile, nothing
//! happens to it.

use maud::{Markup, html};
use tenure::ElectionView;
use tenure::views::{Candidate, Holder, MemberView};

use super::text::{icon, lasted, name, query, whole};

/// One dialog.
struct Dialog<'a> {
    id: String,
    title: &'static str,
    /// What is typed to confirm.
    confirm: &'a str,
    /// Where the request goes.
    post: String,
    /// What the button says.
    doing: &'static str,
    fields: Markup,
    /// What will happen, step by step.
    steps: Markup,
}

impl Dialog<'_> {
    fn render(&self) -> Markup {
        let Self { id, title, confirm, post, doing, fields, steps } = self;
        html! {
            dialog id=(id) aria-labelledby={ (id) "-title" } {
                form method="dialog" data-post=(post) data-confirm=(confirm)
                    data-shown=(tenure::views::shown(confirm))
                {
                    h2 id={ (id) "-title" } { (title) " · " (name(confirm)) }
                    (fields)
                    h3 { "What will happen" }
                    ol.steps { (steps) }
                    label for={ (id) "-name" } { "Type " b { (name(confirm)) } " to confirm" }
                    input.confirm id={ (id) "-name" } type="text" autocomplete="off"
                        autocapitalize="off" spellcheck="false";
                    p.refused role="alert" hidden {}
                    div.row {
                        button type="button" data-close { "Cancel" }
                        button.danger type="submit" disabled { (doing) }
                    }
                }
            }
        }
    }
}

fn reason(id: &str) -> Markup {
    html! {
        label for={ (id) "-reason" } { "Reason, for the journal" }
        input id={ (id) "-reason" } name="reason" type="text" maxlength="200" autocomplete="off";
    }
}

fn path(name: &str) -> String {
    query(name)
}

/// The buttons of an election.
pub(crate) fn buttons(view: &ElectionView) -> Markup {
    html! {
        div.buttons role="group" aria-label="Steer" {
            @if view.holder.is_some() {
                button type="button" data-open="step-down" { (icon("stopping")) "Step down…" }
                @if others(view).next().is_some() {
                    button type="button" data-open="hand-over" { (icon("in")) "Hand over…" }
                }
            }
            @if view.paused.is_some() {
                button type="button" data-open="resume" { (icon("led")) "Resume…" }
            } @else {
                button type="button" data-open="pause" { (icon("paused")) "Pause…" }
            }
            @if view.holder.is_some() {
                button type="button" data-open="evict" { (icon("ended")) "Evict the leader…" }
            }
        }
    }
}

/// The dialogs of an election.
pub(crate) fn dialogs(view: &ElectionView) -> Markup {
    html! {
        @if let Some(holder) = &view.holder {
            (step_down(view, holder))
            @if others(view).next().is_some() { (hand_over(view, holder)) }
            (evict_holder(view, holder))
        }
        @if view.paused.is_some() { (resume(view)) } @else { (pause(view)) }
    }
}

/// The candidates that may lead and do not, the preferred one first.
fn others(view: &ElectionView) -> impl Iterator<Item = &Candidate> {
    let leads = view.holder.as_ref().map(|holder| holder.member.incarnation);
    let others =
        view.candidates.iter().filter(move |other| Some(other.member.incarnation) != leads);
    others.filter(|other| other.priority.may_lead())
}

fn stops(view: &ElectionView, holder: &Holder) -> Markup {
    html! {
        li { b { (name(holder.member.id.as_str())) } " is told to stop its work. It keeps term "
            (view.number) ", and goes on renewing it, while it does." }
        li { "When the work has stopped, or its time to drain is over, it gives the term up." }
    }
}

fn step_down(view: &ElectionView, holder: &Holder) -> Markup {
    let election = view.election.as_str();
    Dialog {
        id: "step-down".into(),
        title: "Step down",
        confirm: election,
        post: format!("/v1/elections/{}/step-down", path(election)),
        doing: "Ask it to step down",
        fields: html! {
            input type="hidden" name="term" value=(view.number) data-number;
            (reason("step-down"))
        },
        steps: html! {
            (stops(view, holder))
            @match (others(view).next(), &view.paused) {
                (_, Some(_)) => li { "The election is paused: it stays vacant until it is resumed." },
                (Some(next), None) => li { "The candidates bid. The preferred one is "
                    b { (name(next.member.id.as_str())) } ", with priority " (next.priority.get()) "." },
                (None, None) => li { "No other candidate may lead: the election stays vacant until "
                    "one stands, or this member bids again." },
            }
            li { (name(holder.member.id.as_str())) " does not bid again for a while." }
        },
    }
    .render()
}

fn hand_over(view: &ElectionView, holder: &Holder) -> Markup {
    let election = view.election.as_str();
    Dialog {
        id: "hand-over".into(),
        title: "Hand over",
        confirm: election,
        post: format!("/v1/elections/{}/step-down", path(election)),
        doing: "Ask it to hand over",
        fields: html! {
            input type="hidden" name="term" value=(view.number) data-number;
            label for="hand-over-to" { "Successor" }
            select #hand-over-to name="to" { @for other in others(view) {
                option value=(other.member.id) {
                    (tenure::views::shown(other.member.id.as_str())) ", priority " (other.priority.get())
                }
            } }
            (reason("hand-over"))
        },
        steps: html! {
            (stops(view, holder))
            @if view.paused.is_some() {
                li { "The election is paused: it stays vacant until it is resumed." }
            } @else {
                li { "The vacancy is for the successor alone, for a while. If it does not take the "
                    "term, the others bid." }
            }
            li { (name(holder.member.id.as_str())) " does not bid again for a while." }
        },
    }
    .render()
}

fn pause(view: &ElectionView) -> Markup {
    let election = view.election.as_str();
    Dialog {
        id: "pause".into(),
        title: "Pause",
        confirm: election,
        post: format!("/v1/elections/{}/pause", path(election)),
        doing: "Pause the election",
        fields: reason("pause"),
        steps: html! {
            @match &view.holder {
                Some(holder) => li { b { (name(holder.member.id.as_str())) }
                    " goes on leading with term " (view.number) "." },
                None => li { "The election is vacant, and stays so." },
            }
            li { "No member is newly elected. If the leader leaves or dies, the election is vacant "
                "until it is resumed." }
        },
    }
    .render()
}

fn resume(view: &ElectionView) -> Markup {
    let election = view.election.as_str();
    Dialog {
        id: "resume".into(),
        title: "Resume",
        confirm: election,
        post: format!("/v1/elections/{}/resume", path(election)),
        doing: "Resume the election",
        fields: html! {},
        steps: html! {
            @match (&view.holder, others(view).next()) {
                (Some(holder), _) => li { b { (name(holder.member.id.as_str())) } " goes on leading." },
                (None, Some(next)) => li { "The candidates bid at once. The preferred one is "
                    b { (name(next.member.id.as_str())) } "." },
                (None, None) => li { "The next member that stands is elected." },
            }
            li { "From now on members are newly elected again." }
        },
    }
    .render()
}

/// Evicting the leader, from the page of its election.
fn evict_holder(view: &ElectionView, holder: &Holder) -> Markup {
    let member = holder.member.id.as_str();
    Dialog {
        id: "evict".into(),
        title: "Evict",
        confirm: member,
        post: format!("/v1/members/{}/evict", path(member)),
        doing: "Evict the member",
        fields: now("evict"),
        steps: html! {
            (life_ends(member))
            li { "Term " (view.number) " of " (name(view.election.as_str())) ", and all else that it "
                "holds, is free when its ttl of " (whole(holder.ttl)) " is over; then the "
                "others bid." }
            (may_return(member))
        },
    }
    .render()
}

/// The button of a member.
pub(crate) fn evict_button(view: &MemberView) -> Markup {
    html! {
        button type="button" data-open=(evict_id(view)) {
            "Evict…" span.unseen { " " (name(view.member.id.as_str())) }
        }
    }
}

fn evict_id(view: &MemberView) -> String {
    format!("evict-{}", view.member.incarnation)
}

/// The dialog of a member, which leads these elections.
pub(crate) fn evict(view: &MemberView, led: &[&str]) -> Markup {
    let member = view.member.id.as_str();
    let ttl = lasted(tenure_api::millis(view.ttl));
    Dialog {
        id: evict_id(view),
        title: "Evict",
        confirm: member,
        post: format!("/v1/members/{}/evict", path(member)),
        doing: "Evict the member",
        fields: now(&evict_id(view)),
        steps: html! {
            (life_ends(member))
            @match led {
                [] => li { "It leads no election." },
                [one] => li { (name(one)) " is free when its ttl of " (ttl) " is over; then the "
                    "others bid." },
                [one, rest @ ..] => li { (name(one)) " and " (rest.len()) " more elections are free "
                    "when its ttl of " (ttl) " is over; then the others bid." },
            }
            (may_return(member))
        },
    }
    .render()
}

fn life_ends(member: &str) -> Markup {
    html! {
        li { "The life of " b { (name(member)) } " ends. It is told at its next heartbeat, and "
            "gives up what it leads." }
    }
}

fn may_return(member: &str) -> Markup {
    html! { li { "The process of " (name(member)) " is not ended: it may join again." } }
}

fn now(id: &str) -> Markup {
    html! {
        p.check {
            input id={ (id) "-now" } name="now" type="checkbox" data-flag;
            label for={ (id) "-now" } { "Free what it holds at once. Until its ttl is over two members "
                "may then believe that they lead, and only the fence tells them apart." }
        }
    }
}
