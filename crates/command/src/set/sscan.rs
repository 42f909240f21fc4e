//! SSCAN: members of a set, some at a time.

use super::read;
use crate::elements::{Elements, Scan};
use crate::{Ctx, Failure, Keys, Reply, command};
use rufous_base::Args;

command! {
    /// Returns some members of a set and a cursor to go on with.
    SSCAN = run: "sscan", syntax "key cursor [MATCH pattern] [COUNT count]", arity -3, group Set,
    since "2.8.0", flags READONLY, complexity "O(1) for every call, O(N) for all N members",
    keys Keys::FIRST,
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, reply: &mut Reply<'_>) -> Result<(), Failure> {
    let cursor = Scan::cursor(args.get(2))?;
    let mut found = Elements::default();
    let Some(set) = read(ctx, args.get(1))? else {
        Scan::reply(0, &found, reply);
        return Ok(());
    };
    let scan = Scan::parse(&args)?;
    let next = set.scan(cursor, scan.count, &mut |member, _| {
        if scan.shows(member) {
            found.push(member);
        }
    });
    Scan::reply(next, &found, reply);
    Ok(())
}

#[cfg(test)]
crate::testing::transcripts! {
    a_small_set_at_once: "
        SSCAN k 0 => *2 '0' *0
        SADD k ab b => :2
        SSCAN k 0 COUNT 1 => *2 '0' *2 'ab' 'b'
        SSCAN k 0 match a* => *2 '0' *1 'ab'
    "

    refusals: "
        SSCAN k x => -ERR invalid cursor
        SADD k a => :1
        SSCAN k 0 COUNT => -ERR syntax error
        SSCAN k 0 COUNT 0 => -ERR syntax error
        SSCAN k 0 TYPE set => -ERR syntax error
        SSCAN k 0 COUNT x => -ERR value is not an integer or out of range
    "
}

#[cfg(test)]
mod tests {
    use crate::testing::Rig;

    #[test]
    fn a_large_set_in_parts() {
        let mut rig = Rig::new();
        for n in 0..1_000 {
            rig.check(&format!("SADD k {n}"), ":1");
        }
        let (mut cursor, mut seen) = (String::from("0"), Vec::new());
        loop {
            let reply = rig.run(&[b"SSCAN", b"k", cursor.as_bytes(), b"COUNT", b"50"]);
            let text = String::from_utf8(reply).expect("text");
            let lines: Vec<&str> = text.split("\r\n").collect();
            cursor = lines[2].into();
            let members = lines[4..].chunks_exact(2).map(|pair| String::from(pair[1]));
            seen.extend(members);
            if cursor == "0" {
                break;
            }
            assert!(seen.len() < 1_000);
        }
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 1_000);
    }
}
