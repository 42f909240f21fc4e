//! Which requests of a connection may run before others that it sent first.

use super::{Op, Step};

impl Op {
    /// Whether a request that its connection sends next may run before it.
    /// Requests of a pipeline that have no key in common may run side by side:
    /// their workers may (docs/adr/0005). What is about several keys, or a
    /// transaction, lets nothing overtake it, but may itself overtake what is
    /// about a key elsewhere.
    pub fn may_be_overtaken_by(&self, next: &Op) -> bool {
        let key = match self {
            Op::One(step) => step.only_key(),
            Op::Transaction { .. } => None,
        };
        key.is_some_and(|key| !next.steps().iter().any(|step| step.concerns(key)))
    }
}

impl Step {
    fn only_key(&self) -> Option<usize> {
        match self {
            Step::Get(key)
            | Step::Set { key, .. }
            | Step::SetNx(key, _)
            | Step::GetSet(key, _)
            | Step::GetDel(key)
            | Step::Append(key, _)
            | Step::SetRange(key, ..)
            | Step::Strlen(key)
            | Step::IncrBy(key, _)
            | Step::Exists(key)
            | Step::Expire(key, _)
            | Step::Persist(key)
            | Step::Pttl(key) => Some(*key),
            Step::Act(act) => act.only_key(),
            Step::Quiet(step) => step.only_key(),
            Step::Del(keys) => match keys[..] {
                [key] => Some(key),
                _ => None,
            },
            Step::SetAll(_)
            | Step::SetAllNx(_)
            | Step::GetAll
            | Step::Rename(..)
            | Step::Copy(..)
            | Step::Flush => None,
        }
    }

    /// Whether it reads or writes a key.
    pub fn concerns(&self, key: usize) -> bool {
        match self {
            Step::Set { key: written, .. } => *written == key,
            Step::SetAll(_) | Step::Flush => true,
            Step::Quiet(step) => step.concerns(key),
            _ => self.looks_at(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_with_no_key_in_common_may_change_places() {
        let one = |step| Op::One(step);
        let exec = |steps| Op::Transaction { steps, guard: None };
        let get = one(Step::Get(0));
        for (next, may) in [
            (one(Step::Get(0)), false),
            (one(Step::Get(1)), true),
            (one(Step::Rename(1, 2)), true),
            (one(Step::Rename(1, 0)), false),
            (one(Step::SetAll(Vec::new())), false),
            (one(Step::Flush), false),
            (one(Step::Quiet(Box::new(Step::Del(vec![1])))), true),
            (exec(vec![Step::Get(1), Step::Get(2)]), true),
            (exec(vec![Step::Get(1), Step::Get(0)]), false),
        ] {
            assert_eq!(get.may_be_overtaken_by(&next), may, "{next:?}");
        }
        let several = one(Step::Rename(1, 2));
        assert!(!several.may_be_overtaken_by(&get));
        assert!(!exec(vec![Step::Get(1)]).may_be_overtaken_by(&get));
    }
}
