//! The epoll loop: keeps one batch of every client in flight until a deadline or until the source has
//! no more, then drains, so that every operation is counted in the window it began in.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mio::{Events, Interest, Poll, Token};

use super::conn::{Conn, MAX_CLASSES, ReadBuffer, Received};
use super::latency::Latency;
use super::source::Source;

/// A server silent for this long is broken.
const SILENCE: Duration = Duration::from_secs(60);
/// How often progress is reported.
const PROGRESS_PERIOD: Duration = Duration::from_millis(200);

/// When a run ends.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// No batch begins after this time.
    After(Duration),
    /// When the source is done.
    Exhausted,
}

/// What a run completed.
#[derive(Clone, Debug)]
pub struct Window {
    pub elapsed: Duration,
    /// Latency of a batch, counted for each operation, by class.
    pub classes: Vec<Latency>,
}

impl Window {
    fn new() -> Result<Self> {
        let classes = (0..MAX_CLASSES)
            .map(|_| Latency::new())
            .collect::<Result<_>>()?;
        Ok(Self {
            elapsed: Duration::ZERO,
            classes,
        })
    }

    /// Operations of all classes.
    pub fn operations(&self) -> u64 {
        self.classes.iter().map(Latency::count).sum()
    }

    /// Latencies of all classes together.
    pub fn latency(&self) -> Result<Latency> {
        let mut all = Latency::new()?;
        for class in self.classes.iter().filter(|c| c.count() > 0) {
            all.merge(class)?;
        }
        Ok(all)
    }

    fn add(&mut self, received: &Received, started: Instant, previous: Instant, now: Instant) {
        for (class, latency) in self.classes.iter_mut().enumerate() {
            let count = received.completed[class];
            if count > 0 {
                latency.record(now - started, count);
            }
            let count = received.completed_since_previous[class];
            if count > 0 {
                latency.record(now - previous, count);
            }
        }
    }
}

/// A set of connections, driven by the calling thread.
pub struct Load {
    poll: Poll,
    events: Events,
    conns: Vec<Conn<mio::net::TcpStream>>,
    /// So many connections in a row are one client's, to a server each: it goes on when all of them
    /// have been answered.
    per_client: usize,
    buffer: ReadBuffer,
}

impl Load {
    pub fn connect(addr: SocketAddr, connections: usize) -> Result<Self> {
        let streams = (0..connections)
            .map(|_| TcpStream::connect(addr).with_context(|| format!("connecting to {addr}")))
            .collect::<Result<Vec<_>>>()?;
        Self::adopt(streams)
    }

    /// Clients with a connection to each of several servers: connection `n` of all is to server
    /// `n % addrs.len()`.
    pub fn connect_each(addrs: &[SocketAddr], clients: usize) -> Result<Self> {
        let addrs_of_all = (0..clients).flat_map(|_| addrs);
        let streams = addrs_of_all
            .map(|addr| TcpStream::connect(addr).with_context(|| format!("connecting to {addr}")))
            .collect::<Result<Vec<_>>>()?;
        let mut load = Self::adopt(streams)?;
        load.per_client = addrs.len().max(1);
        Ok(load)
    }

    /// Takes over idle connections.
    pub fn adopt(streams: Vec<TcpStream>) -> Result<Self> {
        let poll = Poll::new()?;
        let mut conns = Vec::with_capacity(streams.len());
        for (i, stream) in streams.into_iter().enumerate() {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = mio::net::TcpStream::from_std(stream);
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(&mut stream, Token(i), interest)?;
            conns.push(Conn::new(stream));
        }
        let events = Events::with_capacity(conns.len().max(1));
        Ok(Self {
            poll,
            events,
            conns,
            per_client: 1,
            buffer: ReadBuffer::default(),
        })
    }

    pub fn run(&mut self, source: &mut dyn Source, stop: Stop) -> Result<Window> {
        self.run_with(source, stop, &mut |_| {})
    }

