//! Requests as real clients send them: for another type than the key's, and
//! quiet updates.

use super::{Unique, claret, collections};
use crate::engine::random::Random;
use crate::history::{Kind, Unit};
use crate::model::{Op, Step};

/// A command for another type. Where the key is missing, it gets that type, and
/// the commands of its own are strangers then.
pub(super) fn stranger(r: &mut Random, unit: &Unit, unique: &mut Unique) -> Step {
    let key = r.index(unit.keys.len());
    match r.below(10) {
        0 => super::text(r, unique, key),
        1 => Step::IncrBy(key, 1),
        number => {
            let kind = *r.pick(&Kind::COLLECTIONS);
            let step = match kind.is_of_claret() {
                true => claret::step(r, kind, key, unique.long),
                false => collections::on(r, kind, key, unique),
            };
            // Mostly what takes or reads: it changes nothing in any case.
            let again = number > 3 && step.writes() && !matches!(step, Step::Del(_));
            match again {
                true => collections::read(kind, key),
                false => step,
            }
        }
    }
}

/// Some updates as quiet ones, and now and then a read, which is refused.
pub(super) fn hush(r: &mut Random, op: Op, share: f64) -> Op {
    let quiet = |step| Step::Quiet(Box::new(step));
    match op {
        Op::One(step) if r.chance(share) && (step.writes() || r.chance(0.05)) => {
            Op::One(quiet(step))
        }
        Op::One(step) => Op::One(step),
        Op::Transaction { steps, guard } => {
            let steps = steps.into_iter().map(|step| match step.writes() {
                true if r.chance(share) => quiet(step),
                _ => step,
            });
            Op::Transaction {
                steps: steps.collect(),
                guard,
            }
        }
    }
}
