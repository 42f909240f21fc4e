//! What one short request may cost everyone else: how long a PING waits beside it, and how much
//! memory it takes.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use serde::Serialize;
use serde_json::json;

use super::{Context, command};
use crate::client::{Client, encode};
use crate::options::RUFOUS;
use crate::procfs::{peak_resident_bytes, resident_bytes};
use crate::progress::Progress;
use crate::report::Report;
use crate::servers::{Server, ServerSpec};
use crate::table::Table;

/// Between two PINGs.
const SPACING: Duration = Duration::from_micros(500);
/// PINGs go on for so long after the end of the request and of its connection.
const AFTER: Duration = Duration::from_millis(300);
/// No more of a reply is read.
const MOST_READ: usize = 64 << 20;
/// A client that never reads is closed after this.
const IGNORED: Duration = Duration::from_secs(2);
/// Commands in one write while the data is made.
const BATCH: u64 = 1000;
/// Draws that no client could hold.
const DRAWS: &str = "-100000000";

/// How the client that sends the request takes its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Reader {
    Reads,
    Never,
}

#[derive(Serialize)]
struct Outcome {
    request: String,
    reader: Reader,
    /// Until the first bytes of the reply came, if they were read.
    answered_ms: f64,
    /// Bytes of the reply that were read.
    read: usize,
    error: bool,
    longest_ms: f64,
    /// Memory above that before the request.
    peak_mb: f64,
}

pub fn run(context: &mut Context) -> Result<Report> {
    let specs = context.options.contestants()?;
    let Some(spec) = specs.iter().find(|spec| spec.name == RUFOUS) else {
        bail!("no Rufous among the servers");
    };
    let elements = context.options.keys();
    let rows = rows(elements);
    let progress = Progress::new("short-commands", rows.len() as u64 + 1);
    let server = Server::start(spec)?;
    context.note_version(&server)?;
    progress.doing("making collections");
    fill(&server, elements)?;
    progress.advance(1);
    let mut outcomes = Vec::new();
    for (request, reader) in rows {
        progress.doing(&request);
        let outcome = measure(&server, &request, reader)?;
        progress.say(&format!(
            "{request}, {reader:?}: a PING waited for {:.1} ms, {:.0} MB more",
            outcome.longest_ms, outcome.peak_mb
        ));
        outcomes.push(outcome);
        progress.advance(1);
    }
    Ok(report(spec, &outcomes, elements))
}

/// Requests on the collections that [`fill`] makes. Those that change them come last.
fn rows(elements: u64) -> Vec<(String, Reader)> {
    let read = [
        "PING",
        &format!("SRANDMEMBER set {DRAWS}"),
        &format!("HRANDFIELD hash {DRAWS} WITHVALUES"),
        &format!("ZRANDMEMBER sorted {DRAWS} WITHSCORES"),
        "SMEMBERS set",
        "HGETALL hash",
        "HVALS hash",
        "LRANGE list 0 -1",
        "ZRANGE sorted 0 -1 WITHSCORES",
        "ZRANGEBYLEX level - +",
        "SRANDMEMBER set 1000000000",
        "KEYS *",
        "SCAN 0 COUNT 1000000000",
        "SSCAN set 0 COUNT 1000000000",
        "SORT list BY nosort LIMIT 0 10",
        "SORT list LIMIT 0 10",
        "SORT list ALPHA LIMIT 0 10",
        "SORT list BY key:* LIMIT 0 10",
        "SINTER set other",
        "SINTERCARD 2 set other",
        "SUNION set other",
        "SDIFF set other",
        "ZUNION 2 sorted level",
        "LPOS list absent RANK -1",
        "GEOSEARCH places FROMLONLAT 0 0 BYRADIUS 22000 km COUNT 10",
        "GEOSEARCH places FROMLONLAT 0 0 BYRADIUS 22000 km",
        "DUMP sorted",
        "BITCOUNT bits",
        "BITPOS bits 1",
        "GETRANGE bits 1 -1",
        "LCS part part",
        "MEMORY USAGE hash SAMPLES 0",
        "OBJECT FREQ set",
        "COMMAND DOCS",
        "DBSIZE",
    ];
    let never = [
        &format!("SRANDMEMBER set {DRAWS}"),
        &format!("HRANDFIELD hash {DRAWS} WITHVALUES"),
        &format!("ZRANDMEMBER sorted {DRAWS} WITHSCORES"),
        "SMEMBERS set",
        "HGETALL hash",
        "KEYS *",
    ];
    let of = |request: &&str, reader| (request.to_string(), reader);
    let read = read.iter().map(|request| of(request, Reader::Reads));
    let never = never.iter().map(|request| of(request, Reader::Never));
    read.chain(never).chain(writes(elements)).collect()
}

