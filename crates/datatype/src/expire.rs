//! The arithmetic of expiry: from a command's argument to a deadline, and whether a new deadline may replace the old.
//!
//! Times are milliseconds since the Unix epoch, signed as in Redis. The clock is the caller's.

use crate::ValueError;

/// The unit of a command's argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpireUnit {
    Seconds,
    Milliseconds,
}

/// What a command's argument counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpireBase {
    /// Now (`EX`, `PX`, `EXPIRE`, `PEXPIRE`).
    Relative,
    /// The epoch (`EXAT`, `PXAT`, `EXPIREAT`, `PEXPIREAT`).
    Absolute,
}

/// A point in time as a user states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpireTime {
    pub value: i64,
    pub unit: ExpireUnit,
    pub base: ExpireBase,
}

impl ExpireTime {
    /// The deadline for the `EXPIRE` family, where the past is allowed (it deletes the key).
    ///
    /// `command` is the command's name in lower case; it is part of the error's text.
    pub fn deadline_ms(self, now_ms: i64, command: &'static str) -> Result<i64, ValueError> {
        let in_ms = match self.unit {
            ExpireUnit::Seconds => self.value.checked_mul(1000),
            ExpireUnit::Milliseconds => Some(self.value),
        };
        let base = match self.base {
            ExpireBase::Relative => now_ms,
            ExpireBase::Absolute => 0,
        };
        in_ms
            .and_then(|ms| ms.checked_add(base))
            .ok_or(ValueError::InvalidExpire(command))
    }
}

/// The conditions `NX`, `XX`, `GT` and `LT` of the `EXPIRE` family. `XX` goes together with `GT` or `LT`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpireCondition {
    pub nx: bool,
    pub xx: bool,
    pub gt: bool,
    pub lt: bool,
}

impl ExpireCondition {
    /// Takes one option in any case; `false` means that it is none of ours.
    pub fn add_option(&mut self, option: &[u8]) -> bool {
        let flag = match option.to_ascii_lowercase().as_slice() {
            b"nx" => &mut self.nx,
            b"xx" => &mut self.xx,
            b"gt" => &mut self.gt,
            b"lt" => &mut self.lt,
            _ => return false,
        };
        *flag = true;
        true
    }

    /// Refuses combinations that contradict each other; to be asked after the last option.
    pub fn check(self) -> Result<(), ValueError> {
        if self.nx && (self.xx || self.gt || self.lt) {
            return Err(ValueError::ExpireNxWithOthers);
        }
        if self.gt && self.lt {
            return Err(ValueError::ExpireGtWithLt);
        }
        Ok(())
    }

    /// Whether a deadline may replace `current`, where no deadline counts as infinitely far.
    pub fn allows(self, current: Option<i64>, deadline_ms: i64) -> bool {
        let nx = !self.nx || current.is_none();
        let xx = !self.xx || current.is_some();
        let gt = !self.gt || current.is_some_and(|at| deadline_ms > at);
        let lt = !self.lt || current.is_none_or(|at| deadline_ms < at);
        nx && xx && gt && lt
    }
}

/// What an `EXPIRE` does to an existing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpireOutcome {
    /// A condition forbids it: reply 0.
    Unchanged,
    /// The deadline has passed: the key is deleted, reply 1.
    Delete,
    /// The key gets this deadline, reply 1.
    Set(i64),
}

/// Decides an `EXPIRE` for a key whose deadline is `current`.
pub fn decide(
    condition: ExpireCondition,
    current: Option<i64>,
    deadline_ms: i64,
    now_ms: i64,
) -> ExpireOutcome {
    if !condition.allows(current, deadline_ms) {
        ExpireOutcome::Unchanged
    } else if is_expired(deadline_ms, now_ms) {
        ExpireOutcome::Delete
    } else {
        ExpireOutcome::Set(deadline_ms)
    }
}

/// Whether a deadline given *now* deletes at once. A key already stored lives through its last millisecond, see
/// [`has_passed`].
pub fn is_expired(deadline_ms: i64, now_ms: i64) -> bool {
    deadline_ms <= now_ms
}

/// Whether a stored deadline is over: strictly after it, as Redis has it.
pub fn has_passed(deadline_ms: i64, now_ms: i64) -> bool {
    now_ms > deadline_ms
}

/// The reply of `PTTL`, never negative.
pub fn remaining_ms(deadline_ms: i64, now_ms: i64) -> i64 {
    deadline_ms.saturating_sub(now_ms).max(0)
}

/// The reply of `TTL`: rounded to the nearest second.
pub fn remaining_seconds(deadline_ms: i64, now_ms: i64) -> i64 {
    to_seconds(remaining_ms(deadline_ms, now_ms))
}

