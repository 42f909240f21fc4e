//! Requests in parts whose replies are written by hand.

use super::*;
use rufous_base::ConnId;
use rufous_kernel::batch::Door;

pub(super) fn header() -> Header {
    Header {
        conn: ConnId {
            slot: 1,
            generation: 1,
        },
        client: 1,
        seq: 0,
        command: 0,
        db: 0,
        resp3: false,
        no_touch: false,
        quiet: false,
        door: Door::Plain,
        key: 1,
        hash: 0,
        strict_in: None,
    }
}

fn output(text: &str) -> Output {
    let mut out = Output::default();
    if text.starts_with('-') {
        out.begin_error();
    }
    out.bytes.extend_from_slice(text.as_bytes());
    out
}

fn text(answered: Option<(Header, Output)>) -> Option<(u32, String)> {
    let (header, out) = answered?;
    let text = String::from_utf8_lossy(&out.to_vec()).into_owned();
    Some((header.seq, text))
}

#[test]
fn keys_of_one_node_are_one_part() {
    let (one, two) = (Some(NodeNo(1)), Some(NodeNo(2)));
    let plan = Plan::new(&[one, None, one, two, None]);
    assert_eq!(plan.places, [0, 1, 0, 2, 1]);
    let parts = [(one, vec![0, 2]), (None, vec![1, 4]), (two, vec![3])];
    assert_eq!(plan.parts, parts);
}

/// Parts of two requests are answered in turns, the later request first.
#[test]
fn a_request_is_answered_with_its_last_part() {
    let mut machine = Splitting::default();
    let second = Header { seq: 1, ..header() };
    let a: Vec<_> = machine
        .on_request(&header(), Joins::Sum, Vec::new(), 2)
        .collect();
    let b: Vec<_> = machine
        .on_request(&second, Joins::Sum, Vec::new(), 2)
        .collect();
    assert_eq!(text(machine.on_part(a[1], output(":1\r\n"))), None);
    assert_eq!(text(machine.on_part(b[0], output(":10\r\n"))), None);
    let whole = machine.on_part(b[1], output(":20\r\n"));
    assert_eq!(text(whole), Some((1, ":30\r\n".into())));
    let whole = machine.on_part(a[0], output(":2\r\n"));
    assert_eq!(text(whole), Some((0, ":3\r\n".into())));
    // Nothing is left of them.
    assert_eq!(text(machine.on_part(a[0], output(":2\r\n"))), None);
    assert_eq!(machine.begun(), 2);
}

#[test]
fn an_error_waits_for_the_other_parts_and_is_the_reply() {
    let mut machine = Splitting::default();
    let parts: Vec<_> = machine
        .on_request(&header(), Joins::Elements, vec![0, 1], 2)
        .collect();
    let failed = "-UNKNOWNRESULT it is not known\r\n";
    assert_eq!(text(machine.on_part(parts[1], output(failed))), None);
    let whole = machine.on_part(parts[0], output("*1\r\n$1\r\na\r\n"));
    let (header, out) = whole.expect("the last part");
    assert!(out.is_error((0, 0)));
    assert_eq!(text(Some((header, out))), Some((0, failed.into())));
}
