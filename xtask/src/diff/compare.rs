//! When two replies are the same, and differences that are known.

use super::wire::{Client, Reply, Words, shown};
use crate::project;
use crate::suite::glob;
use anyhow::{Context, Result};
use serde::Deserialize;

/// How the replies of a command are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Exact,
    /// Elements in any order.
    Unordered,
    /// Pairs in any order.
    Pairs,
    /// Drawn at random: only kind and number.
    Random,
    /// Likewise; what was drawn is gone, so that the key is deleted on both sides.
    Removing,
    /// From a cursor to the end, in any order.
    Scan,
    /// A time that passes meanwhile.
    Time,
}

impl Mode {
    pub(super) fn of(sign: &str) -> Option<Self> {
        Some(match sign {
            "=" => Self::Exact,
            "~" => Self::Unordered,
            "%" => Self::Pairs,
            "?" => Self::Random,
            "!" => Self::Removing,
            "s" => Self::Scan,
            "t" => Self::Time,
            _ => return None,
        })
    }

    /// What of the command's reply must be the same.
    pub(super) fn ask(self, client: &mut Client, words: &Words) -> Result<Reply> {
        let reply = match self {
            Self::Scan => return scan(client, words),
            _ => client.call(words)?,
        };
        if reply.is_error() {
            return Ok(reply);
        }
        Ok(match (self, reply) {
            (Self::Unordered, Reply::Many(kind, mut items)) => {
                items.sort();
                Reply::Many(kind, items)
            }
            (Self::Pairs, Reply::Many(kind, items)) => Reply::Many(kind, pairs(&items)),
            (Self::Random | Self::Removing, Reply::Many(kind, items)) => {
                Reply::Many(kind, items.iter().map(outline).collect())
            }
            (Self::Random | Self::Removing, reply) => outline(&reply),
            (_, reply) => reply,
        })
    }

    pub(super) fn agree(self, left: &Reply, right: &Reply) -> bool {
        match (self, left, right) {
            (Self::Time, Reply::Text(b':', a), Reply::Text(b':', b)) => {
                let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i64>().ok();
                match (number(a), number(b)) {
                    (Some(a), Some(b)) if a > 100 && b > 100 => (a - b).abs() < 5000,
                    (a, b) => a == b,
                }
            }
            _ => same(left, right),
        }
    }
}

/// Whether two replies are the same but for how Redis 7.0 writes doubles.
pub(super) fn same(redis: &Reply, ours: &Reply) -> bool {
    match (redis, ours) {
        (Reply::Many(a, redis), Reply::Many(b, ours)) => {
            a == b
                && redis.len() == ours.len()
                && redis
                    .iter()
                    .zip(ours)
                    .all(|(redis, ours)| same(redis, ours))
        }
        (Reply::Text(a, redis), Reply::Text(b, ours)) if a == b && b"$,".contains(a) => {
            redis == ours || is_same_double(redis, ours)
        }
        _ => redis == ours,
    }
}

/// 7.0 writes 17 digits where 7.2 and Rufous write the fewest that tell the number from others.
/// Scores of minus zero are zero here: the two are one place in the order.
fn is_same_double(redis: &[u8], ours: &[u8]) -> bool {
    if redis == b"-0" && ours == b"0" {
        return true;
    }
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    let digits = redis.iter().filter(|byte| byte.is_ascii_digit()).count();
    digits >= 16 && number(redis).is_some() && number(redis) == number(ours)
}

/// The kind of a reply without what it says.
fn outline(reply: &Reply) -> Reply {
    match reply {
        Reply::Text(kind, _) => Reply::Text(*kind, b"...".to_vec()),
        Reply::Nil(kind) => Reply::Nil(*kind),
        Reply::Many(kind, items) => Reply::Many(*kind, items.iter().map(outline).collect()),
    }
}

/// Pairs, sorted, whether they came as pairs or one after the other.
fn pairs(items: &[Reply]) -> Vec<Reply> {
    let is_flat = items.iter().all(|item| !matches!(item, Reply::Many(..)));
    let mut all: Vec<Reply> = if is_flat && items.len().is_multiple_of(2) {
        let pairs = items.chunks_exact(2);
        pairs.map(|pair| Reply::Many(b'*', pair.to_vec())).collect()
    } else {
        items.to_vec()
    };
    all.sort();
    all
}

