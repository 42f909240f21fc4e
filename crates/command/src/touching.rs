//! What a command touches of one of its keys: how it may run together with others in transactions
//! ([`rufous_datatype::key`]).
//!
//! Commands that are not listed here read the whole key, or read and write it: that is right for any. A command is
//! listed by its declaration, and its operations are those that it executes.

use crate::string::set::{Options, parse};
use crate::{Command, Flags, hash, key, list, set, sorted_set, string};
use rufous_base::Args;
use rufous_datatype::expire::{ExpireBase, ExpireCondition, ExpireTime, ExpireUnit};
use rufous_datatype::integer::parse_i64;
use rufous_datatype::key::{Deadline, Footprint, Held, Key, Only, Op, Put, Set, Typed};
use rufous_datatype::{hash as hashes, list as lists, set as sets, sorted_set as zsets, text};
use std::sync::LazyLock;

/// A request.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub args: &'a Args<'a>,
    /// The time from which a deadline of the key counts.
    pub now_ms: u64,
    /// Whether the client reads the reply.
    pub wanted: bool,
}

type Ops<'a> = Option<Vec<Op<'a>>>;

/// The operations of a request on its key; `None` where it is refused, or where only the most that it may do is known.
type Touches = for<'a> fn(Request<'a>) -> Ops<'a>;

/// What a request touches of one of its keys.
pub fn footprint(command: &Command, request: Request<'_>) -> Footprint {
    let listed = TOUCHES.iter().find(|(of, _)| std::ptr::eq(*of, command));
    let ops = listed.and_then(|(_, touches)| touches(request));
    match ops {
        Some(ops) => joined(ops, request.wanted),
        None => joined(any(command), request.wanted),
    }
}

fn joined(ops: Vec<Op<'_>>, wanted: bool) -> Footprint {
    let mut all = Footprint::default();
    for op in ops {
        let held = Held {
            wanted,
            ..Held::new(op)
        };
        all.join(held.footprint());
    }
    all
}

/// As much as a command may do. What it replies depends on all of the key.
fn any(command: &Command) -> Vec<Op<'static>> {
    static KEY: LazyLock<Key> = LazyLock::new(Key::default);
    if !command.spec.flags.has(Flags::WRITE) {
        return vec![Op::Dump];
    }
    let replaces = Op::Put(Put {
        key: &KEY,
        only_new: true,
    });
    vec![Op::Take, replaces]
}

static TOUCHES: &[(&Command, Touches)] = &[
    (&string::get::GET, |_| of_text(text::Op::Get)),
    (&string::strlen::STRLEN, |_| of_text(text::Op::StrLen)),
    (&string::incr::INCR, |_| counts(Some(1))),
    (&string::decr::DECR, |_| counts(Some(-1))),
    (&string::incrby::INCRBY, |of| counts(of.integer(2))),
    (&string::decrby::DECRBY, |of| {
        counts(of.integer(2).and_then(i64::checked_neg))
    }),
    (&string::append::APPEND, |of| {
        let value = of.args.get(2);
        of_text(text::Op::Append { value })
    }),
    (&string::getdel::GETDEL, |_| of_text(text::Op::GetDel)),
    (&string::set::SET, sets),
    (&string::setnx::SETNX, |of| {
        of.puts(Deadline::Clear, Some(Only::New), false)
    }),
    (&string::getset::GETSET, |of| {
        of.puts(Deadline::Clear, None, true)
    }),
    (&key::del::DEL, |_| Some(vec![Op::Delete])),
    (&key::unlink::UNLINK, |_| Some(vec![Op::Delete])),
    (&key::exists::EXISTS, |_| Some(vec![Op::Exists])),
    (&key::type_of::TYPE, |_| Some(vec![Op::Type])),
    (&key::ttl::TTL, |_| Some(vec![Op::Ttl])),
    (&key::pttl::PTTL, |_| Some(vec![Op::Ttl])),
    (&key::expiretime::EXPIRETIME, |_| Some(vec![Op::Ttl])),
    (&key::pexpiretime::PEXPIRETIME, |_| Some(vec![Op::Ttl])),
    (&key::persist::PERSIST, |_| Some(vec![Op::Persist])),
    (&key::expire::EXPIRE, |of| {
        of.expires(ExpireUnit::Seconds, ExpireBase::Relative)
    }),
    (&key::pexpire::PEXPIRE, |of| {
        of.expires(ExpireUnit::Milliseconds, ExpireBase::Relative)
    }),
    (&key::expireat::EXPIREAT, |of| {
        of.expires(ExpireUnit::Seconds, ExpireBase::Absolute)
    }),
    (&key::pexpireat::PEXPIREAT, |of| {
        of.expires(ExpireUnit::Milliseconds, ExpireBase::Absolute)
    }),
    (&set::sadd::SADD, |of| {
        of.each(2, |member| Typed::Set(sets::Op::Add { member }))
    }),
    (&set::srem::SREM, |of| {
        of.each(2, |member| Typed::Set(sets::Op::Remove { member }))
    }),
    (&set::sismember::SISMEMBER, |of| {
        of.each(2, |member| Typed::Set(sets::Op::Contains { member }))
    }),
    (&set::smismember::SMISMEMBER, |of| {
        of.each(2, |member| Typed::Set(sets::Op::Contains { member }))
    }),
    (&set::scard::SCARD, |_| one(Typed::Set(sets::Op::Size))),
    (&set::smembers::SMEMBERS, |_| {
        one(Typed::Set(sets::Op::Members))
    }),
    (&hash::hset::HSET, |of| {
        let pairs = (2..of.args.len().saturating_sub(1)).step_by(2);
        let set = pairs.map(|at| {
            let (field, value) = (of.args.get(at), of.args.get(at + 1));
            Op::Typed(Typed::Hash(hashes::Op::Set { field, value }))
        });
        Some(set.collect())
    }),
    (&hash::hincrby::HINCRBY, |of| {
        let (field, by) = (of.args.get(2), of.integer(3)?);
        one(Typed::Hash(hashes::Op::Increment { field, by }))
    }),
    (&hash::hdel::HDEL, |of| {
        of.each(2, |field| Typed::Hash(hashes::Op::Delete { field }))
    }),
    (&hash::hget::HGET, |of| {
        of.each(2, |field| Typed::Hash(hashes::Op::Get { field }))
    }),
    (&hash::hmget::HMGET, |of| {
        of.each(2, |field| Typed::Hash(hashes::Op::Get { field }))
    }),
    (&hash::hexists::HEXISTS, |of| {
        of.each(2, |field| Typed::Hash(hashes::Op::Exists { field }))
    }),
    (&hash::hlen::HLEN, |_| one(Typed::Hash(hashes::Op::Length))),
    (&hash::hgetall::HGETALL, |_| {
        one(Typed::Hash(hashes::Op::All))
    }),
    (&list::lpush::LPUSH, |of| {
        of.each(2, |element| Typed::List(lists::Op::PushFront { element }))
    }),
    (&list::rpush::RPUSH, |of| {
        of.each(2, |element| Typed::List(lists::Op::PushBack { element }))
    }),
    (&list::lpop::LPOP, |of| {
        let count = of.count(2)?;
        one(Typed::List(lists::Op::PopFront { count }))
    }),
    (&list::rpop::RPOP, |of| {
        let count = of.count(2)?;
        one(Typed::List(lists::Op::PopBack { count }))
    }),
    (&list::llen::LLEN, |_| one(Typed::List(lists::Op::Length))),
    (&list::lrange::LRANGE, |_| {
        let (start, stop) = (0, -1);
        one(Typed::List(lists::Op::Range { start, stop }))
    }),
    (&sorted_set::zrem::ZREM, |of| {
        of.each(2, |member| Typed::SortedSet(zsets::Op::Remove { member }))
    }),
    (&sorted_set::zscore::ZSCORE, |of| {
        of.each(2, |member| Typed::SortedSet(zsets::Op::Score { member }))
    }),
    (&sorted_set::zcard::ZCARD, |_| {
        one(Typed::SortedSet(zsets::Op::Length))
    }),
];

