//! The replies to the parts of a request, as one reply.

use super::walk::Step;
use rufous_base::Output;
use rufous_kernel::Header;
use rufous_resp::encode::{self, Proto};
use rufous_resp::reply::skip_reply;
use std::ops::Range;

/// How the replies of parts are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
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

/// A request whose parts are pending.
#[derive(Debug)]
pub(super) struct Join {
    pub(super) header: Header,
    pub(super) how: Joins,
    /// For each key in order, its part.
    pub(super) places: Vec<u32>,
    pub(super) replies: Vec<Option<Output>>,
    pub(super) missing: usize,
}

impl Join {
    pub(super) fn whole(&self) -> Output {
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
            Joins::Sum => sum(&parts).map(|all| encode::integer(&mut out.bytes, all)),
            Joins::Elements => self.in_place(&parts, &mut out),
            Joins::Quiet => {
                encode::ok(&mut out.bytes);
                Some(())
            }
            Joins::Lists => self.one_after_the_other(&parts, &mut out),
            Joins::One(lot) => self.one_of(&parts, lot, &mut out),
            Joins::Walk(step) => parts.first().and_then(|part| step.whole(part, &mut out)),
        };
        if joined.is_none() {
            out.clear();
            let why = "ERR nodes of this cluster answer a part of this command differently: are they of different versions?";
            out.begin_error();
            encode::error(&mut out.bytes, why);
        }
        out
    }

    fn proto(&self) -> Proto {
        if self.header.resp3 {
            return Proto::Resp3;
        }
        Proto::Resp2
    }

    fn in_place(&self, parts: &[Vec<u8>], out: &mut Output) -> Option<()> {
        let elements: Option<Vec<_>> = parts.iter().map(|part| elements(part)).collect();
        let mut rest: Vec<_> = elements?.into_iter().map(Vec::into_iter).collect();
        encode::array(&mut out.bytes, self.places.len());
        for part in &self.places {
            let element = rest.get_mut(*part as usize)?.next()?;
            let bytes = parts.get(*part as usize)?.get(element)?;
            out.bytes.extend_from_slice(bytes);
        }
        Some(())
    }

    fn one_after_the_other(&self, parts: &[Vec<u8>], out: &mut Output) -> Option<()> {
        let all: Option<Vec<_>> = parts.iter().map(|part| elements(part)).collect();
        let all = all?;
        encode::array(&mut out.bytes, all.iter().map(Vec::len).sum());
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
            0 => encode::null(&mut out.bytes, self.proto()),
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
pub(crate) fn elements(reply: &[u8]) -> Option<Vec<Range<usize>>> {
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
            if part.starts_with('-') {
                out.begin_error();
            }
            out.bytes.extend_from_slice(part.as_bytes());
            Some(out)
        };
        let join = Join {
            header: super::super::tests::header(),
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