/// Those that change the collections.
fn writes(elements: u64) -> Vec<(String, Reader)> {
    let middle = format!("LINSERT list BEFORE {} x", elements / 2);
    let writes = [
        "SUNIONSTORE stored set other",
        "SINTERSTORE stored set other",
        "SDIFFSTORE stored set other",
        "ZUNIONSTORE stored 2 sorted level",
        "GEOSEARCHSTORE stored places FROMLONLAT 0 0 BYRADIUS 22000 km",
        "SORT list STORE stored",
        "BITOP NOT stored bits",
        "BITOP AND stored bits bits",
        "PFMERGE merged hll hll",
        "COPY sorted stored REPLACE",
        "SETRANGE long 536870911 x",
        "APPEND long x",
        &middle,
        "LREM list 0 absent",
        "LTRIM list 1 -2",
        "SPOP set 1000000000",
        "ZREMRANGEBYRANK level 0 -1",
        "PEXPIRE hash 1",
        "DEL sorted",
        "FLUSHALL",
    ];
    let writes = writes.iter();
    writes
        .map(|request| (request.to_string(), Reader::Reads))
        .collect()
}

fn fill(server: &Server, elements: u64) -> Result<()> {
    let mut client = server.client()?;
    let half = elements / 2;
    for from in (0..elements).step_by(BATCH as usize) {
        let mut bytes = Vec::new();
        let mut replies = 0;
        for n in from..elements.min(from + BATCH) {
            let (n, shifted) = (n.to_string(), (n + half).to_string());
            let longitude = format!("{:.4}", (from % 359) as f64 - 179.0);
            let latitude = format!("{:.4}", (half as f64).rem_euclid(80.0));
            let member = format!("member:{n}");
            for words in [
                vec!["SADD", "set", &member],
                vec!["SADD", "other", &format!("member:{shifted}")],
                vec!["HSET", "hash", &member, "the value of the field"],
                vec!["ZADD", "sorted", &n, &member],
                vec!["ZADD", "level", "0", &member],
                vec!["RPUSH", "list", &n],
                vec!["GEOADD", "places", &longitude, &latitude, &member],
                vec!["SET", &format!("key:{n}"), &shifted],
                vec!["PFADD", "hll", &member],
            ] {
                let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
                encode(&mut bytes, &words);
                replies += 1;
            }
        }
        client.send(&bytes)?;
        for _ in 0..replies {
            client.receive()?;
        }
    }
    client.call(&["SETRANGE", "bits", "536870910", "x"])?;
    client.call(&["SETRANGE", "part", "16000", "x"])?;
    Ok(())
}

