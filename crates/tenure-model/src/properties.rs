//! What must always hold, what must be met sometimes, and what must happen in
//! the end.

use stateright::Property;
use tenure_core::Query;

use crate::game::Game;
use crate::marks::Mark;
use crate::naming::names;
use crate::world::{Broken, World, elections, member_id};
use crate::{Config, action::Action};

/// Every property of a world.
pub(crate) fn all(config: &Config) -> Vec<Property<Game>> {
    let mut all = always();
    all.extend(config.must.iter().map(|mark| sometimes(*mark)));
    if config.heals_at.is_some() {
        all.push(Property::always("a member leads at the end", led_at_the_end));
    }
    if config.heals_at == Some(0) {
        all.push(Property::eventually("a member leads", leads));
    }
    all
}

fn always() -> Vec<Property<Game>> {
    vec![
        Property::always("never two trust", |game: &Game, world: &World| {
            elections(&game.config).all(|election| world.trusting(&election).count() <= 1)
        }),
        Property::always("one holder per term", |_, w: &World| {
            w.broken != Some(Broken::TwoHolders)
        }),
        Property::always("numbers rise", |_, w: &World| w.broken != Some(Broken::NumberWentBack)),
        Property::always("a term ends with its life", |_, w: &World| {
            w.broken != Some(Broken::OutlivedByTerm)
        }),
        Property::always("released after the work", |_, w: &World| {
            w.broken != Some(Broken::ReleasedEarly)
        }),
        Property::always("never two own", |game: &Game, world: &World| {
            names(&game.config).all(|name| world.owning(&name).count() <= 1)
        }),
        Property::always("tokens rise", |_, w: &World| w.broken != Some(Broken::TokenWentBack)),
        Property::always("owned within the grant", |_, w: &World| {
            w.broken != Some(Broken::OwnedBeyondGrant)
        }),
        Property::always("trust within the grant", |_, w: &World| {
            w.broken != Some(Broken::TrustBeyondGrant)
        }),
    ]
}

/// The conditions are plain functions, so each mark needs one of its own.
fn sometimes(mark: Mark) -> Property<Game> {
    macro_rules! met {
        ($mark:ident, $name:literal) => {
            Property::sometimes($name, |_: &Game, w: &World| w.seen.has(Mark::$mark))
        };
    }
    match mark {
        Mark::Elected => met!(Elected, "elected"),
        Mark::TakenOver => met!(TakenOver, "taken over"),
        Mark::TrustEnded => met!(TrustEnded, "lost by the end of trust"),
        Mark::Superseded => met!(Superseded, "lost because the store said so"),
        Mark::SteppedDown => met!(SteppedDown, "stepped down"),
        Mark::DrainTimeout => met!(DrainTimeout, "drained too slowly"),
        Mark::Adopted => met!(Adopted, "a repeated bid adopted"),
        Mark::BeatenDead => met!(BeatenDead, "a heartbeat after the end"),
        Mark::LateRelease => met!(LateRelease, "a release too late"),
        Mark::IdTaken => met!(IdTaken, "an id still in use"),
        Mark::LateWin => met!(LateWin, "a win whose answer came too late"),
        Mark::Left => met!(Left, "left in order"),
        Mark::HandedOver => met!(HandedOver, "handed over"),
        Mark::Paused => met!(Paused, "held up by a pause"),
        Mark::NameOwned => met!(NameOwned, "a name owned"),
        Mark::NameMoved => met!(NameMoved, "a name moved"),
        Mark::NameLost => met!(NameLost, "a name lost by the end of trust"),
        Mark::NameRefused => met!(NameRefused, "a name refused"),
        Mark::NameAdopted => met!(NameAdopted, "a repeated take adopted"),
        Mark::LateDrop => met!(LateDrop, "a drop too late"),
    }
}

/// Whether a member trusts that it leads each election.
fn leads(game: &Game, world: &World) -> bool {
    elections(&game.config).all(|election| world.trusting(&election).next().is_some())
}

/// At the horizon, with nothing left to do, every election is led. It is asked
/// as a plain invariant because stateright's `eventually` can overlook paths
/// that meet in one state.
fn led_at_the_end(game: &Game, world: &World) -> bool {
    if world.now < game.config.horizon || leads(game, world) {
        return true;
    }
    let mut actions: Vec<Action> = Vec::new();
    stateright::Model::actions(game, world, &mut actions);
    // A process that stays dead is no reason to wait.
    actions.iter().any(|action| !matches!(action, Action::Restart(_)))
}

/// A member that trusts a term holds it: the store has that number under that name,
/// and the ttl has not run out. This is stronger than that no two trust.
pub(crate) fn check_trust(config: &Config, world: &mut World) {
    for election in elections(config) {
        let mut trusting = world.trusting(&election).peekable();
        if trusting.peek().is_none() {
            continue;
        }
        let snapshot = world.store.read(world.store_clock(), &Query::elections([election.clone()]));
        let Some(view) = snapshot.elections.first() else { continue };
        let holder = view.holder.as_ref().map(|h| &h.member.id);
        let granted = trusting.all(|(process, leadership)| {
            leadership.number == view.number && holder == member_id(process).as_ref()
        });
        drop(trusting);
        if !granted {
            world.breaks(Broken::TrustBeyondGrant);
            return;
        }
    }
}
