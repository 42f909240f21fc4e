//! Texts: of two written at the same time the later one stays, and what a connection is
//! shown is as the level of the keyspace says.

use std::collections::{BTreeMap, BTreeSet};

use rufous_sim::oracle::sessions::{self, Event, History, Promise, Quiet, What as Wish};

use super::super::LEVEL;
use super::{Act, Came, What, in_the_end, replay};

pub(super) fn judge(acts: &[&Act]) -> Result<(), String> {
    let Some(key) = acts.first().map(|act| act.key) else {
        return Ok(());
    };
    let judged =
        history(acts).and_then(|history| sessions::judge(Promise::of_level(LEVEL)?, &history));
    judged.map_err(|wrong| format!("{key}: {wrong}"))
}

/// What was written counts from when it was asked for, what was read from when it came.
fn history(acts: &[&Act]) -> Result<History, String> {
    let mut history = History::default();
    let mut numbers: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut knowing, mut wrong) = (BTreeSet::new(), None);
    replay(acts, |act, has_come| {
        let what = match (&act.what, &act.came) {
            (What::Put(text), came) if !has_come => {
                let number = history.new_value();
                numbers.insert(*text, number);
                if *came == Came::Done {
                    knowing.insert(act.session);
                }
                Wish::Write(number)
            }
            (What::Get, Came::Number(text)) if has_come => {
                knowing.insert(act.session);
                match numbers.get(text) {
                    Some(number) => Wish::Read(Some(*number)),
                    None => {
                        let why = format!("{text} is there, which nobody had written");
                        wrong.get_or_insert(why);
                        return;
                    }
                }
            }
            // Who knows of no text yet may be shown none.
            (What::Get, Came::Nothing) if has_come && knowing.contains(&act.session) => {
                Wish::Read(None)
            }
            _ => return,
        };
        history.ask(Event {
            session: act.session as usize,
            key: 0,
            what,
            replied: act.came.is_answer(),
        });
    });
    if let Some(Came::Number(text)) = in_the_end(acts) {
        history.quiets.push(Quiet {
            events: history.events.len(),
            shown: vec![numbers.get(text).copied()],
        });
    }
    wrong.map_or(Ok(history), Err)
}

/// None is there only if none is known to have been.
pub(super) fn judge_end(acts: &[&Act], came: &Came) -> Result<(), String> {
    let was_there = |act: &&&Act| match (&act.what, &act.came) {
        (What::Put(_), came) => *came == Came::Done,
        (_, came) => matches!(came, Came::Number(_)),
    };
    match (came, acts.iter().find(was_there)) {
        (Came::Nothing, Some(act)) => Err(format!("nothing is left in the end after {act}")),
        _ => Ok(()),
    }
}
