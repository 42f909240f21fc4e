//! Ports from many threads and from two processes, and ports that others listen on.

use crate::given::{BLOCK, Given, SINGLE};
use crate::page::{self, Page, SIZE};
use crate::system::first_own_port;
use crate::{free_block, free_port, free_ports};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpListener;
use std::ops::Range;
use std::process::{Command, Stdio};

/// Where the process looks first that the tests start.
const SEED: &str = "RUFOUS_TEST_PORTS_SEED";
/// More than a page has.
const MANY: usize = 40;
const DISTANCES: [u16; 4] = [0, 10_000, 20_000, 30_000];

fn given(seed: u32) -> Given {
    Given::new(first_own_port(), seed)
}

fn some(given: &mut Given) -> Vec<u16> {
    (0..MANY).map(|_| given.port().expect("a port")).collect()
}

/// All differ.
#[track_caller]
fn assert_distinct(ports: &[u16]) {
    let distinct: BTreeSet<u16> = ports.iter().copied().collect();
    assert_eq!(distinct.len(), ports.len(), "{ports:?}");
}

#[test]
fn no_port_is_given_twice_to_threads() {
    let threads: Vec<_> = (0..8)
        .map(|_| {
            std::thread::spawn(|| {
                let mut ports = Vec::from(free_ports::<7>().expect("ports"));
                ports.extend((0..20).map(|_| free_port().expect("a port")));
                let first = free_block(3, &DISTANCES).expect("a block");
                let rows = DISTANCES.map(|distance| first + distance);
                ports.extend(rows.into_iter().flat_map(|first| first..first + 3));
                ports
            })
        })
        .collect();
    let ports = threads
        .into_iter()
        .flat_map(|all| all.join().expect("fine"));
    let ports: Vec<u16> = ports.collect();
    assert_eq!(ports.len(), 8 * (7 + 20 + 12));
    assert_distinct(&ports);
    assert!(ports.iter().all(|port| *port < first_own_port()));
    for port in ports {
        TcpListener::bind(("127.0.0.1", port)).expect("it is free");
    }
}

/// Is nothing by itself: the next test runs it in a process of its own, until its input ends.
#[test]
fn another_process() {
    let Ok(seed) = std::env::var(SEED) else {
        return;
    };
    let mut given = given(seed.parse().expect("a number"));
    let mut ports = some(&mut given);
    ports.push(given.block(2, &DISTANCES).expect("a block"));
    println!("\nports {ports:?}");
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn no_port_is_given_to_two_processes() {
    let seed = std::process::id();
    let mut mine = given(seed);
    let mut ports = some(&mut mine);
    let mut blocks = vec![mine.block(2, &DISTANCES).expect("a block")];
    // It begins to look where this one began.
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "tests::another_process", "--nocapture"])
        .env(SEED, seed.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let theirs = lines.find_map(|line| {
        let list = line.expect("text");
        let list = list.strip_prefix("ports [")?.strip_suffix(']')?.to_owned();
        let numbers = list.split(", ").map(|port| port.parse().expect("a port"));
        Some(numbers.collect::<Vec<u16>>())
    });
    let theirs = theirs.expect("it says what it has");
    assert_eq!(theirs.len(), MANY + 1);
    ports.extend(&theirs[..MANY]);
    blocks.push(theirs[MANY]);
    // While it has them this one goes on.
    ports.extend(some(&mut mine));
    blocks.push(mine.block(2, &DISTANCES).expect("a block"));
    drop(child.stdin.take());
    assert!(child.wait().expect("ended").success());
    assert_distinct(&ports);
    assert_distinct(&blocks);
}

