//! The engine that every scenario of the simulator runs on: virtual time, events in their
//! order, the trace, probes, planted faults, and the runner of seeds.
//!
//! - [`scheduler`]: [`Engine`], with the queue of events, ordered by time and by the order in
//!   which they were scheduled
//! - [`scenario`]: what a scenario declares, and the loops that hand it its events
//! - [`report`]: one run of one seed, and its outcome
//! - [`runner`]: the command line: one seed, or many
//! - [`seeds`]: seeds that failed once, each with the hash of the plan that it stood for
//! - [`faults`], [`probes`], [`trace`]: shared by all scenarios
//! - [`random`], [`clock`], [`disk`]: streams of choices, clocks that are wrong, disks that fail

pub mod clock;
pub mod disk;
pub mod faults;
pub mod probes;
pub mod random;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod scheduler;
pub mod seeds;
pub mod trace;

pub use faults::Fault;
pub use report::{Report, keep_panics_quiet, run, run_world};
pub use scenario::{About, Scenario, Unsure};
pub use scheduler::Engine;
