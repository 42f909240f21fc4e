//! The kernel's interface to commands: how to execute one on a shard.

use crate::lock::KeyName;
use crate::placement::Placement;
use crate::replicate::lead::Excess;
use crate::shard::{Key, Shard};
use rufous_base::rng::Rng;
use rufous_base::{Args, Now, Output};
use rufous_datatype::key::Footprint;
use std::collections::BTreeSet;
use std::ops::Range;

/// The commands of a node. The kernel calls it; the command library is one.
pub trait Program {
    /// Executes `command` and appends its reply to `ctx.out`. Every key that the command names is
    /// in `ctx.shard`, and no other command accesses the shard meanwhile. False where the reply is
    /// an error.
    fn run(command: u16, ctx: &mut Context<'_>, args: Args<'_>) -> bool;

    /// The command of this name, in any case.
    fn find(name: &[u8]) -> Option<u16> {
        let _ = name;
        None
    }

    /// Whether `command` may change the shard.
    fn is_write(command: u16) -> bool;

    /// Whether `command` may make the data larger.
    fn may_grow(command: u16) -> bool;

    /// Whether `command` may wait for data.
    fn may_wait(command: u16) -> bool {
        let _ = command;
        false
    }

    /// Whether the keys that the request names may refer to others that it reads, which are then
    /// unknown until the named keys are held.
    fn is_open(command: u16, args: &Args<'_>) -> bool {
        let _ = (command, args);
        false
    }

    /// These other keys, in the selected database `db`, where `shard` has the named keys. Changes
    /// none of them.
    fn others(
        command: u16,
        shard: &mut Shard,
        db: u8,
        args: &Args<'_>,
        now: Now,
    ) -> BTreeSet<KeyName> {
        let _ = (command, shard, db, args, now);
        BTreeSet::new()
    }

    /// Whether the key has the data that the request waits for, so that the request does not wait
    /// if it is executed now on this shard.
    fn is_ready(
        command: u16,
        shard: &mut Shard,
        (db, key): (usize, Key<'_>),
        args: &Args<'_>,
        now: Now,
    ) -> bool {
        let _ = (command, args);
        shard.contains(db, key, now)
    }

    /// What a request touches of each of its keys, which are given by their indexes, if its reply is read. `None`: that is
    /// not known.
    fn touches(command: u16, args: &Args<'_>, now: Now) -> Option<Vec<(usize, Footprint)>> {
        let _ = (command, args, now);
        None
    }

    /// Whether a request changes each of its keys independently of the others, so that it may be
    /// executed on some of them only.
    fn is_of_each(command: u16) -> bool {
        let _ = command;
        false
    }

    /// Whether a request on keys of several slots is executed as a transaction over them.
    fn goes_over_slots(command: u16) -> bool {
        let _ = command;
        false
    }

    /// The reply to a command that may grow the data while memory is full.
    fn refuse_growth(resp3: bool, out: &mut Output);

    /// The reply to a command that is not supported on a lattice keyspace; `why` continues after
    /// the command's name.
    fn refuse(command: u16, why: &str, resp3: bool, out: &mut Output);

    /// Whether a request cannot be executed on its keys, some of which are lattice keys; then
    /// appends the reply. The submitter of a request has checked this; it is checked again if the
    /// table of keyspaces has changed meanwhile.
    fn refuse_on_lattice(
        command: u16,
        args: &Args<'_>,
        placement: &Placement,
        resp3: bool,
        out: &mut Output,
    ) -> bool {
        let _ = (command, args, placement, resp3, out);
        false
    }

    /// False for a request whose keys stand at fixed places, if none of them is of a lattice keyspace.
    fn may_concern_lattice(command: u16, args: &Args<'_>, placement: &Placement) -> bool {
        let _ = (command, args, placement);
        true
    }

    /// Whether a request names lattice keys to write them.
    fn writes_lattice(command: u16, args: &Args<'_>, placement: &Placement) -> bool {
        let _ = (command, args, placement);
        false
    }

    /// The reply to a command on keys that this node does not serve.
    fn refuse_slot(why: &str, resp3: bool, out: &mut Output);

    /// The reply to a command that is to write lattice keys while clocks lead too far.
    fn refuse_clocks(why: Excess, resp3: bool, out: &mut Output) {
        Self::refuse_slot(&why.to_string(), resp3, out);
    }

    /// The reply to a command that may change the shard while changes are refused.
    fn refuse_write(why: Unwritable<'_>, resp3: bool, out: &mut Output);
}

/// Why changes are refused: an error of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritable<'a> {
    /// The log cannot be written.
    Log(&'a str),
    /// The last snapshot failed, and there is no log.
    Snapshot(&'a str),
}

impl<'a> Unwritable<'a> {
    pub fn why(self) -> &'a str {
        let (Unwritable::Log(why) | Unwritable::Snapshot(why)) = self;
        why
    }
}

/// How a command that found no data waits. Its reply so far is the one for a timeout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The arguments that name the keys it waits for.
    pub keys: Range<usize>,
    /// The timeout; `None`: no timeout.
    pub timeout_us: Option<u64>,
}

/// The environment of a running command.
pub struct Context<'a> {
    pub shard: &'a mut Shard,
    /// The selected database.
    pub db: usize,
    pub now: Now,
    /// Whether replies are RESP3.
    pub resp3: bool,
    /// The reply is not wanted: it is OK, or an error.
    pub quiet: bool,
    pub out: &'a mut Output,
    pub rng: &'a mut Rng,
    /// Hash of the command's first key, computed while the request was parsed.
    pub hash: u32,
    /// Set by a command that found no data and would wait, after it has written the reply for a
    /// timeout. Where it may not wait, as in a transaction, that is its reply.
    pub wait: Option<Wait>,
}

impl Context<'_> {
    /// The first key of the command, without hashing it again.
    #[inline]
    pub fn first_key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        Key {
            bytes,
            hash: self.hash,
        }
    }

    /// Any other key.
    pub fn key<'k>(&self, bytes: &'k [u8]) -> Key<'k> {
        self.shard.key(bytes)
    }
}
