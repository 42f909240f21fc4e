//! What DUMP of one server says, RESTORE of the other must understand.

use super::compare::same;
use super::wire::{Client, Reply};
use super::{Difference, Sides};
use anyhow::Result;

/// Compares every key, and what becomes of it on its way to the other side.
pub(super) fn compare(sides: &mut Sides) -> Result<Option<Difference>> {
    let (redis, ours) = (keys(&mut sides.redis)?, keys(&mut sides.ours)?);
    if redis != ours {
        return Ok(difference("KEYS *", &redis, &ours));
    }
    for key in redis.items().iter().filter_map(Reply::bytes) {
        let Sides { redis, ours, .. } = sides;
        let (there, here) = (whole(redis, key)?, whole(ours, key)?);
        let name = key.escape_ascii();
        if !same(&there, &here) {
            return Ok(difference(&format!("the whole of {name}"), &there, &here));
        }
        if !sides.carries_payloads {
            continue;
        }
        let copies = [
            ("Redis to Rufous", carried(redis, ours, key)?),
            ("Rufous to Redis", carried(ours, redis, key)?),
        ];
        for (direction, copy) in copies {
            if !same(&there, &copy) && !same(&copy, &there) {
                let what = format!("{name} by DUMP and RESTORE, {direction}");
                return Ok(difference(&what, &there, &copy));
            }
        }
    }
    Ok(None)
}

/// The value that the key's payload gives on the other side.
fn carried(from: &mut Client, to: &mut Client, key: &[u8]) -> Result<Reply> {
    let payload = from.call(&[b"DUMP".to_vec(), key.to_vec()])?;
    let Some(payload) = payload.bytes().filter(|_| !payload.is_error()) else {
        return Ok(payload);
    };
    let copy = b"a copy".to_vec();
    let restore = [b"RESTORE".to_vec(), copy.clone(), b"0".to_vec()];
    let mut words = restore.to_vec();
    words.extend([payload.to_vec(), b"REPLACE".to_vec()]);
    let reply = to.call(&words)?;
    if reply.is_error() {
        return Ok(reply);
    }
    let value = whole(to, &copy);
    to.call(&[b"DEL".to_vec(), copy])?;
    value
}

fn keys(client: &mut Client) -> Result<Reply> {
    Ok(match client.call_text("KEYS *")? {
        Reply::Many(_, mut keys) => {
            keys.sort();
            Reply::Many(b'*', keys)
        }
        other => other,
    })
}

/// Everything that a key has, in an order that does not depend on the server.
fn whole(client: &mut Client, key: &[u8]) -> Result<Reply> {
    let kind = client.call(&[b"TYPE".to_vec(), key.to_vec()])?;
    let kind = kind.bytes().unwrap_or_default();
    let (command, tail): (&str, &[&str]) = match kind {
        b"string" => ("GET", &[]),
        b"list" => ("LRANGE", &["0", "-1"]),
        b"set" => ("SMEMBERS", &[]),
        b"hash" => ("HGETALL", &[]),
        b"zset" => ("ZRANGE", &["0", "-1", "WITHSCORES"]),
        other => return Ok(Reply::Text(b'+', other.to_vec())),
    };
    let mut words = vec![command.as_bytes().to_vec(), key.to_vec()];
    words.extend(tail.iter().map(|word| word.as_bytes().to_vec()));
    let mode = match kind {
        b"set" => super::Mode::Unordered,
        b"hash" => super::Mode::Pairs,
        _ => super::Mode::Exact,
    };
    mode.ask(client, &words)
}

fn difference(what: &str, redis: &Reply, ours: &Reply) -> Option<Difference> {
    Some(Difference {
        what: what.to_owned(),
        redis: redis.to_string(),
        ours: ours.to_string(),
    })
}
