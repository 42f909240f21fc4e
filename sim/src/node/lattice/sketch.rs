//! HyperLogLogs: of few elements, each with a register of its own, the count
//! is exact. So it is never below the number of surely added elements, nor above that of
//! requested ones; and for one connection it never falls without a deletion.

use super::act::Deed;
use super::{Kind, Lattice, Thing, View};
use rufous_datatype::hll::Observation;
use std::collections::BTreeSet;

/// Above this many elements the count need not be exact.
const EXACT: usize = 60;

impl Lattice {
    /// One that has a register of its own.
    fn new_element(&mut self) -> Thing {
        loop {
            let thing = self.new_thing();
            let seen = Observation::of(&super::ask::text(thing));
            if self.registers.insert(seen.index) {
                return thing;
            }
        }
    }

    pub(super) fn write_sketch(
        &mut self,
        client: usize,
        key: usize,
        count: u64,
    ) -> (Vec<Vec<u8>>, Vec<Deed>) {
        let name = self.keys[key].name.clone();
        let space = self.keys[key].space;
        let other = |at: &usize| self.kind(*at) == Kind::Sketch && self.keys[*at].space == space;
        let others: Vec<_> = (0..self.keys.len()).filter(other).collect();
        let random = &mut self.clients[client].random;
        match random.below(20) {
            0 => {
                let empty = Deed::Empty {
                    key,
                    was_there: false,
                };
                (vec![b"DEL".to_vec(), name], vec![empty])
            }
            1..5 => {
                let from = *random.pick(&others);
                let words = vec![b"PFMERGE".to_vec(), name, self.keys[from].name.clone()];
                let join = Deed::Join {
                    key,
                    from,
                    things: Vec::new(),
                };
                (words, vec![join])
            }
            _ => {
                let things: Vec<_> = (0..count).map(|_| self.new_element()).collect();
                let mut words = vec![b"PFADD".to_vec(), name];
                words.extend(things.iter().map(|thing| super::ask::text(*thing)));
                let add = |thing| Deed::Add {
                    key,
                    thing,
                    needs: Vec::new(),
                };
                (words, things.into_iter().map(add).collect())
            }
        }
    }

    /// What this client knows to be there.
    pub(super) fn joined(&self, client: usize, from: usize) -> Vec<Thing> {
        let known = self.clients[client].session.known(from);
        let stays = |thing: &Thing| !self.may_be_emptied(from, *thing);
        known.filter(stays).collect()
    }

    /// Whether a client may have removed it. A deletion also removes elements
    /// whose addition its replica has not received yet.
    fn may_be_emptied(&self, key: usize, thing: Thing) -> bool {
        let Some(made) = self.made.get(&thing).map(|act| &self.acts[*act]) else {
            return true;
        };
        let flushes = self.flushes.get(&self.keys[key].db).into_iter().flatten();
        let mut flushes = flushes.map(|act| &self.acts[*act]);
        let empties = |deed: &Deed| matches!(deed, Deed::Empty { key: at, .. } if *at == key);
        let acts = self.of_key[key].iter().map(|act| &self.acts[*act]);
        let mut emptied = acts.filter(|act| act.deeds.iter().any(empties));
        flushes.any(|act| !act.refused && !act.is_before(made))
            || emptied.any(|act| !act.refused && act.life >= made.life)
    }

    /// All elements that clients have asked to add, also through other keys.
    fn most(&self, key: usize) -> BTreeSet<Thing> {
        let (mut all, mut left) = (BTreeSet::new(), vec![key]);
        let mut keys = BTreeSet::from([key]);
        while let Some(at) = left.pop() {
            let acts = self.of_key[at].iter().map(|act| &self.acts[*act]);
            for deed in acts.filter(|act| !act.refused).flat_map(|act| &act.deeds) {
                match *deed {
                    Deed::Add { key, thing, .. } if key == at => {
                        all.insert(thing);
                    }
                    Deed::Join { key, from, .. } if key == at && keys.insert(from) => {
                        left.push(from);
                    }
                    _ => {}
                }
            }
        }
        all
    }

    /// What that sure deletion has taken for good.
    fn emptied(&self, key: usize, is_sure: &impl Fn(usize) -> bool) -> BTreeSet<Thing> {
        let acts = || {
            self.of_key[key]
                .iter()
                .filter(|act| !self.acts[**act].refused)
        };
        let joins = |deed: &Deed| matches!(deed, Deed::Join { .. });
        let empties = |deed: &Deed| matches!(*deed, Deed::Empty { key: at, was_there } if was_there && at == key);
        if !self.is_steady || acts().any(|act| self.acts[*act].deeds.iter().any(joins)) {
            return BTreeSet::new();
        }
        let sure = acts().filter(|act| is_sure(**act));
        let last = sure.filter(|act| self.acts[**act].deeds.iter().any(empties));
        let taken = last.flat_map(|last| {
            let before = acts().filter(|act| self.acts[**act].is_before(&self.acts[*last]));
            before.flat_map(|act| self.acts[*act].deeds.iter().flat_map(Deed::makes))
        });
        taken.collect()
    }

    pub(super) fn look_at_sketch(
        &mut self,
        client: usize,
        key: usize,
        view: &View,
    ) -> Result<(), String> {
        let known = self.clients[client].session.known(key);
        let stays = known.filter(|thing| !self.may_be_emptied(key, *thing));
        let (least, most) = (stays.count(), self.most(key).len());
        let name = String::from_utf8_lossy(&self.keys[key].name).into_owned();
        counts(&name, view, least, most)?;
        let session = &mut self.clients[client].session;
        let before = session.counted.insert(key, view.sum).unwrap_or_default();
        let acts = self.of_key[key].iter().map(|act| &self.acts[*act]);
        let falls = |deed: &Deed| matches!(deed, Deed::Empty { .. });
        let mut falls = acts.filter(|act| !act.refused && act.deeds.iter().any(falls));
        let may_fall = self.flushes.contains_key(&self.keys[key].db) || falls.next().is_some();
        match view.sum < before && !may_fall {
            true => Err(format!("{name} counts {}, after {before}", view.sum)),
            false => Ok(()),
        }
    }

    pub(super) fn judge_sketch(
        &self,
        key: usize,
        view: &View,
        is_sure: impl Fn(usize) -> bool,
    ) -> Result<(), String> {
        let sure = self.of_key[key].iter().filter(|act| is_sure(**act));
        let deeds = sure.flat_map(|act| &self.acts[*act].deeds);
        let mut there = BTreeSet::new();
        for deed in deeds {
            match deed {
                Deed::Add { key: at, thing, .. } if *at == key => {
                    there.insert(*thing);
                }
                Deed::Join {
                    key: at, things, ..
                } if *at == key => there.extend(things),
                _ => {}
            }
        }
        there.retain(|thing| !self.may_be_emptied(key, *thing));
        let mut most = self.most(key);
        for thing in self.emptied(key, &is_sure) {
            most.remove(&thing);
        }
        counts("it", view, there.len(), most.len())
    }
}

fn counts(name: &str, view: &View, least: usize, most: usize) -> Result<(), String> {
    let is_exact = most <= EXACT;
    match is_exact && !(least..=most).contains(&(view.sum as usize)) {
        true => Err(format!(
            "{name} counts {} elements, not from {least} to {most}",
            view.sum
        )),
        false => Ok(()),
    }
}
