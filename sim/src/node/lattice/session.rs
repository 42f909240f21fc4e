//! What one connection has seen and written. It uses the same replica of
//! a key all the time, and so what it has seen stays until a client
//! removes it; and what it has removed or replaced does not come back.
//!
//! A thing may need others: a connection that has seen it must see those from then on.

use super::act::Deed;
use super::note::Noted;
use super::{Kind, Lattice, Thing, View};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug, Default)]
pub(super) struct Session {
    /// Things that were shown to it or that it has added, by key.
    pub(super) known: BTreeMap<usize, BTreeSet<Thing>>,
    /// Of these, those that it has added.
    own: BTreeSet<(usize, Thing)>,
    /// What it has removed.
    pub(super) gone: BTreeSet<Thing>,
    /// The value of a register, and those before it.
    now: BTreeMap<usize, Thing>,
    past: BTreeMap<usize, BTreeSet<Thing>>,
    pub(super) notes: BTreeMap<usize, Noted>,
    /// The last count of a HyperLogLog.
    pub(super) counted: BTreeMap<usize, i64>,
    /// Of the node.
    pub(super) life: usize,
}

/// What a client is shown at a key.
pub(super) struct Noticed<'a> {
    pub(super) client: usize,
    pub(super) key: usize,
    pub(super) view: &'a View,
}

impl Session {
    pub(super) fn new(life: usize) -> Self {
        Self {
            life,
            ..Self::default()
        }
    }

    pub(super) fn known(&self, key: usize) -> impl Iterator<Item = Thing> + '_ {
        self.known.get(&key).into_iter().flatten().copied()
    }

    /// Values that a write now comes after.
    fn over(&self, key: usize) -> Vec<Thing> {
        let past = self.past.get(&key).into_iter().flatten();
        past.chain(self.now.get(&key)).copied().collect()
    }

    fn replace(&mut self, key: usize, value: Option<Thing>) {
        let before = match value {
            Some(value) => self.now.insert(key, value),
            None => self.now.remove(&key),
        };
        if let Some(before) = before.filter(|before| Some(*before) != value) {
            self.past.entry(key).or_default().insert(before);
        }
    }
}

impl Lattice {
    /// What has to be shown to every client that is shown something that this client adds
    /// to the key now. (Of one keyspace, and of sets that only grow.)
    pub(super) fn needs(&self, client: usize, key: usize) -> Vec<(usize, Thing)> {
        let Some(space) = self.keys[key].space else {
            return Vec::new();
        };
        if !self.spaces[space].has_order() {
            return Vec::new();
        }
        let session = &self.clients[client].session;
        let grown =
            |at: usize| self.keys[at].space == Some(space) && self.keys[at].kind == Kind::Grown;
        let known = session.known.iter().filter(|(at, _)| grown(**at));
        let all = known.flat_map(|(at, things)| things.iter().map(|thing| (*at, *thing)));
        all.collect()
    }

    /// A deed of this client was acknowledged.
    pub(super) fn learn(&mut self, client: usize, deed: &mut Deed, was_there: bool) {
        if let Deed::Join { key, from, things } = deed {
            *things = self.joined(client, *from);
            let known = &mut self.clients[client].session.known;
            return known.entry(*key).or_default().extend(things.iter());
        }
        let may_have_gone: BTreeSet<_> = match deed {
            Deed::Remove {
                key, thing: None, ..
            } => self.known_and_gone(client, *key),
            _ => BTreeSet::new(),
        };
        let session = &mut self.clients[client].session;
        match deed {
            Deed::Time { was_there: set, .. }
            | Deed::Expire { was_there: set, .. }
            | Deed::Empty { was_there: set, .. } => {
                *set = was_there;
            }
            Deed::Write {
                key, value, over, ..
            } => {
                over.extend(session.over(*key));
                session.replace(*key, *value);
                if value.is_none() && !was_there {
                    // A deletion writes only where its replica shows something.
                    *deed = Deed::Nothing { key: *key };
                }
            }
            Deed::Add { key, thing, .. } => {
                session.known.entry(*key).or_default().insert(*thing);
                session.own.insert((*key, *thing));
            }
            Deed::Remove {
                key,
                thing,
                covered,
            } => {
                *covered = match thing {
                    Some(thing) if was_there => vec![*thing],
                    Some(_) => Vec::new(),
                    None => {
                        let all = session.known(*key);
                        all.filter(|thing| !may_have_gone.contains(thing)).collect()
                    }
                };
                session.gone.extend(covered.iter());
            }
            Deed::Replace { .. } => session.learn_note(deed),
            Deed::Nothing { .. }
            | Deed::Join { .. }
            | Deed::Count { .. }
            | Deed::Clear { .. }
            | Deed::Flush { .. } => {}
        }
    }

    /// A client was shown what is at a key.
    pub(super) fn look(&mut self, client: usize, key: usize, view: &View) -> Result<(), String> {
        let kind = self.keys[key].kind;
        if self.look_inside(client, key, view)? {
            return Ok(());
        }
        for thing in &view.things {
            self.is_made(key, *thing)?;
        }
        if kind.is_register() {
            return self.look_at_register(client, key, view);
        }
        if kind == Kind::Sketch {
            return self.look_at_sketch(client, key, view);
        }
        self.is_lasting(Noticed { client, key, view }, |_| false)?;
        if kind.is_timed() && self.writes_here(client, key) {
            // No client can extend their time any more.
            let mut gone = self.known_and_gone(client, key);
            gone.retain(|thing| !view.things.contains(thing));
            self.clients[client].session.gone.extend(gone);
        }
        if kind == Kind::Note {
            let session = &mut self.clients[client].session;
            session.read_note(key, view);
        }
        for thing in &view.things {
            self.know(client, key, *thing);
        }
        Ok(())
    }

