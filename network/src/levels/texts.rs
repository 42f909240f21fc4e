//! The texts of a scene before the simulator's judge of sessions.

use std::collections::BTreeMap;

use rufous_sim::oracle::sessions::{self, History, Promise, Quiet, What};

use super::level::{Kind, Level};
use super::record::{Deed, Event};

/// The initial values, and what all replicas have in the end, by text.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    pub first: Vec<u64>,
    pub last: Vec<Option<u64>>,
}

/// What of it has no order of writes that explains it.
pub fn judge(level: &Level, events: &[Event], ends: &Ends) -> Vec<String> {
    let history = match history(events, ends) {
        Ok(history) => history,
        Err(wrong) => return vec![wrong],
    };
    let promises = promises(level);
    let wrong = |promise| sessions::judge(promise, &history).err();
    match promises {
        Ok(promises) => promises.into_iter().filter_map(wrong).collect(),
        Err(error) => vec![error],
    }
}

/// Sessions that wait with a token see what sessions that stay at one replica see.
fn promises(level: &Level) -> Result<Vec<Promise>, String> {
    let of_level = Promise::of_level(level.name)?;
    let rules = match level.kind {
        Kind::Sessions(rules) => rules,
        Kind::Transactions(_) => return Ok(vec![of_level]),
    };
    let mut promises = vec![of_level];
    if rules.in_order
        && let Promise::Level(level) = of_level
    {
        promises = vec![Promise::Whole(level)];
    }
    if rules == super::rules::Rules::ALL {
        promises.push(Promise::Cut);
    }
    Ok(promises)
}

/// In the judge's numbers; that of the initial value of a text follows from its place.
fn history(events: &[Event], ends: &Ends) -> Result<History, String> {
    let mut history = History::default();
    let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
    let mut write = |history: &mut History, event: sessions::Event, number: u64| {
        let value = history.new_value();
        numbers.insert(number, value);
        history.ask(sessions::Event {
            what: What::Write(value),
            ..event
        });
        value
    };
    let mut shown = Vec::new();
    for (key, number) in ends.first.iter().enumerate() {
        let event = sessions::Event {
            session: 0,
            key,
            what: What::Read(None),
            replied: true,
        };
        shown.push(Some(write(&mut history, event, *number)));
    }
    history.quiets.push(Quiet {
        events: history.len(),
        shown,
    });
    // Numbers of all writes first: a read of one that is asked for later is for the judge to find.
    let mut reads = Vec::new();
    for event in events {
        let as_judged = sessions::Event {
            session: event.session,
            key: event.key as usize,
            what: What::Read(None),
            replied: event.replied,
        };
        match event.deed {
            Deed::Set(number) => {
                write(&mut history, as_judged, number);
            }
            Deed::Got(found) => reads.push((history.ask(as_judged), found, event.at_ms)),
            _ => {}
        }
    }
    let known = |found: Option<u64>, when: &str| match found {
        None => Ok(None),
        Some(number) => match numbers.get(&number) {
            Some(value) => Ok(Some(*value)),
            None => Err(format!(
                "{when} a text is {number}, which no client has written"
            )),
        },
    };
    for (at, found, at_ms) in reads {
        history.events[at].what = What::Read(known(found, &format!("after {at_ms} ms"))?);
    }
    let last: Result<Vec<_>, _> = { ends.last.iter() }
        .map(|found| known(*found, "in the end"))
        .collect();
    history.quiets.push(Quiet {
        events: history.len(),
        shown: last?,
    });
    Ok(history)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::levels::level::ALL;

    /// Sessions, texts, and what they wrote ("set") or read.
    fn refused_at(lines: &[(usize, u64, &str, u64)], last: [u64; 2]) -> Vec<&'static str> {
        let of = |&(session, key, what, number): &(usize, u64, &str, u64)| Event {
            session,
            node: 1,
            at_ms: 0,
            key,
            deed: match what {
                "set" => Deed::Set(number),
                _ => Deed::Got(Some(number)),
            },
            replied: true,
        };
        let events: Vec<Event> = lines.iter().map(of).collect();
        let ends = Ends {
            first: vec![1, 2],
            last: last.map(Some).to_vec(),
        };
        let of_sessions = ALL
            .iter()
            .filter(|level| matches!(level.kind, Kind::Sessions(_)));
        { of_sessions }
            .filter(|level| !judge(level, &events, &ends).is_empty())
            .map(|level| level.name)
            .collect()
    }

    #[test]
    fn each_guarantee_is_judged_at_its_levels() {
        let own = [(1, 0, "set", 10), (1, 0, "get", 1)];
        assert_eq!(
            refused_at(&own, [10, 2]),
            ["read-your-writes", "pram", "causal"]
        );
        let older = [(1, 0, "set", 10), (2, 0, "get", 10), (2, 0, "get", 1)];
        // A reader of a session's write is not before it any more.
        assert_eq!(
            refused_at(&older, [10, 2]),
            ["monotonic-reads", "monotonic-writes", "pram", "causal"]
        );
        let order = [
            (1, 0, "set", 10),
            (1, 1, "set", 11),
            (2, 1, "get", 11),
            (2, 0, "get", 1),
        ];
        assert_eq!(
            refused_at(&order, [10, 11]),
            ["monotonic-writes", "pram", "causal"]
        );
        // The answer has lost to what it answers.
        let follows = [(1, 0, "set", 10), (2, 0, "get", 10), (2, 0, "set", 11)];
        assert_eq!(
            refused_at(&follows, [10, 2]),
            ["writes-follow-reads", "causal"]
        );
        assert_eq!(refused_at(&follows, [11, 2]), [""; 0]);
    }

    #[test]
    fn what_no_client_has_written_is_wrong_at_every_level() {
        assert_eq!(refused_at(&[(1, 0, "get", 99)], [1, 2]).len(), 7);
        assert_eq!(refused_at(&[], [99, 2]).len(), 7);
    }
}
