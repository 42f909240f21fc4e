//! Commands of a transaction that are executed together, as some have keys of several slots: each slot adds the values of
//! its keys when it admits the transaction, and nothing else changes them until it is applied there. The last slot has
//! all of them. It executes the commands on a shard of its own, and tells each slot the changes of its keys.
//!
//! Values and changes are effects, as in logs.

use super::keys::{Keys, word_of};
use super::typing::KeyOp;
use crate::body::{self, Command, Deed};
use crate::durable::effect::Effect;
use crate::lock::KeyName;
use crate::multi::KeyWrite;
use crate::planted::{self, Planted};
use crate::program::Program;
use crate::shard::Shard;
use crate::worker::spanning;
use rufous_base::slot::slot_of;
use rufous_base::{Args, Output};
use rufous_linear::{Transaction, told};
use std::collections::{BTreeMap, BTreeSet};

/// The limit of the values that slots add, and of the changes that are told: each slot on the way keeps them until the
/// transaction is over.
const MOST_BYTES: usize = 4 << 20;
/// A key whose value takes more memory is not written out to see how long it is.
const MOST_MEMORY: usize = 4 * MOST_BYTES;

const TOO_LARGE: &str = "ERR the values of commands whose keys are of several slots have at most 4194304 bytes together: \
                         give their keys one hash tag, as in {tag}key; nothing was done";

/// The changes at other slots.
type Changes = BTreeMap<u16, Vec<u8>>;

/// A transaction at a slot.
pub(super) struct Together<'a, 'w, P: Program> {
    keys: &'a mut Keys<'w, P>,
    txn: &'a Transaction<KeyOp>,
    slot: u16,
    commands: &'a [Command],
}

impl<'a, 'w, P: Program> Together<'a, 'w, P> {
    pub(super) fn new(
        keys: &'a mut Keys<'w, P>,
        txn: &'a Transaction<KeyOp>,
        slot: u16,
        commands: &'a [Command],
    ) -> Self {
        Self {
            keys,
            txn,
            slot,
            commands,
        }
    }

    /// The keys of the commands.
    fn gathered(&self) -> impl Iterator<Item = (&Command, KeyName)> {
        let body = self.txn.body();
        let gathered = self.commands.iter();
        let gathered = gathered.filter(|command| command.deed == Deed::Gather);
        gathered.map(move |command| (command, (command.db, word_of(body, command, 0).into())))
    }

    /// The values of this slot's keys, for the last one.
    pub(super) fn gather(&mut self) -> Result<Vec<u8>, Vec<u8>> {
        let is_last = self.txn.last() == self.slot;
        let here = self
            .gathered()
            .filter(|(command, _)| command.slot == self.slot && !is_last);
        let here: Vec<KeyName> = here.map(|(_, key)| key).collect();
        let mut values = Vec::new();
        if here.is_empty() || planted::is(Planted::ValuesNotGathered) {
            return Ok(values);
        }
        let now = self.keys.now;
        let mut left = MOST_BYTES.checked_sub(self.txn.gathered().len());
        for key in here {
            let shard = &mut self.keys.worker.shard;
            let (db, name) = (usize::from(key.0), shard.key(&key.1));
            let is_huge = shard.memory_of(db, name, now) > Some(MOST_MEMORY);
            left = left.filter(|left| !is_huge && values.len() <= *left);
            if left.is_none() {
                break;
            }
            values.extend(self.keys.value_of(key));
        }
        match left {
            Some(left) if values.len() <= left => Ok(values),
            _ => Err(self.too_large()),
        }
    }

    fn too_large(&self) -> Vec<u8> {
        let mut out = Output::default();
        let resp3 = self.commands.iter().any(|command| command.resp3);
        P::refuse_slot(TOO_LARGE, resp3, &mut out);
        out.to_vec()
    }

