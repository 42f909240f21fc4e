//! What the operations of a [`Dict`] cost, and what an element takes:
//! `cargo run --release -p rufous-datatype --example dict [elements…]`.

use rufous_base::rng::Rng;
use rufous_datatype::dict::Dict;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Processor time of this thread, which others on the machine do not inflate.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// The processor time since then, or the clock's where that was too short: it counts in ticks.
fn spent(start: Duration, clock: Instant) -> Duration {
    let elapsed = clock.elapsed();
    let spent = cpu() - start;
    if elapsed < Duration::from_millis(50) {
        elapsed
    } else {
        spent
    }
}

/// Times calls that the two tables, equal at first, are given alike: nanoseconds of processor time each, over the
/// first half, and over the second the longest call in microseconds. Of the two tables' times the shorter counts:
/// what interrupts one is not likely to interrupt the other.
fn time(
    dicts: &mut [Dict; 2],
    operations: u64,
    mut call: impl FnMut(&mut Dict, u64),
) -> (f64, f64) {
    let half = operations / 2;
    let (start, clock) = (cpu(), Instant::now());
    for dict in &mut *dicts {
        (0..half).for_each(|n| call(dict, n));
    }
    let each = spent(start, clock).as_nanos() as f64 / (2 * half) as f64;
    let mut longest = Duration::ZERO;
    for n in half..operations {
        let [one, two] = dicts.each_mut().map(|dict| {
            let start = Instant::now();
            call(dict, n);
            start.elapsed()
        });
        longest = longest.max(one.min(two));
    }
    (each, longest.as_nanos() as f64 / 1e3)
}

fn print(name: &str, (each, longest): (f64, f64)) {
    println!("  {name:<24} {each:>7.1} ns   longest {longest:>8.1} us");
}

/// The `n`th member: distinct, in no order, of `width` bytes.
fn member(n: u64, buffer: &mut [u8]) -> &[u8] {
    buffer[..8].copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    buffer
}

fn measure(count: u64, width: usize, value: &[u8]) {
    println!(
        "{count} members of {width} bytes, values of {}",
        value.len()
    );
    let mut buffer = vec![b'-'; width];
    let mut dicts = [Dict::new(17), Dict::new(17)];
    let insert = time(&mut dicts, count, |dict, n| {
        dict.insert(member(n, &mut buffer), value);
    });
    print("insert", insert);
    println!(
        "  {:<24} {:>7.2} bytes; {:.0} elements a segment",
        "an element",
        dicts[0].bytes() as f64 / count as f64,
        count as f64 / dicts[0].segments() as f64,
    );
    let turns = count.clamp(400_000, 2_000_000);
    let any = |n: u64| Rng::new(n).below(count);
    let get = time(&mut dicts, turns, |dict, n| {
        black_box(dict.get(member(any(n), &mut buffer)));
    });
    print("get", get);
    let absent = time(&mut dicts, turns, |dict, n| {
        black_box(dict.get(member(count + any(n), &mut buffer)));
    });
    print("get what is absent", absent);
    let overwrite = time(&mut dicts, turns, |dict, n| {
        dict.overwrite(member(any(n), &mut buffer), |value| value.fill(n as u8));
    });
    print("overwrite", overwrite);
    let random = time(&mut dicts, turns / 4, |dict, n| {
        black_box(dict.random(&mut Rng::new(n)));
    });
    print("random", random);
    let scan = time(&mut dicts, count.min(100_000), |dict, n| {
        let cursor = Rng::new(n).below(1 << 48);
        dict.scan(cursor, 10, &mut |key, _| {
            black_box(key);
        });
    });
    print("scan of 10", scan);
    copies(&mut dicts, count, &mut buffer, value);
    let churn = time(&mut dicts, turns, |dict, n| {
        dict.remove(member(n, &mut buffer));
        dict.insert(member(n + count, &mut buffer), value);
    });
    print("remove one, insert one", churn);
    let remove = time(&mut dicts, count, |dict, n| {
        dict.remove(member(turns + n, &mut buffer));
    });
    print("remove all", remove);
    println!("  {:<24} {:>7} bytes", "left", dicts[0].bytes());
}

/// Clones, writes to the clones' originals, and walks a clone.
fn copies(dicts: &mut [Dict; 2], count: u64, buffer: &mut [u8], value: &[u8]) {
    let start = Instant::now();
    let clones = dicts.clone();
    println!(
        "  {:<24} {:>7.1} us",
        "clone",
        start.elapsed().as_nanos() as f64 / 2e3
    );
    let copying = time(dicts, 2_000, |dict, n| {
        let member = member(Rng::new(n).below(count), buffer);
        if n % 2 == 0 {
            dict.overwrite(member, |value| value.fill(n as u8));
        } else {
            dict.insert(member, value);
        }
    });
    print("write after clone", copying);
    let (start, clock) = (cpu(), Instant::now());
    let lengths = clones[0].iter().map(|(key, value)| key.len() + value.len());
    black_box(lengths.sum::<usize>());
    let each = spent(start, clock).as_nanos() as f64 / count as f64;
    println!("  {:<24} {each:>7.1} ns", "iterate");
}

fn main() {
    let given: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|n| n.parse().ok())
        .collect();
    let counts = if given.is_empty() {
        vec![129, 1_000, 1_000_000, 10_000_000]
    } else {
        given
    };
    for count in counts {
        measure(count, 8, b"");
        measure(count, 16, b"12345678");
    }
}
