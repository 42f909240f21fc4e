//! Requests whose keys are on several nodes, split into parts.
//!
//! Commands that read, count or remove each key independently are split: each part is atomic at its
//! node, but the parts run at different instants. All others are refused before any part runs.

use super::jobs::Job;
use super::wide::Step;
use crate::front::turn::Request;
use crate::front::{Front, Message};
use rufous_base::{Args, ConnId, Effects, Now, Output, Span};
use rufous_command::{Flags, Joined, Reply, Spec};
use rufous_kernel::{Header, Submitted};
use rufous_mapping::NodeNo;
use rufous_resp::reply::skip_reply;
use std::collections::BTreeMap;
use std::ops::Range;

/// How the replies of parts are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joins {
    /// The sum of the numbers.
    Sum,
    /// Elements in the order of their keys.
    Elements,
    /// No reply is wanted, unless one is an error.
    Quiet,
    /// The elements, concatenated.
    Lists,
    /// One that is not null, chosen at random.
    One(u64),
    /// A step of a scan over all nodes.
    Walk(Step),
}

/// The words of a request, and the node that they are for, unless it is this one.
pub(super) type Words = (Option<NodeNo>, Vec<u8>, Vec<Span>);

/// A part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    join: u64,
    index: usize,
}

/// A request whose parts are pending.
#[derive(Debug)]
struct Join {
    conn: ConnId,
    seq: u32,
    resp3: bool,
    how: Joins,
    /// For each key in order, its part.
    places: Vec<u32>,
    replies: Vec<Option<Output>>,
    missing: usize,
}

/// See the module's description.
#[derive(Debug, Default)]
pub(crate) struct Split {
    pub(super) begun: u64,
    joins: BTreeMap<u64, Join>,
}

pub(super) fn can_split(spec: &Spec) -> bool {
    spec.flags.has(Flags::PER_KEY)
}

impl Front {
    /// Runs a request at all nodes that have its keys.
    #[cold]
    pub(crate) fn submit_split(
        &mut self,
        now: Now,
        request: &Request<'_>,
        heads: &[Option<NodeNo>],
        header: &Header,
        args: &Args<'_>,
        fx: &mut Effects<Message>,
    ) -> Submitted {
        let spec = self.table.spec(header.command);
        debug_assert!(can_split(spec), "such a request was refused");
        let how = match spec.flags.joined() {
            _ if header.quiet => Joins::Quiet,
            Joined::Sum => Joins::Sum,
            Joined::List => Joins::Elements,
            Joined::Ok | Joined::Any | Joined::Walk => Joins::Quiet,
        };
        let mut parts: Vec<(Option<NodeNo>, Vec<usize>)> = Vec::new();
        let mut places = Vec::with_capacity(heads.len());
        for (key, head) in request.keys.iter().zip(heads) {
            let found = parts.iter().position(|(of, _)| of == head);
            let part = found.unwrap_or(parts.len());
            if found.is_none() {
                parts.push((*head, Vec::new()));
            }
            parts[part].1.push(key.arg as usize);
            places.push(part as u32);
        }
        let parts = parts.iter().map(|(head, keys)| {
            let (bytes, spans) = words_of(args, keys);
            (*head, bytes, spans)
        });
        let parts: Vec<Words> = parts.collect();
        self.submit_parts(now, header, (how, places), &parts, fx)
    }

    /// Runs the parts of a request.
    pub(super) fn submit_parts(
        &mut self,
        now: Now,
        header: &Header,
        (how, places): (Joins, Vec<u32>),
        parts: &[Words],
        fx: &mut Effects<Message>,
    ) -> Submitted {
        self.split.begun += 1;
        let join = self.split.begun;
        let waits = Join {
            conn: header.conn,
            seq: header.seq,
            resp3: header.resp3,
            how,
            places,
            replies: parts.iter().map(|_| None).collect(),
            missing: parts.len(),
        };
        self.split.joins.insert(join, waits);
        for (index, (node, bytes, spans)) in parts.iter().enumerate() {
            let args = Args::new(bytes, spans, &mut []);
            let part = Job::Part(Part { join, index });
            let header = Header {
                conn: self.jobs.begin(part, header.db, header.resp3),
                key: 1,
                hash: self.kernel.shard.key(args.get(1)).hash,
                ..*header
            };
            match node {
                Some(no) => {
                    self.forward(*no, &header, &args);
                }
                None => self.run_words(now, &header, args, fx),
            }
        }
        Submitted::Barrier
    }

