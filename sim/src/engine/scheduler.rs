//! Virtual time, and the queue of events.

use super::probes::Probes;
use super::trace::Trace;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;

/// An event, ordered by its time; events of the same time by the order of scheduling.
#[derive(Debug)]
struct Scheduled<E> {
    at_us: u64,
    number: u64,
    event: E,
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Scheduled<E> {
    /// The earliest is the greatest, as the heap wants it.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at_us, other.number).cmp(&(self.at_us, self.number))
    }
}

/// What a scenario runs on: the time, its events, its trace and the probes it has reached.
#[derive(Debug)]
pub struct Engine<E> {
    pub now_us: u64,
    queue: BinaryHeap<Scheduled<E>>,
    scheduled: u64,
    pub probes: Probes,
    trace: Trace,
    failure: Option<String>,
}

impl<E> Engine<E> {
    /// `keep_trace`: keeps the lines of the trace; otherwise only their hash.
    pub fn new(keep_trace: bool) -> Self {
        Self {
            now_us: 0,
            queue: BinaryHeap::new(),
            scheduled: 0,
            probes: Probes::default(),
            trace: Trace::new(keep_trace),
            failure: None,
        }
    }

    /// Schedules an event at a time, or now if that time has passed.
    pub fn at(&mut self, at_us: u64, event: E) {
        self.scheduled += 1;
        self.queue.push(Scheduled {
            at_us: at_us.max(self.now_us),
            number: self.scheduled,
            event,
        });
    }

    /// Schedules an event in `us` microseconds.
    pub fn after(&mut self, us: u64, event: E) {
        self.at(self.now_us + us, event);
    }

    /// How many events were scheduled so far.
    pub(super) fn scheduled(&self) -> u64 {
        self.scheduled
    }

    /// When the next event happens.
    pub(super) fn next_us(&self) -> Option<u64> {
        self.queue.peek().map(|next| next.at_us)
    }

    /// Goes on to the next event.
    pub(super) fn next(&mut self) -> Option<E> {
        let next = self.queue.pop()?;
        self.now_us = next.at_us;
        Some(next.event)
    }

    /// Writes a line of the trace: an event and its subject.
    pub fn note(&mut self, who: impl fmt::Display, what: fmt::Arguments<'_>) {
        self.trace.note(self.now_us, who, what);
    }

    /// Counts a rare state that was reached.
    pub fn reach(&mut self, probe: &'static str) {
        self.probes.add(probe, 1);
    }

    /// The run fails; of several failures the first one counts.
    pub fn fail(&mut self, what: String) {
        self.note("world", format_args!("FAILED: {what}"));
        self.failure.get_or_insert(what);
    }

    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Takes the failure out, if there is one.
    pub fn outcome(&mut self) -> Result<(), String> {
        self.failure.take().map_or(Ok(()), Err)
    }

    pub(super) fn trace(&mut self) -> Trace {
        std::mem::take(&mut self.trace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_happen_by_their_time_and_then_in_order() {
        let mut engine = Engine::new(false);
        for (at_us, event) in [(20, 'c'), (10, 'a'), (20, 'd'), (10, 'b')] {
            engine.at(at_us, event);
        }
        let mut seen = String::new();
        while let Some(event) = engine.next() {
            seen.push(event);
            if event == 'b' {
                // The past is over: this happens now, behind nothing else.
                engine.at(3, 'x');
            }
        }
        assert_eq!((seen.as_str(), engine.now_us), ("abxcd", 20));
        assert_eq!(engine.scheduled(), 5);
    }
}
