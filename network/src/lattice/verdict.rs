//! Whether what clients saw of lattice keys can be.
//!
//! Counters and sets are judged as the simulator judges them ([`rufous_sim::oracle::lattice`]),
//! texts by its judge of sessions ([`rufous_sim::oracle::sessions`]). What is added here is
//! that all connections say the same in the end, that nobody is shown what nobody had asked
//! for yet, and what nodes answer while faults last: none that serves refuses, and where nothing
//! disturbs them, they answer everything.

mod texts;

use std::collections::{BTreeMap, BTreeSet};

use rufous_sim::oracle::lattice::{Account, Deed, Done, Shown, Told};

use super::acts::{Act, Came, How, What, Window};
use super::keys::{Key, Kind};

/// See the module's description.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Keys of which all nodes said the same in the end.
    pub alike: usize,
    /// Operations that were answered while a fault lasted, at nodes that were reached.
    pub served: usize,
    /// Those of them at nodes that were cut off from all others, in a direction or both.
    pub served_alone: usize,
    /// How long one took at most that was asked for while a fault lasted, answered or not.
    pub longest_us: u64,
    /// What cannot be, in words.
    pub wrong: Vec<String>,
}

pub fn judge(acts: &[Act], windows: &[Window]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut by_key: BTreeMap<Key, Vec<&Act>> = BTreeMap::new();
    for act in acts {
        by_key.entry(act.key).or_default().push(act);
    }
    let has_end = acts.iter().any(|act| act.is_last);
    if !has_end && !acts.is_empty() {
        let wrong = "nobody asked what lattice keys are in the end";
        verdict.wrong.push(wrong.to_owned());
    }
    for (key, acts) in &by_key {
        let wrong = match key.kind {
            Kind::Text => texts::judge(acts),
            Kind::Counter | Kind::Set => judge_shared(*key, acts),
        };
        let wrong = wrong.and_then(|()| match has_end {
            true => judge_end(*key, acts).inspect(|()| verdict.alike += 1),
            false => Ok(()),
        });
        verdict.wrong.extend(wrong.err());
    }
    let wrong = windows.iter().filter_map(|window| {
        let asked: Vec<&Act> = asked_in(acts, window).collect();
        let took = asked.iter().map(|act| act.ended_us - act.asked_us);
        verdict.longest_us = took.max().unwrap_or(0).max(verdict.longest_us);
        let (served, wrong) = answers(&asked, window);
        verdict.served += served;
        verdict.served_alone += match window.how {
            How::Met => 0,
            How::Alone => served,
        };
        wrong
    });
    let wrong: Vec<String> = wrong.collect();
    verdict.wrong.extend(wrong);
    verdict
}

/// What all said in the end; nothing, if they do not say the same.
fn in_the_end<'a>(acts: &[&'a Act]) -> Option<&'a Came> {
    let mut last = acts.iter().filter(|act| act.is_last);
    let first = &last.next()?.came;
    let same = first.is_answer() && last.all(|act| act.came == *first);
    same.then_some(first)
}

fn judge_end(key: Key, acts: &[&Act]) -> Result<(), String> {
    if let Some(came) = in_the_end(acts) {
        return match key.kind {
            Kind::Text => texts::judge_end(acts, came),
            Kind::Counter | Kind::Set => judge_value(acts, came),
        }
        .map_err(|wrong| format!("{key}: {wrong}"));
    }
    let mut said: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for act in acts.iter().filter(|act| act.is_last) {
        let of = said.entry(format!("{:?}", act.came)).or_default();
        of.insert(act.node);
    }
    Err(format!("{key} is not the same everywhere: {said:?}"))
}

/// In the order in which things happened: what was asked for, and what came.
fn replay<'a>(acts: &[&'a Act], mut see: impl FnMut(&'a Act, bool)) {
    let mut order: Vec<(u64, bool, &Act)> = Vec::new();
    for act in acts.iter().filter(|act| act.came != Came::NotDone) {
        order.push((act.asked_us, false, act));
        order.push((act.ended_us, true, act));
    }
    order.sort_by_key(|(us, has_come, _)| (*us, *has_come));
    for (_, has_come, act) in order {
        see(act, has_come);
    }
}

fn done(act: &Act, deed: &Deed) -> Done {
    Done {
        key: 0,
        deed: deed.clone(),
        number: u16::try_from(act.node).ok(),
        told: act.came.told(),
    }
}

/// What each connection was shown of a counter or a set.
fn judge_shared(key: Key, acts: &[&Act]) -> Result<(), String> {
    let (mut account, name) = (Account::default(), key.to_string());
    let mut shown: BTreeMap<u64, Shown> = BTreeMap::new();
    let (mut most, mut added) = (0, BTreeSet::new());
    let mut wrong = None;
    replay(acts, |act, has_come| {
        let What::Deed(deed) = &act.what else {
            return;
        };
        if !has_come {
            match deed {
                Deed::Add(element) => _ = added.insert(*element),
                Deed::Remove(element) => account.want_away(*element),
                Deed::Count(by) => most += by,
                Deed::Members | Deed::Sum => {}
            }
            return;
        }
        let done = done(act, deed);
        let too_early = match (deed, &done.told) {
            (Deed::Count(_) | Deed::Sum, Some(Told::Number(sum))) if *sum > most => Some(format!(
                "{name} is {sum}, and no more than {most} was added"
            )),
            (Deed::Members, Some(Told::All(all))) => all
                .difference(&added)
                .next()
                .map(|element| format!("{name} has {element}, which nobody had added")),
            _ => None,
        };
        let shown = shown.entry(act.session).or_default();
        let fits = account.note(&name, shown, done);
        if let (None, Some(why)) = (&wrong, too_early.or(fits.err())) {
            let (at, session) = (act.ended_us, act.session);
            wrong = Some(format!("at {at} µs connection {session}: {why}"));
        }
    });
    wrong.map_or(Ok(()), Err)
}

/// What a counter or a set is in the end.
fn judge_value(acts: &[&Act], came: &Came) -> Result<(), String> {
    let (mut account, mut shown) = (Account::default(), BTreeMap::new());
    replay(acts, |act, has_come| {
        if let (What::Deed(deed), true) = (&act.what, has_come) {
            let shown: &mut Shown = shown.entry(act.session).or_default();
            // What connections saw is judged before.
            _ = account.note("", shown, done(act, deed));
        }
    });
    let members = acts.iter().filter_map(|act| u16::try_from(act.node).ok());
    let told = came.told().ok_or_else(|| format!("it is {came:?}"))?;
    account.judge(0, &told, &members.collect())
}

/// What a node was asked for while a fault lasted.
fn asked_in<'a>(acts: &'a [Act], window: &Window) -> impl Iterator<Item = &'a Act> {
    let (node, time) = (window.node, window.from_us..=window.until_us);
    let acts = acts.iter();
    acts.filter(move |act| act.node == node && time.contains(&act.asked_us))
}

/// How much of that it answered, and what it should have and did not.
fn answers(asked: &[&Act], window: &Window) -> (usize, Option<String>) {
    let served = asked.iter().filter(|act| act.came.is_answer()).count();
    let wrong = match asked.iter().find(|act| !act.came.is_answer()) {
        Some(act) => Some(format!("{act}: it was reached while {window}")),
        None if served == 0 => Some(format!("nothing was answered while {window}")),
        None => None,
    };
    (served, wrong)
}

#[cfg(test)]
mod tests;
