//! The switch of the log, at worker 0: whether changes are logged, and what is to be done so that
//! this is what the settings say.
//!
//! Logs begin at the cut of a save, at every worker at once. They are a promise only once that
//! save is in the manifest: until then a start would find the data without what they hold. They end at each
//! worker by itself, and begin again only after all of them have ended and the manifest says so:
//! otherwise a start would take logs with a gap for complete ones.

use super::saves::CutOf;
use crate::durable::keeper::Keeper;
use crate::planted::{self, Planted};

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Nothing,
    /// Begin a save: with it the logs, if there are none yet.
    Save,
    /// Have all workers end their logs.
    End,
    /// Record in the manifest that no logs follow.
    Note,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No worker has a log.
    #[default]
    Off,
    /// Every worker has one, or will from the cut on that was begun.
    On,
    /// This many workers have not ended theirs.
    Ending(usize),
}

/// How far the switch is, for figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogState {
    #[default]
    Off,
    /// A save is to be in the manifest first.
    Starting,
    /// Every change that a reply shows is found at the next start.
    On,
    Ending,
}

impl LogState {
    /// Where a switch ends.
    pub fn of(is_on: bool) -> Self {
        if is_on { Self::On } else { Self::Off }
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Switch {
    wanted: bool,
    state: State,
    /// The generation of a cut that is not made yet.
    cut: Option<u64>,
}

impl Switch {
    pub(super) fn on_settings(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// The start is over but for the logs: whether they begin.
    pub(super) fn on_start(&mut self, logs: bool) {
        self.state = if logs { State::On } else { State::Off };
    }

    /// How a save is to cut.
    pub(super) fn cut_of_save(&self) -> CutOf {
        match self.state {
            State::Off if self.wanted => CutOf::Begin,
            _ => CutOf::Save,
        }
    }

    /// A cut is asked for.
    pub(super) fn on_begin(&mut self, generation: u64, cut: CutOf) {
        self.cut = Some(generation);
        if cut == CutOf::Begin {
            self.state = State::On;
        }
    }

    /// A cut is made.
    pub(super) fn on_cut(&mut self, generation: u64) {
        self.cut.take_if(|cut| *cut <= generation);
    }

    pub(super) fn on_end(&mut self, workers: usize) {
        self.state = State::Ending(workers);
    }

    /// A worker has ended its log.
    pub(super) fn on_ended(&mut self) {
        if let State::Ending(missing) = self.state {
            self.state = match missing - 1 {
                0 => State::Off,
                missing => State::Ending(missing),
            };
        }
    }

    /// `stuck`: a log cannot be written.
    pub(super) fn step(&self, keeper: &Keeper, stuck: bool) -> Step {
        // A worker must not end its log before a cut at which it would begin it. Only where a log
        // is stuck, which exists then, the cut may take for ever.
        let waits = self.cut.is_some() && !stuck;
        match self.state {
            State::On if !self.wanted && !waits => Step::End,
            State::On if self.wanted && !keeper.log_holds() && !keeper.is_saving() => Step::Save,
            State::Off if keeper.is_saving() => Step::Nothing,
            State::Off if !keeper.end_is_noted() => Step::Note,
            State::Off if self.wanted => Step::Save,
            State::On | State::Off | State::Ending(_) => Step::Nothing,
        }
    }

    pub(super) fn is(&self, keeper: &Keeper) -> LogState {
        match self.state {
            State::On if !self.wanted => LogState::Ending,
            State::On if keeper.log_holds() || planted::is(Planted::LogSaidEarly) => LogState::On,
            State::Off if !self.wanted && keeper.end_is_noted() => LogState::Off,
            _ if self.wanted => LogState::Starting,
            _ => LogState::Ending,
        }
    }
}

#[cfg(test)]
mod tests;
