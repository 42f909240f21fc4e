//! The declaration of a command: everything that others need to know of it
//! without running it. `COMMAND`, `COMMAND DOCS`, key routing and the
//! documentation are made from these.

use crate::{Ctx, Failure, Reply};
use rufous_base::{Args, Now};
use rufous_kernel::lock::KeyName;
use rufous_kernel::shard::Shard;
use std::collections::BTreeSet;

/// A command on data.
pub struct Command {
    pub spec: Spec,
    pub run: Run,
}

/// Declares a command on data: its documentation is the summary, `name = function` what runs it, and
/// the rest as in [`Spec`].
#[macro_export]
macro_rules! command {
    (
        $(#[doc = $summary:literal])+
        $name:ident = $run:path: $text:literal, syntax $syntax:literal, arity $arity:literal,
        group $group:ident, since $since:literal, flags $($flag:ident)|+,
        complexity $complexity:literal, keys $keys:expr $(,)?
    ) => {
        $(#[doc = $summary])+
        pub static $name: $crate::Command = $crate::Command {
            spec: $crate::Spec {
                name: $text,
                summary: concat!($($summary),+).trim_ascii(),
                since: $since,
                group: $crate::Group::$group,
                complexity: $complexity,
                arity: $arity,
                flags: $crate::Flags::NONE$(.or($crate::Flags::$flag))+,
                keys: $keys,
                syntax: $syntax,
            },
            run: $run,
        };
    };
}

/// Runs a command. On `Err`, what it wrote so far is taken back and the error
/// is the reply.
pub type Run = fn(&mut Ctx<'_>, Args<'_>, &mut Reply<'_>) -> Result<(), Failure>;

/// What is declared of a command.
#[derive(Debug)]
pub struct Spec {
    /// Lower case; a subcommand is `container|name`.
    pub name: &'static str,
    pub summary: &'static str,
    /// The Redis version that first had it.
    pub since: &'static str,
    pub group: Group,
    pub complexity: &'static str,
    /// Arguments with the name; negative: at least this many.
    pub arity: i32,
    pub flags: Flags,
    pub keys: Keys,
    /// The arguments as in Redis's reference, e.g. `key value [NX | XX] [GET]`;
    /// upper case is literal, `[...]` optional, `|` a choice, a trailing `...`
    /// in brackets repeats. Subcommands leave their own name out.
    pub syntax: &'static str,
}

/// Where a command's keys stand among its arguments.
#[derive(Clone, Copy, Debug)]
pub enum Keys {
    None,
    /// From `first` to `last` (negative: from the end) in steps.
    Range {
        first: u8,
        last: i16,
        step: u8,
    },
    /// Computed: pushes database and argument index of each key.
    Custom {
        find: fn(&Args<'_>, u8, &mut Vec<(u8, u32)>),
        /// What `COMMAND INFO` shows as first, last and step.
        shown: (u8, i16, u8),
    },
    /// As `Custom`, but what the keys that it names hold may tell of others
    /// that the command reads.
    Open {
        find: fn(&Args<'_>, u8, &mut Vec<(u8, u32)>),
        shown: (u8, i16, u8),
        /// Whether it may be so for this request.
        is_open: fn(&Args<'_>) -> bool,
        /// The other keys, where the shard has those that it names.
        others: fn(&mut Shard, u8, &Args<'_>, Now) -> BTreeSet<KeyName>,
    },
}

impl Keys {
    /// Whether a request may have more than one.
    #[inline]
    pub fn may_be_several(&self) -> bool {
        match self {
            Self::None => false,
            Self::Range { first, last, .. } => i16::from(*first) != *last,
            Self::Custom { .. } | Self::Open { .. } => true,
        }
    }

    /// The argument after the command's name.
    pub const FIRST: Keys = Keys::Range {
        first: 1,
        last: 1,
        step: 1,
    };
    /// The first two arguments.
    pub const FIRST_TWO: Keys = Keys::Range {
        first: 1,
        last: 2,
        step: 1,
    };
    /// Every argument but the last.
    pub const BUT_LAST: Keys = Keys::Range {
        first: 1,
        last: -2,
        step: 1,
    };
    /// The argument after the subcommand's name.
    pub const SECOND: Keys = Keys::Range {
        first: 2,
        last: 2,
        step: 1,
    };
    /// Every argument.
    pub const ALL: Keys = Keys::Range {
        first: 1,
        last: -1,
        step: 1,
    };

    /// The index of the only key, where there is just one at a fixed place.
    pub const fn single(self) -> Option<u8> {
        match self {
            Keys::Range { first, last, .. } if last == first as i16 => Some(first),
            _ => None,
        }
    }

    /// The arguments that are keys, of a request whose arity was checked, where they stand at fixed places.
    #[inline]
    pub fn places(self, args: &Args<'_>) -> Option<impl Iterator<Item = usize> + use<>> {
        let Keys::Range { first, last, step } = self else {
            return None;
        };
        let len = args.len();
        let end = if last < 0 {
            (len + 1).saturating_sub(usize::from(last.unsigned_abs()))
        } else {
            len.min(usize::from(last.unsigned_abs()) + 1)
        };
        Some((usize::from(first)..end).step_by(usize::from(step)))
    }

    /// Pushes database and argument index of every key of a request whose
    /// arity was checked.
    pub fn find(self, args: &Args<'_>, db: u8, keys: &mut Vec<(u8, u32)>) {
        match self {
            Keys::None => {}
            Keys::Custom { find, .. } | Keys::Open { find, .. } => find(args, db, keys),
            Keys::Range { .. } => {
                let places = self.places(args).into_iter().flatten();
                keys.extend(places.map(|at| (db, at as u32)));
            }
        }
    }
}

/// The groups of Redis's documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Generic,
    String,
    List,
    Bitmap,
    Set,
    Hash,
    SortedSet,
    Geo,
    HyperLogLog,
    /// Types that Redis does not have.
    Claret,
    Connection,
    Server,
    Transactions,
    Scripting,
}

impl Group {
    pub fn name(self) -> &'static str {
        match self {
            Group::Generic => "generic",
            Group::String => "string",
            Group::List => "list",
            Group::Bitmap => "bitmap",
            Group::Set => "set",
            Group::Hash => "hash",
            Group::SortedSet => "sorted-set",
            Group::Geo => "geo",
            Group::HyperLogLog => "hyperloglog",
            Group::Claret => "claret",
            Group::Connection => "connection",
            Group::Server => "server",
            Group::Transactions => "transactions",
            Group::Scripting => "scripting",
        }
    }
}

/// How the replies of several nodes to parts of one request become one reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// All have to succeed.
    Ok,
    /// Numbers are added up.
    Sum,
    /// Lists become one: in the order of the keys, or one after the other where there are none.
    List,
    /// One of them that is not null.
    Any,
    /// Nodes are asked one after the other, with a cursor.
    Walk,
}

/// What `EXEC` does with a command on the connection or the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queued {
    Runs,
    Refused,
    /// It counts all keys of one database; changes of the transaction that are not applied yet are
    /// added.
    Counts,
    /// It begins when the transaction has ended, and the reply says only that it is scheduled.
    Schedules,
}

/// The arguments of a command that are never shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    None,
    All,
    /// The two after `AUTH`, which is no earlier than the second.
    AfterAuth,
    /// Values of settings that are secret.
    Settings,
}

/// Properties of a command, as `COMMAND INFO` names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u64);

impl Flags {
    pub const NONE: Flags = Flags(0);
    pub const WRITE: Flags = Flags(1);
    pub const READONLY: Flags = Flags(1 << 1);
    /// May use more memory.
    pub const DENYOOM: Flags = Flags(1 << 2);
    /// Constant or logarithmic time.
    pub const FAST: Flags = Flags(1 << 3);
    pub const ADMIN: Flags = Flags(1 << 4);
    /// Runs while data is being loaded.
    pub const LOADING: Flags = Flags(1 << 5);
    pub const STALE: Flags = Flags(1 << 6);
    pub const NOSCRIPT: Flags = Flags(1 << 7);
    /// Runs before the client has authenticated.
    pub const NO_AUTH: Flags = Flags(1 << 8);
    /// Left out of `MONITOR`.
    pub const SKIP_MONITOR: Flags = Flags(1 << 9);
    /// Left out of `SLOWLOG`.
    pub const SKIP_SLOWLOG: Flags = Flags(1 << 10);
    pub const NO_MULTI: Flags = Flags(1 << 11);
    pub const ALLOW_BUSY: Flags = Flags(1 << 12);
    pub const MOVABLE_KEYS: Flags = Flags(1 << 13);
    pub const PUBSUB: Flags = Flags(1 << 14);
    /// May wait for data.
    pub const BLOCKING: Flags = Flags(1 << 15);
    /// Treats each key by itself, and all arguments are keys: where several nodes have them, each
    /// runs a part of the request. This flag and those that follow are not shown to clients.
    pub const PER_KEY: Flags = Flags(1 << 16);
    /// Concerns all keys of a database, or of all databases, at every node.
    pub const ALL_KEYS: Flags = Flags(1 << 17);
    /// [`Joined::Sum`].
    pub const SUM: Flags = Flags(1 << 18);
    /// [`Joined::List`].
    pub const LIST: Flags = Flags(1 << 19);
    /// [`Joined::Any`].
    pub const ANY: Flags = Flags(1 << 20);
    /// [`Joined::Walk`].
    pub const WALK: Flags = Flags(1 << 21);
    /// Runs at once between `MULTI` and `EXEC`, and belongs to the transactions of its connection.
    pub const AT_ONCE: Flags = Flags(1 << 22);
    /// Runs at the connection's worker, and asks no other. Not for commands on data.
    pub const LOCAL: Flags = Flags(1 << 23);
    /// Not held back by `CLIENT PAUSE`, and neither is any with [`Flags::ADMIN`].
    pub const UNPAUSED: Flags = Flags(1 << 24);
    /// Runs what was queued since `MULTI`.
    pub const EXEC: Flags = Flags(1 << 25);
    /// Ends what `BEGIN` began, and runs its writes.
    pub const COMMIT: Flags = Flags(1 << 26);
    /// Its first argument is the database of later commands.
    pub const SELECT: Flags = Flags(1 << 27);
    /// Changes each of its keys, or the first that has something, independently of the others: it
    /// may run on some of them alone.
    pub const OF_EACH: Flags = Flags(1 << 28);
    /// In `@dangerous`, as all with [`Flags::ADMIN`] are.
    pub const DANGEROUS: Flags = Flags(1 << 29);
    /// Takes time in proportion to the data, not only to its arguments and its
    /// reply: such a command is timed on its own, where one with a long reply
    /// is timed once it has run. Not shown to clients.
    pub const SLOW: Flags = Flags(1 << 30);
    /// Only gathers subcommands. Not shown to clients.
    pub const CONTAINER: Flags = Flags(1 << 31);
    /// [`Queued::Refused`].
    pub const QUEUED_REFUSED: Flags = Flags(1 << 32);
    /// [`Queued::Counts`].
    pub const QUEUED_COUNTS: Flags = Flags(1 << 33);
    /// [`Queued::Schedules`].
    pub const QUEUED_SCHEDULES: Flags = Flags(1 << 34);
    /// [`Secrets::All`].
    pub const SECRET_ALL: Flags = Flags(1 << 35);
    /// [`Secrets::AfterAuth`].
    pub const SECRET_AUTH: Flags = Flags(1 << 36);
    /// [`Secrets::Settings`].
    pub const SECRET_SETTINGS: Flags = Flags(1 << 37);

    /// Its arguments are keys with their values: where several slots have them, each runs a part.
    pub const PAIRS: Flags = Flags(1 << 38);
    /// It changes nothing if one of its keys exists.
    pub const IF_MISSING: Flags = Flags(1 << 39);
    /// The timeout of a blocking command is its first argument, and not its last.
    pub const TIMEOUT_FIRST: Flags = Flags(1 << 40);
    /// It may change how later requests of the connection find their keys.
    pub const DOOR: Flags = Flags(1 << 41);
    /// Asks other workers what they have, and so runs when all earlier requests of its connection are answered: these may
    /// still be on their way there.
    pub const AFTER_OTHERS: Flags = Flags(1 << 42);

    pub const fn or(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// How replies of several nodes become one.
    pub fn joined(self) -> Joined {
        let of = [
            (Self::SUM, Joined::Sum),
            (Self::LIST, Joined::List),
            (Self::ANY, Joined::Any),
            (Self::WALK, Joined::Walk),
        ];
        let found = of.into_iter().find(|(flag, _)| self.has(*flag));
        found.map_or(Joined::Ok, |(_, joined)| joined)
    }

    /// What `EXEC` does with a command that it cannot run like any other.
    pub fn queued(self) -> Queued {
        let of = [
            (Self::QUEUED_REFUSED, Queued::Refused),
            (Self::QUEUED_COUNTS, Queued::Counts),
            (Self::QUEUED_SCHEDULES, Queued::Schedules),
        ];
        let found = of.into_iter().find(|(flag, _)| self.has(*flag));
        found.map_or(Queued::Runs, |(_, queued)| queued)
    }

    /// Which arguments are never shown.
    pub fn secrets(self) -> Secrets {
        let of = [
            (Self::SECRET_ALL, Secrets::All),
            (Self::SECRET_AUTH, Secrets::AfterAuth),
            (Self::SECRET_SETTINGS, Secrets::Settings),
        ];
        let found = of.into_iter().find(|(flag, _)| self.has(*flag));
        found.map_or(Secrets::None, |(_, secrets)| secrets)
    }

    /// The names shown to clients.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        const NAMES: [(Flags, &str); 16] = [
            (Flags::WRITE, "write"),
            (Flags::READONLY, "readonly"),
            (Flags::DENYOOM, "denyoom"),
            (Flags::ADMIN, "admin"),
            (Flags::PUBSUB, "pubsub"),
            (Flags::NOSCRIPT, "noscript"),
            (Flags::LOADING, "loading"),
            (Flags::STALE, "stale"),
            (Flags::SKIP_MONITOR, "skip_monitor"),
            (Flags::SKIP_SLOWLOG, "skip_slowlog"),
            (Flags::FAST, "fast"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::NO_MULTI, "no_multi"),
            (Flags::ALLOW_BUSY, "allow_busy"),
            (Flags::MOVABLE_KEYS, "movablekeys"),
            (Flags::BLOCKING, "blocking"),
        ];
        NAMES
            .into_iter()
            .filter(move |(flag, _)| self.has(*flag))
            .map(|(_, name)| name)
    }
}

impl Spec {
    /// Whether a request with `args` arguments, the name included, has enough
    /// and not too many.
    #[inline]
    pub fn accepts(&self, args: usize) -> bool {
        if self.arity >= 0 {
            args == self.arity as usize
        } else {
            args >= self.arity.unsigned_abs() as usize
        }
    }

    /// Whether a command is a transaction if its keys are of several nodes, or of slots with copies: one of few keys that is
    /// executed as a whole, and does not wait for data. (Commands that read many keys, as `MGET`, are executed in parts.)
    #[inline]
    pub fn goes_over_slots(&self) -> bool {
        let others = [Flags::PER_KEY, Flags::BLOCKING];
        self.keys.may_be_several() && !others.iter().any(|flag| self.flags.has(*flag))
    }

    /// Whether it deletes many keys. That is a transaction, too, as long as they are not too many for one.
    #[inline]
    pub fn deletes_each(&self) -> bool {
        self.flags.has(Flags::PER_KEY) && self.flags.has(Flags::WRITE)
    }

    /// Whether it reads many keys, each by itself.
    #[inline]
    pub fn reads_each(&self) -> bool {
        self.flags.has(Flags::PER_KEY) && self.flags.has(Flags::READONLY)
    }

    /// The access-control categories that follow from group and flags.
    pub fn categories(&self) -> Vec<&'static str> {
        let mut all = Vec::new();
        if self.flags.has(Flags::WRITE) {
            all.push("@write");
        }
        if self.flags.has(Flags::READONLY) {
            all.push("@read");
        }
        match self.group {
            Group::Generic => all.push("@keyspace"),
            Group::String => all.push("@string"),
            Group::List => all.push("@list"),
            Group::Bitmap => all.push("@bitmap"),
            Group::Set => all.push("@set"),
            Group::Hash => all.push("@hash"),
            Group::SortedSet => all.push("@sortedset"),
            Group::Geo => all.push("@geo"),
            Group::HyperLogLog => all.push("@hyperloglog"),
            Group::Claret => all.push("@claret"),
            Group::Connection => all.push("@connection"),
            Group::Transactions => all.push("@transaction"),
            Group::Scripting => all.push("@scripting"),
            Group::Server => {}
        }
        if self.flags.has(Flags::ADMIN) {
            all.extend(["@admin", "@dangerous"]);
        } else if self.flags.has(Flags::DANGEROUS) {
            all.push("@dangerous");
        }
        all.push(if self.flags.has(Flags::FAST) {
            "@fast"
        } else {
            "@slow"
        });
        if self.flags.has(Flags::BLOCKING) {
            all.push("@blocking");
        }
        all
    }
}
