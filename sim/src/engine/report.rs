//! One run of one seed.

use super::faults::Fault;
use super::probes::Probes;
use super::scenario::Scenario;
use super::scheduler::Engine;
use super::trace;
use std::any::Any;
use std::cell::RefCell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The outcome of a seed.
#[derive(Debug)]
pub struct Report {
    /// The plan, for a person to read.
    pub plan: String,
    pub failure: Option<String>,
    pub probes: Probes,
    /// Of the trace.
    pub hash: u64,
    /// Lines of the trace; these are kept only where that was wanted.
    pub events: u64,
    pub lines: Vec<String>,
    pub counts: Vec<(&'static str, u64)>,
    /// Searches that were given up.
    pub unsure: u64,
}

impl Report {
    /// A figure of the run, by its name.
    pub fn count(&self, name: &str) -> u64 {
        let mut counts = self.counts.iter();
        counts
            .find(|(known, _)| *known == name)
            .map_or(0, |(_, n)| *n)
    }
}

/// Runs a seed of a scenario. A panic is a failure, too.
pub fn run<S: Scenario>(seed: u64, options: &S::Options, fault: Fault, keep_trace: bool) -> Report {
    run_world::<S>(seed, options, fault, keep_trace).0
}

/// Likewise; hands out what became of the world, too.
pub fn run_world<S: Scenario>(
    seed: u64,
    options: &S::Options,
    fault: Fault,
    keep_trace: bool,
) -> (Report, S) {
    fault.plant();
    let plan = S::plan(seed, options, fault);
    let text = if keep_trace {
        format!("{plan:#?}")
    } else {
        String::new()
    };
    let mut world = S::build(plan, fault, Engine::new(keep_trace));
    let outcome = catch_unwind(AssertUnwindSafe(|| world.play()));
    Fault::None.plant();
    let failure = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(failure)) => Some(failure),
        Err(panic) => Some(format!("panic: {}", panic_text(panic.as_ref()))),
    };
    let trace = world.engine().trace();
    let probes = std::mem::take(&mut world.engine().probes);
    let unknown = probes.unknown(S::ABOUT.probes);
    let report = Report {
        plan: text,
        failure: failure.or(unknown.map(|name| format!("the probe '{name}' is not declared"))),
        probes,
        hash: trace.hash(),
        events: trace.len(),
        lines: trace.into_lines(),
        counts: world.counts(),
        unsure: world.unsure(),
    };
    (report, world)
}

/// The hash of a plan: a seed that has another one stands for another run.
pub fn hash_of_plan(plan: &impl Debug) -> u64 {
    trace::hash_of(&format!("{plan:?}"))
}

thread_local! {
    /// Where the last panic of this thread happened.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps panics of runs for their reports, instead of printing them.
pub fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        PLACE.with(|p| *p.borrow_mut() = place);
    }));
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("of an unknown kind");
    PLACE.with(|place| format!("{text} ({})", place.borrow()))
}
