//! Bytes of every kind of message, as this and earlier programs write them.
//!
//! A file of `golden/v<version>` never changes: nodes with that version are out
//! there. A new version gets a folder of its own; what is missing is written by
//! `RUFOUS_WRITE_GOLDEN=1 cargo test -p rufous-wire --test golden`.

mod common;

use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use rufous_wire::frame::{self, Frames, HEADER, MAX_FRAME};
use rufous_wire::session::NEWEST;
use rufous_wire::{Body, Class, Envelope};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("golden/v{NEWEST}"))
}

/// Names and farewells are of no version.
fn version_of(envelope: &Envelope) -> u16 {
    match envelope.body {
        Some(Body::Hello(_) | Body::Refuse(_)) => 0,
        _ => NEWEST,
    }
}

fn bytes(class: Class, envelope: &Envelope) -> Vec<u8> {
    let mut frame = Vec::new();
    frame::encode(version_of(envelope), class, envelope, &mut frame).expect("small");
    frame
}

#[test]
fn messages_have_the_bytes_that_they_always_had() {
    let folder = folder();
    let writes = std::env::var_os("RUFOUS_WRITE_GOLDEN").is_some();
    let mut names = BTreeSet::new();
    for (name, class, envelope) in common::all() {
        let file = format!("{name}.bin");
        let path = folder.join(&file);
        names.insert(file);
        let bytes = bytes(class, &envelope);
        if writes && !path.exists() {
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(&path, &bytes).expect("a file");
        }
        let golden = fs::read(&path).expect("bytes of each kind");
        assert_eq!(bytes, golden, "{name}");
        let mut frames = Frames::default();
        frames.push(&golden);
        let read = frames.next(MAX_FRAME).expect("good").expect("whole");
        assert_eq!(read.envelope, envelope, "{name}");
        assert_eq!((read.class, read.size), (class, golden.len()));
        assert_eq!(read.version, version_of(&envelope));
    }
    let files = fs::read_dir(&folder).expect("a folder");
    let files = files.map(|file| file.expect("a file").file_name());
    let files: BTreeSet<String> = files.map(|name| name.to_string_lossy().into()).collect();
    assert_eq!(files, names, "a file of a kind that is no more");
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
    for (name, class, envelope) in common::all() {
        let body = &bytes(class, &envelope)[HEADER..];
        let read = DynamicMessage::decode(schema.clone(), body).expect("in the schema");
        used(&read, &mut found);
        let written = Envelope::decode(&read.encode_to_vec()[..]).expect("the same");
        assert_eq!(written, envelope, "{name}");
    }
    let pool = schema.parent_pool();
    let fields = pool.all_messages().flat_map(|message| {
        let fields = message.fields().map(|field| field.full_name().to_owned());
        fields.collect::<Vec<_>>()
    });
    let fields: BTreeSet<String> = fields.collect();
    assert_eq!(found, fields, "the schema has fields that nobody writes");
}
