//! Quiet commands, and commands where the node chooses.

use super::act::Act;
use super::{Expect, State, Step, Window, ok};
use rufous_resp::Reply;

/// One rule for all commands: they are executed, and only errors are returned.
pub(super) fn run(step: &Step, state: &mut State, window: &Window) -> Expect {
    if !step.writes() {
        return Expect::Error("ERR QUIET runs commands that write");
    }
    match step.run(state, window) {
        expected @ (Expect::Error(_) | Expect::Never) => expected,
        _ => ok(),
    }
}

impl Step {
    /// Where the node chooses, all that it may have chosen.
    pub(super) fn choices(&self, state: &State, reply: Option<&Reply>) -> Vec<Step> {
        match self {
            Step::Act(act) => {
                let acts = act.choices(state, reply).into_iter();
                acts.map(Step::Act).collect()
            }
            Step::Quiet(step) => {
                let steps = step.choices(state, None).into_iter();
                steps.map(|step| Step::Quiet(Box::new(step))).collect()
            }
            _ => vec![self.clone()],
        }
    }

    /// Applies the node's choice, as its reply shows it.
    pub(super) fn be_told(&mut self, reply: &Reply) {
        if let Step::Act(act) = self {
            *act = act.as_told(reply);
        }
    }

    /// Whether what it does cannot be known of one among others.
    pub fn hides_its_choice(&self) -> bool {
        match self {
            Step::Act(act) => matches!(act, Act::SPop(..)),
            Step::Quiet(step) => step.hides_its_choice(),
            _ => false,
        }
    }
}