/// Asks from cursor to cursor; elements may come more than once.
fn scan(client: &mut Client, words: &Words) -> Result<Reply> {
    let mut words = words.clone();
    let is_keyspace = words[0].eq_ignore_ascii_case(b"SCAN");
    let is_paired = !is_keyspace && !words[0].eq_ignore_ascii_case(b"SSCAN");
    let place = if is_keyspace { 1 } else { 2 };
    let mut all = Vec::new();
    for _ in 0..100_000 {
        let reply = client.call(&words)?;
        let [cursor, elements] = reply.items() else {
            return Ok(reply);
        };
        let elements = elements.items();
        all.extend(match is_paired {
            true => pairs(elements),
            false => elements.to_vec(),
        });
        let cursor = cursor.bytes().unwrap_or_default().to_vec();
        if cursor == b"0" {
            all.sort();
            all.dedup();
            return Ok(Reply::Many(b'*', all));
        }
        words[place] = cursor;
    }
    anyhow::bail!("{} comes to no end", shown(&words))
}

/// A difference between Redis 7.0 and what is meant here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    /// The command in lower case, with `*` for anything.
    command: String,
    redis: String,
    ours: String,
    #[allow(dead_code, reason = "for readers, and so that none comes in without")]
    why: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct All {
    difference: Vec<Known>,
}

pub(super) fn known() -> Result<Vec<Known>> {
    let file = "docs/compatibility/differences.toml";
    let text = std::fs::read_to_string(project::root().join(file)).context(file)?;
    Ok(toml::from_str::<All>(&text).context(file)?.difference)
}

impl Known {
    pub(super) fn covers(&self, command: &str, redis: &str, ours: &str) -> bool {
        glob(&self.command, &command.to_ascii_lowercase())
            && glob(&self.redis, redis)
            && glob(&self.ours, ours)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(word: &str) -> Reply {
        Reply::Text(b'$', word.into())
    }

    #[test]
    fn pairs_in_any_order_and_either_form() {
        let flat = [text("b"), text("1"), text("a"), text("2")];
        let nested = [
            Reply::Many(b'*', vec![text("a"), text("2")]),
            Reply::Many(b'*', vec![text("b"), text("1")]),
        ];
        assert_eq!(pairs(&flat), nested);
        assert_eq!(pairs(&nested), nested);
    }

    #[test]
    fn doubles_are_compared_as_numbers_where_redis_writes_too_many_digits() {
        let number = |text: &str| Reply::Text(b',', text.into());
        assert!(same(&number("0.10000000000000001"), &number("0.1")));
        assert!(same(
            &number("9.2233720368547758e+18"),
            &number("9223372036854776000")
        ));
        assert!(same(&number("-0"), &number("0")));
        assert!(!same(&number("3.0"), &number("3")));
        assert!(!same(&number("0.10000000000000002"), &number("0.1")));
    }

    #[test]
    fn times_may_differ_a_little_where_they_are_times() {
        let time = |text: &str| Reply::Text(b':', text.into());
        assert!(Mode::Time.agree(&time("9000"), &time("8999")));
        assert!(!Mode::Time.agree(&time("9000"), &time("-1")));
        assert!(!Mode::Time.agree(&time("-2"), &time("-1")));
        assert!(!Mode::Exact.agree(&time("9000"), &time("8999")));
    }

    #[test]
    fn known_differences_are_read_and_match() {
        let all = known().unwrap();
        assert!(all.iter().all(|known| known.why.len() > 10));
        let known = Known {
            command: "object encoding *".into(),
            redis: "\"quicklist\"".into(),
            ours: "\"listpack\"".into(),
            why: String::new(),
        };
        assert!(known.covers("OBJECT ENCODING k", "\"quicklist\"", "\"listpack\""));
        assert!(!known.covers("OBJECT ENCODING k", "\"quicklist\"", "\"quicklist\""));
    }
}