    /// Executes the commands, if this is the last slot. Returns their replies, and the changes at other slots.
    pub(super) fn run(&mut self) -> (Vec<Vec<u8>>, Changes) {
        let joined = self.commands.iter();
        let joined = joined.filter(|command| matches!(command.deed, Deed::Join { .. }));
        let joined: Vec<&Command> = joined.collect();
        if joined.is_empty() || self.txn.last() != self.slot {
            return Default::default();
        }
        let now = self.keys.now;
        let names: BTreeSet<KeyName> = self.gathered().map(|(_, key)| key).collect();
        let worker = &mut *self.keys.worker;
        let mut scratch = worker.spanning.spare_shard(&worker.shard);
        for (_, values) in told::pieces(self.txn.gathered()) {
            if are_of(values, |key| names.contains(key)) {
                scratch.carry_out(values, now);
            }
        }
        for (db, key) in names.iter().filter(|key| slot_of(&key.1) == self.slot) {
            let (at, name) = (usize::from(*db), worker.shard.key(key));
            if let Some(entry) = worker.shard.gather_entry(at, name, now) {
                scratch.insert_entry(at, scratch.key(key), entry, now);
            }
        }
        spanning::begin(&mut scratch);
        std::mem::swap(&mut self.keys.worker.shard, &mut *scratch);
        let each = joined.iter().map(|command| self.run_one(command));
        let replies: Vec<Vec<u8>> = each.collect();
        std::mem::swap(&mut self.keys.worker.shard, &mut *scratch);
        let names: Vec<KeyName> = names.into_iter().collect();
        let writes = spanning::end(&mut scratch, &names, now);
        let (here, changes) = self.sort(writes, &mut scratch);
        self.keys.worker.spanning.keep_shard(scratch);
        if let Some(why) = self.undone_by(&replies, &changes) {
            if planted::is(Planted::UndoneInPart) {
                spanning::put_back(&mut self.keys.worker.shard, here, now);
            }
            let undone = Changes::from([(body::UNDONE, Vec::new())]);
            return (vec![why], undone);
        }
        spanning::put_back(&mut self.keys.worker.shard, here, now);
        (replies, changes)
    }

    /// Why none of these changes is made.
    fn undone_by(&self, replies: &[Vec<u8>], changes: &Changes) -> Option<Vec<u8>> {
        let undoes = self.commands.iter().any(|of| of.deed == Deed::Undoes);
        let error = replies.iter().find(|reply| reply.first() == Some(&b'-'));
        let error = error.filter(|_| undoes).cloned();
        let is_large = changes.values().map(Vec::len).sum::<usize>() > MOST_BYTES;
        error.or_else(|| is_large.then(|| self.too_large()))
    }

    fn run_one(&mut self, command: &Command) -> Vec<u8> {
        let body = self.txn.body();
        let mut out = Output::default();
        let words = command.words.get(1..).unwrap_or_default();
        if let Some(header) = self.keys.header(body, command) {
            let args = Args::new(body, words, &mut []);
            let now = self.keys.now;
            self.keys.worker.run_through(now, &header, args, &mut out);
        }
        out.to_vec()
    }

    /// The changes here, and those at other slots.
    fn sort(&self, writes: Vec<KeyWrite>, scratch: &mut Shard) -> (Vec<KeyWrite>, Changes) {
        let mut changes = Changes::new();
        let (here, there): (Vec<KeyWrite>, Vec<KeyWrite>) = writes
            .into_iter()
            .partition(|((_, key), _)| slot_of(key) == self.slot);
        for write in there {
            let effects = spanning::effects_of(scratch, &write, self.keys.now);
            let of = changes.entry(slot_of(&write.0.1)).or_default();
            of.extend(effects);
        }
        (here, changes)
    }

    /// Changes the keys here as the last slot has told, in `later`.
    pub(super) fn change(&mut self, later: &[u8]) {
        let slot = self.slot;
        for (_, piece) in told::pieces(later) {
            let all = body::told(piece).unwrap_or_default().into_iter();
            let changes = all.flat_map(|told| told.changes);
            for (_, effects) in changes.filter(|(of, _)| *of == slot) {
                let are_ours = are_of(effects, |key| slot_of(&key.1) == slot);
                if are_ours && !planted::is(Planted::ChangesNotMade) {
                    self.keys.worker.shard.carry_out(effects, self.keys.now);
                }
            }
        }
    }
}

/// Whether these are effects on such keys alone: another node has sent them.
pub(in crate::worker) fn are_of(mut effects: &[u8], is_such: impl Fn(&KeyName) -> bool) -> bool {
    while !effects.is_empty() {
        let Ok(effect) = Effect::decode(&mut effects) else {
            return false;
        };
        let mut keys = effect.keys().peekable();
        let has_keys = keys.peek().is_some();
        if !has_keys || !keys.all(|(db, key)| is_such(&(db, key.into()))) {
            return false;
        }
    }
    true
}
