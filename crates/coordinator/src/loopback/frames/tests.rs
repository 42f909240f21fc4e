//! Frames decode to what was encoded, and no other bytes are accepted.

use super::*;

fn member(id: u8) -> Member {
    Member {
        id: NodeId([id; 20]),
        incarnation: 7,
        after: 6,
        about: vec![id; 3],
    }
}

fn state() -> AgreedMapping {
    AgreedMapping {
        epoch: 5,
        mapping: b"who has what".to_vec(),
    }
}

fn asked() -> Vec<Asked> {
    vec![
        Asked::Hello {
            lease: 3,
            cluster: "birds".into(),
            me: member(1),
        },
        Asked::Alive,
        Asked::Read(9),
        Asked::Propose {
            no: 1,
            expected: 2,
            mapping: vec![3, 4],
        },
        Asked::Announce {
            no: 2,
            about: vec![5],
        },
        Asked::Leave,
        Asked::Challenge([6; 32]),
        Asked::Proof([7; 32]),
    ]
}

fn told() -> Vec<Told> {
    let members = [1, 2].map(|id| (NodeId([id; 20]), member(id)));
    let answers = [
        Answer::Read(None),
        Answer::Read(Some(state())),
        Answer::Proposed(Proposed::Taken),
        Answer::Proposed(Proposed::Behind(None)),
        Answer::Proposed(Proposed::Behind(Some(state()))),
        Answer::Proposed(Proposed::NotAlive),
        Answer::Announced,
        Answer::Failed("full".into()),
    ];
    let mut all = vec![
        Told::Welcome(7),
        Told::Refused("no".into()),
        Told::Alive,
        Told::Challenge([6; 32]),
        Told::Proof([7; 32]),
        Told::Mapping(state()),
        Told::Members {
            is_member: true,
            leader: Some(NodeId([2; 20])),
            members: members.into(),
        },
        Told::Members {
            is_member: false,
            leader: None,
            members: BTreeMap::new(),
        },
    ];
    all.extend(answers.map(|answer| Told::Answer(4, answer)));
    all
}

#[test]
fn frames_come_back() {
    for frame in asked() {
        assert_eq!(Asked::decode(&frame.encode()).as_ref(), Some(&frame));
    }
    for frame in told() {
        assert_eq!(Told::decode(&frame.encode()).as_ref(), Some(&frame));
    }
}

/// Truncated, longer, or with any byte changed: nothing panics, and truncated or longer frames are
/// refused.
#[test]
fn nothing_else_is_a_frame() {
    let check = |bytes: Vec<u8>, decodes: fn(&[u8]) -> bool| {
        for at in 0..bytes.len() {
            assert!(!decodes(&bytes[..at]), "cut at {at}: {bytes:?}");
            let mut changed = bytes.clone();
            for byte in [0, 1, 0x7f, 0xff] {
                changed[at] = byte;
                let _either = decodes(&changed);
            }
        }
        assert!(!decodes(&[&bytes[..], &[0]].concat()), "longer: {bytes:?}");
    };
    for frame in asked() {
        check(frame.encode(), |bytes| Asked::decode(bytes).is_some());
    }
    for frame in told() {
        check(frame.encode(), |bytes| Told::decode(bytes).is_some());
    }
    assert_eq!(Asked::decode(&[1, VERSION + 1]), None);
}

#[tokio::test]
async fn what_is_promised_takes_no_room() {
    let huge = u32::MAX.to_le_bytes();
    let refused = read(&mut &huge[..], MAX_ASKED).await;
    assert!(refused.is_err_and(|error| error.kind() == io::ErrorKind::InvalidData));
    let cut = [&10u32.to_le_bytes()[..], b"abc"].concat();
    assert!(read(&mut &cut[..], MAX_ASKED).await.is_err());
    let mut written = Vec::new();
    write(&mut written, b"abc").await.expect("written");
    let mut from = &written[..];
    assert_eq!(
        read(&mut from, 3).await.expect("read"),
        Some(b"abc".to_vec())
    );
    assert_eq!(read(&mut from, 3).await.expect("the end"), None);
}
