//! Any bytes as the payload of a frame: what decodes is the same after encoding it, and the parts
//! of an entry lie within the payload.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_kernel::durable::{Effect, Entry, entry};

fuzz_target!(|data: &[u8]| {
    let mut rest = data;
    while !rest.is_empty() {
        let before = rest.len();
        let Ok(decoded) = Entry::decode_in(data, &mut rest) else {
            break;
        };
        assert!(rest.len() < before);
        let mut bytes = Vec::new();
        match decoded {
            Entry::Effect(effect) => effect.encode(&mut bytes),
            Entry::Repeated(effect) => {
                same(&effect);
                continue;
            }
            Entry::Piece {
                txn,
                participants,
                effects,
            } => {
                let participants: Vec<u16> = participants.iter().collect();
                entry::put_piece(&mut bytes, txn, &participants, effects.bytes());
                for effect in effects.iter().flatten() {
                    same(&effect);
                }
            }
            Entry::Done { txn } => entry::put_done(&mut bytes, txn),
            Entry::CleanEnd => entry::put_clean_end(&mut bytes),
            Entry::SnapshotEnd { keys, frames } => {
                entry::put_snapshot_end(&mut bytes, keys, frames);
            }
        }
        // A number may be written longer than need be, never shorter.
        assert!(bytes.len() <= before - rest.len());
        let mut again = &bytes[..];
        assert_eq!(Entry::decode(&mut again), Ok(decoded));
        assert!(again.is_empty());
    }
    assert!(entry::entries(data).count() <= data.len());
});

fn same(effect: &Effect<'_>) {
    let mut bytes = Vec::new();
    effect.encode(&mut bytes);
    assert_eq!(Effect::decode(&mut &bytes[..]).as_ref(), Ok(effect));
}
