//! Histories that can be, and what is found of those that cannot.

use super::*;

/// Operations as `node session asked ended what came`, of one key; `=` before the node
/// says that it is of the end.
fn of(key: &str, lines: &[&str]) -> Vec<Act> {
    let line = |line: &&str| {
        let (first, rest) = match line.strip_prefix('=') {
            Some(rest) => ("in-the-end", rest),
            None => ("lattice", *line),
        };
        format!("{first} {key} {rest}").parse().unwrap()
    };
    lines.iter().map(line).collect()
}

#[track_caller]
fn fine(key: &str, lines: &[&str]) {
    let verdict = judge(&of(key, lines), &[]);
    assert_eq!(verdict.wrong, Vec::<String>::new());
    assert_eq!(verdict.alike, 1);
}

#[track_caller]
fn wrong(key: &str, lines: &[&str], why: &str) {
    let verdict = judge(&of(key, lines), &[]);
    assert_eq!(verdict.wrong.len(), 1, "{:?}", verdict.wrong);
    assert!(verdict.wrong[0].contains(why), "{:?}", verdict.wrong);
}

const SET: &str = "l:set:1";
const COUNTER: &str = "l:count:1";
const TEXT: &str = "l:text:1";

#[test]
fn an_element_that_was_added_is_there_in_the_end() {
    let add = "1 1 0 5 add=7 number=1";
    fine(SET, &[add, "=1 8 20 21 members all=7"]);
    wrong(SET, &[add, "=1 8 20 21 members all="], "7 is lost");
    // Whoever asked for its removal did so where it was not known.
    let nothing = "2 2 6 7 remove=7 number=0";
    wrong(SET, &[add, nothing, "=1 8 20 21 members all="], "7 is lost");
    // In doubt it may be there, refused it is not.
    let doubt = "1 1 0 5 add=7 unknown";
    fine(SET, &[doubt, "=1 8 20 21 members all=7"]);
    fine(SET, &[doubt, "=1 8 20 21 members all="]);
    let refused = "1 1 0 5 add=7 not-done";
    fine(SET, &[refused, "=1 8 20 21 members all="]);
    wrong(SET, &[refused, "=1 8 20 21 members all=7"], "nobody had");
}

#[test]
fn an_element_that_was_removed_does_not_come_back() {
    let add = "1 1 0 5 add=7 number=1";
    let remove = "2 2 6 9 remove=7 number=1";
    let (with, without) = ("=1 8 20 21 members all=7", "=1 8 20 21 members all=");
    fine(SET, &[add, remove, without]);
    wrong(SET, &[add, remove, with], "7 is there again");
    let doubt = "2 2 6 9 remove=7 unknown";
    fine(SET, &[add, doubt, without]);
    fine(SET, &[add, doubt, with]);
    let refused = "2 2 6 9 remove=7 not-done";
    fine(SET, &[add, refused, with]);
    wrong(SET, &[add, refused, without], "7 is lost");
    // Others may still be shown it for a while, and who was shown that it is gone not.
    let seen = |at: u64, all: &str| format!("3 3 {at} {} members all={all}", at + 1);
    fine(SET, &[add, remove, &seen(10, "7"), &seen(12, ""), without]);
    let back = [add, doubt, &seen(10, "7"), &seen(12, ""), &seen(14, "7")];
    wrong(SET, &[&back[..], &[without]].concat(), "7 again");
}

#[test]
fn what_a_connection_has_seen_stays_until_somebody_asks_for_its_removal() {
    let add = "1 1 0 5 add=7 number=1";
    let (seen, missing) = ("2 2 8 9 members all=7", "2 2 10 12 members all=");
    let (with, without) = ("=1 8 20 21 members all=7", "=1 8 20 21 members all=");
    wrong(SET, &[add, seen, missing, with], "has lost 7");
    // Another connection may not have heard of it.
    fine(SET, &[add, seen, "3 3 10 12 members all=", with]);
    let early = "1 1 11 19 remove=7 number=1";
    fine(SET, &[add, seen, missing, early, without]);
    let late = "1 1 13 19 remove=7 number=1";
    wrong(SET, &[add, seen, missing, late, without], "has lost 7");
}

#[test]
fn nobody_is_shown_what_is_yet_to_come() {
    let add = "1 1 5 9 add=7 number=1";
    let with = "=1 8 20 21 members all=7";
    fine(SET, &["2 2 4 6 members all=7", add, with]);
    wrong(
        SET,
        &["2 2 3 4 members all=7", add, with],
        "nobody had added",
    );
    let count = "1 1 5 9 count=7 number=7";
    let end = "=1 8 20 21 sum number=7";
    fine(COUNTER, &["2 2 4 6 sum number=7", count, end]);
    wrong(
        COUNTER,
        &["2 2 3 4 sum number=7", count, end],
        "no more than 0",
    );
}

#[test]
fn a_sum_is_that_of_what_is_sure_and_some_of_what_is_not() {
    let sure = "1 1 0 5 count=7 number=7";
    let (doubt, refused) = ("2 2 0 5 count=20 unknown", "3 3 0 5 count=400 not-done");
    let end = |sum: u64| format!("=1 8 20 21 sum number={sum}");
    for sum in [7, 27] {
        fine(COUNTER, &[sure, doubt, refused, &end(sum)]);
    }
    for sum in [0, 6, 8, 20] {
        let why = format!("it is {sum}");
        wrong(COUNTER, &[sure, doubt, refused, &end(sum)], &why);
    }
    for sum in [28, 407, 427] {
        let lines = [sure, doubt, refused, &end(sum)];
        wrong(COUNTER, &lines, "no more than 27 was added");
    }
}

