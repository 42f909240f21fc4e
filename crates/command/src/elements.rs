//! What commands on sets and hashes share: replies of elements whose number
//! is known only at their end, scans of one key, random draws.

use crate::options::{self, is};
use crate::{Failure, Reply};
use rufous_base::Args;
use rufous_base::limits::OUTPUT_HARD_LIMIT;
use rufous_base::rng::Rng;
use rufous_datatype::glob::Glob;
use rufous_datatype::table::View;
use rufous_datatype::{ValueError, integer};
use rufous_resp::encode;
use std::collections::BTreeSet;

/// Elements gathered for a reply that begins with their number.
#[derive(Debug, Default)]
pub struct Elements {
    pub count: usize,
    encoded: Vec<u8>,
}

impl Elements {
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.count += 1;
        encode::bulk(&mut self.encoded, bytes);
    }

    /// Appends them; the head of the reply is there already.
    pub fn write(&self, reply: &mut Reply<'_>) {
        reply.out.bytes.extend_from_slice(&self.encoded);
    }
}

/// The arguments of a scan of one key.
#[derive(Debug)]
pub struct Scan {
    pub count: usize,
    glob: Option<Glob>,
}

impl Scan {
    /// As lenient as Redis: no digits at all are the start.
    pub fn cursor(text: &[u8]) -> Result<u64, Failure> {
        if text.is_empty() {
            return Ok(0);
        }
        integer::parse_u64_lenient(text).ok_or(Failure::INVALID_CURSOR)
    }

    /// The options, which begin with the fourth argument.
    pub fn parse(args: &Args<'_>) -> Result<Scan, Failure> {
        let mut scan = Scan {
            count: 10,
            glob: None,
        };
        let mut at = 3;
        while at < args.len() {
            let (word, value) = (args.get(at), args.get(at + 1));
            if at + 1 == args.len() {
                return Err(Failure::SYNTAX);
            } else if is(word, "COUNT") {
                let count = usize::try_from(options::integer(value)?).ok();
                scan.count = count.filter(|n| *n > 0).ok_or(Failure::SYNTAX)?;
            } else if is(word, "MATCH") {
                scan.glob = Some(Glob::new(value, false)).filter(|glob| !glob.is_all());
            } else {
                return Err(Failure::SYNTAX);
            }
            at += 2;
        }
        Ok(scan)
    }

    #[inline]
    pub fn shows(&self, name: &[u8]) -> bool {
        self.glob.as_ref().is_none_or(|glob| glob.matches(name))
    }

    /// Where to go on, and what was found.
    pub fn reply(next: u64, found: &Elements, reply: &mut Reply<'_>) {
        reply.array(2);
        reply.bulk(itoa::Buffer::new().format(next).as_bytes());
        reply.array(found.count);
        found.write(reply);
    }
}

/// How many elements are to be drawn; if negative, an element may be drawn
/// more than once.
pub fn draws(arg: &[u8]) -> Result<i64, Failure> {
    let count = options::integer(arg)?;
    if count == i64::MIN {
        let most = i64::MAX;
        let range = format!("ERR value is out of range, value must between -{most} and {most}");
        return Err(Failure::from(range));
    }
    Ok(count)
}

/// A count that may not be negative, to which Redis answers the same whether
/// it is negative or no number.
pub fn positive(arg: &[u8]) -> Result<usize, Failure> {
    let count = integer::parse_i64(arg).and_then(|n| usize::try_from(n).ok());
    count.ok_or_else(|| ValueError::NotPositive.into())
}

/// Different elements; every choice of that many has the same chance.
pub fn draw_different<'a, const WIDTH: usize>(
    view: View<'a, WIDTH>,
    count: usize,
    rng: &mut Rng,
    mut each: impl FnMut(&'a [u8], &'a [u8]),
) {
    let mut rest = view.len();
    let mut needed = count.min(rest);
    let is_packed = matches!(view, View::Packed(_));
    if is_packed || needed > rest / 4 {
        for (name, value) in view.iter() {
            if needed == rest || rng.below(rest as u64) < needed as u64 {
                each(name, value);
                needed -= 1;
            }
            rest -= 1;
        }
        return;
    }
    let mut drawn = BTreeSet::new();
    while needed > 0
        && let Some((name, value)) = view.random(rng)
    {
        if drawn.insert(name) {
            each(name, value);
            needed -= 1;
        }
    }
}

/// How many elements a negative count asks for, each of which may be drawn more than once.
pub fn repeated(count: i64) -> Result<u64, Failure> {
    /// The shortest element, as it is sent.
    const LEAST: usize = b"$0\r\n\r\n".len();
    const MOST: u64 = (OUTPUT_HARD_LIMIT / LEAST) as u64;
    let count = count.unsigned_abs();
    if count > MOST {
        let why = format!(
            "ERR a reply has at most {MOST} elements that may repeat; ask for fewer, more often"
        );
        return Err(Failure::from(why));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rufous_datatype::algebra::Packing;
    use rufous_datatype::table::{Shape, Table};

    fn table(len: u32, entries: usize) -> Table<1> {
        let shape = Shape {
            packing: Packing { entries, bytes: 64 },
            seed: 1,
        };
        let mut table = Table::default();
        (0..len).for_each(|n| {
            table.put(&n.to_le_bytes(), b"", &shape);
        });
        table
    }

    #[test]
    fn what_is_drawn_is_different_and_anything() {
        for (len, entries) in [(100, 128), (400, 10)] {
            let table = table(len, entries);
            let mut times = vec![0u32; len as usize];
            let mut rng = Rng::new(1);
            let counts = [0, 1, 10, 50, 99, 200, 399, 400, 1000];
            for round in 0..900 {
                let count = counts[round % counts.len()];
                let mut drawn = BTreeSet::new();
                draw_different(table.view(), count, &mut rng, |name, _| {
                    assert!(drawn.insert(name));
                    times[name[0] as usize + 256 * name[1] as usize] += 1;
                });
                assert_eq!(drawn.len(), count.min(len as usize));
            }
            let mean: u32 = times.iter().sum::<u32>() / len;
            assert!(
                times.iter().all(|&n| n > mean * 4 / 5 && n < mean * 6 / 5),
                "{times:?}"
            );
        }
    }
}