    /// As `run`; `progress` hears the operations completed so far a few times per second.
    pub fn run_with(
        &mut self,
        source: &mut dyn Source,
        stop: Stop,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Window> {
        let begin = Instant::now();
        let deadline = match stop {
            Stop::After(time) => Some(begin + time),
            Stop::Exhausted => None,
        };
        let mut window = Window::new()?;
        let mut active = 0;
        for client in 0..self.conns.len() / self.per_client {
            active += usize::from(self.begin(client, source, Instant::now())?);
        }
        let (mut heard, mut reported) = (begin, begin);
        while active > 0 {
            self.wait()?;
            let now = Instant::now();
            if self.events.is_empty() && now - heard > SILENCE {
                bail!("the server has not answered for {} s", SILENCE.as_secs());
            }
            if !self.events.is_empty() {
                heard = now;
            }
            active -= self.turn(source, deadline, &mut window)?;
            if now - reported > PROGRESS_PERIOD {
                reported = now;
                progress(window.operations());
            }
        }
        window.elapsed = begin.elapsed();
        progress(window.operations());
        Ok(window)
    }

    fn wait(&mut self) -> Result<()> {
        match self
            .poll
            .poll(&mut self.events, Some(Duration::from_secs(1)))
        {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => Ok(()),
            other => other.context("waiting for sockets"),
        }
    }

    /// Serves the sockets that are ready; returns how many clients came to rest.
    fn turn(
        &mut self,
        source: &mut dyn Source,
        deadline: Option<Instant>,
        window: &mut Window,
    ) -> Result<usize> {
        let mut rested = 0;
        let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        for event in &events {
            let Token(i) = event.token();
            let conn = &mut self.conns[i];
            if !conn.in_flight() {
                continue;
            }
            if event.is_writable() {
                conn.write()?;
            }
            if !event.is_readable() {
                continue;
            }
            let received = conn.receive(&mut self.buffer, |number| source.notified(number))?;
            let now = Instant::now();
            window.add(&received, conn.started, conn.previously_started, now);
            let client = i / self.per_client;
            if received.finished && !self.is_waiting(client) {
                let over = deadline.is_some_and(|deadline| now >= deadline);
                if over || !self.begin(client, source, now)? {
                    rested += 1;
                }
            }
        }
        self.events = events;
        Ok(rested)
    }

    /// The connections of a client.
    fn of(&self, client: usize) -> std::ops::Range<usize> {
        client * self.per_client..(client + 1) * self.per_client
    }

    fn is_waiting(&self, client: usize) -> bool {
        self.per_client > 1 && self.conns[self.of(client)].iter().any(Conn::in_flight)
    }

    fn begin(&mut self, client: usize, source: &mut dyn Source, now: Instant) -> Result<bool> {
        let mut any = false;
        for i in self.of(client) {
            let conn = &mut self.conns[i];
            let more = conn.begin(now, |batch| source.fill(i, batch));
            if more {
                conn.write()?;
            }
            any |= more;
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::super::conn::{Batch, Expect};
    use super::super::reply::Check;
    use super::*;

    /// Answers each byte with `+OK`, the later the larger `slowness` is.
    fn server(slowness: Duration) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() {
                        thread::sleep(slowness);
                        stream.write_all(b"+OK\r\n").unwrap();
                    }
                });
            }
        });
        addr
    }

    /// Asks every connection so many times, and keeps which one was filled when.
    struct Turns {
        left: Vec<usize>,
        filled: Vec<usize>,
    }

    impl Source for Turns {
        fn fill(&mut self, conn: usize, batch: &mut Batch) {
            if self.left[conn] > 0 {
                self.left[conn] -= 1;
                self.filled.push(conn);
                batch.out.push(b'x');
                batch.expects.push(Expect::completing(Check::Simple, 0));
            }
        }
    }

    #[test]
    fn a_client_goes_on_when_all_its_connections_are_answered() {
        let addrs = [server(Duration::ZERO), server(Duration::from_millis(3))];
        let mut load = Load::connect_each(&addrs, 2).unwrap();
        let mut turns = Turns {
            left: vec![5; 4],
            filled: Vec::new(),
        };
        let window = load.run(&mut turns, Stop::Exhausted).unwrap();
        assert_eq!(window.operations(), 20);
        for client in 0..2 {
            let own = turns.filled.iter().filter(|conn| **conn / 2 == client);
            let own: Vec<usize> = own.map(|conn| conn % 2).collect();
            assert_eq!(own, [0, 1].repeat(5));
        }
    }

    #[test]
    fn a_connection_without_requests_does_not_hold_its_client_up() {
        let addrs = [server(Duration::ZERO), server(Duration::ZERO)];
        let mut load = Load::connect_each(&addrs, 1).unwrap();
        let mut turns = Turns {
            left: vec![1, 4],
            filled: Vec::new(),
        };
        let window = load.run(&mut turns, Stop::Exhausted).unwrap();
        assert_eq!(window.operations(), 5);
    }
}
