//! Consistency levels that need no coordination. Each is a file of its own: its name and its parts. The kernel names
//! no level: it asks a [`Level`] only for its parts. One more, [`serializable`], is for transactions on strict keys.

pub mod causal;
pub mod eventual;
pub mod item_cut;
pub mod monotonic_reads;
pub mod monotonic_writes;
pub mod pram;
pub mod read_committed;
pub mod read_uncommitted;
pub mod read_your_writes;
pub mod serializable;
pub mod writes_follow_reads;

use std::fmt;
use std::str::FromStr;

/// A level as its file declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    pub name: &'static str,
    /// Its parts, as bits; a composed level has the bits of its components.
    pub parts: u16,
    /// Whether it may be combined with other levels.
    pub joins: bool,
}

/// Every level of a keyspace; composed levels come after their components.
pub const ALL: &[Spec] = &[
    eventual::LEVEL,
    causal::LEVEL,
    item_cut::LEVEL,
    read_committed::LEVEL,
    read_uncommitted::LEVEL,
    pram::LEVEL,
    monotonic_reads::LEVEL,
    monotonic_writes::LEVEL,
    writes_follow_reads::LEVEL,
    read_your_writes::LEVEL,
];

/// One level, or several session guarantees together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(u16);

impl Level {
    pub const EVENTUAL: Level = Level(eventual::LEVEL.parts);
    pub const READ_COMMITTED: Level = Level(read_committed::LEVEL.parts);

    /// Whether it has all parts of `spec`.
    #[inline]
    pub fn has(self, spec: &Spec) -> bool {
        self.0 & spec.parts == spec.parts
    }

    /// Whether other replicas must apply writes in an order that goes across keys: never one before those that its session had seen
    /// or made. That takes a replica at every worker, and a cut.
    pub fn is_ordered(self) -> bool {
        self.has(&monotonic_writes::LEVEL) || self.has(&writes_follow_reads::LEVEL)
    }

    /// The level that an argument of `BEGIN` names.
    pub fn of_transaction(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case(serializable::LEVEL.name) {
            return Some(serializable::level());
        }
        let level: Self = text.parse().ok()?;
        level.has(&read_uncommitted::LEVEL).then_some(level)
    }

    /// The level of a transaction on keys of a keyspace with this level, where `BEGIN` has given none.
    pub fn in_transactions(self) -> Self {
        if self.has(&read_uncommitted::LEVEL) {
            self
        } else {
            Self::READ_COMMITTED
        }
    }

    /// The level that has the parts of both.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether concurrent values are kept as siblings.
    pub fn keeps_siblings(self) -> bool {
        self.has(&causal::LEVEL)
    }
}

/// An unknown level, or levels that cannot be combined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotALevel {
    Unknown(Box<str>),
    Alone(&'static str),
}

impl fmt::Display for NotALevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotALevel::Unknown(text) => {
                write!(f, "unknown level '{text}'; use ")?;
                for (at, spec) in ALL.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{}", spec.name)?;
                }
                Ok(())
            }
            NotALevel::Alone(name) => {
                write!(f, "'{name}' cannot be combined: + joins session guarantees")
            }
        }
    }
}

impl FromStr for Level {
    type Err = NotALevel;

    fn from_str(text: &str) -> Result<Self, NotALevel> {
        let several = text.contains('+');
        let mut parts = 0;
        for name in text.split('+') {
            let same = |spec: &&Spec| spec.name.eq_ignore_ascii_case(name.trim());
            let found = ALL.iter().find(same);
            let spec = found.ok_or_else(|| NotALevel::Unknown(name.trim().into()))?;
            if several && !spec.joins {
                return Err(NotALevel::Alone(spec.name));
            }
            parts |= spec.parts;
        }
        Ok(Level(parts))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = self.0;
        if left == 0 {
            return f.write_str(eventual::LEVEL.name);
        }
        for spec in ALL.iter().filter(|spec| spec.parts != 0) {
            if left & spec.parts != spec.parts {
                continue;
            }
            let plus = if left == self.0 { "" } else { "+" };
            write!(f, "{plus}{}", spec.name)?;
            left &= !spec.parts;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_which_level_it_is() {
        for spec in ALL {
            let level: Level = spec.name.parse().unwrap();
            assert_eq!(level.to_string(), spec.name);
            assert!(level.has(spec));
        }
        let all: Level = "Read-Your-Writes + monotonic-reads+monotonic-writes"
            .parse()
            .unwrap();
        assert_eq!(all.to_string(), "pram");
        let most: Level = "pram+writes-follow-reads".parse().unwrap();
        assert_eq!(most.to_string(), "pram+writes-follow-reads");
        assert_eq!(
            "causal+pram".parse::<Level>(),
            Err(NotALevel::Alone("causal"))
        );
        assert!("serializable".parse::<Level>().is_err());
        let unknown = "strict".parse::<Level>().unwrap_err().to_string();
        assert!(
            unknown.contains("'strict'") && unknown.contains("item-cut"),
            "{unknown}"
        );
    }

    #[test]
    fn every_combination_of_session_guarantees_keeps_its_name() {
        let parts: Vec<_> = ALL.iter().filter(|s| s.joins && s.name != "pram").collect();
        for chosen in 1..1u16 << parts.len() {
            let names = (0..parts.len()).filter(|i| chosen & 1 << i != 0);
            let text = names.map(|i| parts[i].name).collect::<Vec<_>>().join("+");
            let level: Level = text.parse().unwrap();
            assert_eq!(level.to_string().parse(), Ok(level), "{text}");
            let ordered = ["monotonic-writes", "writes-follow-reads"];
            let ordered = ordered.iter().any(|name| text.contains(name));
            assert_eq!(level.is_ordered(), ordered);
        }
    }
}
