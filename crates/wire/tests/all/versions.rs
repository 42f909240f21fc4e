//! Sessions of nodes that know different versions: which one is spoken, and what goes
//! over it.

use crate::common::{all, envelope};
use crate::end::{End, local, pair_of, raw, settle};
use rufous_wire::message::Heartbeat;
use rufous_wire::peers::Versions;
use rufous_wire::version::{NEWEST, OLDEST, since};
use rufous_wire::{Body, Class, Event, Local, Refused};

fn spoken(end: &End) -> Option<u16> {
    match end.events.first() {
        Some(Event::Up(peer)) => Some(peer.version),
        _ => None,
    }
}

fn ranges() -> impl Iterator<Item = (u16, u16)> {
    (1..=4).flat_map(|oldest| (oldest..=4).map(move |newest| (oldest, newest)))
}

#[test]
fn nodes_speak_the_newest_version_that_both_know_or_part() {
    let end = |id, (oldest, newest)| {
        let local = Local {
            oldest,
            newest,
            ..local(id)
        };
        End::new(local, None)
    };
    for ours in ranges() {
        for theirs in ranges() {
            let (mut a, mut b) = (end(1, ours), end(2, theirs));
            settle(&mut a, &mut b);
            let both = (ours.0..=ours.1).filter(|v| (theirs.0..=theirs.1).contains(v));
            let agreed = both.max();
            assert_eq!([spoken(&a), spoken(&b)], [agreed; 2], "{ours:?} {theirs:?}");
            match agreed {
                Some(_) => {
                    let beat = envelope(Body::Heartbeat(Heartbeat {}));
                    assert_eq!(a.session.send(Class::Control, &beat), Ok(()));
                    settle(&mut a, &mut b);
                    assert_eq!(b.messages(), [&beat]);
                }
                None => {
                    let code = |end: &End| end.refused().map(Refused::code);
                    assert_eq!([code(&a), code(&b)], [Some(2); 2]);
                    let text = a.refused().map(ToString::to_string);
                    let (oldest, newest) = ours;
                    let expected = format!("{oldest} to {newest}");
                    assert!(text.is_some_and(|text| text.contains(&expected)));
                }
            }
        }
    }
}

/// What a node says that does not keep to what was agreed on: under the number of the
/// agreed version, and under its own.
#[test]
fn a_message_that_the_version_lacks_ends_the_session() {
    for version in OLDEST..=NEWEST {
        for (name, class, envelope) in all() {
            let Some(body) = envelope.body.filter(|body| since(body) > version) else {
                continue;
            };
            for (number, why) in [
                (version, "a message of a newer version"),
                (since(&body), "a version that was not agreed on"),
            ] {
                let (mut a, mut b) = pair_of((OLDEST, NEWEST), (OLDEST, version));
                a.receive(&raw(number, class, body.clone()));
                assert_eq!(a.refused(), Some(&Refused::Misplaced(why)), "{name}");
                assert!(a.messages().is_empty() && a.session.is_closed());
                b.receive(&a.out());
                let expected = Refused::ByPeer {
                    code: 11,
                    text: format!("unexpected message: {why}"),
                };
                assert_eq!(b.refused(), Some(&expected));
            }
        }
    }
    let lacking = all()
        .into_iter()
        .filter_map(|(_, _, envelope)| envelope.body)
        .filter(|body| since(body) > OLDEST);
    assert!(lacking.count() >= 2, "the newest version has something new");
}

#[test]
fn what_a_node_has_said_of_its_program_is_known_while_it_is_connected() {
    let (mut a, b) = pair_of((1, 2), (1, 3));
    let said = Versions {
        program: "2.0.0".to_owned(),
        oldest: 1,
        newest: 3,
    };
    assert_eq!(a.peers.versions(&[2; 20]).as_ref(), Some(&said));
    assert_eq!(b.peers.versions(&[1; 20]).map(|v| v.newest), Some(2));
    assert_eq!(a.peers.versions(&[1; 20]), None);
    a.session.close(&a.peers);
    assert_eq!(a.peers.versions(&[2; 20]), None);
}

/// It says nothing of its program, and is a node as any other.
#[test]
fn programs_before_that_was_said_are_let_in() {
    let older = Local {
        program: String::new(),
        ..local(2)
    };
    let (mut a, mut b) = (End::new(local(1), None), End::new(older, None));
    settle(&mut a, &mut b);
    assert_eq!([spoken(&a), spoken(&b)], [Some(1); 2]);
    let known = a.peers.versions(&[2; 20]).expect("it is connected");
    assert_eq!((known.program.as_str(), known.newest), ("", 1));
}
