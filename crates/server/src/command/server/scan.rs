//! SCAN: all keys, a few at a time.
//!
//! Keys come worker by worker, and of each worker in the order of their
//! hashes. A cursor is a worker (high half) and a place in that order (low
//! half); 0 both starts and ends. Each worker's own walk visits every key that
//! stays throughout, so the whole does as well.
//!
//! Clients with few keys expect them all at once. So where a walk of a worker
//! starts, the other workers are asked too, and those who have no more keys
//! than were wanted give them all; larger ones wait for their turn.

use crate::command::SessionCommand;
use crate::front::local::Local;
use crate::front::session::Session;
use rufous_base::{Args, Now, WorkerId};
use rufous_command::{Failure, Flags, Group, Keys, Reply, Spec, options};
use rufous_datatype::glob::Glob;
use rufous_datatype::integer;
use rufous_resp::encode;

pub static SCAN: SessionCommand = SessionCommand {
    spec: Spec {
        name: "scan",
        summary: "Iterates over the keys of the database, a few per call.",
        since: "2.8.0",
        group: Group::Generic,
        complexity: "O(1) for every call, O(N) for a whole pass over N keys",
        arity: -2,
        flags: Flags::READONLY.or(Flags::ALL_KEYS).or(Flags::WALK),
        keys: Keys::None,
        syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
    },
    run,
};