fn measure(server: &Server, request: &str, reader: Reader) -> Result<Outcome> {
    let pid = server.pid();
    // Makes the kernel forget the peak so far.
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").context("resetting the peak")?;
    let before = resident_bytes(pid)?;
    let over = AtomicBool::new(false);
    let mut pings = server.client()?;
    let (asked, longest) = std::thread::scope(|scope| {
        let pinging = scope.spawn(|| longest_ping(&mut pings, &over));
        std::thread::sleep(Duration::from_millis(20));
        let asked = ask(server, request, reader);
        std::thread::sleep(AFTER);
        over.store(true, Ordering::Relaxed);
        let ended = || Err(anyhow!("the PINGs ended early"));
        (asked, pinging.join().unwrap_or_else(|_| ended()))
    });
    let (answered, read, error) = asked?;
    Ok(Outcome {
        request: request.to_owned(),
        reader,
        answered_ms: answered.as_secs_f64() * 1e3,
        read,
        error,
        longest_ms: longest?.as_secs_f64() * 1e3,
        peak_mb: peak_resident_bytes(pid)?.saturating_sub(before) as f64 / 1e6,
    })
}

fn longest_ping(client: &mut Client, over: &AtomicBool) -> Result<Duration> {
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let begin = Instant::now();
        client.call(&["PING"])?;
        longest = longest.max(begin.elapsed());
        std::thread::sleep(SPACING);
    }
    Ok(longest)
}

/// The time until the first bytes came, how many were read, and whether they are an error.
fn ask(server: &Server, request: &str, reader: Reader) -> Result<(Duration, usize, bool)> {
    let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
    let mut bytes = Vec::new();
    encode(&mut bytes, &words);
    // A second request shows where the reply to the first one ends.
    encode(&mut bytes, &[b"ECHO", END.as_bytes()]);
    let mut client = server.client()?;
    let begin = Instant::now();
    client.send(&bytes)?;
    let mut stream = client.into_stream()?;
    if reader == Reader::Never {
        std::thread::sleep(IGNORED);
        return Ok((begin.elapsed(), 0, false));
    }
    let mut buffer = vec![0; 256 << 10];
    let (mut read, mut first, mut error) = (0, None, false);
    let mut tail = Vec::new();
    while read < MOST_READ {
        let count = stream.read(&mut buffer).context("reading a reply")?;
        if count == 0 {
            break;
        }
        first.get_or_insert_with(|| {
            error = buffer.starts_with(b"-");
            begin.elapsed()
        });
        read += count;
        tail.extend_from_slice(&buffer[count.saturating_sub(64)..count]);
        if tail.ends_with(format!("{END}\r\n").as_bytes()) {
            break;
        }
        tail.drain(..tail.len().saturating_sub(64));
    }
    Ok((first.unwrap_or_default(), read, error))
}

const END: &str = "the end of the reply";

fn report(spec: &ServerSpec, outcomes: &[Outcome], elements: u64) -> Report {
    let headers = "request | client | first bytes, ms | read, MB | longest wait of a PING, ms | memory, MB | ";
    let mut table = Table::new(2, headers);
    for outcome in outcomes {
        let client = match outcome.reader {
            Reader::Reads => "reads",
            Reader::Never => "never reads",
        };
        table.row(vec![
            outcome.request.clone(),
            client.to_owned(),
            format!("{:.1}", outcome.answered_ms),
            format!("{:.1}", outcome.read as f64 / 1e6),
            format!("{:.1}", outcome.longest_ms),
            format!("{:.0}", outcome.peak_mb),
            if outcome.error { "refused" } else { "" }.to_owned(),
        ]);
    }
    Report {
        slug: "short-commands",
        part_of: None,
        title: "What one short request costs other clients".into(),
        command: command("short-commands"),
        method: vec![format!(
            "One worker of {} with collections of {elements} elements, as many keys, and a string of 512 MiB. One \
             connection sends the request and reads at most {} MiB of its reply, or never reads and closes \
             after {} s; another sends a PING every {} µs, until {} ms later. Memory is the peak of the resident set \
             above that before the request.",
            spec.name,
            MOST_READ >> 20,
            IGNORED.as_secs(),
            SPACING.as_micros(),
            AFTER.as_millis(),
        )],
        table,
        chart: None,
        notes: Vec::new(),
        data: json!(outcomes),
    }
}
