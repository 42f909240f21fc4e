//! A way to a node that may be slow: a process in the node's namespace takes the connections
//! of other nodes and passes on what they say, both ways, after a time that can be changed.
//!
//! It stands for long distances. The kernel's own delay (`netem`) is not everywhere.

use std::io::{BufRead, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;

/// Bytes that are read at once.
const PART: usize = 64 * 1024;
/// Parts that may be on their way in a direction; who sends more has to wait.
const MOST_PARTS: usize = 256;

/// What is on its way, and when it has come through.
type Part = (Instant, Vec<u8>);

/// Passes on until its input ends. Each line there says how many milliseconds everything
/// takes from now on.
pub fn serve(listen: SocketAddr, to: SocketAddr) -> Result<()> {
    let delay = Arc::new(AtomicU64::new(0));
    let listener = TcpListener::bind(listen)?;
    let by = delay.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let by = by.clone();
            thread::spawn(move || pass_on(&stream, to, &by));
        }
    });
    for line in std::io::stdin().lock().lines() {
        delay.store(line?.trim().parse()?, Ordering::Relaxed);
    }
    Ok(())
}

fn pass_on(near: &TcpStream, to: SocketAddr, delay: &Arc<AtomicU64>) {
    // Who is not there is seen as one who hangs up.
    let Ok(far) = TcpStream::connect(to) else {
        return;
    };
    for (from, to) in [(near, &far), (&far, near)] {
        let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
            return;
        };
        let _ = to.set_nodelay(true);
        let (send, receive) = sync_channel(MOST_PARTS);
        let delay = delay.clone();
        thread::spawn(move || take(from, &send, &delay));
        thread::spawn(move || give(to, &receive));
    }
}

fn take(mut from: TcpStream, parts: &SyncSender<Part>, delay: &AtomicU64) {
    let mut buffer = vec![0; PART];
    while let Ok(read) = from.read(&mut buffer) {
        let at = Instant::now() + Duration::from_millis(delay.load(Ordering::Relaxed));
        if read == 0 || parts.send((at, buffer[..read].to_vec())).is_err() {
            break;
        }
    }
}

fn give(mut to: TcpStream, parts: &Receiver<Part>) {
    for (at, bytes) in parts {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // The end of one direction is the end of both: nodes do not use half of a connection.
    let _ = to.shutdown(Shutdown::Both);
}
