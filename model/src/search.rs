//! Every order of what may happen, or random ones.

use crate::bounds::Bounds;
use crate::rules::{self, Off};
use crate::world::{Action, World, forget_planned};
use rufous_base::rng::Rng;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A history that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub trace: Vec<Action>,
    pub why: String,
}

/// What a search has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub states: usize,
    /// All states within the bounds were visited.
    pub all: bool,
    pub broken: Option<Broken>,
}

/// One state of so many is healed.
const HEALED: u64 = 8;

fn begin(bounds: &Arc<Bounds>, off: Option<Off>) -> Result<World, String> {
    rules::switch(None);
    forget_planned();
    let mut world = World::new(bounds, None).settled()?;
    rules::switch(off);
    forget_planned();
    world.off = off.and_then(Off::own);
    Ok(world)
}

/// Tries every order, up to so many states.
pub fn every(bounds: &Bounds, off: Option<Off>, most: usize) -> Result<Found, String> {
    let bounds = Arc::new(bounds.clone());
    let first = begin(&bounds, off)?;
    let mut found = Found {
        all: true,
        ..Found::default()
    };
    let mut visited = HashSet::from([first.number()]);
    let mut trace: Vec<Action> = Vec::new();
    // States on the way, with what is still to be tried in each.
    let mut way = vec![(first.actions(), first.clone())];
    while let Some((actions, world)) = way.last_mut() {
        let Some(action) = actions.pop() else {
            way.pop();
            trace.pop();
            continue;
        };
        let mut next = world.clone();
        trace.push(action);
        let result = next.act(action).and_then(|()| next.check());
        let number = next.number();
        let is_new = visited.insert(number);
        let heals = is_new && number.is_multiple_of(HEALED);
        let result = result.and_then(|()| if heals { next.heal() } else { Ok(()) });
        if let Err(why) = result {
            found.broken = Some(shorten(&first, Broken { trace, why }));
            found.all = false;
            break;
        }
        if !is_new {
            trace.pop();
            continue;
        }
        if visited.len() >= most {
            found.all = false;
            break;
        }
        way.push((next.actions(), next));
    }
    found.states = visited.len();
    rules::switch(None);
    Ok(found)
}

/// Tries random histories.
pub fn random(
    bounds: &Bounds,
    off: Option<Off>,
    seeds: std::ops::Range<u64>,
) -> Result<Found, String> {
    let bounds = Arc::new(bounds.clone());
    let first = begin(&bounds, off)?;
    let mut found = Found::default();
    for seed in seeds {
        let mut rng = Rng::new(seed);
        if let Err(broken) = walk(&first, &mut rng, &mut found.states) {
            found.broken = Some(shorten(&first, broken));
            break;
        }
    }
    rules::switch(None);
    Ok(found)
}

/// Steps of a random history, at most.
const STEPS: usize = 400;

fn walk(first: &World, rng: &mut Rng, states: &mut usize) -> Result<(), Broken> {
    let (mut world, mut trace) = (first.clone(), Vec::new());
    for _ in 0..STEPS {
        let actions = world.actions();
        if actions.is_empty() {
            break;
        }
        // Faults are rarer than what goes on by itself.
        let mut action = actions[rng.below(actions.len() as u64) as usize];
        if is_fault(action) && rng.below(3) > 0 {
            action = actions[rng.below(actions.len() as u64) as usize];
        }
        trace.push(action);
        *states += 1;
        if let Err(why) = guarded(|| world.act(action).and_then(|()| world.check())) {
            return Err(Broken { trace, why });
        }
    }
    guarded(|| world.heal()).map_err(|why| Broken { trace, why })
}

/// An assertion of the code that fails is a violation, too.
fn guarded(run: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("an assertion fails".into()))
}

fn is_fault(action: Action) -> bool {
    matches!(
        action,
        Action::End(..) | Action::Spoil(..) | Action::Miss(_) | Action::Break(..) | Action::Pass
    )
}

/// Leaves out of a trace what the fault does not need.
fn shorten(first: &World, broken: Broken) -> Broken {
    let mut best = broken;
    let mut at = 0;
    while at < best.trace.len() {
        let mut trace = best.trace.clone();
        trace.remove(at);
        match replay(first, &trace) {
            Some(shorter) => best = shorter,
            None => at += 1,
        }
    }
    best
}

/// What is wrong after these actions, if they may happen and something is.
fn replay(first: &World, trace: &[Action]) -> Option<Broken> {
    let mut world = first.clone();
    for (at, action) in trace.iter().enumerate() {
        if !world.actions().contains(action) {
            return None;
        }
        if let Err(why) = guarded(|| world.act(*action).and_then(|()| world.check())) {
            let trace = trace[..=at].to_vec();
            return Some(Broken { trace, why });
        }
    }
    let why = guarded(|| world.heal()).err()?;
    let trace = trace.to_vec();
    Some(Broken { trace, why })
}
