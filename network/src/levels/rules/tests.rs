//! Histories that break each rule, and ones that only look so.

use super::*;
use crate::levels::level::{ALL, Kind};

/// Events in words: session, key, deed, numbers.
fn events(lines: &[(usize, u64, &str, &[u64])]) -> Vec<Event> {
    let of = |&(session, key, what, numbers): &(usize, u64, &str, &[u64])| Event {
        session,
        node: session,
        at_ms: 0,
        key,
        deed: match what {
            "add" => Deed::Add(numbers[0]),
            "remove" => Deed::Remove(numbers[0]),
            _ => Deed::Members(numbers.iter().copied().collect()),
        },
        replied: what != "add?",
    };
    lines.iter().map(of).collect()
}

/// What no replica lacks in the end: additions without removals.
fn whole(events: &[Event]) -> Last {
    let mut last = Last::new();
    for event in events {
        let set = last.entry(event.key).or_default();
        match event.deed {
            Deed::Add(element) => {
                set.insert(element);
            }
            Deed::Remove(element) => {
                set.remove(&element);
            }
            _ => {}
        }
    }
    last
}

fn kinds(rules: Rules, events: &[Event]) -> Vec<Wrong> {
    let wrong = judge(rules, events, &whole(events));
    wrong.into_iter().map(|violation| violation.wrong).collect()
}

/// The levels at which a history is refused, by their names.
fn refused_at(lines: &[(usize, u64, &str, &[u64])]) -> Vec<&'static str> {
    let events = events(lines);
    let rules = ALL.iter().filter_map(|level| match level.kind {
        Kind::Sessions(rules) => Some((level.name, rules)),
        Kind::Transactions(_) => None,
    });
    { rules }
        .filter(|(_, rules)| !kinds(*rules, &events).is_empty())
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn own_writes_are_visible() {
    let refused = refused_at(&[(1, 0, "add", &[7]), (1, 0, "see", &[])]);
    assert_eq!(refused, ["read-your-writes", "pram", "causal"]);
    let refused = refused_at(&[
        (1, 0, "add", &[7]),
        (1, 0, "remove", &[7]),
        (1, 0, "see", &[7]),
    ]);
    assert_eq!(refused, ["read-your-writes", "pram", "causal"]);
}

#[test]
fn what_was_seen_stays_visible() {
    let lines: &[(usize, u64, &str, &[u64])] = &[
        (1, 0, "add", &[7]),
        (2, 0, "see", &[7]),
        (2, 0, "see", &[]),
        (3, 0, "see", &[]),
    ];
    assert_eq!(refused_at(lines), ["monotonic-reads", "pram", "causal"]);
    // It was removed, and comes back.
    let lines: &[(usize, u64, &str, &[u64])] = &[
        (1, 0, "add", &[7]),
        (2, 0, "see", &[7]),
        (1, 0, "remove", &[7]),
        (2, 0, "see", &[]),
        (2, 0, "see", &[7]),
    ];
    assert_eq!(refused_at(lines), ["monotonic-reads", "pram", "causal"]);
    assert!(refused_at(&lines[..4]).is_empty());
}

#[test]
fn writes_of_a_session_keep_their_order_over_keys() {
    let lines: &[(usize, u64, &str, &[u64])] = &[
        (1, 0, "add", &[7]),
        (1, 1, "add", &[8]),
        (2, 1, "see", &[8]),
        (2, 0, "see", &[]),
    ];
    assert_eq!(refused_at(lines), ["monotonic-writes", "pram", "causal"]);
    // The other way round they only were late.
    let lines: &[(usize, u64, &str, &[u64])] = &[
        (1, 0, "add", &[7]),
        (1, 1, "add", &[8]),
        (2, 0, "see", &[]),
        (2, 1, "see", &[8]),
        (2, 0, "see", &[7]),
    ];
    assert!(refused_at(lines).is_empty());
}

#[test]
fn a_removal_is_a_write_with_its_place() {
    // Session 2 sees that 7 was removed, and must see 8, which was added before that.
    let lines: &[(usize, u64, &str, &[u64])] = &[
        (1, 0, "add", &[7]),
        (2, 0, "see", &[7]),
        (1, 1, "add", &[8]),
        (1, 0, "remove", &[7]),
        (2, 0, "see", &[]),
        (2, 1, "see", &[]),
    ];
    assert_eq!(refused_at(lines), ["pram", "causal"]);
}

#[test]
fn writes_follow_what_their_session_has_read() {
    let lines: &[(usize, u64, &str, &[u64])] = &[
        (1, 0, "add", &[7]),
        (2, 0, "see", &[7]),
        (2, 1, "add", &[8]),
        (3, 1, "see", &[8]),
        (3, 0, "see", &[]),
    ];
    assert_eq!(refused_at(lines), ["writes-follow-reads", "causal"]);
    // Over a third session, that has not read the first write itself.
    let lines: &[(usize, u64, &str, &[u64])] = &[
        (1, 0, "add", &[7]),
        (2, 0, "see", &[7]),
        (2, 1, "add", &[8]),
        (3, 1, "see", &[8]),
        (3, 2, "add", &[9]),
        (4, 2, "see", &[9]),
        (4, 0, "see", &[]),
    ];
    assert_eq!(refused_at(lines), ["writes-follow-reads", "causal"]);
}

#[test]
fn acknowledged_writes_are_there_in_the_end_at_every_level() {
    let some = events(&[(1, 0, "add", &[7]), (1, 0, "remove", &[8])]);
    let last = |set: &[u64]| Last::from([(0, set.iter().copied().collect())]);
    let of = |set: &[u64]| {
        let wrong = judge(Rules::default(), &some, &last(set));
        wrong.into_iter().map(|one| one.wrong).collect::<Vec<_>>()
    };
    assert_eq!(of(&[7]), []);
    assert_eq!(of(&[]), [Wrong::Lost]);
    assert_eq!(of(&[7, 9]), [Wrong::MadeUp]);
    let mut unknown = some;
    unknown[0].replied = false;
    assert!(judge(Rules::default(), &unknown, &last(&[])).is_empty());
}

#[test]
fn what_no_client_has_written_is_wrong_at_every_level() {
    let lines: &[(usize, u64, &str, &[u64])] = &[(1, 0, "add", &[7]), (2, 1, "see", &[7])];
    let of_sessions = ALL
        .iter()
        .filter(|level| matches!(level.kind, Kind::Sessions(_)));
    assert_eq!(refused_at(lines).len(), of_sessions.count());
}