#[test]
fn a_counter_does_not_fall_for_a_connection() {
    let counts = ["1 1 0 5 count=7 number=7", "2 2 0 5 count=3 number=3"];
    let end = "=1 8 20 21 sum number=10";
    let read = |session: u64, at: u64, sum: u64| {
        let until = at + 1;
        format!("3 {session} {at} {until} sum number={sum}")
    };
    let lines = |reads: &[String]| -> Vec<String> {
        let all = counts.iter().map(ToString::to_string);
        all.chain(reads.iter().cloned())
            .chain([end.to_owned()])
            .collect()
    };
    let falls = lines(&[read(3, 6, 7), read(3, 8, 3)]);
    let falls: Vec<&str> = falls.iter().map(String::as_str).collect();
    wrong(COUNTER, &falls, "was 7, and is 3");
    let others = lines(&[read(3, 6, 7), read(4, 8, 3)]);
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    fine(COUNTER, &others);
    // What it adds itself is more than before.
    let own = [counts[1], "2 2 6 7 count=7 number=7", end];
    wrong(COUNTER, &own, "was 3, and is 7 with 7 more");
}

#[test]
fn all_say_the_same_in_the_end() {
    let add = "1 1 0 5 add=7 number=1";
    let (one, two) = ("=1 8 20 21 members all=7", "=2 9 20 21 members all=7");
    fine(SET, &[add, one, two]);
    for differs in ["=2 9 20 21 members all=", "=2 9 20 21 members unknown"] {
        wrong(SET, &[add, one, differs], "not the same everywhere");
    }
    wrong(SET, &[add, "=1 8 20 21 members not-done"], "not the same");
    wrong(SET, &[add], "nobody asked");
}

#[test]
fn a_key_that_nobody_asked_for_in_the_end_is_found() {
    let mut acts = of(SET, &["1 1 0 5 add=7 number=1"]);
    acts.extend(of(COUNTER, &["=1 8 20 21 sum number=0"]));
    let verdict = judge(&acts, &[]);
    assert_eq!((verdict.alike, verdict.wrong.len()), (1, 1));
}

#[test]
fn a_connection_reads_no_older_text_than_it_knows() {
    let puts = ["1 1 0 5 put=1 done", "1 1 6 9 put=2 done"];
    let end = "=1 8 90 91 get number=2";
    let read = |session: u64, at: u64, came: &str| {
        let until = at + 1;
        format!("2 {session} {at} {until} get {came}")
    };
    let judged = |reads: &[String], end: &str| {
        let mut lines = puts.to_vec();
        lines.extend(reads.iter().map(String::as_str));
        lines.push(end);
        judge(&of(TEXT, &lines), &[]).wrong
    };
    let (old, new, none) = ("number=1", "number=2", "nothing");
    let none_wrong = Vec::<String>::new();
    assert_eq!(
        judged(&[read(2, 10, old), read(2, 12, new)], end),
        none_wrong
    );
    assert_eq!(
        judged(&[read(2, 10, none), read(2, 12, old)], end),
        none_wrong
    );
    // Another connection is at another replica.
    assert_eq!(
        judged(&[read(2, 10, new), read(3, 12, old)], end),
        none_wrong
    );
    for (reads, why) in [
        ([read(2, 10, new), read(2, 12, old)], "was read before"),
        (
            [read(1, 10, old), read(1, 12, new)],
            "by the session that read",
        ),
        ([read(2, 10, old), read(2, 12, none)], "nothing at key"),
        (
            [read(2, 10, old), read(2, 12, "number=3")],
            "nobody had written",
        ),
        ([read(2, 3, new), read(2, 12, new)], "nobody had written"),
    ] {
        let wrong = judged(&reads, end);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        assert!(wrong[0].contains(why), "{wrong:?}");
    }
    // What is there in the end is older than what somebody knew to be newer.
    let seen = [read(2, 10, old), read(2, 12, new)];
    let wrong = judged(&seen, "=1 8 90 91 get number=1");
    assert!(wrong[0].contains("there is no order"), "{wrong:?}");
    let wrong = judged(&[], "=1 8 90 91 get nothing");
    assert!(wrong[0].contains("nothing is left"), "{wrong:?}");
}

#[test]
fn a_node_that_is_reached_answers_everything() {
    let judged = |lines: &[&str], window: &str| {
        let mut acts = of(COUNTER, lines);
        acts.extend(of(COUNTER, &["=1 8 90 91 sum number=0"]));
        judge(&acts, &[window.parse().unwrap()])
    };
    let yes = "1 1 12 14 sum number=0";
    let (no, silent) = ("1 1 15 16 sum not-done", "1 1 15 16 sum unknown");
    for (how, alone) in [("met", 0), ("alone", 1)] {
        let window = format!("serves 1 {how} 10 20");
        let verdict = judged(&[yes, "1 1 22 24 sum not-done"], &window);
        assert_eq!(verdict.wrong, Vec::<String>::new());
        let figures = (verdict.served, verdict.served_alone, verdict.longest_us);
        assert_eq!(figures, (1, alone, 2));
        for bad in [no, silent] {
            let verdict = judged(&[yes, bad], &window);
            assert_eq!(verdict.wrong.len(), 1, "{:?}", verdict.wrong);
            assert!(verdict.wrong[0].contains("it was reached"));
        }
        let verdict = judged(&[], &window);
        assert!(verdict.wrong[0].contains("nothing was answered"));
    }
}
