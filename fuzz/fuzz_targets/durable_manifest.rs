//! Any bytes as a manifest: what is read is written again byte for byte, so that nothing else is
//! read; also where the checksum is right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_kernel::durable::Manifest;

fuzz_target!(|data: &[u8]| {
    check(data);
    let crc = crc32fast::hash(data);
    let mut sealed = data.to_vec();
    sealed.extend_from_slice(format!("crc {crc:08x}\n").as_bytes());
    check(&sealed);
});

fn check(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::decode(bytes) {
        assert_eq!(manifest.encode(), bytes);
    }
}
