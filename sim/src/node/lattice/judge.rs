//! The state after quiet: the same at all workers, and allowed by the
//! acknowledged operations.
//!
//! An act is *sure* where it was acknowledged and no end of the node may have
//! lost it. What a sure one did counts; what another did may or may not.

use super::act::{Act, Deed};
use super::cleared::Cleared;
use super::{Kind, Lattice, Thing, View};
use crate::engine::clock::Clock;
use crate::history::Epoch;
use std::collections::BTreeSet;

/// Wall clocks of workers may be read so much later than a reply is seen.
const LATE_MS: i64 = 1_000;

/// What was seen of the world.
#[derive(Debug)]
pub struct Judged<'a> {
    pub epochs: &'a [Epoch],
    pub clock: &'a Clock,
    /// When the audit began and ended.
    pub from_us: u64,
    pub now_us: u64,
    /// The wall clock never jumps: later writes have higher stamps.
    pub is_steady: bool,
}

impl Lattice {
    /// Starts the audit of all keys.
    pub fn begin_audit(&mut self, workers: usize) {
        if self.clients.is_empty() {
            return;
        }
        self.seen.clear();
        let keys = 0..self.keys.len();
        self.audit = (0..workers)
            .flat_map(|worker| keys.clone().map(move |key| (worker, key)))
            .collect();
    }

    /// All keys have been audited at all workers.
    pub fn judge(&self, world: &Judged<'_>) -> Result<(), String> {
        for key in 0..self.keys.len() {
            let name = || String::from_utf8_lossy(&self.keys[key].name);
            let Some(view) = self.same(key, world)? else {
                continue;
            };
            let sure: BTreeSet<_> = self.sure(key, world).collect();
            let judged = match self.keys[key].kind {
                Kind::Pair => Ok(()),
                Kind::Sketch => self.judge_sketch(key, &view, |act| sure.contains(&act)),
                kind if kind.is_timed() => {
                    let judged = self.judge_things(key, &view, &sure, world);
                    judged.and_then(|()| self.judge_time(key, &view, &sure, world))
                }
                kind if kind.is_register() => self.judge_register(key, &view, &sure, world),
                kind if kind.is_cleared() => self.judge_cleared(key, view.sum, world),
                kind if kind.counts() => self.judge_sum(key, view.sum, &sure),
                _ => self.judge_things(key, &view, &sure, world),
            };
            judged.map_err(|why| format!("{}: {why}", name()))?;
        }
        for group in &self.groups {
            self.judge_group(group, world)?;
        }
        let is_sure = |act: usize| self.acts[act].is_sure(world.epochs);
        self.judge_pairs(|act| !self.acts[act].refused && is_sure(act))?;
        self.judge_together(world)
    }

    /// What all workers show of a key.
    fn same(&self, key: usize, world: &Judged<'_>) -> Result<Option<View>, String> {
        let mut shown = self.seen.iter().filter(|((_, at), _)| *at == key);
        let Some(((first, _), view)) = shown.next() else {
            return Ok(None);
        };
        if self.kind(key).is_timed() && self.comes_between(key, world.from_us, world.now_us) {
            let mut least = view.clone();
            for (_, seen) in shown {
                least.things.retain(|thing| seen.things.contains(thing));
            }
            return Ok(Some(least));
        }
        let mut least = view;
        for ((other, _), seen) in shown {
            // Its time may have come between two looks.
            let may_go = self.keys[key].kind == Kind::Fleeting;
            if may_go && (seen.things.is_empty() || least.things.is_empty()) {
                least = if seen.things.is_empty() { seen } else { least };
            } else if seen != least {
                let name = String::from_utf8_lossy(&self.keys[key].name);
                return Err(format!(
                    "after quiet worker {first} shows {view:?} at {name}, worker {other} {seen:?}"
                ));
            }
        }
        Ok(Some(least.clone()))
    }

