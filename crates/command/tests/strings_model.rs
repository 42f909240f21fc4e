//! The commands on strings against the plainest model there is: a map from
//! key to bytes and expiry. Random requests, every reply compared, and in the
//! end every key.

use proptest::prelude::*;
use rufous_base::rng::Rng;
use rufous_base::{Args, Now, Output};
use rufous_command::{DataCommands, Table, data_commands};
use rufous_kernel::shard::Shard;
use rufous_kernel::{Context, Program};
use std::collections::HashMap;

/// Few, so that requests meet each other's keys; the last one is too long to
/// lie in its record.
const KEYS: usize = 6;

fn key(number: usize) -> Vec<u8> {
    match number {
        5 => vec![b'k'; 5000],
        n => format!("k{n}").into_bytes(),
    }
}

#[derive(Clone, Debug)]
enum Op {
    Get(usize),
    Set(usize, Vec<u8>),
    SetPx(usize, Vec<u8>, u64),
    SetKeep(usize, Vec<u8>),
    SetNx(usize, Vec<u8>),
    SetXxGet(usize, Vec<u8>),
    GetSet(usize, Vec<u8>),
    GetDel(usize),
    GetExPx(usize, u64),
    GetExPersist(usize),
    Append(usize, Vec<u8>),
    SetRange(usize, usize, Vec<u8>),
    GetRange(usize, i64, i64),
    StrLen(usize),
    IncrBy(usize, i64),
    Mset(Vec<(usize, Vec<u8>)>),
    MsetNx(Vec<(usize, Vec<u8>)>),
    Mget(Vec<usize>),
    SetBit(usize, usize, bool),
    GetBit(usize, usize),
    BitCount(usize),
    BitOpXor(usize, Vec<usize>),
    Wait(u64),
}

fn values() -> impl Strategy<Value = Vec<u8>> {
    let numbers = prop_oneof![-12i64..120, Just(i64::MAX), Just(i64::MIN)];
    prop_oneof![
        3 => numbers.prop_map(|n| n.to_string().into_bytes()),
        3 => prop::collection::vec(any::<u8>(), 0..40),
        // Around the largest record, and well beyond.
        1 => (any::<u8>(), 3900usize..4200).prop_map(|(byte, len)| vec![byte; len]),
        1 => (any::<u8>(), 20_000usize..70_000).prop_map(|(byte, len)| vec![byte; len]),
    ]
}

fn ops() -> impl Strategy<Value = Op> {
    let k = || 0..KEYS;
    let pairs = || prop::collection::vec((0..KEYS, values()), 1..20);
    let reads = prop_oneof![
        k().prop_map(Op::Get),
        (k(), -50i64..50, -50i64..50).prop_map(|(k, a, b)| Op::GetRange(k, a, b)),
        k().prop_map(Op::StrLen),
        prop::collection::vec(k(), 1..40).prop_map(Op::Mget),
        (k(), 0usize..400).prop_map(|(k, at)| Op::GetBit(k, at)),
        k().prop_map(Op::BitCount),
        (1u64..60).prop_map(Op::Wait),
    ];
    let sets = prop_oneof![
        (k(), values()).prop_map(|(k, v)| Op::Set(k, v)),
        (k(), values(), 1u64..100).prop_map(|(k, v, ms)| Op::SetPx(k, v, ms)),
        (k(), values()).prop_map(|(k, v)| Op::SetKeep(k, v)),
        (k(), values()).prop_map(|(k, v)| Op::SetNx(k, v)),
        (k(), values()).prop_map(|(k, v)| Op::SetXxGet(k, v)),
        (k(), values()).prop_map(|(k, v)| Op::GetSet(k, v)),
        pairs().prop_map(Op::Mset),
        pairs().prop_map(Op::MsetNx),
    ];
    let changes = prop_oneof![
        k().prop_map(Op::GetDel),
        (k(), 1u64..100).prop_map(|(k, ms)| Op::GetExPx(k, ms)),
        k().prop_map(Op::GetExPersist),
        (k(), values()).prop_map(|(k, v)| Op::Append(k, v)),
        (k(), 0usize..5000, values()).prop_map(|(k, at, v)| Op::SetRange(k, at, v)),
        (k(), -200i64..200).prop_map(|(k, by)| Op::IncrBy(k, by)),
        (k(), 0usize..40_000, any::<bool>()).prop_map(|(k, at, bit)| Op::SetBit(k, at, bit)),
        (k(), prop::collection::vec(k(), 1..4)).prop_map(|(k, from)| Op::BitOpXor(k, from)),
    ];
    prop_oneof![reads, sets, changes]
}

