//! Random histories.

use super::world::{Action, Bounds, End, World};
use rufous_base::rng::Rng;
use rufous_linear::planted::{self, Off};
use std::ops::Range;
use std::sync::Arc;

/// A history that breaks a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Broken {
    pub seed: u64,
    pub why: String,
    pub trace: Vec<Action>,
}

/// What a search has done.
#[derive(Clone, Debug, Default)]
pub struct Found {
    pub histories: u64,
    pub steps: usize,
    pub broken: Option<Broken>,
}

/// After so many steps without an end, a history goes round in circles.
const MOST_STEPS: usize = 20_000;

/// Tries random histories.
pub fn random(bounds: &Bounds, off: Option<Off>, seeds: Range<u64>) -> Found {
    planted::set(off);
    let bounds = Arc::new(bounds.clone());
    let mut found = Found::default();
    for seed in seeds {
        let mut trace = Vec::new();
        let (world, result) = history(&bounds, seed, &mut trace);
        found.histories += 1;
        found.steps += world.steps;
        if let Err(why) = result {
            found.broken = Some(Broken { seed, why, trace });
            break;
        }
    }
    planted::set(None);
    found
}

fn history(
    bounds: &Arc<Bounds>,
    seed: u64,
    trace: &mut Vec<Action>,
) -> (World, Result<(), String>) {
    let mut world = World::new(bounds, seed);
    let mut rng = Rng::new(seed ^ 0x6c69_6e65_6172);
    // Some histories have their faults early, others late; some are slow to submit, or to sync, or on a link.
    let (rare, slow, lazy) = (8 + rng.below(60), 1 + rng.below(30), 1 + rng.below(12));
    let ends = (rng.below(3) as u16, rng.below(3) as u16);
    let (slow_link, link) = ((End::Slot(ends.0), End::Slot(ends.1)), 1 + rng.below(100));
    // Of its own, so that the bounds without these draw what they drew.
    let mut small_rng = Rng::new(seed ^ 0x0073_6d61_6c6c);
    let often = 2 + small_rng.below(24);
    let result = loop {
        if world.steps > MOST_STEPS {
            break Err("it goes round in circles".into());
        }
        let progress = world.progress();
        let mut faults = Vec::new();
        if rng.below(rare) == 0 {
            faults = world.faults(&mut rng);
        }
        if faults.is_empty() && small_rng.below(often) == 0 {
            faults = world.small_faults(&mut small_rng);
        }
        let all = if faults.is_empty() {
            &progress
        } else {
            &faults
        };
        if all.is_empty() {
            break world.check();
        }
        let mut action = all[rng.below(all.len() as u64) as usize];
        for _ in 0..8 {
            let again = match action {
                Action::Submit => slow,
                Action::Sync(_) => lazy,
                Action::Deliver(from, to) if (from, to) == slow_link => link,
                _ => break,
            };
            if rng.below(again) == 0 {
                break;
            }
            action = all[rng.below(all.len() as u64) as usize];
        }
        trace.push(action);
        if let Err(why) = world.act(action) {
            break Err(why);
        }
    };
    (world, result)
}

/// The history of a seed, line by line: each action with the message that it delivers, and the logs after it.
pub fn explain(bounds: &Bounds, off: Option<Off>, seed: u64) -> String {
    planted::set(off);
    let bounds = Arc::new(bounds.clone());
    let mut trace = Vec::new();
    let (_, result) = history(&bounds, seed, &mut trace);
    let (mut world, mut text) = (World::new(&bounds, seed), String::new());
    for action in trace {
        text += &world.line(action);
        if world.act(action).is_err() {
            break;
        }
        for slot in &world.slots {
            text += &format!("    {}\n", slot.line());
        }
    }
    planted::set(None);
    text + &format!("{result:?}\n")
}
