//! What a transaction does to a key: operations that the algebra of keys compares, or keys that are only read or written.

use super::ops::{Command, Do, Reader, plain};
use rufous_linear::access::Counts;
use rufous_linear::typed::Summary;
use rufous_linear::{Access, Coded, Holders, Operation, Part, Relation, Standing, Typed};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Algebra(Typed<Do>),
    Access(Access),
}

impl Operation for Op {
    type Holders = Held;

    fn relation(&self, other: &Self) -> Relation {
        match (self, other) {
            (Self::Algebra(a), Self::Algebra(b)) => a.relation(b),
            (Self::Access(a), Self::Access(b)) => a.relation(b),
            // No key has both.
            _ => Relation::Conflicting,
        }
    }

    fn writes(&self) -> bool {
        match self {
            Self::Algebra(op) => op.writes(),
            Self::Access(access) => access.writes(),
        }
    }
}

/// The holders of a key of either kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    algebra: Summary,
    access: Counts,
}

/// A part with operations of its kind.
enum Kind {
    Algebra(Part<Typed<Do>>),
    Access(Part<Access>),
}

fn kind(part: &Part<Op>) -> Kind {
    let (mut algebra, mut access) = (Vec::new(), Vec::new());
    for op in &part.ops {
        match op {
            Op::Algebra(op) => algebra.push(op.clone()),
            Op::Access(op) => access.push(*op),
        }
    }
    if access.is_empty() {
        Kind::Algebra(with(part, algebra))
    } else {
        Kind::Access(with(part, access))
    }
}

fn with<O>(part: &Part<Op>, ops: Vec<O>) -> Part<O> {
    Part {
        slot: part.slot,
        key: part.key.clone(),
        ops,
        expects: part.expects,
    }
}

impl Holders<Op> for Held {
    type Standing = Standing<Typed<Do>>;

    fn hold(&mut self, part: &Part<Op>) {
        match kind(part) {
            Kind::Algebra(part) => self.algebra.hold(&part),
            Kind::Access(part) => self.access.hold(&part),
        }
    }

    fn release(&mut self, part: &Part<Op>) {
        match kind(part) {
            Kind::Algebra(part) => self.algebra.release(&part),
            Kind::Access(part) => self.access.release(&part),
        }
    }

    fn relation(&self, part: &Part<Op>, standing: Option<&Self::Standing>) -> Relation {
        match kind(part) {
            Kind::Algebra(part) => self.algebra.relation(&part, standing),
            Kind::Access(part) => Holders::relation(&self.access, &part, None),
        }
    }

    fn relation_after(&self, part: &Part<Op>, standing: Option<&Self::Standing>) -> Relation {
        match kind(part) {
            Kind::Algebra(part) => self.algebra.relation_after(&part, standing),
            Kind::Access(part) => Holders::relation_after(&self.access, &part, None),
        }
    }

    fn pair(&self, [a, b]: [&Part<Op>; 2], standing: Option<&Self::Standing>) -> Relation {
        match (kind(a), kind(b)) {
            (Kind::Algebra(a), Kind::Algebra(b)) => self.algebra.pair([&a, &b], standing),
            (Kind::Access(a), Kind::Access(b)) => self.access.pair([&a, &b], None),
            _ => Relation::Conflicting,
        }
    }
}

impl Coded for Op {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Access(access) => {
                out.push(0);
                access.encode(out);
            }
            Self::Algebra(op) => match op.command {
                Do::Add => out.push(1),
                Do::Append => out.push(2),
                Do::Read => out.push(3),
                Do::Typed(command, reader) => {
                    out.push(match reader {
                        Reader::None => 4,
                        Reader::AtTheEnd => 5,
                        Reader::Before => 6,
                    });
                    let (kind, of, at) = numbers(command);
                    out.push(kind);
                    of.encode(out);
                    (at as u64).encode(out);
                }
            },
        }
    }

    fn decode(from: &mut &[u8]) -> Option<Self> {
        let reader = match u8::decode(from)? {
            0 => return Access::decode(from).map(Self::Access),
            1 => return Some(plain(Do::Add)),
            2 => return Some(plain(Do::Append)),
            3 => return Some(plain(Do::Read)),
            4 => Reader::None,
            5 => Reader::AtTheEnd,
            6 => Reader::Before,
            _ => return None,
        };
        let (kind, of, at) = (
            u8::decode(from)?,
            u64::decode(from)?,
            u64::decode(from)? as i64,
        );
        Some(super::ops::typed(command(kind, of, at)?, reader))
    }
}

/// A command with what it has of a member and of a number.
fn numbers(command: Command) -> (u8, u64, i64) {
    match command {
        Command::Incr(by) => (0, 0, by),
        Command::Get => (1, 0, 0),
        Command::Put(of) => (2, of as u64, 0),
        Command::PutUntil(of, at) => (3, of as u64, at),
        Command::Sadd(of) => (4, of as u64, 0),
        Command::Srem(of) => (5, of as u64, 0),
        Command::Sismember(of) => (6, of as u64, 0),
        Command::Scard => (7, 0, 0),
        Command::Rpush(of) => (8, of as u64, 0),
        Command::Lrange => (9, 0, 0),
        Command::Lpop => (10, 0, 0),
        Command::Del => (11, 0, 0),
        Command::Exists => (12, 0, 0),
        Command::Expire(at) => (13, 0, at),
        Command::Persist => (14, 0, 0),
        Command::Ttl => (15, 0, 0),
    }
}

fn command(kind: u8, of: u64, at: i64) -> Option<Command> {
    let of = of as usize;
    Some(match kind {
        0 => Command::Incr(at),
        1 => Command::Get,
        2 => Command::Put(of),
        3 => Command::PutUntil(of, at),
        4 => Command::Sadd(of),
        5 => Command::Srem(of),
        6 => Command::Sismember(of),
        7 => Command::Scard,
        8 => Command::Rpush(of),
        9 => Command::Lrange,
        10 => Command::Lpop,
        11 => Command::Del,
        12 => Command::Exists,
        13 => Command::Expire(at),
        14 => Command::Persist,
        15 => Command::Ttl,
        _ => return None,
    })
}
