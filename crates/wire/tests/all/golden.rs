//! Bytes of every kind of message, as this and earlier programs write them.
//!
//! A file of `golden/v<version>` never changes: nodes with that version are out
//! there. A new version gets a folder of its own; what is missing is written by
//! `RUFOUS_WRITE_GOLDEN=1 cargo test -p rufous-wire --test all golden`.

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use rufous_mapping::NodeNo;
use rufous_mapping::planner::Health;
use rufous_wire::frame::{self, Frame, Frames, HEADER, MAX_FRAME};
use rufous_wire::mapping::{decode_health, decode_member, encode_announcement};
use rufous_wire::version::{NEWEST, OLDEST, since};
use rufous_wire::{Body, Class, Envelope, Event, Local, Peers, Refused, Session};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn folder(version: u16) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("golden/v{version}"))
}

/// Kinds that a version has, by name.
fn kinds(version: u16) -> impl Iterator<Item = (&'static str, Class, Envelope)> {
    let all = crate::common::all().into_iter();
    all.filter(move |(_, _, envelope)| since_of(envelope) <= version)
}

fn since_of(envelope: &Envelope) -> u16 {
    envelope.body.as_ref().map_or(0, since)
}

/// Names and farewells are of no version.
fn number(version: u16, envelope: &Envelope) -> u16 {
    match since_of(envelope) {
        0 => 0,
        _ => version,
    }
}

fn bytes(version: u16, class: Class, envelope: &Envelope) -> Vec<u8> {
    let mut frame = Vec::new();
    frame::encode(number(version, envelope), class, envelope, &mut frame).expect("small");
    frame
}

fn read(golden: &[u8]) -> Frame {
    let mut frames = Frames::default();
    frames.push(golden);
    frames.next(MAX_FRAME).expect("good").expect("whole")
}

/// All files of a version.
fn files(version: u16) -> BTreeSet<String> {
    let files = fs::read_dir(folder(version)).expect("a folder");
    let files = files.map(|file| file.expect("a file").file_name());
    files.map(|name| name.to_string_lossy().into()).collect()
}

#[test]
fn messages_have_the_bytes_that_they_always_had() {
    let writes = std::env::var_os("RUFOUS_WRITE_GOLDEN").is_some();
    for version in OLDEST..=NEWEST {
        let mut names = BTreeSet::new();
        for (name, class, envelope) in kinds(version) {
            let file = format!("{name}.bin");
            let path = folder(version).join(&file);
            names.insert(file);
            let bytes = bytes(version, class, &envelope);
            if writes && !path.exists() {
                fs::create_dir_all(folder(version)).expect("a folder");
                fs::write(&path, &bytes).expect("a file");
            }
            let golden = fs::read(&path).expect("bytes of each kind");
            assert_eq!(bytes, golden, "{name} of version {version}");
            let read = read(&golden);
            assert_eq!(read.envelope, envelope, "{name}");
            assert_eq!((read.class, read.size), (class, golden.len()));
            assert_eq!(read.version, number(version, &envelope));
        }
        assert_eq!(files(version), names, "a file of a kind that is no more");
    }
}

/// A node that hears one of its own version, at the other end of which bytes are thrown in.
fn reader(version: u16) -> (Session, Peers) {
    let local = |id| Local {
        cluster: "birds".to_owned(),
        id: [id; 20],
        incarnation: 1,
        start: 1,
        oldest: version,
        newest: version,
        program: String::new(),
    };
    let (mut session, peers) = (Session::new(local(1), None, 300), Peers::default());
    let (mut hello, mut events) = (Vec::new(), Vec::new());
    Session::new(local(2), None, 300).transmit(&mut hello, 1000);
    session.receive(&hello, &peers, &mut events);
    assert!(matches!(&events[..], [Event::Up(peer)] if peer.version == version));
    (session, peers)
}

