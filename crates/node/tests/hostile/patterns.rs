//! SORT by patterns while others change everything that it reads.

use crate::common::{Client, Reply, Server, key_of};

const ELEMENTS: usize = 24;

/// Elements whose weights and values lie at both workers.
fn element(n: usize) -> String {
    key_of(n % 2, n)
}

fn texts(reply: Reply) -> Vec<String> {
    let text = |value: Reply| String::from_utf8(value.bulk()).expect("text");
    reply.array().into_iter().map(text).collect()
}

fn fill(client: &mut Client) {
    for n in 0..ELEMENTS {
        let element = element(n);
        assert!(client.run(&["RPUSH", "source", &element]).int() > 0);
        client.ok(&["SET", &format!("w:{element}"), &(ELEMENTS - n).to_string()]);
        let hash = format!("h:{element}");
        assert_eq!(client.run(&["HSET", &hash, "n", &n.to_string()]).int(), 1);
    }
}

/// Gives one element the weight of another, and back: in between both are
/// changed at once, so that all weights together are always the same.
fn swap_weights(client: &mut Client, a: usize, b: usize, turned: bool) {
    let weights = match turned {
        true => [ELEMENTS - b, ELEMENTS - a],
        false => [ELEMENTS - a, ELEMENTS - b],
    };
    let (a, b) = (format!("w:{}", element(a)), format!("w:{}", element(b)));
    client.ok(&[
        "MSET",
        &a,
        &weights[0].to_string(),
        &b,
        &weights[1].to_string(),
    ]);
}

#[test]
fn sorted_by_keys_of_both_workers_while_they_change() {
    let server = Server::start(&[]);
    let [mut a, mut b] = server.one_at_each_worker();
    fill(&mut a);
    let ascending: Vec<_> = (1..=ELEMENTS).map(|n| n.to_string()).collect();
    std::thread::scope(|scope| {
        // An element of either worker with one of the other.
        for (worker, mut writer) in server.one_at_each_worker().into_iter().enumerate() {
            scope.spawn(move || {
                for round in 0..300 {
                    let pair = (worker * 2 + round / 2 * 4) % ELEMENTS;
                    swap_weights(&mut writer, pair, pair + 1, round % 2 == 0);
                }
            });
        }
        // The source itself grows and shrinks at its end.
        let mut pusher = server.client();
        scope.spawn(move || {
            for _ in 0..300 {
                pusher.run(&["RPUSH", "source", "none"]);
                assert_eq!(pusher.words("LREM source 0 none").int(), 1);
            }
        });
        for client in [&mut a, &mut b] {
            let ascending = &ascending;
            scope.spawn(move || {
                for round in 0..150 {
                    let reply = match round % 3 {
                        0 => {
                            client.ok(&["MULTI"]);
                            client.words("SORT source BY w:* GET w:* GET h:*->n");
                            client.words("EXEC").array().remove(0)
                        }
                        _ => client.words("SORT_RO source BY w:* GET w:* GET h:*->n"),
                    };
                    let mut rows: Vec<_> = reply.array();
                    if rows.len() == 2 * (ELEMENTS + 1) {
                        // Without a weight it is the first.
                        assert_eq!(
                            rows.drain(..2).collect::<Vec<_>>(),
                            [Reply::Null, Reply::Null]
                        );
                    }
                    let rows = texts(Reply::Array(rows));
                    let weights: Vec<_> = rows.iter().step_by(2).cloned().collect();
                    assert_eq!(&weights, ascending);
                    let mut numbers: Vec<usize> = rows
                        .iter()
                        .skip(1)
                        .step_by(2)
                        .map(|n| n.parse().expect("a number"))
                        .collect();
                    numbers.sort_unstable();
                    assert!(numbers.into_iter().eq(0..ELEMENTS));
                }
            });
        }
    });
    assert_eq!(
        a.words("SORT source BY w:* GET h:*->n STORE stored").int(),
        ELEMENTS as i64
    );
    let stored = texts(b.words("LRANGE stored 0 -1"));
    let expected: Vec<_> = (0..ELEMENTS).rev().map(|n| n.to_string()).collect();
    assert_eq!(stored, expected);
}
