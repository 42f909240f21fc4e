//! SCAN as clients use it, over workers that run in steps.

use super::cursor::Cursor;
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