/// The reply of `EXPIRETIME` for a deadline: rounded to the nearest second.
pub fn to_seconds(ms: i64) -> i64 {
    ms.saturating_add(500) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_000_000;

    fn time(value: i64, unit: ExpireUnit, base: ExpireBase) -> ExpireTime {
        ExpireTime { value, unit, base }
    }

    #[test]
    fn deadlines() {
        use ExpireBase::*;
        use ExpireUnit::*;
        let invalid = Err(ValueError::InvalidExpire("expire"));
        let check = |value, unit, base, expected| {
            assert_eq!(
                time(value, unit, base).deadline_ms(NOW, "expire"),
                expected,
                "{value} {unit:?} {base:?}"
            );
        };
        check(10, Seconds, Relative, Ok(NOW + 10_000));
        check(10, Milliseconds, Relative, Ok(NOW + 10));
        check(10, Seconds, Absolute, Ok(10_000));
        check(-10, Seconds, Relative, Ok(NOW - 10_000));
        check(i64::MAX, Seconds, Relative, invalid);
        check(i64::MIN, Seconds, Relative, invalid);
        check(
            i64::MAX / 1000,
            Seconds,
            Absolute,
            Ok(i64::MAX / 1000 * 1000),
        );
        check(i64::MAX / 1000 + 1, Seconds, Absolute, invalid);
        check(i64::MIN, Milliseconds, Relative, Ok(i64::MIN + NOW));
        check(i64::MAX - NOW, Milliseconds, Relative, Ok(i64::MAX));
        check(i64::MAX - NOW + 1, Milliseconds, Relative, invalid);
    }

    #[test]
    fn conditions() {
        let check =
            |options: &str, current: Option<i64>, deadline: i64, expected: ExpireOutcome| {
                let mut condition = ExpireCondition::default();
                assert!(
                    options
                        .split_whitespace()
                        .all(|option| condition.add_option(option.as_bytes()))
                );
                assert_eq!(condition.check(), Ok(()));
                assert_eq!(
                    decide(condition, current, deadline, NOW),
                    expected,
                    "{options} {current:?} {deadline}"
                );
            };
        let (old, later, sooner) = (Some(NOW + 100), NOW + 200, NOW + 50);
        check("", None, later, ExpireOutcome::Set(later));
        check("", old, NOW, ExpireOutcome::Delete);
        check("nx", None, later, ExpireOutcome::Set(later));
        check("nx", old, later, ExpireOutcome::Unchanged);
        check("XX", None, later, ExpireOutcome::Unchanged);
        check("xx", old, sooner, ExpireOutcome::Set(sooner));
        check("gt", None, later, ExpireOutcome::Unchanged);
        check("gt", old, later, ExpireOutcome::Set(later));
        check("gt", old, NOW + 100, ExpireOutcome::Unchanged);
        check("gt", old, sooner, ExpireOutcome::Unchanged);
        check("lt", None, later, ExpireOutcome::Set(later));
        check("lt", old, later, ExpireOutcome::Unchanged);
        check("lt", old, NOW + 100, ExpireOutcome::Unchanged);
        check("lt", old, sooner, ExpireOutcome::Set(sooner));
        check("lt", old, NOW - 1, ExpireOutcome::Delete);
        check("xx lt", None, sooner, ExpireOutcome::Unchanged);
        check("xx gt", old, later, ExpireOutcome::Set(later));
        check("gt", old, i64::MIN, ExpireOutcome::Unchanged);
    }

    #[test]
    fn contradictions() {
        let condition = |nx, xx, gt, lt| ExpireCondition { nx, xx, gt, lt };
        assert_eq!(
            condition(true, true, false, false).check(),
            Err(ValueError::ExpireNxWithOthers)
        );
        assert_eq!(
            condition(true, false, true, true).check(),
            Err(ValueError::ExpireNxWithOthers)
        );
        assert_eq!(
            condition(false, false, true, true).check(),
            Err(ValueError::ExpireGtWithLt)
        );
        assert_eq!(condition(false, true, false, true).check(), Ok(()));
        assert!(!ExpireCondition::default().add_option(b"foo"));
    }

    #[test]
    fn what_remains() {
        assert_eq!(remaining_ms(NOW + 1, NOW), 1);
        assert_eq!(remaining_ms(NOW - 1, NOW), 0);
        assert_eq!(remaining_seconds(NOW + 499, NOW), 0);
        assert_eq!(remaining_seconds(NOW + 500, NOW), 1);
        assert_eq!(remaining_seconds(i64::MAX, 0), i64::MAX / 1000);
        assert!(!has_passed(NOW, NOW));
        assert!(has_passed(NOW - 1, NOW));
        assert!(is_expired(NOW, NOW));
    }
}
