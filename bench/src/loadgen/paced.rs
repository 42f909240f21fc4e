//! Sending on a schedule: each lane is one connection with one batch in flight, due at fixed
//! intervals. A stall is charged for every slot of the schedule that it blocked, not only for the
//! request that met it (otherwise one request per stall would vanish in the percentiles); the
//! schedule then goes on with the next slot, so that a slow spell leaves no backlog behind.
//!
//! The loop polls its sockets without sleeping, because a timer's granularity would exceed what is
//! measured. It therefore takes the core it runs on. Where something else takes that core, the
//! loop notices that it was away and subtracts the time: figures are those of the server.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::conn::{Conn, ReadBuffer};
use super::latency::Latency;
use super::source::Source;
use crate::procfs::{Scheduled, WorkerTime};

const SILENCE: Duration = Duration::from_secs(60);
/// Longer between two rounds of the loop than any round takes: the thread did not run.
const AWAY: Duration = Duration::from_micros(150);

/// One connection that sends `source`'s batches every `interval`, from `delay` after the start on.
pub struct Lane {
    conn: Conn<TcpStream>,
    source: Box<dyn Source>,
    interval: Duration,
    delay: Duration,
    due: Instant,
    /// How long the loop had been away when the batch in flight began.
    away_before: Duration,
    exhausted: bool,
    latency: Latency,
    worker: Option<Worker>,
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
            away_before: Duration::ZERO,
            exhausted: false,
            latency: Latency::new()?,
            worker: None,
        })
    }

    /// Subtracts what the server's worker waited for a processor (of the loop's own absence, which may
    /// have been at the same time, only what came right before the reply), and records for how long
    /// the worker worked while it kept each batch waiting.
    pub fn watching(mut self, time: WorkerTime) -> Result<Self> {
        let before = time.read()?;
        self.worker = Some(Worker {
            time,
            before,
            kept_waiting: None,
            held: Latency::new()?,
        });
        Ok(self)
    }

    /// For how long batches waited for a worker that was at work: neither longer than the batch took
    /// nor longer than the worker ran until the next batch.
    pub fn held(&self) -> Option<&Latency> {
        self.worker.as_ref().map(|worker| &worker.held)
    }

    pub fn latency(&self) -> &Latency {
        &self.latency
    }

    fn at_rest(&self) -> bool {
        self.exhausted && !self.conn.in_flight()
    }

    fn poll(&mut self, round: Round, sending: bool, buffer: &mut ReadBuffer) -> Result<()> {
        if !self.conn.in_flight() {
            if self.exhausted || !sending || round.now < self.due {
                return Ok(());
            }
            if let Some(worker) = &mut self.worker {
                worker.begin()?;
            }
            let source = &mut self.source;
            self.exhausted = !self.conn.begin(round.now, |batch| source.fill(0, batch));
            self.away_before = round.away;
            return self.conn.write();
        }
        self.conn.write()?;
        let received = self.conn.receive(buffer, |_| {})?;
        if received.finished {
            let taken = round.now - self.conn.started;
            let taken = match &mut self.worker {
                Some(worker) => worker.finish(taken.saturating_sub(round.gap))?,
                None => taken.saturating_sub(round.away - self.away_before),
            };
            charge(&mut self.latency, taken, self.interval);
            self.due = next_slot(self.due, self.interval, round.now);
        } else if round.now > self.conn.started + SILENCE {
            bail!("the server has not answered for {} s", SILENCE.as_secs());
        }
        Ok(())
    }
}

/// The thread of the server that a lane watches.
struct Worker {
    time: WorkerTime,
    /// When the batch in flight, or the one before, began.
    before: Scheduled,
    /// How long the batch before took, but for what the worker waited for a processor.
    kept_waiting: Option<Duration>,
    held: Latency,
}

impl Worker {
    /// The kernel brings a thread's run time up to date when the thread rests, which it may not yet
    /// have done when its reply arrives: what it ran is read when the next batch begins.
    fn begin(&mut self) -> Result<()> {
        let now = self.time.read()?;
        if let Some(taken) = self.kept_waiting.take() {
            self.held.record(taken.min(now.ran - self.before.ran), 1);
        }
        self.before = now;
        Ok(())
    }

    fn finish(&mut self, taken: Duration) -> Result<Duration> {
        let waited = self.time.read()?.waited - self.before.waited;
        let taken = taken.saturating_sub(waited);
        self.kept_waiting = Some(taken);
        Ok(taken)
    }
}

/// One round of the loop: when it is, and for how long the loop has been away altogether.
#[derive(Clone, Copy)]
struct Round {
    now: Instant,
    away: Duration,
    /// How long it was away right before this round.
    gap: Duration,
}

/// Records a latency, and those of the slots of the schedule that passed meanwhile.
fn charge(latency: &mut Latency, taken: Duration, interval: Duration) {
    let mut left = taken;
    loop {
        latency.record(left, 1);
        match left.checked_sub(interval) {
            Some(rest) if !interval.is_zero() && !rest.is_zero() => left = rest,
            _ => return,
        }
    }
}

/// The first slot after `now` of the schedule that `due` belongs to.
fn next_slot(due: Instant, interval: Duration, now: Instant) -> Instant {
    let next = due + interval;
    if next >= now || interval.is_zero() {
        return next;
    }
    let passed = (now - due).as_nanos() / interval.as_nanos();
    due + interval * (u32::try_from(passed).unwrap_or(u32::MAX - 1) + 1)
}

/// When a paced run ends.
#[derive(Clone, Copy, Debug)]
pub enum Until<'a> {
    After(Duration),
    /// When another thread says so.
    Told(&'a AtomicBool),
    /// When the lane of this index has nothing left to send.
    LaneDone(usize),
}

/// Drives all lanes on the calling thread and then waits for the replies under way.
pub fn run(lanes: &mut [Lane], until: Until<'_>) -> Result<()> {
    let begin = Instant::now();
    for lane in lanes.iter_mut() {
        lane.due = begin + lane.delay;
    }
    let mut buffer = ReadBuffer::default();
    let mut round = Round {
        now: begin,
        away: Duration::ZERO,
        gap: Duration::ZERO,
    };
    loop {
        let now = Instant::now();
        let gap = Some(now - round.now).filter(|gap| *gap > AWAY);
        round.gap = gap.unwrap_or_default();
        round.away += round.gap;
        round.now = now;
        let over = match until {
            Until::After(time) => now - begin >= time,
            Until::Told(over) => over.load(Ordering::Relaxed),
            Until::LaneDone(i) => lanes[i].at_rest(),
        };
        for lane in lanes.iter_mut() {
            lane.poll(round, !over, &mut buffer)?;
        }
        if over && lanes.iter().all(|lane| !lane.conn.in_flight()) {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_charged_for_every_slot_it_blocked() {
        let interval = Duration::from_millis(1);
        let mut latency = Latency::new().unwrap();
        charge(&mut latency, Duration::from_micros(300), interval);
        assert_eq!(latency.count(), 1);
        charge(&mut latency, Duration::from_millis(100), interval);
        assert_eq!(latency.count(), 101);
        assert!((latency.percentile_ms(50.0) - 50.0).abs() < 1.0);
        assert!((latency.max_ms() - 100.0).abs() < 0.2);
    }

    #[test]
    fn the_schedule_goes_on_without_backlog() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        assert_eq!(next_slot(begin, ms(10), begin + ms(3)), begin + ms(10));
        assert_eq!(next_slot(begin, ms(10), begin + ms(37)), begin + ms(40));
        assert_eq!(next_slot(begin, ms(10), begin + ms(40)), begin + ms(50));
    }
}
