//! Any bytes as a request stream: the same requests and the same error, whole, dripped and in the
//! pieces that the first four bytes of the input choose.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rufous_resp::Limits;

#[path = "../../crates/resp/tests/all/common/mod.rs"]
#[allow(dead_code)]
mod common;

use common::read_all;

fuzz_target!(|data: &[u8]| {
    let Some((cuts, input)) = data.split_first_chunk::<4>() else {
        return;
    };
    // Limits that short inputs reach.
    let limits = Limits {
        max_bulk: 300,
        max_args: 20,
        max_inline: 40,
        big_arg: 16,
        ..Limits::default()
    };
    let whole = read_all(input, |_| input.len(), &limits);
    let split = read_all(input, |at| cuts[at % 4] as usize % 50, &limits);
    assert_eq!(whole, split);
    assert_eq!(whole, read_all(input, |_| 1, &limits));
    // The real limits must not panic or loop either.
    read_all(input, |at| cuts[at % 4] as usize, &Limits::default());
    read_all(
        input,
        |at| cuts[at % 4] as usize,
        &Limits::unauthenticated(),
    );
});
