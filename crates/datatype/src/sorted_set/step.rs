//! What an operation on one member does to that member's score.

use super::score::rank_of;
use super::{Only, Op, Outcome, Reply};

/// An operation on one member, without the member.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Add { score: f64, only: Only },
    Increment { by: f64, only: Only },
    Remove,
}

/// What a step leads to.
pub(super) struct Next {
    /// The score afterwards.
    pub(super) score: Option<f64>,
    pub(super) reply: Reply,
}

impl Step {
    /// The step that an operation is, and the member that it is about.
    #[inline]
    pub(super) fn of<'a>(op: &Op<'a>) -> Option<(&'a [u8], Step)> {
        match *op {
            Op::Add {
                member,
                score,
                only,
            } => Some((member, Step::Add { score, only })),
            Op::Increment { member, by, only } => Some((member, Step::Increment { by, only })),
            Op::Remove { member } => Some((member, Step::Remove)),
            _ => None,
        }
    }

    /// The step from a score on; nothing is no member.
    #[inline]
    pub(super) fn from(self, old: Option<f64>) -> Next {
        match self {
            Step::Add { score, only } => {
                let next = only.allow(old, score);
                let outcome = match (old, next) {
                    (None, Some(_)) => Outcome::Added,
                    (Some(old), Some(new)) if old != new => Outcome::Updated,
                    _ => Outcome::Kept,
                };
                Next {
                    score: next.or(old),
                    reply: Reply::Add(outcome),
                }
            }
            Step::Increment { by, only } => {
                let sum = old.map_or(by, |old| old + by);
                let forbidden = only.new && old.is_some() || only.known && old.is_none();
                if sum.is_nan() && !forbidden {
                    return Next {
                        score: old,
                        reply: Reply::NotANumber,
                    };
                }
                let next = only.allow(old, sum).map(|score| score + 0.0);
                Next {
                    score: next.or(old),
                    reply: Reply::Score(next),
                }
            }
            Step::Remove => Next {
                score: None,
                reply: Reply::Remove(old.is_some()),
            },
        }
    }

    /// Whether a member of that score, or none, stays as it is.
    pub(super) fn is_still(self, old: Option<f64>) -> bool {
        self.from(old).score.map(rank_of) == old.map(rank_of)
    }
}

impl Only {
    pub(super) const NEW: u8 = 1;
    pub(super) const KNOWN: u8 = 2;
    pub(super) const GREATER: u8 = 4;
    pub(super) const LESS: u8 = 8;

    /// The new score, if it may be set.
    #[inline]
    fn allow(self, old: Option<f64>, new: f64) -> Option<f64> {
        let allowed = match old {
            None => !self.known,
            Some(old) => !(self.new || self.greater && new <= old || self.less && new >= old),
        };
        allowed.then_some(new)
    }

    pub(super) fn bits(self) -> u8 {
        u8::from(self.new) * Self::NEW
            + u8::from(self.known) * Self::KNOWN
            + u8::from(self.greater) * Self::GREATER
            + u8::from(self.less) * Self::LESS
    }

    pub(super) fn from_bits(bits: u8) -> Option<Only> {
        (bits < 16).then_some(Only {
            new: bits & Self::NEW != 0,
            known: bits & Self::KNOWN != 0,
            greater: bits & Self::GREATER != 0,
            less: bits & Self::LESS != 0,
        })
    }
}
