//! Finding a command by name. The server puts its own commands behind those
//! on data in one table; ids are places in it.

use crate::folded::Folded;
use crate::lattice::Row;
use crate::touching::{self, Request};
use crate::{
    Command, Ctx, Failure, Flags, Group, Keys, Reply, Spec, bitmap, causal, claret, geo, hash,
    hyperloglog, key, lattice, list, server, set, sorted_set, string,
};
use rufous_base::{Args, Now, Output};
use rufous_datatype::key::Footprint;
use rufous_datatype::object::Tag;
use rufous_kernel::lock::KeyName;
use rufous_kernel::placement::Placement;
use rufous_kernel::shard::{Any, Key, Shard};
use rufous_kernel::{Context, Program, Unwritable};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// All commands on data; a command's id is its place here.
pub fn data_commands() -> impl Iterator<Item = &'static Command> {
    GROUPS.iter().flat_map(|group| group.iter().copied())
}

static GROUPS: &[&[&Command]] = &[
    string::COMMANDS,
    causal::COMMANDS,
    list::COMMANDS,
    bitmap::COMMANDS,
    hyperloglog::COMMANDS,
    sorted_set::COMMANDS,
    geo::COMMANDS,
    key::COMMANDS,
    set::COMMANDS,
    hash::COMMANDS,
    claret::COMMANDS,
    server::COMMANDS,
];

static RUNS: LazyLock<Vec<&'static Command>> = LazyLock::new(|| data_commands().collect());

/// What each of them means on lattice keys, if it writes.
static MEANS: LazyLock<Vec<Option<&'static Row>>> =
    LazyLock::new(|| RUNS.iter().map(|run| lattice::row_of(&run.spec)).collect());

/// The reply to a command that may use more memory when there is no more.
pub const OUT_OF_MEMORY: Failure = Failure(Cow::Borrowed(
    "OOM command not allowed when used memory > 'maxmemory'.",
));

/// The commands on data as the kernel's program.
#[derive(Debug)]
pub struct DataCommands;

impl DataCommands {
    /// Why a request cannot be executed on its keys, if some of them are lattice keys.
    pub fn refused_on_lattice(
        command: u16,
        args: &Args<'_>,
        placement: &Placement,
    ) -> Option<Failure> {
        let row = MEANS.get(usize::from(command)).copied().flatten()?;
        let spec = &RUNS[usize::from(command)].spec;
        if !Self::may_concern_lattice(command, args, placement) {
            return None;
        }
        let found = |key: &[u8]| {
            placement.lattice(key).map(|found| lattice::Found {
                name: found.name.to_string(),
                is_causal: found.level.keeps_siblings(),
            })
        };
        lattice::refusal((spec, row), args, found)
    }
}

impl Program for DataCommands {
    #[inline]
    fn may_concern_lattice(command: u16, args: &Args<'_>, placement: &Placement) -> bool {
        let run = RUNS.get(usize::from(command));
        let places = run.and_then(|run| run.spec.keys.places(args));
        places.is_none_or(|mut places| places.any(|at| placement.lattice(args.get(at)).is_some()))
    }

    #[inline]
    fn run(command: u16, context: &mut Context<'_>, args: Args<'_>) -> bool {
        let start = context.out.mark();
        let mut reply = Reply::new(context.out, context.resp3);
        let mut ctx = Ctx {
            shard: context.shard,
            db: context.db,
            now: context.now,
            rng: context.rng,
            hash: context.hash,
            wait: None,
        };
        match (RUNS[usize::from(command)].run)(&mut ctx, args, &mut reply) {
            Ok(()) => {
                if context.quiet && !reply.out.is_error(start) {
                    reply.out.truncate(start);
                    reply.ok();
                }
                context.wait = ctx.wait;
                true
            }
            Err(failure) => {
                reply.out.truncate(start);
                reply.error(&failure);
                false
            }
        }
    }

