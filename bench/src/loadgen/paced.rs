//! Sending on a schedule: each lane is one connection with one batch in flight, due at fixed
//! intervals; latency counts from the time a batch was due, so that a stalled server is charged for
//! every request that it kept from being sent, not only for the one it was working on.
//!
//! The loop polls its sockets without sleeping, because a timer's granularity would exceed what is
//! measured. It therefore takes the core it runs on.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::conn::{Conn, ReadBuffer};
use super::latency::Latency;
use super::source::Source;

const SILENCE: Duration = Duration::from_secs(60);

/// One connection that sends `source`'s batches every `interval`, from `delay` after the start on.
pub struct Lane {
    conn: Conn<TcpStream>,
    source: Box<dyn Source>,
    interval: Duration,
    delay: Duration,
    due: Instant,
    exhausted: bool,
    latency: Latency,
}

impl Lane {
    pub fn connect(
        addr: SocketAddr,
        source: Box<dyn Source>,
        interval: Duration,
        delay: Duration,
    ) -> Result<Self> {
        let stream = TcpStream::connect(addr).with_context(|| format!("connecting to {addr}"))?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Self {
            conn: Conn::new(stream),
            source,
            interval,
            delay,
            due: Instant::now(),
            exhausted: false,
            latency: Latency::new()?,
        })
    }

    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    fn at_rest(&self) -> bool {
        self.exhausted && !self.conn.in_flight()
    }

    fn poll(&mut self, now: Instant, sending: bool, buffer: &mut ReadBuffer) -> Result<()> {
        if !self.conn.in_flight() {
            if self.exhausted || !sending || now < self.due {
                return Ok(());
            }
            let source = &mut self.source;
            self.exhausted = !self.conn.begin(self.due, |batch| source.fill(0, batch));
            self.due += self.interval;
            self.conn.write()?;
            return Ok(());
        }
        self.conn.write()?;
        let received = self.conn.receive(buffer, |_| {})?;
        if received.finished {
            self.latency.record(Instant::now() - self.conn.started, 1);
        } else if now > self.conn.started + SILENCE {
            bail!("the server has not answered for {} s", SILENCE.as_secs());
        }
        Ok(())
    }
}

/// When a paced run ends.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    After(Duration),
    /// When the lane of this index has nothing left to send.
    LaneDone(usize),
}

/// Drives all lanes on the calling thread and then waits for the replies under way.
pub fn run(lanes: &mut [Lane], until: Until) -> Result<()> {
    let begin = Instant::now();
    for lane in lanes.iter_mut() {
        lane.due = begin + lane.delay;
    }
    let mut buffer = ReadBuffer::default();
    loop {
        let now = Instant::now();
        let over = match until {
            Until::After(time) => now - begin >= time,
            Until::LaneDone(i) => lanes[i].at_rest(),
        };
        for lane in lanes.iter_mut() {
            lane.poll(now, !over, &mut buffer)?;
        }
        if over && lanes.iter().all(|lane| !lane.conn.in_flight()) {
            return Ok(());
        }
    }
}