/// A request, as its words.
fn words(op: &Op) -> Vec<Vec<u8>> {
    let text = |word: &str| word.as_bytes().to_vec();
    let number = |n: i64| n.to_string().into_bytes();
    let pairs = |name: &str, pairs: &[(usize, Vec<u8>)]| {
        let mut words = vec![text(name)];
        for (k, v) in pairs {
            words.extend([key(*k), v.clone()]);
        }
        words
    };
    match op {
        Op::Get(k) => vec![text("GET"), key(*k)],
        Op::Set(k, v) => vec![text("SET"), key(*k), v.clone()],
        Op::SetPx(k, v, ms) => {
            vec![
                text("SET"),
                key(*k),
                v.clone(),
                text("PX"),
                number(*ms as i64),
            ]
        }
        Op::SetKeep(k, v) => vec![text("SET"), key(*k), v.clone(), text("KEEPTTL")],
        Op::SetNx(k, v) => vec![text("SETNX"), key(*k), v.clone()],
        Op::SetXxGet(k, v) => vec![text("SET"), key(*k), v.clone(), text("XX"), text("GET")],
        Op::GetSet(k, v) => vec![text("GETSET"), key(*k), v.clone()],
        Op::GetDel(k) => vec![text("GETDEL"), key(*k)],
        Op::GetExPx(k, ms) => vec![text("GETEX"), key(*k), text("PX"), number(*ms as i64)],
        Op::GetExPersist(k) => vec![text("GETEX"), key(*k), text("PERSIST")],
        Op::Append(k, v) => vec![text("APPEND"), key(*k), v.clone()],
        Op::SetRange(k, at, v) => vec![text("SETRANGE"), key(*k), number(*at as i64), v.clone()],
        Op::GetRange(k, a, b) => vec![text("GETRANGE"), key(*k), number(*a), number(*b)],
        Op::StrLen(k) => vec![text("STRLEN"), key(*k)],
        Op::IncrBy(k, 1) => vec![text("INCR"), key(*k)],
        Op::IncrBy(k, by) if *by < 0 => vec![text("DECRBY"), key(*k), number(-by)],
        Op::IncrBy(k, by) => vec![text("INCRBY"), key(*k), number(*by)],
        Op::Mset(all) => pairs("MSET", all),
        Op::MsetNx(all) => pairs("MSETNX", all),
        Op::Mget(keys) => [text("MGET")]
            .into_iter()
            .chain(keys.iter().map(|k| key(*k)))
            .collect(),
        Op::SetBit(k, at, bit) => {
            vec![
                text("SETBIT"),
                key(*k),
                number(*at as i64),
                number((*bit).into()),
            ]
        }
        Op::GetBit(k, at) => vec![text("GETBIT"), key(*k), number(*at as i64)],
        Op::BitCount(k) => vec![text("BITCOUNT"), key(*k)],
        Op::BitOpXor(to, from) => [text("BITOP"), text("XOR"), key(*to)]
            .into_iter()
            .chain(from.iter().map(|k| key(*k)))
            .collect(),
        Op::Wait(_) => Vec::new(),
    }
}

/// What the commands run on, driven as the kernel drives it.
struct Subject {
    shard: Shard,
    rng: Rng,
    table: Table,
}

