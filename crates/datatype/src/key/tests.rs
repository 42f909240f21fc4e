//! Keys through the checker, and holders as counts against holders one by one.

use super::footprint::{Condition, Held};
use super::holders::plain_relation;
use super::{Footprint, Holders, Key, Keys, Relation, Standing, sample};
use crate::algebra::check::{TEST_ROUNDS, algebra};
use crate::algebra::{Algebra, Tuning};
use rufous_base::rng::Rng;

#[test]
fn keys_keep_what_they_state() {
    if let Err(failure) = algebra::<Keys>(1, 4 * TEST_ROUNDS) {
        panic!("{failure}");
    }
}

fn held(rng: &mut Rng) -> Held<'static> {
    let shown = rng.below(6) == 0;
    let conditions = [Condition::Own, Condition::Version];
    let condition = conditions.get(rng.below(12) as usize);
    Held {
        op: sample::op(rng),
        wanted: shown || rng.below(2) == 0,
        shown,
        condition: condition.copied().unwrap_or(Condition::None),
    }
}

/// Counts say what pairs say, whatever was held and released before.
#[test]
fn holders_as_counts_are_like_holders_one_by_one() {
    let mut seen = [0; 3];
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let (mut counted, mut all) = (Holders::default(), Vec::<Footprint>::new());
        let mut key = sample::state(&mut rng);
        for _ in 0..40 {
            let new = held(&mut rng);
            let footprint = new.footprint();
            let standing = Standing::of(&key);
            for standing in [None, Some(&standing)] {
                let plain = plain_relation(all.iter(), &footprint, standing);
                let relation = counted.relation(&footprint, standing);
                assert_eq!(relation, plain, "seed {seed}: {new:?} among {all:?}");
                seen[relation as usize] += 1;
            }
            if rng.below(2) == 0 && !all.is_empty() {
                let one = all.swap_remove(rng.below(all.len() as u64) as usize);
                counted.release(&one);
            } else {
                counted.hold(&footprint);
                all.push(footprint);
            }
            if rng.below(8) == 0 {
                Keys::apply(&mut key, &sample::op(&mut rng), &Tuning::default());
            }
        }
        for one in all {
            counted.release(&one);
        }
        assert_eq!(counted, Holders::default(), "nothing is left");
    }
    assert!(seen.iter().all(|seen| *seen > 1_000), "{seen:?}");
}

#[test]
fn a_key_ends_with_its_last_element_and_its_deadline() {
    use super::{Op, Typed, Value};
    use crate::set;
    let mut key = Key::default();
    let mut apply = |op| Keys::apply(&mut key, &op, &Tuning::default());
    let member = b"x";
    apply(Op::Typed(Typed::Set(set::Op::Add { member })));
    apply(Op::Expire {
        at: 100,
        only: Default::default(),
    });
    apply(Op::Typed(Typed::Set(set::Op::Remove { member })));
    apply(Op::Typed(Typed::Set(set::Op::Add { member })));
    assert_eq!((key.len(), key.deadline()), (1, None));
    assert!(Key::new(Value::text(b"x"), Some(5)) != Key::new(Value::text(b"x"), None));
}

#[test]
fn adds_and_removals_are_independent_where_no_deadline_can_be_lost() {
    use super::{Op, Typed};
    use crate::set;
    let add = Held::new(Op::Typed(Typed::Set(set::Op::Add { member: b"x" })));
    let remove = Held::new(Op::Typed(Typed::Set(set::Op::Remove { member: b"y" })));
    let mut holders = Holders::default();
    holders.hold(&add.footprint());
    let mut standing = Standing {
        len: 1,
        has_deadline: false,
        room: None,
    };
    let ask = |standing: &Standing| holders.relation(&remove.footprint(), Some(standing));
    assert_eq!(ask(&standing), Relation::Independent);
    standing.has_deadline = true;
    assert_eq!(ask(&standing), Relation::Orderable);
    standing.len = 2;
    assert_eq!(ask(&standing), Relation::Independent, "one stays");
    assert_eq!(
        holders.relation(&remove.footprint(), None),
        Relation::Orderable
    );
}
