//! Seeds, one after the other or many.

use crate::faults::Fault;
use crate::plan::{Limits, Plan};
use crate::world::{Report, World};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs one seed. A panic of the node is a failure, too.
pub fn run(seed: u64, limits: &Limits, fault: Fault, keep_trace: bool) -> Report {
    let plan = Plan::new(seed, limits);
    fault.plant();
    let world = World::new(plan.clone(), fault, keep_trace);
    match caught_panic(|| world.run()) {
        Ok(report) => report,
        Err(panic) => Report {
            plan,
            failure: Some(format!("panic: {panic}")),
            probes: Default::default(),
            hash: 0,
            events: 0,
            operations: 0,
            lines: Vec::new(),
            unsure: 0,
        },
    }
}

/// What `f` returns, or what it said when it panicked.
pub(crate) fn caught_panic<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|panic| panic_text(panic.as_ref()))
}

thread_local! {
    /// Where the last panic of this thread happened.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Has panics of a run kept for its report, not printed.
pub fn keep_panics_quiet() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        PLACE.with(|p| *p.borrow_mut() = place);
    }));
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("of an unknown kind");
    PLACE.with(|place| format!("{text} ({})", place.borrow()))
}