/// A place to look first, where the ports at these distances above the first are free and nobody's; they
/// are listened on from now on.
fn listened(rooms: Range<u16>, address: &str, distances: &[u16]) -> (u32, u16, Vec<TcpListener>) {
    let seeds = (0..).map(|at: u32| (at, at.wrapping_mul(31) % rooms.len() as u32));
    for (seed, at) in seeds.take(rooms.len()) {
        let first = (rooms.start + at as u16) * SIZE;
        let all: Vec<u16> = distances.iter().map(|distance| first + distance).collect();
        let pages: BTreeSet<u16> = all.iter().map(|port| port / SIZE).collect();
        let held: Option<Vec<Page>> = pages
            .into_iter()
            .map(|page| Page::hold(page).expect("asked"))
            .collect();
        let bound: Option<Vec<_>> = held.as_ref().and_then(|_| {
            let all = all.iter();
            all.map(|port| TcpListener::bind((address, *port)).ok())
                .collect()
        });
        if let Some(bound) = bound {
            return (seed, first, bound);
        }
    }
    panic!("no page is free");
}

#[test]
fn what_somebody_listens_on_is_not_given() {
    let pages = SINGLE / SIZE..first_own_port() / SIZE;
    let mut addresses = vec!["127.0.0.1", "0.0.0.0", "127.0.0.3"];
    // Not every system has it.
    addresses.extend(TcpListener::bind(("::1", 0)).map(|_| "::1"));
    for address in addresses {
        let (seed, first, listeners) = listened(pages.clone(), address, &[0, 2]);
        assert!(!page::is_free(first).expect("asked"), "{address}");
        let ports = some(&mut given(seed));
        assert!(!ports.contains(&first), "{address}: {ports:?}");
        assert!(!ports.contains(&(first + 2)), "{address}: {ports:?}");
        drop(listeners);
    }
}

#[test]
fn a_block_is_free_at_all_its_distances() {
    let rooms = BLOCK / SIZE..(first_own_port() - 30_000 - 20) / SIZE + 1;
    for distance in [0, 10_000, 20_000, 30_001] {
        let (seed, first, listeners) = listened(rooms.clone(), "127.0.0.1", &[distance]);
        let block = given(seed).block(20, &DISTANCES).expect("a block");
        assert_ne!(block, first, "{distance}");
        drop(listeners);
    }
    let first = free_block(20, &DISTANCES).expect("a block");
    let rows = DISTANCES.map(|distance| first + distance);
    let ports = rows.into_iter().flat_map(|first| first..first + 20);
    let all: Vec<_> = ports
        .map(|port| TcpListener::bind(("0.0.0.0", port)).expect("it is free"))
        .collect();
    assert_eq!(all.len(), 80);
}

/// A page of a block's row is no other's, as little as one for single ports.
#[test]
fn a_page_has_one_owner() {
    let first = free_block(2, &[0, 3, 10_000]).expect("a block");
    for port in [first, first + 4, first + 10_001] {
        assert!(Page::hold(port / SIZE).expect("asked").is_none(), "{port}");
    }
    let port = free_port().expect("a port");
    assert!(Page::hold(port / SIZE).expect("asked").is_none(), "{port}");
}

#[test]
fn where_there_is_none_it_is_said_what_to_do() {
    let mut none = Given::new(1024, 1);
    let all = [
        none.port(),
        none.block(3, &[0]),
        given(1).block(2, &[40_000]),
    ];
    for why in all.map(|none| none.expect_err("there is no room")) {
        assert_eq!(why.kind(), ErrorKind::AddrNotAvailable);
        let text = why.to_string();
        assert!(
            text.contains("ss -ltn") && text.contains("sysctl"),
            "{text}"
        );
    }
    // What there is runs out, and what is over does not come again.
    let pages = 3;
    let mut few = Given::new(SINGLE + pages * SIZE, 7);
    let ports: Vec<u16> = std::iter::from_fn(|| few.port().ok()).collect();
    assert!(ports.len() <= usize::from(pages * SIZE));
    assert_distinct(&ports);
    for wrong in [few.block(0, &[0]), few.block(1, &[])] {
        let why = wrong.expect_err("no block");
        assert_eq!(why.kind(), ErrorKind::InvalidInput);
    }
}
