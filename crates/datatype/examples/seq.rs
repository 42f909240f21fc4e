//! What operations of a `Seq` cost and what it takes per item: `cargo run --release --example seq [items]`.

use std::hint::black_box;
use std::time::Instant;

use rufous_datatype::pack::{self, Pack};
use rufous_datatype::seq::Seq;

/// A stream of numbers, the same on every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn timed(name: &str, times: usize, mut work: impl FnMut(usize)) {
    let start = Instant::now();
    (0..times).for_each(&mut work);
    let nanos = start.elapsed().as_nanos() as f64 / times as f64;
    println!("{name:<44} {nanos:>9.1} ns");
}

fn per_item(name: &str, seq: &Seq, payload: usize) {
    let bytes = seq.bytes() as f64 / seq.len() as f64;
    println!("{name:<44} {bytes:>9.2} bytes an item of {payload}");
}

fn packs() {
    let mut buf = Vec::new();
    for index in 0..128 {
        pack::push(&mut buf, format!("field:{index:06}").as_bytes());
    }
    let fields: Vec<String> = (0..128).map(|index| format!("field:{index:06}")).collect();
    timed(
        "pack: find among 128 entries of 12 bytes",
        1_000_000,
        |index| {
            black_box(Pack(black_box(&buf)).find(fields[index % 128].as_bytes()));
        },
    );
    timed("pack: find none", 1_000_000, |_| {
        black_box(Pack(black_box(&buf)).find(b"field:999999"));
    });
}

fn queues(items: usize) {
    let item = [b'x'; 16];
    let mut seq = Seq::new();
    timed("push_back", items, |_| seq.push_back(&item));
    per_item("  grown at the back", &seq, item.len());
    timed("pop_front", items / 2, |_| {
        seq.pop_front_with(|item| item.len());
    });
    timed("pop_back", items / 2, |_| {
        seq.pop_back_with(|item| item.len());
    });
    timed("push_front", items, |_| seq.push_front(&item));
    per_item("  grown at the front", &seq, item.len());
    timed("push_front, pop_back (a queue that stays)", items, |_| {
        seq.push_front(&item);
        seq.pop_back_with(|item| item.len());
    });
    let mut short: Seq = (0..100).map(|_| &item[..]).collect();
    timed("push_front, pop_back of 100 items", items, |_| {
        short.push_front(&item);
        short.pop_back_with(|item| item.len());
    });
    let mut dice = Dice(1);
    timed("get at random", items, |_| {
        black_box(seq.get(dice.roll() as usize % items));
    });
    timed("replace at random", items, |_| {
        seq.replace(dice.roll() as usize % items, &item);
    });
    timed("insert, remove at random", items, |_| {
        seq.insert(dice.roll() as usize % items, &item);
        seq.remove_with(dice.roll() as usize % items, |item| item.len());
    });
    timed("iterate, an item", 1, |_| {
        black_box(seq.iter().map(<[u8]>::len).sum::<usize>());
    });
    timed("iterate backward, an item", 1, |_| {
        black_box(seq.iter_back_from(items).map(<[u8]>::len).sum::<usize>());
    });
    timed("clone, write and drop", 1_000, |index| {
        let kept = seq.clone();
        seq.replace(index, &item);
        drop(kept);
    });
    timed("remove_range of a thousand", 200, |_| {
        let at = dice.roll() as usize % (seq.len() - 1_000);
        seq.remove_range(at..at + 1_000);
    });
}

fn member(buf: &mut Vec<u8>, score: u64, number: u64) {
    buf.clear();
    buf.extend_from_slice(&score.to_be_bytes());
    buf.extend_from_slice(b"member:");
    buf.extend_from_slice(&number.to_be_bytes()[4..]);
}

fn sorted(name: &str, items: usize, score: impl Fn(u64) -> u64) {
    let (mut seq, mut buf, mut dice) = (Seq::new(), Vec::new(), Dice(2));
    let numbers: Vec<u64> = (0..items).map(|_| dice.roll() >> 32).collect();
    timed(&format!("insert_sorted, {name}"), items, |index| {
        member(&mut buf, score(numbers[index]), numbers[index]);
        seq.insert_sorted(&buf);
    });
    per_item("  sorted", &seq, buf.len());
    timed(&format!("rank, {name}"), items, |index| {
        let number = numbers[index.wrapping_mul(7_919) % items];
        member(&mut buf, score(number), number);
        black_box(seq.rank(&buf).is_ok());
    });
    timed(&format!("partition_point, {name}"), items / 4, |index| {
        let number = numbers[index.wrapping_mul(7_919) % items];
        member(&mut buf, score(number), number);
        black_box(seq.partition_point(|item| item < &buf[..]));
    });
    timed(
        &format!("remove_sorted + insert_sorted, {name}"),
        items,
        |index| {
            let number = numbers[index.wrapping_mul(7_919) % items];
            member(&mut buf, score(number), number);
            seq.remove_sorted(&buf);
            seq.insert_sorted(&buf);
        },
    );
    timed(&format!("remove_sorted, {name}"), items, |index| {
        member(&mut buf, score(numbers[index]), numbers[index]);
        seq.remove_sorted(&buf);
    });
}

fn main() {
    let items = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(1_000_000);
    packs();
    queues(items);
    sorted("scores spread", items, |number| number);
    sorted("scores alike", items, |_| 0);
}