    fn find(name: &[u8]) -> Option<u16> {
        static NAMES: LazyLock<BTreeMap<&'static str, u16>> = LazyLock::new(|| {
            let all = RUNS.iter().enumerate();
            all.map(|(id, run)| (run.spec.name, id as u16)).collect()
        });
        let name = name.to_ascii_lowercase();
        NAMES.get(std::str::from_utf8(&name).ok()?).copied()
    }

    fn may_grow(command: u16) -> bool {
        // Commands of the server are asked about as well; none of them grows data.
        let run = RUNS.get(usize::from(command));
        run.is_some_and(|run| run.spec.flags.has(Flags::DENYOOM))
    }

    fn refuse_growth(resp3: bool, out: &mut Output) {
        Reply::new(out, resp3).error(&OUT_OF_MEMORY);
    }

    fn refuse(command: u16, why: &str, resp3: bool, out: &mut Output) {
        let run = RUNS.get(usize::from(command));
        let text = match run {
            Some(run) => format!("ERR '{}' {why}", run.spec.name),
            None => format!("ERR {why}"),
        };
        Reply::new(out, resp3).error(&Failure::from(text));
    }

    fn touches(command: u16, args: &Args<'_>, now: Now) -> Option<Vec<(usize, Footprint)>> {
        let run = RUNS.get(usize::from(command))?;
        if Self::is_open(command, args) {
            return None;
        }
        let request = Request {
            args,
            now_ms: now.unix_ms(),
            wanted: true,
        };
        let mut keys = Vec::new();
        run.spec.keys.find(args, 0, &mut keys);
        let each = keys.into_iter();
        let each = each.map(|(_, key)| (key as usize, touching::footprint(run, request)));
        Some(each.collect())
    }

    fn refuse_on_lattice(
        command: u16,
        args: &Args<'_>,
        placement: &Placement,
        resp3: bool,
        out: &mut Output,
    ) -> bool {
        let refused = Self::refused_on_lattice(command, args, placement);
        let is_refused = refused.is_some();
        if let Some(failure) = refused {
            Reply::new(out, resp3).error(&failure);
        }
        is_refused
    }

    fn writes_lattice(command: u16, args: &Args<'_>, placement: &Placement) -> bool {
        let Some(run) = RUNS.get(usize::from(command)) else {
            return false;
        };
        let mut keys = Vec::new();
        run.spec.keys.find(args, 0, &mut keys);
        lattice::writes(&run.spec, args, &keys, |key| {
            placement.lattice(key).is_some()
        })
    }

    fn refuse_slot(why: &str, resp3: bool, out: &mut Output) {
        Reply::new(out, resp3).error(&Failure::from(why.to_owned()));
    }

    fn refuse_write(why: Unwritable<'_>, resp3: bool, out: &mut Output) {
        Reply::new(out, resp3).error(&unwritable(why));
    }

    fn goes_over_slots(command: u16) -> bool {
        let run = RUNS.get(usize::from(command));
        run.is_some_and(|run| run.spec.goes_over_slots())
    }

    fn is_of_each(command: u16) -> bool {
        let run = RUNS.get(usize::from(command));
        run.is_some_and(|run| run.spec.flags.has(Flags::OF_EACH))
    }

    fn may_wait(command: u16) -> bool {
        let run = RUNS.get(usize::from(command));
        run.is_some_and(|run| run.spec.flags.has(Flags::BLOCKING))
    }

    #[inline]
    fn is_open(command: u16, args: &Args<'_>) -> bool {
        let keys = RUNS.get(usize::from(command)).map(|run| run.spec.keys);
        matches!(keys, Some(Keys::Open { is_open, .. }) if is_open(args))
    }

    fn others(
        command: u16,
        shard: &mut Shard,
        db: u8,
        args: &Args<'_>,
        now: Now,
    ) -> BTreeSet<KeyName> {
        match RUNS[usize::from(command)].spec.keys {
            Keys::Open { others, .. } => others(shard, db, args, now),
            _ => BTreeSet::new(),
        }
    }

    fn is_ready(
        command: u16,
        shard: &mut Shard,
        (db, key): (usize, Key<'_>),
        _: &Args<'_>,
        now: Now,
    ) -> bool {
        let wanted = match RUNS[usize::from(command)].spec.group {
            Group::List => Tag::List,
            Group::SortedSet => Tag::SortedSet,
            _ => return false,
        };
        shard.look(db, key, now).and_then(Any::tag) == Some(wanted)
    }

    fn is_write(command: u16) -> bool {
        // Those of the server are asked about where they hold data.
        let run = RUNS.get(usize::from(command));
        run.is_some_and(|run| run.spec.flags.has(Flags::WRITE))
    }
}