    /// A part was answered.
    pub(super) fn on_part(&mut self, part: Part, reply: Output, fx: &mut Effects<Message>) {
        let Some(join) = self.split.joins.get_mut(&part.join) else {
            return;
        };
        let Some(place) = join.replies.get_mut(part.index) else {
            return;
        };
        *place = Some(reply);
        join.missing -= 1;
        if join.missing == 0
            && let Some(join) = self.split.joins.remove(&part.join)
        {
            let out = join.whole();
            self.deliver(join.conn, join.seq, &out, fx);
        }
    }
}

/// A request of the same name with these arguments alone.
pub(super) fn words_of(args: &Args<'_>, keys: &[usize]) -> (Vec<u8>, Vec<Span>) {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    for index in [0].iter().chain(keys) {
        let word = args.get(*index);
        spans.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word);
    }
    (bytes, spans)
}

impl Join {
    fn whole(&self) -> Output {
        let mut out = Output::default();
        // The reply of one failed part is returned: the others' outcome is unknown.
        let mut replies = self.replies.iter().flatten();
        if let Some(failed) = replies.find(|reply| reply.is_error((0, 0))) {
            out.append_range(failed, (0, 0), failed.mark());
            return out;
        }
        let parts: Vec<Vec<u8>> = self
            .replies
            .iter()
            .map(|reply| reply.as_ref().map(Output::to_vec).unwrap_or_default())
            .collect();
        let joined = match self.how {
            Joins::Sum => sum(&parts).map(|all| Reply::new(&mut out, self.resp3).integer(all)),
            Joins::Elements => self.in_place(&parts, &mut out),
            Joins::Quiet => {
                Reply::new(&mut out, self.resp3).ok();
                Some(())
            }
            Joins::Lists => self.one_after_the_other(&parts, &mut out),
            Joins::One(lot) => self.one_of(&parts, lot, &mut out),
            Joins::Walk(step) => parts.first().and_then(|part| step.whole(part, &mut out)),
        };
        if joined.is_none() {
            out.clear();
            let why = "ERR nodes of this cluster answer a part of this command differently: are they of different versions?";
            Reply::new(&mut out, self.resp3).error(&why.into());
        }
        out
    }

    fn in_place(&self, parts: &[Vec<u8>], out: &mut Output) -> Option<()> {
        let elements: Option<Vec<_>> = parts.iter().map(|part| elements(part)).collect();
        let mut rest: Vec<_> = elements?.into_iter().map(Vec::into_iter).collect();
        Reply::new(out, self.resp3).array(self.places.len());
        for part in &self.places {
            let element = rest.get_mut(*part as usize)?.next()?;
            let bytes = parts.get(*part as usize)?.get(element)?;
            out.bytes.extend_from_slice(bytes);
        }
        Some(())
    }
}

impl Join {
    fn one_after_the_other(&self, parts: &[Vec<u8>], out: &mut Output) -> Option<()> {
        let all: Option<Vec<_>> = parts.iter().map(|part| elements(part)).collect();
        let all = all?;
        Reply::new(out, self.resp3).array(all.iter().map(Vec::len).sum());
        for (part, elements) in parts.iter().zip(all) {
            let (Some(first), Some(last)) = (elements.first(), elements.last()) else {
                continue;
            };
            out.bytes
                .extend_from_slice(part.get(first.start..last.end)?);
        }
        Some(())
    }

