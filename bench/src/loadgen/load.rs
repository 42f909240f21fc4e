//! The epoll loop: keeps one batch in flight on every connection until a deadline or until the
//! source has no more, then drains, so that every operation is counted in the window it began in.

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

/// A set of connections to one server, driven by the calling thread.
pub struct Load {
    poll: Poll,
    events: Events,
    conns: Vec<Conn<mio::net::TcpStream>>,
    buffer: ReadBuffer,
}

impl Load {
    pub fn connect(addr: SocketAddr, connections: usize) -> Result<Self> {
        let streams = (0..connections)
            .map(|_| TcpStream::connect(addr).with_context(|| format!("connecting to {addr}")))
            .collect::<Result<Vec<_>>>()?;
        Self::adopt(streams)
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
        for i in 0..self.conns.len() {
            active += usize::from(self.begin(i, source, Instant::now())?);
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

    /// Serves the sockets that are ready; returns how many connections came to rest.
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
            if received.finished {
                let over = deadline.is_some_and(|deadline| now >= deadline);
                if over || !self.begin(i, source, now)? {
                    rested += 1;
                }
            }
        }
        self.events = events;
        Ok(rested)
    }

    fn begin(&mut self, i: usize, source: &mut dyn Source, now: Instant) -> Result<bool> {
        let conn = &mut self.conns[i];
        let more = conn.begin(now, |batch| source.fill(i, batch));
        if more {
            conn.write()?;
        }
        Ok(more)
    }
}
