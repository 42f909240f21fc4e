//! Bodies of transactions over slots, and the replies that plans make.

use super::*;
use rufous_base::Span;

/// Calls `act` with a request of these words.
fn with<R>(words: &[&str], act: impl FnOnce(&Args<'_>) -> R) -> R {
    let (mut bytes, mut spans) = (Vec::new(), Vec::<Span>::new());
    for word in words {
        spans.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word.as_bytes());
    }
    act(&Args::new(&bytes, &spans, &mut []))
}

const AT: At = At {
    db: 0,
    resp3: false,
    quiet: false,
};

fn what(shape: Shape) -> What<'static> {
    What {
        name: "name",
        shape,
        writes: true,
        grows: true,
    }
}

fn in_db(keys: &[u32]) -> Vec<(u8, u32)> {
    keys.iter().map(|at| (0, *at)).collect()
}

fn add(composer: &mut Composer, shape: Shape, words: &[&str], keys: &[u32]) {
    let added = with(words, |args| {
        composer.add(AT, &what(shape), args, &in_db(keys))
    });
    assert_eq!(added, Ok(()), "{words:?}");
}

/// What slots tell that execute each command with `run`, those of higher slots last.
fn tell(body: &[u8], run: impl Fn(&[&[u8]]) -> String) -> Vec<u8> {
    let mut slots = BTreeMap::<u16, Vec<Vec<u8>>>::new();
    for command in body::commands(body).expect("a body") {
        let words = command.words.iter();
        let words: Vec<_> = words
            .map(|(at, len)| &body[*at as usize..][..*len as usize])
            .collect();
        let of = slots.entry(command.slot).or_default();
        if matches!(command.deed, Deed::Run { .. }) {
            assert_eq!(words[0], b"name");
            of.push(run(&words[1..]).into_bytes());
        }
    }
    let told = slots
        .iter()
        .map(|(slot, replies)| body::tell(*slot, replies, &BTreeMap::new()));
    told.flatten().collect()
}

fn reply(plan: &Plan, told: &[u8]) -> Option<Output> {
    plan.reply(body::told(told)?)
}

fn text(out: Option<Output>) -> String {
    String::from_utf8(out.expect("a reply").to_vec()).expect("text")
}

#[test]
fn replies_have_the_order_of_the_commands() {
    let mut composer = Composer::new(true, false);
    add(&mut composer, Shape::Whole, &["SET", "a", "1"], &[1]);
    add(&mut composer, Shape::Whole, &["GET", "b"], &[1]);
    composer.add_known(b"+PONG\r\n");
    add(&mut composer, Shape::Whole, &["GET", "a"], &[1]);
    let (body, keys, plan) = composer.finish().expect("a transaction");
    assert_eq!(keys.len(), 2);
    let told = tell(&body, |words| {
        let last = String::from_utf8_lossy(words[words.len() - 1]);
        format!("+{}{last}\r\n", words[0][0] as char)
    });
    let reply = text(reply(&plan, &told));
    assert_eq!(reply, "*4\r\n+S1\r\n+Gb\r\n+PONG\r\n+Ga\r\n");
    assert!(body::told(&told[..told.len() - 1]).is_none());
    assert!(plan.reply(Vec::new()).is_none());
}

#[test]
fn commands_of_several_slots_are_taken_apart() {
    let mut composer = Composer::new(true, false);
    let keys = ["MGET", "a", "b", "{a}2", "c"];
    add(&mut composer, Shape::Elements, &keys, &[1, 2, 3, 4]);
    let keys = ["DEL", "a", "b", "{a}2", "c"];
    add(&mut composer, Shape::Sum, &keys, &[1, 2, 3, 4]);
    let pairs = ["MSET", "a", "1", "b", "2", "{a}2", "3"];
    add(&mut composer, Shape::Pairs, &pairs, &[1, 3, 5]);
    let (body, _, plan) = composer.finish().expect("a transaction");
    let told = tell(&body, |words| match words[0] {
        b"DEL" => format!(":{}\r\n", words.len() - 1),
        b"MSET" => {
            let values: Vec<_> = words[1..].iter().map(|word| word.len()).collect();
            assert!(values.len() % 2 == 0);
            "+OK\r\n".to_owned()
        }
        _ => {
            let keys = words[1..].iter().map(|key| {
                let key = String::from_utf8_lossy(key);
                format!("${}\r\n{key}\r\n", key.len())
            });
            format!("*{}\r\n{}", words.len() - 1, keys.collect::<String>())
        }
    });
    let mget = "*4\r\n$1\r\na\r\n$1\r\nb\r\n$4\r\n{a}2\r\n$1\r\nc\r\n";
    let all = format!("*3\r\n{mget}:4\r\n+OK\r\n");
    assert_eq!(text(reply(&plan, &told)), all);
}

