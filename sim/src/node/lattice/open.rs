//! Transactions that are begun and committed, answered command by command.
//!
//! Oracles: no other client sees what is not committed, nor what its
//! transaction has replaced; a transaction sees its own writes; in an item
//! cut a repeated read returns the same; what is committed is
//! applied as a whole ([`super::judge`]). Of two transactions that write the same two
//! keys the same one wins on both, also at level read-uncommitted.

use super::act::Deed;
use super::session::Noticed;
use super::{Ask, Kind, Lattice, Thing, View};
use rufous_resp::{Reply, encode};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Uncommitted,
    Committed,
    ItemCut,
}

/// What a transaction is yet to do.
#[derive(Clone, Copy, Debug)]
enum Step {
    Read(usize),
    Write(usize),
    /// Of keys that are written together.
    Set(usize, Thing),
}

/// Of a client.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) level: Level,
    /// What is answered from now on is its own.
    pub(super) has_begun: bool,
    plan: VecDeque<Step>,
    /// Each of its writes is needed.
    is_whole: bool,
    /// It can only be ended.
    pub(super) is_over: bool,
    /// What it has asked to write.
    pending: Option<Deed>,
    /// What it has written.
    kept: Vec<Deed>,
    added: BTreeSet<(usize, Thing)>,
    removed: BTreeSet<(usize, Thing)>,
    /// Keys that it has deleted.
    deleted: BTreeSet<usize>,
    /// Strings, unless time may have changed them.
    values: BTreeMap<usize, Option<Thing>>,
    /// In an item cut, what has to be shown of what was read.
    first: BTreeMap<usize, View>,
    /// The acts that made what it has read, where its replica has all keys of the keyspace.
    read: BTreeSet<usize>,
}

impl Open {
    fn new(level: Level) -> Self {
        Self {
            level,
            has_begun: false,
            plan: VecDeque::new(),
            is_whole: false,
            is_over: false,
            pending: None,
            kept: Vec::new(),
            added: BTreeSet::new(),
            removed: BTreeSet::new(),
            deleted: BTreeSet::new(),
            values: BTreeMap::new(),
            first: BTreeMap::new(),
            read: BTreeSet::new(),
        }
    }

    /// One of its writes was done, as far as it can see.
    fn wrote(&mut self, deed: Deed) {
        match deed {
            Deed::Add { key, thing, .. } => {
                self.added.insert((key, thing));
            }
            Deed::Remove { key, thing, .. } => {
                let all: Vec<_> = self.added.iter().copied().collect();
                let gone = |(at, one): &(usize, Thing)| {
                    *at == key && thing.is_none_or(|thing| thing == *one)
                };
                for one in all.into_iter().filter(gone) {
                    self.added.remove(&one);
                    self.removed.insert(one);
                }
                self.removed.extend(thing.map(|thing| (key, thing)));
                if thing.is_none() {
                    self.deleted.insert(key);
                }
            }
            Deed::Write { key, value, px, .. } => {
                self.values.remove(&key);
                if px.is_none() {
                    self.values.insert(key, value);
                }
            }
            Deed::Expire { key, .. } => {
                self.values.remove(&key);
            }
            _ => {}
        }
        if let Some(view) = deed.key().and_then(|key| self.first.get_mut(&key)) {
            view.change(&deed);
        }
        self.kept.push(deed);
    }

    /// What was shown to it inside has to be what it has written.
    fn look(&mut self, key: usize, kind: Kind, view: &View) -> Result<(), String> {
        let here = |(at, _): &&(usize, Thing)| *at == key && !kind.is_register();
        let mut own = self.added.iter().filter(here);
        if let Some((_, thing)) = own.find(|(_, thing)| !view.things.contains(thing)) {
            return Err(format!(
                "a transaction is not shown {thing}, which it added"
            ));
        }
        let mut gone = self.removed.iter().filter(here);
        if let Some((_, thing)) = gone.find(|(_, thing)| view.things.contains(thing)) {
            return Err(format!("a transaction is shown {thing}, which it removed"));
        }
        let shown = view.things.first().copied();
        if let Some(value) = self.values.get(&key).filter(|value| **value != shown) {
            return Err(format!("a transaction wrote {value:?} and reads {shown:?}"));
        }
        if self.level != Level::ItemCut {
            return Ok(());
        }
        let first = self.first.entry(key).or_insert_with(|| view.clone());
        match first == view {
            true => Ok(()),
            false => Err(format!("an item cut reads {view:?} after {first:?}")),
        }
    }
}

impl View {
    /// Applies a deed of a client that sees this.
    fn change(&mut self, deed: &Deed) {
        match *deed {
            Deed::Add { thing, .. } => {
                self.things.insert(thing);
            }
            Deed::Remove { thing, .. } => match thing {
                Some(thing) => {
                    self.things.remove(&thing);
                }
                None => self.things.clear(),
            },
            Deed::Write { value, .. } => self.things = value.into_iter().collect(),
            Deed::Count { by, .. } => self.sum += by,
            _ => {}
        }
    }
}

