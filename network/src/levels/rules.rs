//! Session guarantees over sets, each from its definition [HAT §5.1.3], without a search for an order. Each element is
//! added once and removed at most once, so a read shows of each such write whether it is visible. The simulator's judge of
//! sessions, which searches an order of writes to texts, shares nothing with this.

mod bits;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::record::{Deed, Event};
use bits::Bits;

/// What a level promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// A session's own writes are visible to it.
    pub own_writes: bool,
    /// What was visible to a session stays so.
    pub same_reads: bool,
    /// Where a write is visible, earlier writes of its session are.
    pub in_order: bool,
    /// Where a write is visible, what its session had read before is.
    pub after_reads: bool,
}

impl Rules {
    pub const ALL: Rules = Rules {
        own_writes: true,
        same_reads: true,
        in_order: true,
        after_reads: true,
    };

    fn has_order(self) -> bool {
        self.in_order || self.after_reads
    }
}

/// What is wrong with a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wrong {
    /// It shows what no client has written.
    MadeUp,
    OwnWriteMissing,
    /// What the session has seen before is not there.
    Older,
    /// What a visible write depends on is not there.
    OutOfOrder,
    /// An acknowledged write is not there in the end.
    Lost,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wrong::MadeUp => "made up",
            Wrong::OwnWriteMissing => "own write missing",
            Wrong::Older => "older than seen before",
            Wrong::OutOfOrder => "shown without what it depends on",
            Wrong::Lost => "lost",
        })
    }
}

/// A rule that does not hold, and where: `example` says it in words, `at_ms` when.
#[derive(Clone, Debug)]
pub struct Violation {
    pub wrong: Wrong,
    pub at_ms: u64,
    pub example: String,
}

/// The elements of each set, as all replicas have them in the end.
pub type Last = BTreeMap<u64, BTreeSet<u64>>;

struct Write<'a> {
    event: &'a Event,
    element: u64,
    is_removal: bool,
    /// What has to be visible where this is.
    after: Bits,
}

#[derive(Default)]
struct Session {
    own: Bits,
    seen: Bits,
    /// What all that it has seen depends on.
    before: Bits,
}

#[derive(Default)]
struct Judge<'a> {
    rules: Rules,
    writes: Vec<Write<'a>>,
    additions: BTreeMap<u64, usize>,
    removals: BTreeMap<u64, usize>,
    sessions: BTreeMap<usize, Session>,
    violations: Vec<Violation>,
}

/// Every read that contradicts the rules, once for each rule.
pub fn judge(rules: Rules, events: &[Event], last: &Last) -> Vec<Violation> {
    let mut judge = Judge {
        rules,
        ..Judge::default()
    };
    for event in events {
        match &event.deed {
            Deed::Add(element) => judge.write(event, *element, false),
            Deed::Remove(element) => judge.write(event, *element, true),
            Deed::Members(shown) => judge.read(event, shown),
            Deed::Set(_) | Deed::Got(_) | Deed::Nothing => {}
        }
    }
    judge.end(last);
    judge.violations
}

impl<'a> Judge<'a> {
    fn write(&mut self, event: &'a Event, element: u64, is_removal: bool) {
        let number = self.writes.len();
        let session = self.sessions.entry(event.session).or_default();
        let mut after = Bits::default();
        if self.rules.in_order {
            after.add_all(&session.own);
        }
        if self.rules.after_reads {
            after.add_all(&session.seen);
            after.add_all(&session.before);
        }
        session.own.add(number);
        let writes = if is_removal {
            &mut self.removals
        } else {
            &mut self.additions
        };
        writes.insert(element, number);
        self.writes.push(Write {
            event,
            element,
            is_removal,
            after,
        });
    }

