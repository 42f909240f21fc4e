//! Many keys of any slots are deleted in one step.

use crate::apart::{are_forgotten, exec, ok};
use crate::node::Node;
use crate::plain::{spread, text};
use crate::several::start;
use rufous_resp::reply::Reply;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whoever reads sees all keys or none, at nodes with and without copies.
#[test]
fn keys_are_deleted_in_one_step() {
    for mut nodes in [spread(&[2, 2, 1]), start()] {
        let keys: Vec<String> = (0..12).map(|n| format!("gone{n}")).collect();
        let with = |first: &[&str], each: &[&str]| {
            let each = |key: &String| [&[&**key], each].concat().join("\n");
            let words = first.iter().map(|word| word.to_string());
            let words = words
                .chain(keys.iter().map(each))
                .collect::<Vec<_>>()
                .join("\n");
            words.split('\n').map(String::from).collect::<Vec<String>>()
        };
        fn call(node: &mut Node, words: &[String]) -> Reply {
            node.call(&words.iter().map(String::as_str).collect::<Vec<_>>())
        }
        let (set, exist) = (with(&["MSET"], &["1"]), with(&["EXISTS"], &[]));
        let done = AtomicBool::new(false);
        let (writer, readers) = nodes.split_first_mut().expect("nodes");
        std::thread::scope(|scope| {
            let done = &done;
            for node in readers {
                let exist = &exist;
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let words: Vec<&str> = exist.iter().map(String::as_str).collect();
                        let Reply::Array(seen) = exec(node, &[&words]) else {
                            panic!("no array");
                        };
                        assert!(matches!(seen[..], [Reply::Integer(0 | 12)]), "{seen:?}");
                    }
                });
            }
            for round in 0..40 {
                assert_eq!(text(call(writer, &set)), "OK");
                let delete = ["DEL", "UNLINK"][round % 2];
                assert_eq!(call(writer, &with(&[delete], &[])), Reply::Integer(12));
            }
            assert_eq!(text(call(writer, &set)), "OK");
            assert_eq!(text(call(writer, &with(&["QUIET", "DEL"], &[]))), "OK");
            done.store(true, Ordering::Relaxed);
        });
        // Replies that are not wanted are OK, with and without a condition, and within `MULTI`.
        for _ in 0..2 {
            let set = with(&["QUIET", "MSETNX"], &["1"]);
            assert_eq!(text(call(writer, &set)), "OK");
        }
        let delete = with(&["QUIET", "DEL"], &[]);
        let delete: Vec<&str> = delete.iter().map(String::as_str).collect();
        assert_eq!(exec(writer, &[&delete]), Reply::Array(vec![ok()]));
        // More slots than one transaction has: in parts.
        let many: Vec<String> = (0..400).map(|n| format!("many{n}")).collect();
        for key in &many {
            nodes[0].call(&["SET", key, "1"]);
        }
        let words = [vec!["DEL".to_owned()], many].concat();
        assert_eq!(call(&mut nodes[1], &words), Reply::Integer(400));
        are_forgotten(&mut nodes);
    }
}