impl Subject {
    fn run(&mut self, now: Now, words: &[Vec<u8>]) -> Vec<u8> {
        let id = self.table.find(&words[0]).expect("a known command");
        let spec = self.table.spec(id);
        assert!(spec.accepts(words.len()), "arity of {}", spec.name);
        let (mut buf, mut spans, mut big) = (Vec::new(), Vec::new(), Vec::new());
        for (at, word) in words.iter().enumerate() {
            if word.len() >= 16_384 {
                spans.push((0, 0));
                big.push((at as u32, word.clone()));
            } else {
                spans.push((buf.len() as u32, word.len() as u32));
                buf.extend_from_slice(word);
            }
        }
        let args = Args::new(&buf, &spans, &mut big);
        let mut keys = Vec::new();
        spec.keys.find(&args, 0, &mut keys);
        let hash = self.shard.key(args.get(keys[0].1 as usize)).hash;
        let mut out = Output::default();
        let mut context = Context {
            shard: &mut self.shard,
            db: 0,
            now,
            resp3: false,
            quiet: false,
            out: &mut out,
            rng: &mut self.rng,
            hash,
            wait: None,
        };
        DataCommands::run(id, &mut context, args);
        out.to_vec()
    }
}

#[derive(Default)]
struct Model {
    now_ms: u64,
    keys: HashMap<Vec<u8>, (Vec<u8>, Option<u64>)>,
}