#[test]
fn each_version_takes_what_is_its_own_and_nothing_else() {
    for written in OLDEST..=NEWEST {
        for file in files(written) {
            let golden = fs::read(folder(written).join(&file)).expect("a file");
            let Frame {
                envelope, version, ..
            } = read(&golden);
            for version_read in OLDEST..=NEWEST {
                let (mut session, peers) = reader(version_read);
                let mut events = Vec::new();
                session.receive(&golden, &peers, &mut events);
                let [event] = &events[..] else {
                    panic!("{file}: {events:?}");
                };
                match (&envelope.body, event) {
                    // By these a session itself goes on or ends.
                    (Some(Body::Refuse(_)), Event::Closed(Refused::ByPeer { code: 1, .. })) => {}
                    (
                        Some(
                            Body::Hello(_)
                            | Body::Challenge(_)
                            | Body::Proof(_)
                            | Body::Sealed(_)
                            | Body::Credit(_)
                            | Body::Piece(_),
                        ),
                        Event::Closed(refused),
                    ) => {
                        assert!([8, 11].contains(&refused.code()), "{file}: {refused}");
                    }
                    (_, Event::Message { envelope: came, .. }) => {
                        assert_eq!(version, version_read, "{file} of version {written}");
                        assert_eq!(came, &envelope, "{file}");
                    }
                    (_, Event::Closed(refused)) => {
                        assert_ne!(version, version_read, "{file}: {refused}");
                        assert_eq!(refused.code(), 11, "{file}: {refused}");
                    }
                    (_, Event::Up(_)) => panic!("{file}: a second name"),
                }
            }
        }
    }
}

fn schema() -> MessageDescriptor {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    let file = protox::compile(["wire.proto"], [folder]).expect("the schema is right");
    let pool = DescriptorPool::from_file_descriptor_set(file).expect("a schema");
    let envelope = pool.get_message_by_name("rufous.wire.v1.Envelope");
    envelope.expect("the schema has envelopes")
}

/// Fields of a message that are in use, all the way down. Nothing may be in it
/// that the schema does not have.
fn used(message: &DynamicMessage, found: &mut BTreeSet<String>) {
    assert_eq!(message.unknown_fields().count(), 0, "{message:?}");
    for (field, value) in message.fields() {
        found.insert(field.full_name().to_owned());
        if let Some(inner) = value.as_message() {
            used(inner, found);
        }
        for inner in value.as_list().into_iter().flatten() {
            if let Some(inner) = inner.as_message() {
                used(inner, found);
            }
        }
    }
}

#[test]
fn the_schema_reads_what_we_write_and_has_nothing_else() {
    let schema = schema();
    let mut found = BTreeSet::new();
    for (name, class, envelope) in crate::common::all() {
        let body = &bytes(NEWEST, class, &envelope)[HEADER..];
        let read = DynamicMessage::decode(schema.clone(), body).expect("in the schema");
        used(&read, &mut found);
        let written = Envelope::decode(&read.encode_to_vec()[..]).expect("the same");
        assert_eq!(written, envelope, "{name}");
    }
    let pool = schema.parent_pool();
    let health = Health {
        ails: Some("its disk is full".into()),
        hears: Some(BTreeSet::from([NodeNo(3), NodeNo(1)])),
        waits: Some("waits for the state of n2".into()),
        unserved: 7,
        serves: true,
    };
    let member = rufous_mapping::Member {
        id: rufous_mapping::NodeId([1; 20]),
        incarnation: 1,
        peer: "10.0.0.1:7379".into(),
        plain: String::new(),
        cluster: String::new(),
        zone: "east".into(),
        weight: 100,
        workers: 2,
        drains: false,
        folder: Default::default(),
    };
    let about = encode_announcement(&member, &health);
    assert_eq!(
        decode_member(&about),
        Ok(member),
        "for programs that know no more"
    );
    let said = pool.get_message_by_name("rufous.wire.v1.Health");
    let said = DynamicMessage::decode(said.expect("in the schema"), &about[..]).expect("read");
    found.extend(said.fields().map(|(field, _)| field.full_name().to_owned()));
    assert_eq!(decode_health(&about), health);
    let fields = pool.all_messages().flat_map(|message| {
        let fields = message.fields().map(|field| field.full_name().to_owned());
        fields.collect::<Vec<_>>()
    });
    let fields: BTreeSet<String> = fields.collect();
    assert_eq!(found, fields, "the schema has fields that nobody writes");
}
