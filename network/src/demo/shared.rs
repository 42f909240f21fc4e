//! Clients of lattice keys: each writes at one node and sets deadlines at another, which may not have
//! the write yet. No value that was acknowledged may go back.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rufous_bench::client::Reply;

use super::account::Wrong;
use super::strict::Strict;
use crate::door::{Commands, Door, Route, Told, command};

/// Between two operations of a client.
const PAUSE: Duration = Duration::from_millis(5);
/// After a refusal.
const REST: Duration = Duration::from_millis(50);
/// Seconds to live: no key expires while the demonstration lasts.
const DEADLINE: &str = "100000";

/// Writes `l:<name>` at one node, and sets its deadline at the other.
pub fn write_with_deadlines(strict: &Strict, name: &str, at: Route, deadlines: Route) {
    let mut near = Door::new(at, &strict.account);
    let mut far = Door::new(deadlines, &strict.account);
    let mut writer = Writer {
        text: format!("l:text:{name}"),
        counter: format!("l:counter:{name}"),
        generation: 0,
        value: 0,
        acknowledged: 0,
    };
    while !strict.ends.load(Ordering::Relaxed) {
        writer.turn(strict, &mut near, &mut far);
        std::thread::sleep(PAUSE);
    }
}

struct Writer {
    text: String,
    counter: String,
    /// After an unknown outcome the writer takes new keys.
    generation: u64,
    value: u64,
    acknowledged: u64,
}

impl Writer {
    fn turn(&mut self, strict: &Strict, near: &mut Door<'_>, far: &mut Door<'_>) {
        self.value += 1;
        let (text, counter) = (
            format!("{}:{}", self.text, self.generation),
            format!("{}:{}", self.counter, self.generation),
        );
        let value = self.value.to_string();
        let write: Commands = vec![command(&["SET", &text, &value])];
        let count: Commands = vec![command(&["INCR", &counter])];
        let deadlines: Commands = [&text, &counter]
            .map(|key| command(&["EXPIRE", key, DEADLINE]))
            .into();
        let told = near.ask(&write);
        if !self.goes_on(&told) {
            return;
        }
        let told = near.ask(&count);
        if !self.goes_on(&told) {
            return;
        }
        self.acknowledged += 1;
        far.ask(&deadlines);
        let read: Commands = vec![command(&["GET", &text]), command(&["GET", &counter])];
        let Told::Replies(replies) = near.ask(&read) else {
            return;
        };
        let expected = [value, self.acknowledged.to_string()];
        for (reply, expected) in replies.iter().zip(&expected) {
            if *reply != Reply::Bulk(expected.clone().into_bytes()) {
                let words = format!("{text}: {reply:?}, not {expected}");
                strict.account.on_wrong(Wrong::Undone, words);
                // What is wrong once is told once.
                self.renew();
                return;
            }
        }
    }

    /// Whether a write was acknowledged; new keys are taken where its outcome is unknown.
    fn goes_on(&mut self, told: &Told) -> bool {
        match told {
            Told::Replies(_) => return true,
            Told::Refused(_) => std::thread::sleep(REST),
            Told::Unknown => self.renew(),
        }
        false
    }

    fn renew(&mut self) {
        self.generation += 1;
        self.acknowledged = 0;
    }
}
