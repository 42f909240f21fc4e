//! What a scenario is: a plan from a seed, a world built from the plan, what an event does to
//! it, and a judgement at the end.

use super::faults::Fault;
use super::runner::Flags;
use super::scheduler::Engine;
use std::fmt::Debug;

/// What a scenario says of itself.
#[derive(Debug)]
pub struct About {
    /// Its name on the command line and in the file of saved seeds.
    pub name: &'static str,
    /// Rare states that it counts. A run of `many` seeds has to reach each of them: a
    /// simulation that never gets there proves nothing about them.
    pub probes: &'static [&'static str],
    pub many: u64,
    /// Faults that can be planted in it.
    pub faults: &'static [Fault],
    /// Flags of the command line that it reads, see [`Flags`].
    pub flags: &'static [&'static str],
    pub unsure: Unsure,
}

/// How many searches of its oracles may be given up. Any more fail the run.
#[derive(Debug)]
pub struct Unsure {
    pub per_thousand_seeds: u64,
    /// Why there are any.
    pub why: &'static str,
}

impl Unsure {
    /// The oracles of the scenario are exact.
    pub const NEVER: Unsure = Unsure {
        per_thousand_seeds: 0,
        why: "its oracles are exact",
    };

    /// The largest figure in a run of this many seeds.
    pub fn most(&self, seeds: u64) -> u64 {
        (seeds * self.per_thousand_seeds).div_ceil(1_000)
    }
}

/// A world that seeds run in. [`super::run`] plans, builds, plays and reports.
pub trait Scenario: Sized {
    const ABOUT: About;

    /// What narrows the plans of seeds.
    type Options: Default;
    type Plan: Debug;
    type Event;

    /// The options that flags of the command line stand for.
    fn options(flags: &Flags) -> Result<Self::Options, String>;

    /// What a seed stands for.
    fn plan(seed: u64, options: &Self::Options, fault: Fault) -> Self::Plan;

    fn build(plan: Self::Plan, fault: Fault, engine: Engine<Self::Event>) -> Self;

    fn engine(&mut self) -> &mut Engine<Self::Event>;

    /// Carries out an event, which happens now.
    fn handle(&mut self, event: Self::Event);

    /// The run: what happens, by [`until`] and [`drain`], and the judgement of it.
    fn play(&mut self) -> Result<(), String>;

    /// What everything waits for, where a run does not come to its end.
    fn describe(&self) -> String {
        String::new()
    }

    /// Figures of the run, which many seeds sum up.
    fn counts(&self) -> Vec<(&'static str, u64)>;

    /// Searches of its oracles that were given up.
    fn unsure(&self) -> u64 {
        0
    }
}

/// Lets events happen until `holds`, which is what `what` says. It is a failure if that does
/// not come by `limit_us`.
pub fn until<S: Scenario>(
    world: &mut S,
    what: &str,
    limit_us: u64,
    holds: impl Fn(&S) -> bool,
) -> Result<(), String> {
    while !holds(world) {
        match world.engine().next_us() {
            None => return Err(format!("nothing happens any more before {what}")),
            Some(at_us) if at_us > limit_us => {
                let state = world.describe();
                return Err(format!("it takes too long until {what}\n{state}"));
            }
            Some(_) => happen(world)?,
        }
    }
    Ok(())
}

/// Lets events happen until `done`, or until none is left. It is a failure if `most` are
/// scheduled meanwhile.
pub fn drain<S: Scenario>(
    world: &mut S,
    most: u64,
    done: impl Fn(&S) -> bool,
) -> Result<(), String> {
    let before = world.engine().scheduled();
    while !done(world) && world.engine().next_us().is_some() {
        if world.engine().scheduled() - before > most {
            return Err("it does not become quiet".into());
        }
        happen(world)?;
    }
    Ok(())
}

fn happen<S: Scenario>(world: &mut S) -> Result<(), String> {
    if let Some(event) = world.engine().next() {
        world.handle(event);
    }
    world.engine().outcome()
}