fn one(op: Typed<'_>) -> Ops<'_> {
    Some(vec![Op::Typed(op)])
}

fn of_text(op: text::Op<'_>) -> Ops<'_> {
    one(Typed::Text(op))
}

fn counts<'a>(by: Option<i64>) -> Ops<'a> {
    of_text(text::Op::Incr { by: by? })
}

fn sets(of: Request<'_>) -> Ops<'_> {
    if of.args.len() == 3 {
        return of.puts(Deadline::Clear, None, false);
    }
    let options: Options = parse(of.args, of.now_ms).ok()?;
    let deadline = match options.expire_at {
        // It deletes the key.
        Some(at) if at <= of.now_ms => return None,
        Some(at) => Deadline::At(i64::try_from(at).ok()?),
        None if options.keep_ttl => Deadline::Keep,
        None => Deadline::Clear,
    };
    let only = match (options.only_if_absent, options.only_if_present) {
        (true, _) => Some(Only::New),
        (_, true) => Some(Only::Known),
        _ => None,
    };
    of.puts(deadline, only, options.get)
}

impl<'a> Request<'a> {
    fn integer(self, at: usize) -> Option<i64> {
        parse_i64(self.args.get(at))
    }

    /// How many elements are popped.
    fn count(self, at: usize) -> Option<u64> {
        if self.args.len() <= at {
            return Some(1);
        }
        u64::try_from(self.integer(at)?).ok()
    }

    fn each(self, from: usize, make: fn(&'a [u8]) -> Typed<'a>) -> Ops<'a> {
        let each = (from..self.args.len()).map(|at| Op::Typed(make(self.args.get(at))));
        Some(each.collect())
    }

    fn puts(self, deadline: Deadline, only: Option<Only>, get: bool) -> Ops<'a> {
        let value = self.args.get(2);
        Some(vec![Op::Set(Set {
            value,
            deadline,
            only,
            get,
        })])
    }

    fn expires(self, unit: ExpireUnit, base: ExpireBase) -> Ops<'a> {
        let mut only = ExpireCondition::default();
        if !self.args.iter_from(3).all(|option| only.add_option(option)) || only.check().is_err() {
            return None;
        }
        let value = self.integer(2)?;
        let now = i64::try_from(self.now_ms).ok()?;
        let at = ExpireTime { value, unit, base }.deadline_ms(now, "").ok()?;
        if at > now {
            return Some(vec![Op::Expire { at, only }]);
        }
        // It deletes the key.
        (only == ExpireCondition::default()).then(|| vec![Op::Delete])
    }
}

#[cfg(test)]
mod tests;