fn bulk(value: Option<&[u8]>) -> Vec<u8> {
    match value {
        Some(bytes) => [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat(),
        None => b"$-1\r\n".to_vec(),
    }
}

fn int(n: i64) -> Vec<u8> {
    format!(":{n}\r\n").into_bytes()
}

impl Model {
    fn get(&self, k: usize) -> Option<&[u8]> {
        self.keys.get(&key(k)).map(|(value, _)| &value[..])
    }

    fn bytes(&self, k: usize) -> Vec<u8> {
        self.get(k).unwrap_or_default().to_vec()
    }

    fn set(&mut self, k: usize, value: &[u8], expiry: Option<u64>) {
        self.keys.insert(key(k), (value.to_vec(), expiry));
    }

    /// Sets the value and keeps the expiry.
    fn change(&mut self, k: usize, value: Vec<u8>) {
        self.keys.entry(key(k)).or_default().0 = value;
    }

    fn wait(&mut self, ms: u64) {
        self.now_ms += ms;
        let now_ms = self.now_ms;
        self.keys
            .retain(|_, (_, expiry)| expiry.is_none_or(|at| at > now_ms));
    }

    fn run(&mut self, op: &Op) -> Vec<u8> {
        let ok = b"+OK\r\n".to_vec();
        match op {
            Op::Get(k) => bulk(self.get(*k)),
            Op::Set(k, v) => {
                self.set(*k, v, None);
                ok
            }
            Op::SetPx(k, v, ms) => {
                self.set(*k, v, Some(self.now_ms + ms));
                ok
            }
            Op::SetKeep(k, v) => {
                self.change(*k, v.clone());
                ok
            }
            Op::SetNx(k, v) => {
                let free = self.get(*k).is_none();
                if free {
                    self.set(*k, v, None);
                }
                int(free.into())
            }
            Op::SetXxGet(k, v) => {
                let old = bulk(self.get(*k));
                if self.get(*k).is_some() {
                    self.set(*k, v, None);
                }
                old
            }
            Op::GetSet(k, v) => {
                let old = bulk(self.get(*k));
                self.set(*k, v, None);
                old
            }
            Op::GetDel(k) => bulk(self.keys.remove(&key(*k)).as_ref().map(|(v, _)| &v[..])),
            Op::GetExPx(k, ms) => self.get_ex(*k, Some(self.now_ms + ms)),
            Op::GetExPersist(k) => self.get_ex(*k, None),
            Op::IncrBy(k, by) => self.incr_by(*k, *by),
            Op::Mset(pairs) => {
                pairs.iter().for_each(|(k, v)| self.set(*k, v, None));
                ok
            }
            Op::MsetNx(pairs) => {
                let free = pairs.iter().all(|(k, _)| self.get(*k).is_none());
                if free {
                    pairs.iter().for_each(|(k, v)| self.set(*k, v, None));
                }
                int(free.into())
            }
            Op::Mget(keys) => {
                let values = keys.iter().flat_map(|k| bulk(self.get(*k)));
                format!("*{}\r\n", keys.len())
                    .into_bytes()
                    .into_iter()
                    .chain(values)
                    .collect()
            }
            _ => self.run_on_bytes(op),
        }
    }

    fn get_ex(&mut self, k: usize, expiry: Option<u64>) -> Vec<u8> {
        let value = bulk(self.get(k));
        if let Some(entry) = self.keys.get_mut(&key(k)) {
            entry.1 = expiry;
        }
        value
    }

    fn incr_by(&mut self, k: usize, by: i64) -> Vec<u8> {
        let old = self.get(k).map_or(Some(0), |v| {
            let n: i64 = std::str::from_utf8(v).ok()?.parse().ok()?;
            (n.to_string().as_bytes() == v).then_some(n)
        });
        let Some(old) = old else {
            return b"-ERR value is not an integer or out of range\r\n".to_vec();
        };
        let Some(sum) = old.checked_add(by) else {
            return b"-ERR increment or decrement would overflow\r\n".to_vec();
        };
        self.change(k, sum.to_string().into_bytes());
        int(sum)
    }

    fn run_on_bytes(&mut self, op: &Op) -> Vec<u8> {
        match op {
            Op::Append(k, v) => {
                let value = [self.bytes(*k), v.clone()].concat();
                let len = value.len();
                self.change(*k, value);
                int(len as i64)
            }
            Op::SetRange(k, at, v) => {
                let mut value = self.bytes(*k);
                if !v.is_empty() {
                    value.resize(value.len().max(at + v.len()), 0);
                    value.splice(*at..at + v.len(), v.iter().copied());
                    self.change(*k, value.clone());
                }
                int(value.len() as i64)
            }
            Op::GetRange(k, a, b) => {
                let value = self.bytes(*k);
                let len = value.len() as i64;
                let place = |i: i64| if i < 0 { (i + len).max(0) } else { i };
                let wanted = place(*a)..=place(*b);
                let crossed = *a < 0 && *b < 0 && a > b;
                let part = value.iter().enumerate();
                let part = part.filter(|(i, _)| !crossed && wanted.contains(&(*i as i64)));
                bulk(Some(&part.map(|(_, byte)| *byte).collect::<Vec<u8>>()))
            }
            Op::StrLen(k) => int(self.bytes(*k).len() as i64),
            Op::SetBit(k, at, bit) => {
                let mut value = self.bytes(*k);
                value.resize(value.len().max(at / 8 + 1), 0);
                let old = value[at / 8] >> (7 - at % 8) & 1;
                value[at / 8] ^= (old ^ u8::from(*bit)) << (7 - at % 8);
                self.change(*k, value);
                int(old.into())
            }
            Op::GetBit(k, at) => {
                let byte = self.bytes(*k).get(at / 8).copied().unwrap_or(0);
                int((byte >> (7 - at % 8) & 1).into())
            }
            Op::BitCount(k) => int(self
                .bytes(*k)
                .iter()
                .map(|byte| i64::from(byte.count_ones()))
                .sum()),
            Op::BitOpXor(to, from) => {
                let mut value = Vec::new();
                for source in from.iter().map(|k| self.bytes(*k)) {
                    value.resize(value.len().max(source.len()), 0);
                    source
                        .iter()
                        .zip(&mut value)
                        .for_each(|(from, into)| *into ^= from);
                }
                match value.is_empty() {
                    true => drop(self.keys.remove(&key(*to))),
                    false => self.set(*to, &value, None),
                }
                int(value.len() as i64)
            }
            op => unreachable!("{op:?} is handled with the others"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn replies_are_those_of_a_map(ops in prop::collection::vec(ops(), 1..150)) {
        let mut now = Now { mono_us: 0, unix_us: 1_700_000_000_000_000 };
        let mut model = Model { now_ms: now.unix_ms(), ..Model::default() };
        let table = Table::new(data_commands().map(|c| &c.spec).collect());
        let mut subject = Subject { shard: Shard::new(1), rng: Rng::new(1), table };
        let all = (0..KEYS).map(Op::Get);
        for op in ops.into_iter().chain(all) {
            if let Op::Wait(ms) = op {
                now.mono_us += ms * 1000;
                now.unix_us += ms * 1000;
                model.wait(ms);
                continue;
            }
            let got = subject.run(now, &words(&op));
            let expected = model.run(&op);
            prop_assert_eq!(got.len(), expected.len(), "{:?}", op);
            prop_assert!(got == expected, "{:?}", op);
        }
        subject.shard.check();
    }
}
