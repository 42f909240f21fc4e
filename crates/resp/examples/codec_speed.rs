//! Time per request and per reply of the codec on one core:
//! `cargo run --release -p rufous-resp --example codec_speed`.

use std::hint::black_box;
use std::time::Instant;

use rufous_resp::{Limits, Progress, RequestParser, encode, skip_reply};

/// Requests in one buffer, as a pipelining client fills it.
const BATCH: usize = 64;
const ROUNDS: usize = 50_000;
/// The best of so many measurements: the others were disturbed.
const REPEATS: usize = 7;

fn main() {
    let long = vec![b'v'; 1024];
    parse("GET key", &[b"GET", b"key:000012345"]);
    parse(
        "SET key value",
        &[b"SET", b"key:000012345", b"value-xxxxxxxxxxxx"],
    );
    parse("SET key 1 KiB", &[b"SET", b"key:000012345", &long]);
    parse_split();
    time("write bulk of 16 bytes", |out| {
        encode::bulk(out, black_box(&[b'v'; 16]))
    });
    time("write bulk of 1 KiB", |out| {
        encode::bulk(out, black_box(&long))
    });
    time("write integer", |out| {
        encode::integer(out, black_box(12345))
    });
    time("write double", |out| {
        encode::double(out, encode::Proto::Resp3, black_box(12.345))
    });
    time("skip bulk reply", |_| {
        black_box(skip_reply(black_box(b"$5\r\nhello\r\n")).ok());
    });
}

fn parse(name: &str, args: &[&[u8]]) {
    let mut input = Vec::new();
    for _ in 0..BATCH {
        encode::request(&mut input, args);
    }
    let mut parser = RequestParser::new();
    let mut spans = Vec::new();
    let limits = Limits::default();
    let best = best_of(|| {
        for _ in 0..ROUNDS / BATCH {
            let mut at = 0;
            spans.clear();
            while at < input.len() {
                match parser.parse(black_box(&input[at..]), &mut spans, &limits) {
                    Ok(Progress::Request { consumed }) => at += consumed,
                    other => panic!("{other:?}"),
                }
            }
            black_box(&spans);
        }
    });
    report(&format!("parse {name}"), best, ROUNDS / BATCH * BATCH);
}

/// A request whose last byte comes late: the resumable way.
fn parse_split() {
    let mut input = Vec::new();
    encode::request(&mut input, &["SET", "key:000012345", "value-xxxxxxxxxxxx"]);
    let mut parser = RequestParser::new();
    let mut spans = Vec::new();
    let limits = Limits::default();
    let best = best_of(|| {
        for _ in 0..ROUNDS {
            spans.clear();
            let first = &input[..input.len() - 1];
            black_box(parser.parse(black_box(first), &mut spans, &limits).ok());
            black_box(parser.parse(black_box(&input), &mut spans, &limits).ok());
        }
    });
    report("parse SET key value in two pieces", best, ROUNDS);
}

fn time(name: &str, write: impl Fn(&mut Vec<u8>)) {
    let mut out = Vec::new();
    let best = best_of(|| {
        for _ in 0..ROUNDS / BATCH {
            out.clear();
            for _ in 0..BATCH {
                write(&mut out);
            }
            black_box(&out);
        }
    });
    report(name, best, ROUNDS / BATCH * BATCH);
}

fn best_of(mut run: impl FnMut()) -> f64 {
    let times = (0..REPEATS).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    times.fold(f64::INFINITY, f64::min)
}

fn report(name: &str, seconds: f64, count: usize) {
    println!("{name:36} {:7.1} ns", seconds * 1e9 / count as f64);
}