/// The reply to a write while changes are refused.
/// The reply to a command that may change the data while changes are refused.
pub fn unwritable(why: Unwritable<'_>) -> Failure {
    let text = match why {
        Unwritable::Log(why) => format!(
            "MISCONF Errors writing to the AOF file: {why}. Writes are refused until it can be written again; reads go on."
        ),
        Unwritable::Snapshot(why) => format!(
            "MISCONF The last snapshot failed: {why}. Writes are refused until a snapshot succeeds; reads go on."
        ),
    };
    text.into()
}

/// Commands by name.
pub struct Table {
    specs: Vec<&'static Spec>,
    /// Commands under folded names by open addressing; `EMPTY` ends a probe.
    index: Vec<Place>,
}

#[derive(Clone, Copy)]
struct Place {
    folded: Folded,
    id: u16,
    /// Whatever looks like this name is this name.
    tells_all: bool,
}

const EMPTY: u16 = u16::MAX;

impl Table {
    /// The order of `specs` gives the ids. Names must differ.
    pub fn new(specs: Vec<&'static Spec>) -> Self {
        let size = (specs.len() * 4).next_power_of_two();
        let empty = Place {
            folded: Folded::new(b""),
            id: EMPTY,
            tells_all: false,
        };
        let mut index = vec![empty; size];
        for (id, spec) in specs.iter().enumerate() {
            let name = spec.name.as_bytes();
            let folded = Folded::new(name);
            let mut at = folded.hash() & (size - 1);
            while index[at].id != EMPTY {
                assert_ne!(
                    specs[usize::from(index[at].id)].name,
                    spec.name,
                    "two commands of one name"
                );
                at = (at + 1) & (size - 1);
            }
            index[at] = Place {
                folded,
                id: id as u16,
                tells_all: Folded::tells_all(name),
            };
        }
        Self { specs, index }
    }

    pub fn len(&self) -> usize {
        self.specs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    #[inline]
    pub fn spec(&self, id: u16) -> &'static Spec {
        self.specs[usize::from(id)]
    }

    pub fn specs(&self) -> impl Iterator<Item = (u16, &'static Spec)> + '_ {
        self.specs
            .iter()
            .enumerate()
            .map(|(id, spec)| (id as u16, *spec))
    }

    /// The id of the command called `name`, in any case.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<u16> {
        let folded = Folded::new(name);
        let mask = self.index.len() - 1;
        let mut at = folded.hash() & mask;
        loop {
            let place = &self.index[at];
            if place.id == EMPTY {
                return None;
            }
            if place.folded == folded && (place.tells_all || self.has_name(place.id, name)) {
                return Some(place.id);
            }
            at = (at + 1) & mask;
        }
    }

    fn has_name(&self, id: u16, name: &[u8]) -> bool {
        self.spec(id).name.as_bytes().eq_ignore_ascii_case(name)
    }

