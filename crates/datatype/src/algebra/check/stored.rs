//! Types that the store keeps: shapes, encoded operations, chunks.

use super::{Lines, MAX_PACKED, canonical, group, shown, tiny_tuning};
use crate::algebra::{Corrupt, DataType, Operation, Tuning};
use rufous_base::rng::Rng;

/// More chunks than any sampled state has, by far.
const MOST_CHUNKS: usize = 100_000;

pub(super) fn round<T: DataType>(rng: &mut Rng) -> Result<(), String> {
    let state = T::sample_state(rng);
    let seed = rng.next_u64();
    if !T::is_empty(T::view(&state)) {
        chunks::<T>(&state, rng)?;
    }
    let other = reshaped::<T>(&state, &tiny_tuning(seed))?;
    group::check::<T>(&other, &tiny_tuning(seed), rng)?;
    shapes::<T>(state.clone(), other, seed, rng)?;
    encodings::<T>(&state, rng)
}

/// What can be asked of a state without an operation.
fn consistent<T: DataType>(state: &T::State) -> Result<(), String> {
    let (view, known) = (T::view(state), canonical::<T>(state));
    let lines = |what: &str| {
        Lines::new(what)
            .add("state", shown(&known))
            .add("", format!("{state:?}"))
    };
    if T::is_empty(view) != (known == canonical::<T>(&T::empty())) {
        return lines("is_empty must tell exactly the states that are like a missing key").fail();
    }
    let Some(bytes) = T::packed(state) else {
        if T::into_buffer(state.clone()).is_some() {
            return lines("a state that is not packed has a buffer").fail();
        }
        return Ok(());
    };
    if bytes.len() > MAX_PACKED {
        return lines("a packed state is larger than MAX_PACKED").fail();
    }
    let packed = T::packed_view(bytes);
    if T::canonical(packed) != known || T::len(packed) != T::len(view) {
        return lines("packed bytes look different")
            .add("bytes", shown(bytes))
            .fail();
    }
    if canonical::<T>(&T::from_packed(bytes.to_vec())) != known {
        return lines("from_packed gives another state")
            .add("bytes", shown(bytes))
            .fail();
    }
    match T::into_buffer(state.clone()) {
        Some(_) => Ok(()),
        None => lines("a packed state has no buffer").fail(),
    }
}

/// The same state, element by element, as this tuning shapes it.
fn reshaped<T: DataType>(state: &T::State, tuning: &Tuning) -> Result<T::State, String> {
    let mut other = T::empty();
    if T::is_empty(T::view(state)) {
        return Ok(other);
    }
    for chunk in &chunks_of::<T>(state, 64)? {
        extend::<T>(&mut other, chunk, tuning)?;
    }
    Ok(other)
}

fn extend<T: DataType>(state: &mut T::State, chunk: &[u8], tuning: &Tuning) -> Result<(), String> {
    T::extend(state, chunk, tuning).or_else(|_| {
        Lines::new("extend refuses a chunk")
            .add("chunk", shown(chunk))
            .fail()
    })
}

fn chunks_of<T: DataType>(state: &T::State, budget: usize) -> Result<Vec<Vec<u8>>, String> {
    let (mut chunks, mut at) = (Vec::new(), 0);
    while chunks.len() < MOST_CHUNKS {
        let mut chunk = Vec::new();
        let next = T::chunk(T::view(state), at, budget, &mut chunk);
        chunks.push(chunk);
        match next {
            Some(next) => at = next,
            None => return Ok(chunks),
        }
    }
    Lines::new("chunk comes to no end")
        .state::<T>("state", state)
        .fail()
}

fn chunks<T: DataType>(state: &T::State, rng: &mut Rng) -> Result<(), String> {
    let tunings = [Tuning::default(), tiny_tuning(rng.next_u64())];
    for shape in &tunings {
        let from = reshaped::<T>(state, shape)?;
        for budget in [1, 7, 64, 1 << 20] {
            let chunks = chunks_of::<T>(&from, budget)?;
            for tuning in &tunings {
                let mut again = T::empty();
                for chunk in &chunks {
                    extend::<T>(&mut again, chunk, tuning)?;
                }
                if canonical::<T>(&again) != canonical::<T>(state) {
                    return Lines::new("chunks give another state")
                        .state::<T>("state", state)
                        .add(
                            "chunks",
                            format!("{:?}", chunks.iter().map(|c| shown(c)).collect::<Vec<_>>()),
                        )
                        .state::<T>("gives", &again)
                        .fail();
                }
            }
        }
        spoilt_chunks::<T>(&chunks_of::<T>(&from, 64)?, rng)?;
    }
    Ok(())
}

/// Chunks may come from a file: whatever they hold, there is a state or an
/// error, and the state is sound.
fn spoilt_chunks<T: DataType>(chunks: &[Vec<u8>], rng: &mut Rng) -> Result<(), String> {
    for chunk in chunks {
        let tuning = super::sample_tuning(rng);
        let mut state = T::empty();
        let outcome = T::extend(&mut state, &spoilt(chunk, rng), &tuning);
        if outcome != Err(Corrupt) {
            consistent::<T>(&state)?;
            chunks_of::<T>(&state, 64)?;
            let op = T::sample_op(rng);
            T::apply(&mut state, &op, &tuning);
            consistent::<T>(&state)?;
        }
    }
    Ok(())
}