    /// Checks that what a client has seen is present, and what it has removed is not.
    pub(super) fn is_lasting(
        &self,
        at: Noticed<'_>,
        is_removed: impl Fn(&Thing) -> bool,
    ) -> Result<(), String> {
        let Noticed { client, key, view } = at;
        let session = &self.clients[client].session;
        let name = String::from_utf8_lossy(&self.keys[key].name);
        if let Some(thing) = view.things.intersection(&session.gone).next() {
            return Err(format!("{name} shows {thing} again"));
        }
        let gone = self.known_and_gone(client, key);
        let may_go = |thing: &Thing| {
            is_removed(thing) || gone.contains(thing) || self.may_be_removed(key, *thing)
        };
        let lost = |thing: &Thing| !view.things.contains(thing) && !may_go(thing);
        match session.known(key).find(lost) {
            Some(thing) => Err(format!("{name} does not show {thing}, which it has to")),
            None => Ok(()),
        }
    }

    /// What a client has seen there and a deadline may have taken.
    fn known_and_gone(&self, client: usize, key: usize) -> BTreeSet<Thing> {
        if !self.kind(key).is_timed() {
            return BTreeSet::new();
        }
        let known = self.clients[client].session.known(key);
        let gone = |thing: &Thing| {
            let made = self.made.get(thing).map(|act| &self.acts[*act]);
            made.is_some_and(|made| self.may_have_gone(key, made, self.now_us))
        };
        known.filter(gone).collect()
    }

    /// Whether all writes to a key are done at the replica of this connection.
    fn writes_here(&self, client: usize, key: usize) -> bool {
        let me = &self.clients[client];
        let at = Some(&(me.session.life, me.worker));
        self.keys[key].alone && self.counts_alone(client, key) && self.written_at.get(&key) == at
    }

    fn know(&mut self, client: usize, key: usize, thing: Thing) {
        let session = &mut self.clients[client].session;
        if !session.known.entry(key).or_default().insert(thing) {
            return;
        }
        let act = &self.acts[self.made[&thing]];
        // An end of the node may lose what a thing needs, and keep the thing.
        if act.life != session.life {
            return;
        }
        for deed in &act.deeds {
            if let Deed::Add {
                thing: added,
                needs,
                ..
            } = deed
                && *added == thing
            {
                for (at, need) in needs {
                    session.known.entry(*at).or_default().insert(*need);
                }
            }
        }
    }

    fn look_at_register(&mut self, client: usize, key: usize, view: &View) -> Result<(), String> {
        let shown = view.things.first().copied();
        let session = &mut self.clients[client].session;
        if self.keys[key].kind == Kind::Pair {
            return Ok(());
        }
        if self.keys[key].kind == Kind::Fleeting && shown.is_none() {
            // It has expired, perhaps, and another worker has set a later deadline in time.
            return Ok(());
        }
        let past = session.past.get(&key);
        if let Some(value) = shown.filter(|value| past.is_some_and(|past| past.contains(value))) {
            let name = String::from_utf8_lossy(&self.keys[key].name);
            return Err(format!("{name} is {value} again"));
        }
        session.replace(key, shown);
        Ok(())
    }

    /// A client has asked to make it.
    pub(super) fn is_made(&self, key: usize, thing: Thing) -> Result<(), String> {
        let name = String::from_utf8_lossy(&self.keys[key].name);
        if self.uncommitted.contains(&thing) {
            return Err(format!("{name} shows {thing}, which was not committed"));
        }
        if self.kind(key) == Kind::Pair {
            // Several acts write the same, each to its key.
            let acts = self.of_key[key].iter().map(|act| &self.acts[*act]);
            let mut deeds = acts.filter(|act| !act.refused).flat_map(|act| &act.deeds);
            return match deeds.any(|deed| deed.makes() == Some(thing)) {
                true => Ok(()),
                false => Err(format!("{name} shows {thing}, which nobody wrote there")),
            };
        }
        let Some(act) = self.made.get(&thing).map(|act| &self.acts[*act]) else {
            return Err(format!("{name} shows {thing}, which nobody made"));
        };
        if act.refused {
            return Err(format!("{name} shows {thing}, which was refused"));
        }
        let here = act.deeds.iter().any(|deed| match deed {
            Deed::Add {
                key: at, thing: t, ..
            } => (*at, *t) == (key, thing),
            Deed::Write { key: at, value, .. } | Deed::Replace { key: at, value, .. } => {
                (*at, *value) == (key, Some(thing))
            }
            _ => false,
        });
        match here {
            true => Ok(()),
            false => Err(format!("{name} shows {thing}, which was made elsewhere")),
        }
    }

    /// Whether a client may have removed it.
    pub(super) fn may_be_removed(&self, key: usize, thing: Thing) -> bool {
        if self.removed.contains(&thing) || self.may_be_evicted(key) {
            return true;
        }
        let Some(made) = self.made.get(&thing).map(|act| &self.acts[*act]) else {
            return true;
        };
        if self.keys[key].kind == Kind::Note && self.may_be_replaced(key, thing, made) {
            return true;
        }
        let whole = |act: &usize| {
            let removes = |deed: &Deed| matches!(deed, Deed::Remove { thing: None, key: at, .. } if *at == key);
            self.acts[*act].deeds.iter().any(removes)
        };
        let flushes = self.flushes.get(&self.keys[key].db).into_iter().flatten();
        let mut all = self.of_key[key]
            .iter()
            .filter(|act| whole(act))
            .chain(flushes);
        all.any(|act| {
            let act = &self.acts[*act];
            !act.refused && !act.is_before(made)
        })
    }
}