    /// Acts on a key, flushes included.
    fn acts_on(&self, key: usize) -> impl Iterator<Item = usize> + '_ {
        let flushes = self.flushes.get(&self.keys[key].db);
        let all = self.of_key[key].iter().chain(flushes.into_iter().flatten());
        all.copied().filter(|act| !self.acts[*act].refused)
    }

    fn sure(&self, key: usize, world: &Judged<'_>) -> impl Iterator<Item = usize> {
        self.acts_on(key)
            .filter(|act| self.acts[*act].is_sure(world.epochs))
    }

    fn flushes_of(&self, key: usize) -> impl Iterator<Item = (usize, &Act)> {
        let all = self.flushes.get(&self.keys[key].db).into_iter().flatten();
        let all = all.map(|number| (*number, &self.acts[*number]));
        all.filter(|(_, act)| !act.refused)
    }

    /// Whether a flush has taken away what the act did (`Some(true)`), or has
    /// not, or may have (`None`).
    fn flushed(&self, key: usize, act: &Act, sure: &BTreeSet<usize>) -> Option<bool> {
        let mut may = false;
        for (number, flush) in self.flushes_of(key) {
            if sure.contains(&number) && act.is_before(flush) {
                return Some(true);
            }
            may |= !flush.is_before(act);
        }
        if may { None } else { Some(false) }
    }

    fn deeds(&self, key: usize) -> impl Iterator<Item = (usize, &Act, &Deed)> {
        let mut numbers: Vec<_> = self.acts_on(key).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().flat_map(move |number| {
            let act = &self.acts[number];
            let here = move |deed: &&Deed| deed.key() == Some(key);
            let deeds = act.deeds.iter().filter(here);
            deeds.map(move |deed| (number, act, deed))
        })
    }

    fn judge_sum(&self, key: usize, sum: i64, sure: &BTreeSet<usize>) -> Result<(), String> {
        let (mut least, mut most) = (0, 0);
        for (number, act, deed) in self.deeds(key) {
            let Deed::Count { by, .. } = *deed else {
                continue;
            };
            match self.flushed(key, act, sure) {
                Some(true) => {}
                Some(false) if sure.contains(&number) => (least, most) = (least + by, most + by),
                _ => (least, most) = (least + by.min(0), most + by.max(0)),
            }
        }
        match (least..=most).contains(&sum) {
            true => Ok(()),
            false => Err(format!(
                "the sum is {sum} quarters, not from {least} to {most}"
            )),
        }
    }

    /// One client has counted and cleared, one after the other: what that may
    /// have come to.
    fn judge_cleared(&self, key: usize, sum: i64, world: &Judged<'_>) -> Result<(), String> {
        let mut all = Cleared::new();
        let mut last: Option<&Act> = None;
        let own: Vec<_> = self.deeds(key).collect();
        for next in own.iter().map(Some).chain([None]) {
            let between = |flush: &Act| {
                let before = last.is_some_and(|last| flush.is_before(last));
                let after = next.is_some_and(|(_, next, _)| next.is_before(flush));
                !before && !after
            };
            if self.flushes_of(key).any(|(_, flush)| between(flush)) {
                all.may_be_cleared();
            }
            let Some((_, act, deed)) = next else { break };
            let deed = match deed {
                Deed::Count { by, .. } => Some(*by),
                _ => None,
            };
            match act.is_sure(world.epochs) {
                true => all.did(deed),
                false => all.may_do(deed),
            }
            last = Some(act);
        }
        let sums = all.sums();
        match sums.contains(&sum) {
            true => Ok(()),
            false => Err(format!(
                "the sum is {sum} quarters, and what was counted since it was cleared one of {sums:?}"
            )),
        }
    }

    /// What a deadline took is there nowhere.
    fn judge_time(
        &self,
        key: usize,
        view: &View,
        sure: &BTreeSet<usize>,
        world: &Judged<'_>,
    ) -> Result<(), String> {
        let gone = self.gone_in_time(key, world.from_us, |act| sure.contains(&act));
        match view.things.intersection(&gone).next() {
            Some(thing) => Err(format!("{thing} is there, whose time has come")),
            None => Ok(()),
        }
    }

    fn judge_things(
        &self,
        key: usize,
        view: &View,
        sure: &BTreeSet<usize>,
        world: &Judged<'_>,
    ) -> Result<(), String> {
        let mut gone = BTreeSet::new();
        for (number, _, deed) in self.deeds(key) {
            let covered = match deed {
                Deed::Remove { covered, .. } => &covered[..],
                Deed::Replace { over, .. } => over.as_deref().unwrap_or_default(),
                _ => continue,
            };
            if sure.contains(&number) {
                gone.extend(covered.iter().copied());
            }
        }
        if let Some(thing) = view.things.intersection(&gone).next() {
            return Err(format!("{thing} is there again, which was removed"));
        }
        for thing in &view.things {
            self.is_made(key, *thing)?;
        }
        for (number, act, deed) in self.deeds(key) {
            let (Deed::Add { thing, .. }
            | Deed::Replace {
                value: Some(thing), ..
            }) = deed
            else {
                continue;
            };
            let there = view.things.contains(thing);
            if there && self.flushed(key, act, sure) == Some(true) {
                return Err(format!("{thing} is there again, which was flushed"));
            }
            let stays = || !self.may_be_removed(key, *thing);
            let lasts = || !self.has_gone(key, act, world.now_us, |act| sure.contains(&act));
            if !there && sure.contains(&number) && stays() && lasts() {
                return Err(format!("{thing} is lost, which nobody removed"));
            }
        }
        Ok(())
    }

    /// Whether what `a` wrote was replaced for sure.
    fn is_over(
        &self,
        key: usize,
        (a, value): (usize, Option<Thing>),
        sure: &BTreeSet<usize>,
        world: &Judged<'_>,
    ) -> bool {
        let act = &self.acts[a];
        if self.flushed(key, act, sure) == Some(true) {
            return true;
        }
        self.deeds(key).any(|(b, later, deed)| {
            let Deed::Write { over, .. } = deed else {
                return false;
            };
            let after = later.life > act.life || world.is_steady && act.is_before(later);
            let saw = value.is_some_and(|value| over.contains(&value));
            sure.contains(&b) && (saw || b != a && after)
        })
    }

    fn judge_register(
        &self,
        key: usize,
        view: &View,
        sure: &BTreeSet<usize>,
        world: &Judged<'_>,
    ) -> Result<(), String> {
        let Some(value) = view.things.first().copied() else {
            return match self.may_be_nothing(key, sure, world) {
                true => Ok(()),
                false => {
                    let all: Vec<_> = self.deeds(key).collect();
                    Err(format!(
                        "nothing is there, and something was written last: {all:?}"
                    ))
                }
            };
        };
        self.is_made(key, value)?;
        if self.is_over(key, (self.made[&value], Some(value)), sure, world) {
            return Err(format!("{value} is there, which was replaced"));
        }
        let act = &self.acts[self.made[&value]];
        let replaces = |(_, other, deed): (usize, &Act, &Deed)| {
            matches!(deed, Deed::Expire { .. }) && !other.is_before(act)
        };
        let keeps_time = !self.deeds(key).any(replaces);
        for deed in act.deeds.iter().filter(|_| keeps_time) {
            if let Deed::Write {
                key: at,
                value: written,
                px: Some(px),
                ..
            } = deed
                && (*at, *written) == (key, Some(value))
            {
                let last = self.counted_from(key, act, world.from_us).1 + *px as i64;
                let now = world.clock.followed_ms(world.from_us, world.now_us).0;
                if now > last + LATE_MS {
                    return Err(format!("{value} is there long after its time"));
                }
            }
        }
        Ok(())
    }

    fn may_be_nothing(&self, key: usize, sure: &BTreeSet<usize>, world: &Judged<'_>) -> bool {
        let written = |(number, _, deed): (usize, &Act, &Deed)| {
            matches!(deed, Deed::Write { .. }) && sure.contains(&number)
        };
        if !self.deeds(key).any(written) {
            return true;
        }
        let ends = |(number, _, deed): (usize, &Act, &Deed)| {
            let Deed::Write { value, px, .. } = deed else {
                return false;
            };
            let ends = value.is_none() || px.is_some();
            ends && !self.is_over(key, (number, *value), sure, world)
        };
        let flushed = |(_, flush): (usize, &Act)| {
            !self.deeds(key).any(|(number, act, deed)| {
                let writes = matches!(deed, Deed::Write { .. });
                writes && sure.contains(&number) && flush.is_before(act)
            })
        };
        self.deeds(key).any(ends)
            || self.flushes_of(key).any(flushed)
            || self.may_have_expired(key, sure, world)
    }

    /// Whether a deadline may have come that was set by itself, and not by the write of a value.
    fn may_have_expired(&self, key: usize, sure: &BTreeSet<usize>, world: &Judged<'_>) -> bool {
        self.deeds(key).any(|(number, act, deed)| {
            let Deed::Expire {
                px: Some(ms),
                was_there: true,
                ..
            } = deed
            else {
                return false;
            };
            let first = self.counted_from(key, act, world.now_us).0 + *ms as i64;
            let from_us = if world.is_steady { act.asked_us } else { 0 };
            let may_have_come = first <= world.clock.followed_ms(from_us, world.now_us).1;
            may_have_come && !self.is_over(key, (number, None), sure, world)
        })
    }

    /// Whether a flush of a database may have been lost, or never come.
    fn is_in_doubt(&self, db: usize, world: &Judged<'_>) -> bool {
        let flushes = self.flushes.get(&db).into_iter().flatten();
        let mut flushes = flushes.map(|flush| &self.acts[*flush]);
        flushes.any(|flush| !flush.refused && !flush.is_sure(world.epochs))
    }

    /// Keys that are only written together hold the same.
    fn judge_group(&self, group: &[usize], world: &Judged<'_>) -> Result<(), String> {
        let Some(first) = group.first() else {
            return Ok(());
        };
        if self.is_in_doubt(self.keys[*first].db, world) {
            return Ok(());
        }
        let same = |key: &usize| self.same(*key, world);
        let (expected, mut views) = (same(first)?, group.iter().map(same));
        match views.all(|view| view.as_ref() == Ok(&expected)) {
            true => Ok(()),
            false => {
                let views: Vec<_> = group.iter().map(same).collect();
                Err(format!("what is written together differs: {views:?}"))
            }
        }
    }

    /// Of what a transaction adds to sets that only grow, all is there or nothing.
    fn judge_together(&self, world: &Judged<'_>) -> Result<(), String> {
        for act in self.acts.iter().filter(|act| act.deeds.len() > 1) {
            let grown = act.deeds.iter().filter_map(|deed| match deed {
                Deed::Add { key, thing, .. } if self.keys[*key].kind == Kind::Grown => {
                    Some((*key, *thing))
                }
                _ => None,
            });
            let mut there = grown.map(|(key, thing)| {
                let view = self.seen.get(&(0, key));
                (key, view.is_some_and(|view| view.things.contains(&thing)))
            });
            let Some((key, first)) = there.next() else {
                continue;
            };
            let in_doubt = self.is_in_doubt(self.keys[key].db, world);
            if !in_doubt && there.any(|(_, is)| is != first) {
                return Err(format!("a transaction was done in part: {act:?}"));
            }
        }
        Ok(())
    }
}