impl Lattice {
    /// Begins one.
    pub(super) fn begin_open(&mut self, client: usize, keys: &[usize], bytes: &mut Vec<u8>) {
        let random = &mut self.clients[client].random;
        let level = random.weighted(&[
            (1, Level::Uncommitted),
            (1, Level::Committed),
            (1, Level::ItemCut),
        ]);
        let mut open = Open::new(level);
        match level {
            Level::Uncommitted => self.plan_at_once(client, keys, &mut open),
            _ => self.plan_kept(client, keys, &mut open),
        }
        let name = match level {
            Level::Uncommitted => "read-uncommitted",
            Level::Committed => "read-committed",
            Level::ItemCut => "item-cut",
        };
        encode::request(bytes, &["BEGIN", name]);
        self.clients[client].open = Some(open);
        self.clients[client].ask(Ask::Begin, 1);
    }

    fn plan_kept(&mut self, client: usize, keys: &[usize], open: &mut Open) {
        let fits = |key: &&usize| self.keys[**key].kind.fits_transactions();
        let fitting: Vec<_> = keys.iter().copied().filter(|key| fits(&key)).collect();
        if fitting.is_empty() {
            return;
        }
        let random = &mut self.clients[client].random;
        // Few keys, so that they are read again.
        let some: Vec<_> = (0..2).map(|_| *random.pick(&fitting)).collect();
        for _ in 0..random.between(2, 6) {
            let key = *random.pick(&some);
            open.plan.push_back(match random.chance(0.5) {
                true => Step::Read(key),
                false => Step::Write(key),
            });
        }
        let group = self.groups[self.clients[client].db - 4].clone();
        if self.clients[client].random.chance(0.3) && !group.is_empty() {
            let value = self.new_thing();
            open.is_whole = true;
            open.plan
                .extend(group.iter().map(|key| Step::Set(*key, value)));
        }
    }

    /// Keys of this database that transactions write two by two.
    pub(super) fn pairs(&self, db: usize) -> Vec<[usize; 2]> {
        let here = |key: &usize| self.keys[*key].db == db && self.kind(*key) == Kind::Pair;
        let keys: Vec<_> = (0..self.keys.len()).filter(here).collect();
        keys.as_chunks().0.to_vec()
    }

    fn plan_at_once(&mut self, client: usize, keys: &[usize], open: &mut Open) {
        let pairs = self.pairs(self.clients[client].db);
        let adds = |key: &&usize| matches!(self.keys[**key].kind, Kind::Grown | Kind::Count);
        let adds: Vec<_> = keys.iter().copied().filter(|key| adds(&key)).collect();
        let random = &mut self.clients[client].random;
        for _ in 0..random.between(1, 3).min(adds.len() as u64) {
            let key = *random.pick(&adds);
            open.plan.push_back(match random.chance(0.5) {
                true => Step::Read(key),
                false => Step::Write(key),
            });
        }
        if !pairs.is_empty() {
            let [first, second] = *random.pick(&pairs);
            let value = self.new_thing();
            open.plan.push_front(Step::Set(first, value));
            open.plan.push_back(Step::Set(second, value));
        }
    }

    /// The next step of an open transaction.
    pub(super) fn go_on(&mut self, client: usize, now_us: u64, bytes: &mut Vec<u8>) {
        let me = &mut self.clients[client];
        let stops = me.left == 0 || me.random.chance(0.05);
        let Some(open) = &mut me.open else { return };
        let level = open.level;
        // What is written at once stays: all that is written together, or nothing is.
        let is_amid = open.plan.iter().any(|step| matches!(step, Step::Set(..)));
        let stops = stops && !(is_amid && level == Level::Uncommitted);
        let step = match open.is_over || stops {
            true => None,
            false => open.plan.pop_front(),
        };
        match step {
            None => self.end_open(client, now_us, bytes),
            Some(Step::Read(key)) => {
                encode::request(bytes, &self.reading(key));
                self.clients[client].ask(Ask::Look(vec![key]), 1);
            }
            Some(Step::Set(key, value)) => {
                let text = super::ask::text(value);
                encode::request(bytes, &[b"SET", &self.keys[key].name[..], &text]);
                let deed = Deed::Write {
                    key,
                    value: Some(value),
                    px: None,
                    over: Vec::new(),
                };
                self.write_inside(client, level, deed, now_us);
            }
            Some(Step::Write(key)) => {
                let (words, mut deeds) = self.write(client, key, 1);
                encode::request(bytes, &words);
                if let Some(deed) = deeds.pop() {
                    self.write_inside(client, level, deed, now_us);
                }
            }
        }
    }

    fn write_inside(&mut self, client: usize, level: Level, deed: Deed, now_us: u64) {
        if level == Level::Uncommitted {
            return self.act(client, vec![deed], 1, now_us);
        }
        self.uncommitted.extend(deed.makes());
        let me = &mut self.clients[client];
        me.ask(Ask::Inside, 1);
        if let Some(open) = &mut me.open {
            open.pending = Some(deed);
        }
    }