/// Cut, altered, or something else altogether.
fn spoilt(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match rng.below(4) {
        0 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
        1 => bytes = (0..rng.below(24)).map(|_| rng.next_u64() as u8).collect(),
        _ => {
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len().max(1) as u64) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= rng.next_u64() as u8;
                }
            }
        }
    }
    bytes
}

/// The same operations on both shapes.
fn shapes<T: DataType>(
    mut one: T::State,
    mut other: T::State,
    seed: u64,
    rng: &mut Rng,
) -> Result<(), String> {
    let (plain, tiny) = (Tuning::default(), tiny_tuning(seed));
    for _ in 0..12 {
        consistent::<T>(&one)?;
        consistent::<T>(&other)?;
        let op = T::sample_op(rng);
        in_place::<T>(&one, &op, &plain, rng)?;
        in_place::<T>(&other, &op, &tiny, rng)?;
        let before = canonical::<T>(&one);
        let (a, b) = (
            T::apply(&mut one, &op, &plain),
            T::apply(&mut other, &op, &tiny),
        );
        let alike = canonical::<T>(&one) == canonical::<T>(&other)
            && T::len(T::view(&one)) == T::len(T::view(&other));
        if a != b || !alike {
            return Lines::new("an operation is another on another shape")
                .add("state", shown(&before))
                .add("operation", format!("{op:?}"))
                .add(
                    "one shape",
                    format!("{a:?} leaves {}", shown(&canonical::<T>(&one))),
                )
                .add("", format!("{one:?}"))
                .add(
                    "other shape",
                    format!("{b:?} leaves {}", shown(&canonical::<T>(&other))),
                )
                .add("", format!("{other:?}"))
                .fail();
        }
    }
    Ok(())
}

/// What is done to packed bytes where they lie is what is done to a state, in
/// any room; where it is not done, the bytes are as they were.
fn in_place<T: DataType>(
    state: &T::State,
    op: &T::Op<'_>,
    tuning: &Tuning,
    rng: &mut Rng,
) -> Result<(), String> {
    let Some(bytes) = T::packed(state).filter(|_| !T::is_empty(T::view(state))) else {
        return Ok(());
    };
    let mut room = bytes.to_vec();
    room.resize(bytes.len() + rng.below(12) as usize, 0xA5);
    let len = T::commit_packed(&mut room, bytes.len(), op, tuning);
    let mut expected = state.clone();
    if len.is_some() {
        T::commit(&mut expected, op, tuning);
    }
    let found = room.get(..len.unwrap_or(bytes.len())).unwrap_or_default();
    let alike = T::canonical(T::packed_view(found)) == canonical::<T>(&expected)
        && T::len(T::packed_view(found)) == T::len(T::view(&expected));
    if !alike || found.len() > MAX_PACKED {
        return Lines::new("an operation is another where the bytes lie")
            .state::<T>("state", state)
            .add("operation", format!("{op:?}"))
            .add("leaves", shown(found))
            .state::<T>("expected", &expected)
            .fail();
    }
    // Its shape is the one that the state has.
    match len.is_some() && T::packed(&expected).is_none() {
        true => Lines::new("an operation leaves packed what is to be large")
            .state::<T>("state", state)
            .add("operation", format!("{op:?}"))
            .fail(),
        false => Ok(()),
    }
}

/// Committed operations, as logs and replicas have them.
fn encodings<T: DataType>(state: &T::State, rng: &mut Rng) -> Result<(), String> {
    let (tuning, mut bytes, mut expected) = (Tuning::default(), Vec::new(), state.clone());
    for _ in 0..4 {
        let op = T::sample_op(rng);
        if op.is_read() {
            continue;
        }
        let start = bytes.len();
        T::encode(&op, &mut bytes);
        T::commit(&mut expected, &op, &tuning);
        let mut decoded = expected_after::<T>(state, &bytes[..start], &tuning)?;
        let mut rest = &bytes[start..];
        let again = T::decode(&mut rest);
        if let Ok(op) = &again {
            T::commit(&mut decoded, op, &tuning);
        }
        if again.is_err()
            || !rest.is_empty()
            || canonical::<T>(&decoded) != canonical::<T>(&expected)
        {
            return Lines::new("an encoded operation is another when decoded")
                .state::<T>("state", state)
                .add("operation", format!("{op:?}"))
                .add("bytes", shown(&bytes[start..]))
                .add("decoded", format!("{again:?}, {} bytes left", rest.len()))
                .state::<T>("leaves", &decoded)
                .state::<T>("expected", &expected)
                .fail();
        }
    }
    for cut in 0..bytes.len() {
        expected_after::<T>(state, &bytes[..cut], &tuning)?;
    }
    for _ in 0..4 {
        expected_after::<T>(state, &spoilt(&bytes, rng), &tuning)?;
    }
    Ok(())
}

/// Commits what can be decoded, up to the first thing that cannot.
fn expected_after<T: DataType>(
    state: &T::State,
    mut bytes: &[u8],
    tuning: &Tuning,
) -> Result<T::State, String> {
    let mut state = state.clone();
    while !bytes.is_empty() {
        let before = bytes.len();
        let Ok(op) = T::decode(&mut bytes) else {
            break;
        };
        if bytes.len() >= before {
            return Lines::new("decode takes nothing and calls it an operation")
                .add("bytes", shown(bytes))
                .add("operation", format!("{op:?}"))
                .fail();
        }
        T::commit(&mut state, &op, tuning);
    }
    consistent::<T>(&state)?;
    Ok(state)
}