    fn read(&mut self, event: &Event, members: &BTreeSet<u64>) {
        let mut session = self.sessions.remove(&event.session).unwrap_or_default();
        let mut shown = Bits::default();
        for member in members {
            match self.additions.get(member) {
                Some(number) if self.writes[*number].event.key == event.key => shown.add(*number),
                _ => self.wrong(Wrong::MadeUp, event, &format!("element {member}")),
            }
        }
        let mut before = session.before.clone();
        self.depend(&shown, &mut before);
        // An element that must have been added and is absent was removed: so its removal is visible.
        loop {
            let required = self.required(&session, &before);
            let gone = self.gone(event.key, &required, members);
            if gone.iter().all(|removal| shown.has(*removal)) {
                break;
            }
            gone.into_iter().for_each(|removal| shown.add(removal));
            self.depend(&shown, &mut before);
        }
        let rules = self.rules;
        for (applies, wrong, required) in [
            (rules.own_writes, Wrong::OwnWriteMissing, &session.own),
            (rules.same_reads, Wrong::Older, &session.seen),
            (rules.has_order(), Wrong::OutOfOrder, &before),
        ] {
            if applies && let Some(missing) = self.missing(event.key, required, members) {
                let what = self.tell(missing);
                self.wrong(wrong, event, &what);
            }
        }
        session.seen.add_all(&shown);
        session.before = before;
        self.sessions.insert(event.session, session);
    }

    /// Adds what these writes depend on.
    fn depend(&self, shown: &Bits, before: &mut Bits) {
        if self.rules.has_order() {
            for number in shown.iter() {
                before.add_all(&self.writes[number].after);
            }
        }
    }

    /// What a read has to show.
    fn required(&self, session: &Session, before: &Bits) -> Bits {
        let mut all = before.clone();
        if self.rules.own_writes {
            all.add_all(&session.own);
        }
        if self.rules.same_reads {
            all.add_all(&session.seen);
        }
        all
    }

    /// Removals of required elements of a set that are absent.
    fn gone(&self, key: u64, required: &Bits, members: &BTreeSet<u64>) -> Vec<usize> {
        let additions = required.iter().map(|number| &self.writes[number]);
        let gone = additions.filter(|write| {
            !write.is_removal && write.event.key == key && !members.contains(&write.element)
        });
        { gone }
            .filter_map(|write| self.removals.get(&write.element).copied())
            .collect()
    }

    /// The first of the required writes to a set that its members do not show.
    fn missing(&self, key: u64, required: &Bits, members: &BTreeSet<u64>) -> Option<usize> {
        required.iter().find(|number| {
            let write = &self.writes[*number];
            let has = members.contains(&write.element);
            let fits = if write.is_removal {
                !has
            } else {
                has || self.removals.contains_key(&write.element)
            };
            write.event.key == key && !fits
        })
    }

    fn end(&mut self, last: &Last) {
        let mut wrong = Vec::new();
        for (number, write) in self.writes.iter().enumerate() {
            let has =
                { last.get(&write.event.key) }.is_some_and(|set| set.contains(&write.element));
            let fits = if write.is_removal {
                !has
            } else {
                has || self.removals.contains_key(&write.element)
            };
            if write.event.replied && !fits {
                wrong.push((write.event, self.tell(number)));
            }
        }
        for (event, what) in wrong {
            self.wrong(Wrong::Lost, event, &what);
        }
        for (key, set) in last {
            let has = |element: &&u64| !self.additions.contains_key(element);
            let made_up: Vec<_> = set.iter().filter(has).collect();
            if !made_up.is_empty() {
                self.violations.push(Violation {
                    wrong: Wrong::MadeUp,
                    at_ms: u64::MAX,
                    example: format!("in the end set {key} has {made_up:?}"),
                });
            }
        }
    }

    fn tell(&self, number: usize) -> String {
        let write = &self.writes[number];
        let what = if write.is_removal {
            "removal"
        } else {
            "addition"
        };
        format!(
            "the {what} of {} by session {} at node {}, {} ms",
            write.element, write.event.session, write.event.node, write.event.at_ms
        )
    }

    fn wrong(&mut self, wrong: Wrong, event: &Event, what: &str) {
        self.violations.push(Violation {
            wrong,
            at_ms: event.at_ms,
            example: format!(
                "{wrong}: session {} at node {}, {} ms, set {}: {what}",
                event.session, event.node, event.at_ms, event.key
            ),
        });
    }
}