    fn end_open(&mut self, client: usize, now_us: u64, bytes: &mut Vec<u8>) {
        let me = &mut self.clients[client];
        let Some(open) = me.open.take() else { return };
        let is_cut_short = open.is_whole && !open.plan.is_empty();
        let rolls_back = open.is_over || is_cut_short || me.random.chance(0.2);
        if rolls_back {
            encode::request(bytes, &["ROLLBACK"]);
            return me.ask(Ask::Rollback, 1);
        }
        encode::request(bytes, &["COMMIT"]);
        if open.level == Level::Uncommitted {
            return me.ask(Ask::Rollback, 1);
        }
        let mut deeds = open.kept;
        self.write_over(&open.read, &mut deeds);
        for deed in &deeds {
            if let Some(thing) = deed.makes() {
                self.uncommitted.remove(&thing);
            }
        }
        // No client may see values that the transaction itself has replaced.
        for at in 0..deeds.len() {
            let (earlier, later) = deeds.split_at_mut(at + 1);
            let Some(Deed::Write { key, value, .. }) = earlier.last() else {
                continue;
            };
            // A deletion after a deletion does nothing.
            let again = |deed: &Deed| match deed {
                Deed::Write {
                    key: other,
                    value: last,
                    ..
                } => other == key && (value.is_some() || last.is_some()),
                _ => false,
            };
            if later.iter().any(again) {
                self.uncommitted.extend(*value);
                earlier[at] = Deed::Nothing { key: *key };
            }
        }
        let number = self.acts.len();
        self.act(client, deeds, 1, now_us);
        if let Some(asked) = self.clients[client].asked.back_mut() {
            asked.ask = Ask::Commit(number);
        }
    }

    /// Each worker has a replica of the key and of all others of its keyspace, all the time.
    fn is_whole(&self, key: usize) -> bool {
        let space = self.keys[key].space.map(|at| &self.spaces[at]);
        space.is_some_and(|space| space.is_fixed && space.threads == 0)
    }

    /// What a transaction has read is before what it writes, and so is all that was written together
    /// with that: there is no circle of dependencies.
    fn write_over(&self, read: &BTreeSet<usize>, deeds: &mut [Deed]) {
        for deed in deeds {
            let Deed::Write { key, over, .. } = deed else {
                continue;
            };
            if !self.is_whole(*key) {
                continue;
            }
            let written = read.iter().flat_map(|act| &self.acts[*act].deeds);
            over.extend(written.filter_map(|other| match other {
                Deed::Write { key: at, value, .. } if at == key => *value,
                _ => None,
            }));
        }
    }

    /// A write within a transaction was answered.
    pub(super) fn written_inside(&mut self, client: usize, reply: &Reply) {
        let Some(open) = &mut self.clients[client].open else {
            return;
        };
        match (open.pending.take(), reply) {
            (_, Reply::Error(_)) => open.is_over |= open.is_whole,
            (Some(deed), _) => open.wrote(deed),
            (None, _) => {}
        }
    }

    /// What an uncommitted transaction has read, if the client has
    /// one open. False: it has none.
    pub(super) fn look_inside(
        &mut self,
        client: usize,
        key: usize,
        view: &View,
    ) -> Result<bool, String> {
        let kind = self.keys[key].kind;
        let Some(open) = &mut self.clients[client].open else {
            return Ok(false);
        };
        if open.level == Level::Uncommitted || !open.has_begun {
            return Ok(false);
        }
        let name = String::from_utf8_lossy(&self.keys[key].name).into_owned();
        open.look(key, kind, view)
            .map_err(|why| format!("{name}: {why}"))?;
        let makes: BTreeSet<_> = open.kept.iter().flat_map(Deed::makes).collect();
        let (removed, is_deleted) = (open.removed.clone(), open.deleted.contains(&key));
        let is_whole = self.is_whole(key);
        for thing in view.things.difference(&makes) {
            self.is_made(key, *thing)?;
            let made = self.made.get(thing).filter(|_| is_whole);
            if let (Some(act), Some(open)) = (made, &mut self.clients[client].open) {
                open.read.insert(*act);
            }
        }
        if !kind.is_register() {
            let is_own = |thing: &Thing| is_deleted || removed.contains(&(key, *thing));
            self.is_lasting(Noticed { client, key, view }, is_own)?;
        }
        Ok(true)
    }

    /// Of transactions that write the same two keys the same one wins on both,
    /// also where they write at once.
    pub(super) fn judge_pairs(&self, is_sure: impl Fn(usize) -> bool) -> Result<(), String> {
        for db in [4, 5] {
            if self.flushes.contains_key(&db) {
                continue;
            }
            for pair in self.pairs(db) {
                let acts = pair.map(|key| &self.of_key[key]);
                let is_known = acts.into_iter().flatten().all(|act| is_sure(*act));
                let written = acts.map(|acts| {
                    let deeds = acts.iter().flat_map(|act| &self.acts[*act].deeds);
                    deeds.filter_map(Deed::makes).collect::<BTreeSet<_>>()
                });
                let shown = pair.map(|key| self.seen.get(&(0, key)));
                if is_known && written[0] == written[1] && shown[0] != shown[1] {
                    return Err(format!("transactions win on one key each: {shown:?}"));
                }
            }
        }
        Ok(())
    }
}
