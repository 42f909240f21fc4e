//! Histories of replicas that exchange their changes late, under clients that move without tokens and `BEGIN`: each
//! level but `eventual` refuses them.

use rufous_sim::engine::random::Random;

use super::*;
use crate::levels::isolation::{Outcome, Step, Transaction, Value, What};
use crate::levels::level::ALL;
use crate::levels::panel::Panel;

const REPLICAS: usize = 2;
/// After so many operations replicas are equal.
const EPOCH: u64 = 40;

/// Texts with the number of their last write, and sets.
#[derive(Clone, Default)]
struct Replica {
    texts: Vec<u64>,
    sets: rules::Last,
}

/// Later numbers win, and sets grow.
fn exchange(replicas: &mut [Replica; REPLICAS]) {
    let mut all = replicas[0].clone();
    for replica in replicas.iter() {
        for (mine, theirs) in all.texts.iter_mut().zip(&replica.texts) {
            *mine = (*mine).max(*theirs);
        }
        for (key, set) in &replica.sets {
            all.sets.entry(*key).or_default().extend(set);
        }
    }
    replicas.fill(all);
}

/// What two clients see who take any replica for each operation.
fn without_tokens(level: &'static Level) -> (Scene, End) {
    let mut scene = Scene::new(level, Clients::Careless);
    let mut random = Random::new(7, "levels without tokens");
    scene.first = (0..TEXTS).map(|_| scene.record.new_number()).collect();
    let mut replicas = [(); REPLICAS].map(|()| Replica {
        texts: scene.first.clone(),
        sets: rules::Last::new(),
    });
    let sessions = [(); 2].map(|()| scene.record.new_session());
    for no in 1..=600 {
        let (session, at) = (*random.pick(&sessions), random.index(REPLICAS));
        let (key, replica) = (random.below(TEXTS), &mut replicas[at]);
        let set = replica.sets.entry(key).or_default();
        let deed = match random.below(4) {
            0 => Deed::Set(scene.record.new_number()),
            1 => Deed::Add(scene.record.new_number()),
            2 => Deed::Got(Some(replica.texts[key as usize])),
            _ => Deed::Members(set.clone()),
        };
        match deed {
            Deed::Set(number) => replica.texts[key as usize] = number,
            Deed::Add(number) => {
                set.insert(number);
            }
            _ => {}
        }
        let event = scene.record.note(session, at + 1, key, deed);
        scene.record.on_reply(event);
        if no % EPOCH == 0 {
            exchange(&mut replicas);
        }
    }
    exchange(&mut replicas);
    let end = End {
        texts: replicas[0].texts.iter().copied().map(Some).collect(),
        sets: replicas[0].sets.clone(),
        ..End::default()
    };
    (scene, end)
}

/// Two transactions whose commands are executed as they come: each is the last to write one key, and sees the other at work.
fn without_begin(level: &'static Level) -> (Scene, End) {
    let scene = Scene::new(level, Clients::Careless);
    let (one, other) = (scene.record.new_number(), scene.record.new_number());
    let value = |transaction| Value {
        transaction,
        part: 2,
        is_last: true,
    };
    let step = |key, what| Step {
        key,
        at: scene.record.new_number(),
        what,
    };
    let wrote = |key, transaction| step(key, What::Wrote(value(transaction)));
    let of_one = vec![
        step(0, What::Read(None)),
        step(0, What::Read(Some(value(other)))),
        wrote(0, one),
        wrote(1, one),
    ];
    let of_other = vec![wrote(0, other), wrote(1, other)];
    for (no, steps) in [(one, of_one), (other, of_other)] {
        scene.record.note_transaction(Transaction {
            no,
            node: 1,
            at_ms: 0,
            steps,
            commits_at: Some(scene.record.new_number()),
            outcome: Outcome::Committed,
        });
    }
    let values = Last::from([(0, Some(value(one))), (1, Some(value(other)))]);
    let end = End {
        values,
        ..End::default()
    };
    (scene, end)
}

fn panel(level: &'static Level) -> Panel {
    let (scene, end) = match level.kind {
        Kind::Sessions(_) => without_tokens(level),
        Kind::Transactions(_) => without_begin(level),
    };
    Panel {
        level,
        counts: scene.record.counts(),
        reads: 0,
        writes: 0,
        verdict: scene.judge(level, &end),
        odd: scene.record.odd(),
        eventual: (0, Verdict::default()),
    }
}

#[test]
fn work_without_tokens_and_begin_breaks_each_level_but_eventual() {
    for level in &ALL {
        let panel = panel(level);
        let name = level.name;
        assert_eq!(
            panel.is_kept(),
            name == EVENTUAL,
            "{name}: {:?}",
            panel.verdict
        );
    }
}

#[test]
fn both_judges_find_what_sessions_without_tokens_see() {
    let Some(causal) = Level::of_name("causal") else {
        panic!("it is a level");
    };
    let wrong = panel(causal).verdict.wrong;
    let kinds: Vec<&str> = wrong.keys().map(String::as_str).collect();
    assert_eq!(
        kinds,
        [
            "older than seen before",
            "own write missing",
            "shown without what it depends on",
            "texts without an order"
        ]
    );
}

#[test]
fn replicas_that_differ_in_the_end_break_every_level() {
    for level in &ALL {
        let scene = Scene::new(level, Clients::Careless);
        let end = End {
            unlike: vec!["a key".to_owned()],
            texts: Vec::new(),
            ..End::default()
        };
        assert_eq!(scene.judge(level, &end).count(), 1, "{}", level.name);
    }
}