fn run(session: &mut Session<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let cursor = Cursor::parse(args.get(1))?;
    let filter = Filter::parse(&args)?;
    let db = usize::from(session.db()?);
    let workers = session.local.workers();
    if cursor.worker as usize >= workers {
        // From elsewhere, or made up: there is nothing behind it.
        finish_scan(reply, workers, cursor, Vec::new(), filter.count);
    } else if cursor.at == 0 {
        let count = filter.count;
        session.ask_all(
            reply,
            move |local, now| part(local, now, db, cursor, &filter),
            move |_, parts, reply| {
                let parts = parts.into_iter().skip(cursor.worker as usize).collect();
                finish_scan(reply, workers, cursor, parts, count);
            },
        );
    } else {
        let count = filter.count;
        session.ask_one(
            reply,
            WorkerId(cursor.worker as u16),
            move |local, now| part(local, now, db, cursor, &filter),
            move |_, part, reply| finish_scan(reply, workers, cursor, vec![part], count),
        );
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cursor {
    worker: u32,
    at: u32,
}

impl Cursor {
    /// As lenient as Redis: no digits at all are the start.
    fn parse(text: &[u8]) -> Result<Cursor, Failure> {
        if text.is_empty() {
            return Ok(Cursor::default());
        }
        let number = integer::parse_u64_lenient(text).ok_or(Failure::INVALID_CURSOR)?;
        Ok(Cursor {
            worker: (number >> 32) as u32,
            at: number as u32,
        })
    }

    fn number(self) -> u64 {
        u64::from(self.worker) << 32 | u64::from(self.at)
    }
}

#[derive(Clone, Debug)]
struct Filter {
    glob: Option<Glob>,
    count: usize,
    kind: Option<Vec<u8>>,
}

impl Filter {
    fn parse(args: &Args<'_>) -> Result<Filter, Failure> {
        let mut filter = Filter {
            glob: None,
            count: 10,
            kind: None,
        };
        let mut at = 2;
        while at < args.len() {
            let (word, value) = (args.get(at), args.get(at + 1));
            if at + 1 == args.len() {
                return Err(Failure::SYNTAX);
            } else if options::is(word, "COUNT") {
                let count = options::integer(value)?;
                filter.count = usize::try_from(count)
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or(Failure::SYNTAX)?;
            } else if options::is(word, "MATCH") {
                filter.glob = Some(Glob::new(value, false)).filter(|glob| !glob.is_all());
            } else if options::is(word, "TYPE") {
                filter.kind = Some(value.to_vec());
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 2;
        }
        Ok(filter)
    }
}

/// What one worker adds to the reply.
#[derive(Debug, Default)]
struct Part {
    visited: usize,
    matched: usize,
    /// The matches as elements of the reply.
    encoded: Vec<u8>,
    /// Where this worker's walk goes on; `None` where it ended.
    next: Option<u32>,
}

/// The next keys of the worker whose turn it is; of those behind it, all their
/// keys, or none where these are many.
fn part(local: &mut Local<'_>, now: Now, db: usize, cursor: Cursor, filter: &Filter) -> Part {
    let worker = u32::from(local.id().0);
    let mut part = Part::default();
    if worker < cursor.worker {
        return part;
    }
    let whole = worker > cursor.worker;
    let from = if whole { 0 } else { cursor.at };
    part.next = Some(from);
    if whole && local.len_with_replicas(db) > filter.count {
        return part;
    }
    while let Some(from) = part.next {
        let wanted = filter.count.saturating_sub(part.visited).max(1);
        part.next = local.scan((db, from), wanted, now, &mut |item| {
            part.visited += 1;
            let right_type = filter
                .kind
                .as_ref()
                .is_none_or(|kind| kind.eq_ignore_ascii_case(item.value.type_name().as_bytes()));
            let glob = filter.glob.as_ref();
            if right_type && glob.is_none_or(|glob| glob.matches(item.key)) {
                part.matched += 1;
                encode::bulk(&mut part.encoded, item.key);
            }
        });
        if !whole {
            break;
        }
    }
    part
}

/// Replies with the parts of the workers from the cursor's on, as many as it
/// takes for `count` keys.
fn finish_scan(
    reply: &mut Reply<'_>,
    workers: usize,
    cursor: Cursor,
    parts: Vec<Part>,
    count: usize,
) {
    let mut next = Cursor {
        worker: workers as u32,
        at: 0,
    };
    let (mut visited, mut used) = (0, 0);
    for (part, worker) in parts.iter().zip(cursor.worker..) {
        if used > 0 && visited >= count {
            break;
        }
        used += 1;
        visited += part.visited;
        next = match part.next {
            Some(at) => Cursor { worker, at },
            None => Cursor {
                worker: worker + 1,
                at: 0,
            },
        };
        if part.next.is_some() {
            break;
        }
    }
    if next.worker as usize >= workers {
        next = Cursor::default();
    }
    reply.array(2);
    reply.bulk(next.number().to_string().as_bytes());
    reply.array(parts[..used].iter().map(|part| part.matched).sum());
    for part in &parts[..used] {
        reply.out.bytes.extend_from_slice(&part.encoded);
    }
}

#[cfg(test)]
mod tests {
    use super::Cursor;
    use crate::front::testing::Rig;
    use std::collections::BTreeMap;

    /// The cursor and the keys of a reply.
    fn parts(reply: &str) -> (&str, Vec<&str>) {
        let mut lines = reply.split("\r\n");
        assert_eq!(lines.next(), Some("*2"), "{reply}");
        let cursor = lines.nth(1).unwrap_or_default();
        (cursor, lines.skip(2).step_by(2).collect())
    }

    /// A whole pass; how often each key came. `between` runs after each call.
    fn pass(
        rig: &mut Rig,
        options: &str,
        mut between: impl FnMut(&mut Rig, usize),
    ) -> BTreeMap<String, usize> {
        let mut seen = BTreeMap::new();
        let mut cursor = "0".to_owned();
        for call in 0..100_000 {
            let reply = rig.run(&format!("SCAN {cursor} {options}"));
            let (next, keys) = parts(&reply);
            keys.iter()
                .for_each(|key| *seen.entry((*key).to_owned()).or_default() += 1);
            cursor = next.to_owned();
            if cursor == "0" {
                return seen;
            }
            between(rig, call);
        }
        panic!("the pass does not end");
    }

    #[test]
    fn few_keys_come_at_once() {
        for workers in [1, 3, 16] {
            let mut rig = Rig::new(workers);
            rig.check("SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n");
            for key in ["a", "b", "c"] {
                rig.check(&format!("SET {key} v"), "+OK\r\n");
            }
            let reply = rig.run("SCAN 0");
            let (cursor, mut keys) = parts(&reply);
            keys.sort_unstable();
            assert_eq!((cursor, keys), ("0", vec!["a", "b", "c"]));
        }
    }

    #[test]
    fn a_pass_meets_every_key_that_stays_once() {
        for workers in [1, 4] {
            for count in [1, 10, 150, 100_000] {
                let mut rig = Rig::new(workers);
                for i in 0..500 {
                    rig.run(&format!("SET stays:{i} v"));
                    rig.run(&format!("SET goes:{i} v"));
                }
                let seen = pass(&mut rig, &format!("COUNT {count}"), |rig, call| {
                    rig.run(&format!("SET new:{call} v"));
                    rig.run(&format!("DEL goes:{call}"));
                });
                let stays: Vec<_> = seen
                    .iter()
                    .filter(|(key, _)| key.starts_with("stays:"))
                    .collect();
                assert_eq!(stays.len(), 500, "{workers} workers, {count} a call");
                assert!(stays.iter().all(|(_, times)| **times == 1));
            }
        }
    }

    #[test]
    fn filters() {
        let mut rig = Rig::new(3);
        for i in 0..300 {
            rig.run(&format!("SET k{i} v"));
        }
        rig.run("SET soon v PX 10");
        rig.now.unix_us += 20_000;
        let nothing = |_: &mut Rig, _| ();
        assert_eq!(pass(&mut rig, "match k1?", nothing).len(), 10);
        assert_eq!(
            pass(&mut rig, "TYPE string COUNT 7 MATCH *", nothing).len(),
            300
        );
        assert_eq!(pass(&mut rig, "TYPE STRING", nothing).len(), 300);
        assert_eq!(pass(&mut rig, "TYPE hash", nothing).len(), 0);
        assert_eq!(pass(&mut rig, "TYPE no-such-type", nothing).len(), 0);
    }

    #[test]
    fn refused() {
        let mut rig = Rig::new(2);
        for cursor in ["x", "1x", "18446744073709551616"] {
            rig.check(&format!("SCAN {cursor} COUNT x"), "-ERR invalid cursor\r\n");
        }
        rig.check("SCAN 0 COUNT 0", "-ERR syntax error\r\n");
        rig.check("SCAN 0 COUNT -1", "-ERR syntax error\r\n");
        rig.check("SCAN 0 COUNT", "-ERR syntax error\r\n");
        rig.check("SCAN 0 foo bar", "-ERR syntax error\r\n");
        rig.check(
            "SCAN 0 COUNT x",
            "-ERR value is not an integer or out of range\r\n",
        );
        rig.check("SCAN 18446744073709551615", "*2\r\n$1\r\n0\r\n*0\r\n");
    }

    #[test]
    fn cursors_are_read_as_they_are_written() {
        for cursor in [
            Cursor { worker: 0, at: 0 },
            Cursor {
                worker: 255,
                at: u32::MAX,
            },
        ] {
            let text = cursor.number().to_string();
            assert_eq!(Cursor::parse(text.as_bytes()), Ok(cursor));
        }
        assert_eq!(Cursor::parse(b""), Ok(Cursor::default()));
        assert_eq!(Cursor::parse(b"007"), Ok(Cursor { worker: 0, at: 7 }));
    }
}