    /// The id of `container|sub`.
    pub fn find_sub(&self, container: u16, sub: &[u8]) -> Option<u16> {
        let mut name = self.spec(container).name.as_bytes().to_vec();
        name.push(b'|');
        name.extend_from_slice(sub);
        self.find(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_datatype::key::{Holders, Relation};

    #[test]
    fn the_refusal_of_a_write_names_what_failed() {
        let said = |why| {
            let mut out = Output::default();
            DataCommands::refuse_write(why, false, &mut out);
            String::from_utf8_lossy(&out.to_vec()).into_owned()
        };
        let (log, snapshot) = (Unwritable::Log("full"), Unwritable::Snapshot("full"));
        assert!(said(log).starts_with("-MISCONF Errors writing to the AOF file: full."));
        assert!(said(snapshot).starts_with("-MISCONF The last snapshot failed: full."));
    }

    #[test]
    fn heads_know_which_commands_are_independent() {
        let touches = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            let mut spans = Vec::new();
            let mut at = 0;
            for word in &words {
                spans.push((at, word.len() as u32));
                at += word.len() as u32 + 1;
            }
            let id = DataCommands::find(words[0].as_bytes()).expect("a command");
            let args = Args::new(text.as_bytes(), &spans, &mut []);
            let all = DataCommands::touches(id, &args, Now::default());
            let [(1, footprint)] = &all.expect("known")[..] else {
                panic!("{text} has one key");
            };
            footprint.clone()
        };
        let relation = |a: &str, b: &str| {
            let mut holders = Holders::default();
            holders.hold(&touches(a));
            holders.relation(&touches(b), None)
        };
        for (a, b) in [
            ("HSET k f v", "HSET k g v"),
            ("HGET k f", "HSET k g v"),
            ("SADD k f", "SADD k g"),
            ("GET k", "GET k"),
        ] {
            assert_eq!(relation(a, b), Relation::Independent, "{a}, {b}");
        }
        let dependent = [
            "INCR k",
            "SET k v",
            "APPEND k v",
            "HSET k f v",
            "RPUSH k v",
            "DEL k",
        ];
        for a in dependent {
            for b in dependent
                .into_iter()
                .chain(["HSET k f w", "HLEN k", "GET k", "EXISTS k"])
            {
                assert_ne!(relation(a, b), Relation::Independent, "{a}, {b}");
                assert_ne!(relation(b, a), Relation::Independent, "{b}, {a}");
            }
        }
    }

    /// So they are sent again where they came too early to be one, instead of being refused for good.
    #[test]
    fn commands_on_values_of_several_keys_go_over_slots() {
        let goes = |name: &str| {
            let id = DataCommands::find(name.as_bytes()).expect("a command");
            DataCommands::goes_over_slots(id)
        };
        for name in [
            "COPY",
            "RENAME",
            "RENAMENX",
            "MSET",
            "SMOVE",
            "SINTERSTORE",
            "LMOVE",
        ] {
            assert!(goes(name), "{name}");
        }
        for name in ["GET", "MGET", "BLMOVE"] {
            assert!(!goes(name), "{name}");
        }
    }

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        let table = Table::new(data_commands().map(|c| &c.spec).collect());
        for (id, spec) in table.specs() {
            assert_eq!(table.find(spec.name.as_bytes()), Some(id));
            assert_eq!(table.find(spec.name.to_uppercase().as_bytes()), Some(id));
            assert!(
                spec.name.bytes().all(|b| !b.is_ascii_uppercase()),
                "{}",
                spec.name
            );
        }
        assert_eq!(table.find(b"no-such-command"), None);
        // Of bytes that are no letters, none stands for another one.
        for (id, spec) in table.specs() {
            for (at, byte) in spec.name.bytes().enumerate() {
                let mut name = spec.name.as_bytes().to_vec();
                name[at] = byte ^ 0x20;
                let found = byte.is_ascii_alphabetic().then_some(id);
                assert_eq!(table.find(&name), found, "{} at {at}", spec.name);
            }
        }
        assert_eq!(table.find(b""), None);
    }
}
