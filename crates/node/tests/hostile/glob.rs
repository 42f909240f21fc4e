//! Patterns made to take for ever.

use crate::common::*;

#[test]
fn patterns_do_not_explode() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let before = server.peak();
    let mut client = server.client();
    let key = "a".repeat(4000);
    client.ok(&["SET", &key, "v"]);
    client.ok(&["SET", &format!("{key}b"), "v"]);
    let stars = format!("{}c", "a*".repeat(1500));
    let questions = format!("{}c", "*?".repeat(1500));
    let classes = format!("{}c", "*[a-z]".repeat(700));
    let open = "[".repeat(5000);
    let nested = format!("*{}", "[^".repeat(2000));
    let escapes = format!("*{}", "\\".repeat(4001));
    let long = "*".repeat(1 << 20);
    // A class that nothing closes is closed by the end: the last pattern matches anything.
    let patterns = [
        (&stars, 0),
        (&questions, 0),
        (&classes, 0),
        (&open, 0),
        (&escapes, 0),
        (&nested, 4),
    ];
    for (pattern, expected) in patterns {
        for command in [
            &["KEYS", pattern][..],
            &["SCAN", "0", "COUNT", "1000", "MATCH", pattern],
        ] {
            let found = match client.run(command) {
                Reply::Array(all) if command.len() > 2 => {
                    all.into_iter().nth(1).expect("two").array().len()
                }
                other => other.array().len(),
            };
            assert_eq!(found, expected, "{:.40}", command[command.len() - 1]);
            witness.goes_on();
        }
        client.run(&["CONFIG", "GET", pattern]);
    }
    assert_eq!(
        client
            .run(&["KEYS", &format!("{}b", "a*".repeat(1500))])
            .array()
            .len(),
        1
    );
    assert!(
        client.run(&["KEYS", &long]).array().len() >= 2,
        "nothing but stars"
    );
    server.assert_grew_less(before, 64 * MIB);
    witness.finish();
}
