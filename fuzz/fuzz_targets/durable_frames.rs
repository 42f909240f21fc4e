//! Any bytes as a file of frames: the same frames, the same end and the same evidence behind it
//! however they are split; and whole frames of that file before them are found in any case.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_kernel::durable::{
    DataFile, EvidenceFinder, FileHeader, FileKind, FrameReader, Step, entry, file, frame,
};

const HEADER: FileHeader = FileHeader {
    kind: FileKind::Log,
    generation: 1,
    worker: 0,
    workers: 1,
    index: 0,
    run: 1,
    first_seq: 0,
    salt: 0,
    reserved: 0,
};

fuzz_target!(|data: &[u8]| {
    let Some((cuts, input)) = data.split_first_chunk::<4>() else {
        return;
    };
    if let Ok(header) = FileHeader::decode(input) {
        assert_eq!(header.encode(), input[..file::HEADER_BYTES]);
        assert_eq!(DataFile::parse(&header.file().name()), Some(header.file()));
    }
    if let Ok(name) = std::str::from_utf8(input)
        && let Some(file) = DataFile::parse(name)
    {
        assert_eq!(*file.name(), *name);
    }

    let whole = read(input, |_| input.len());
    let split = read(input, |at| cuts[at % 4] as usize % 50);
    assert_eq!(whole, split);
    assert_eq!(whole, read(input, |_| 1));

    // Behind a frame the same bytes are read in the same way, if they are not taken for the frame.
    let mut after = Vec::new();
    frame::encode(&mut after, HEADER.frame_seed(), 0, 0, b"a frame");
    after.extend_from_slice(input);
    assert!(read(&after, |_| 100).starts_with("0:7 "));

    // One bit, wherever it is behind the length: that is certain to be seen.
    let bit = 64 + usize::from(cuts[0]) % (23 * 8);
    after[bit / 8] ^= 1 << (bit % 8);
    assert!(!read(&after, |_| 100).starts_with("0:"));
});

/// What a reader and a search for evidence find, as text.
fn read(input: &[u8], piece: impl Fn(usize) -> usize) -> String {
    let file_bytes = (file::HEADER_BYTES + input.len()) as u64;
    let mut reader = FrameReader::new(&HEADER, file_bytes);
    let (mut text, mut at) = (String::new(), 0);
    loop {
        match reader.next() {
            Step::Frame(frame) => {
                text += &format!("{}:{} ", frame.seq, frame.payload.len());
                assert!(entry::entries(frame.payload).count() <= frame.payload.len());
            }
            Step::NeedMore => {
                let end = input.len().min(at + piece(at).max(1));
                assert!(at < end, "it wants more than there is");
                reader.feed(&input[at..end]);
                at = end;
            }
            Step::End { offset, seq } => return text + &format!("end {offset} {seq}"),
            Step::Bad(bad) => {
                let from = (bad.offset as usize) - file::HEADER_BYTES;
                let mut finder = EvidenceFinder::new(&HEADER, file_bytes, bad.offset, bad.seq);
                let mut at = from;
                while at < input.len() {
                    let end = input.len().min(at + piece(at).max(1));
                    finder.feed(&input[at..end]);
                    at = end;
                }
                return text + &format!("{bad:?} {:?}", finder.found());
            }
        }
    }
}