    fn one_of(&self, parts: &[Vec<u8>], lot: u64, out: &mut Output) -> Option<()> {
        let is_null = |part: &&Vec<u8>| part.starts_with(b"$-1") || part.starts_with(b"_");
        let found: Vec<_> = parts.iter().filter(|part| !is_null(part)).collect();
        match found.len() as u64 {
            0 => Reply::new(out, self.resp3).null(),
            count => out
                .bytes
                .extend_from_slice(found.get((lot % count) as usize)?),
        }
        Some(())
    }
}

fn sum(parts: &[Vec<u8>]) -> Option<i64> {
    let number = |part: &Vec<u8>| {
        let digits = part.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
        std::str::from_utf8(digits).ok()?.parse::<i64>().ok()
    };
    parts
        .iter()
        .try_fold(0_i64, |all, part| all.checked_add(number(part)?))
}

/// The ranges of the elements of an array, which may come from another node.
pub(super) fn elements(reply: &[u8]) -> Option<Vec<Range<usize>>> {
    let end = reply.windows(2).position(|pair| pair == b"\r\n")?;
    let count = reply.get(1..end).filter(|_| reply[0] == b'*')?;
    let count: usize = std::str::from_utf8(count).ok()?.parse().ok()?;
    let (mut at, mut found) = (end + 2, Vec::new());
    for _ in 0..count {
        let size = skip_reply(reply.get(at..)?).ok()??;
        found.push(at..at + size);
        at += size;
    }
    (at == reply.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(how: Joins, places: &[u32], parts: &[&str]) -> String {
        let reply = |part: &&str| {
            let mut out = Output::default();
            if rufous_resp::reply::is_error(part.as_bytes()) {
                out.begin_error();
            }
            out.bytes.extend_from_slice(part.as_bytes());
            Some(out)
        };
        let join = Join {
            conn: ConnId {
                slot: 1,
                generation: 1,
            },
            seq: 0,
            resp3: false,
            how,
            places: places.to_vec(),
            replies: parts.iter().map(reply).collect(),
            missing: 0,
        };
        String::from_utf8(join.whole().to_vec()).expect("text")
    }

    #[test]
    fn parts_become_what_one_node_would_have_said() {
        assert_eq!(
            joined(Joins::Sum, &[0, 1], &[":2\r\n", ":40\r\n"]),
            ":42\r\n"
        );
        let values = ["*2\r\n$1\r\na\r\n$-1\r\n", "*1\r\n$2\r\nbb\r\n"];
        assert_eq!(
            joined(Joins::Elements, &[0, 1, 0], &values),
            "*3\r\n$1\r\na\r\n$2\r\nbb\r\n$-1\r\n"
        );
        assert_eq!(
            joined(Joins::Quiet, &[0, 1], &["+OK\r\n", "+OK\r\n"]),
            "+OK\r\n"
        );
    }

    #[test]
    fn a_part_that_failed_is_the_reply() {
        for how in [Joins::Sum, Joins::Elements, Joins::Quiet] {
            assert_eq!(
                joined(how, &[0, 1], &[":1\r\n", "-OOM full\r\n"]),
                "-OOM full\r\n"
            );
        }
    }

    #[test]
    fn what_no_node_should_say_is_an_error() {
        let wrong = [
            "",
            "+OK\r\n",
            ":x\r\n",
            ":1",
            "*1\r\n",
            "*2\r\n$1\r\na\r\n",
            "*1\r\n$1\r\na\r\n$1\r\nb\r\n",
            "*9999999999999999999999\r\n",
            "*18446744073709551615\r\n$1\r\na\r\n",
            ":9223372036854775807\r\n",
        ];
        for part in wrong {
            for how in [Joins::Sum, Joins::Elements] {
                let reply = joined(how, &[0, 1], &[":1\r\n", part]);
                assert!(
                    reply.starts_with("-ERR nodes of this cluster"),
                    "{part:?}: {reply}"
                );
            }
        }
    }
}