#[test]
fn commands_that_need_all_their_keys_are_executed_together_at_the_last_slot() {
    assert!(is_together(Shape::Whole, 2, false) && is_together(Shape::PairsIfMissing, 2, true));
    assert!(!is_together(Shape::Whole, 1, true) && !is_together(Shape::Sum, 2, true));
    assert!(!is_together(Shape::PairsIfMissing, 2, false));
    let mut composer = Composer::new(true, true);
    composer.add_deed(AT, Deed::Watch { watcher: 1 }, b"c");
    add(&mut composer, Shape::Whole, &["SET", "a", "1"], &[1]);
    let rename = ["RENAME", "a", "b"];
    let keys = [(0, 1), (3, 2)];
    let added = with(&rename, |args| {
        composer.add(AT, &what(Shape::Whole), args, &keys)
    });
    assert_eq!(added, Ok(()));
    let (body, keys, plan) = composer.finish().expect("a transaction");
    let slots = [b"a", b"b", b"c"].map(|key| slot_of(key));
    let last = *slots.iter().max().expect("three");
    let all = body::commands(&body).expect("a body");
    let word = |command: &body::Command, at: usize| {
        let (start, len) = command.words[at];
        &body[start as usize..][..len as usize]
    };
    let gathered = all.iter().filter(|command| command.deed == Deed::Gather);
    let gathered: Vec<_> = gathered.map(|c| (c.db, word(c, 0), c.slot)).collect();
    let expected: [(u8, &[u8], u16); 2] = [(0, b"a", slots[0]), (3, b"b", slots[1])];
    assert_eq!(gathered, expected);
    let joined = all.iter().filter(|c| matches!(c.deed, Deed::Join { .. }));
    let joined: Vec<_> = joined.map(|c| (word(c, 1), c.slot)).collect();
    // The slot that is visited last executes them, whichever that is.
    assert_eq!(joined, [(b"SET".as_slice(), 0), (b"RENAME", 0)]);
    assert_eq!(keys.len(), 3);
    let replies = [b"+OK\r\n", b"+OK\r\n"];
    let told = body::tell(last, &replies, &BTreeMap::new());
    assert_eq!(text(reply(&plan, &told)), "*2\r\n+OK\r\n+OK\r\n");
    assert!(reply(&plan, &body::tell(last, &replies[..1], &BTreeMap::new())).is_none());
}

#[test]
fn an_error_of_one_slot_is_the_reply() {
    let mut composer = Composer::new(false, false);
    let pairs = ["MSET", "a", "1", "b", "2"];
    add(&mut composer, Shape::Pairs, &pairs, &[1, 3]);
    let (body, _, plan) = composer.finish().expect("a transaction");
    let told = tell(&body, |words| match words[1] {
        b"a" => "-OOM\r\n".to_owned(),
        _ => "+OK\r\n".to_owned(),
    });
    let reply = reply(&plan, &told).expect("a reply");
    assert!(reply.is_error((0, 0)));
    assert_eq!(reply.to_vec(), b"-OOM\r\n");
}

#[test]
fn what_has_no_slot_is_refused() {
    let refused = |is_list, shape, words: &[&str], keys: &[u32]| {
        let mut composer = Composer::new(is_list, false);
        let added = with(words, |args| {
            composer.add(AT, &what(shape), args, &in_db(keys))
        });
        added.and(composer.finish().map(|_| ())).err()
    };
    let rename = ["RENAME", "a", "b"];
    let apart = refused(true, Shape::Whole, &rename, &[1, 2]);
    assert_eq!(apart, Some(Refusal::Keys));
    let same = ["RENAME", "a", "{a}b"];
    assert_eq!(refused(true, Shape::Whole, &same, &[1, 2]), None);
    assert_eq!(
        refused(true, Shape::Whole, &["PING"], &[]),
        Some(Refusal::Keys)
    );
    let value = "v".repeat(MOST_BYTES);
    let large = refused(true, Shape::Whole, &["SET", "a", &value], &[1]);
    assert_eq!(large, Some(Refusal::TooLarge));
    let names: Vec<String> = (0..MOST_SLOTS * 2).map(|n| n.to_string()).collect();
    let mut words = vec!["DEL"];
    words.extend(names.iter().map(|name| &**name));
    let keys: Vec<u32> = (1..words.len() as u32).collect();
    let many = refused(true, Shape::Sum, &words, &keys);
    assert_eq!(many, Some(Refusal::TooManySlots));
    // Each slot keeps all of it.
    let names: Vec<String> = (0..100)
        .map(|n| format!("{n}{}", "k".repeat(20_000)))
        .collect();
    let mut words = vec!["DEL"];
    words.extend(names.iter().map(|name| &**name));
    let keys: Vec<u32> = (1..words.len() as u32).collect();
    let many = refused(true, Shape::Sum, &words, &keys);
    assert_eq!(many, Some(Refusal::TooLargeEach));
    // Keys alone may be long, too.
    let mut watches = Composer::new(true, false);
    let key = vec![b'k'; MOST_BYTES];
    watches.add_deed(AT, Deed::Watch { watcher: 1 }, &key);
    assert_eq!(watches.finish().map(|_| ()), Err(Refusal::TooLarge));
}

/// Whether there is memory for a key is asked for a command that takes some, whichever comes last.
#[test]
fn a_gathered_key_is_named_with_a_command_that_takes_memory() {
    for names in [["set", "expire"], ["expire", "set"]] {
        let mut composer = Composer::new(true, true);
        for name in names {
            let what = What {
                name,
                grows: name == "set",
                ..what(Shape::Whole)
            };
            let added = with(&[name, "a", "1"], |args| {
                composer.add(AT, &what, args, &in_db(&[1]))
            });
            assert_eq!(added, Ok(()));
        }
        let (body, ..) = composer.finish().expect("small");
        let all = body::commands(&body).expect("a body");
        let gathered = all.iter().find(|command| command.deed == Deed::Gather);
        let (start, len) = gathered.expect("the key").words[1];
        assert_eq!(&body[start as usize..][..len as usize], b"set");
    }
}
