//! The time that an actor is stepped with: never earlier than when its input arrived.

use crate::common::*;
use rufous_base::{Effects, Input, WorkerId};
use rufous_runtime::start;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const BLOCKED: Duration = Duration::from_millis(100);

/// The worker that a connection is at.
fn place(stream: &mut TcpStream) -> u8 {
    stream.write_all(b"?").expect("sent");
    let mut place = [0];
    stream.read_exact(&mut place).expect("answered");
    place[0]
}

/// A message arrives while its receiver is busy, and is taken in the turn that had begun before.
#[test]
fn messages_are_not_stepped_with_a_time_before_they_were_sent() {
    let (go, going) = mpsc::channel::<()>();
    let going = Arc::new(Mutex::new(going));
    let (tell, told) = mpsc::channel();
    let node = start(config(2), move |me: WorkerId| {
        let (going, tell) = (Arc::clone(&going), tell.clone());
        by::<u64, _>(move |now, input, fx: &mut Effects<u64>| match input {
            Input::Received { bytes, reads } => match bytes {
                b"?" => say(fx, reads[0].conn, &[me.0 as u8]),
                b"wait" => {
                    let going = going.lock().expect("whole").recv();
                    going.expect("the test says when");
                }
                _ => fx.messages.push((WorkerId(1 - me.0), now.mono_us)),
            },
            Input::Message { message, .. } => tell.send((message, now.mono_us)).expect("heard"),
            _ => {}
        })
    })
    .expect("starts");
    let mut streams: Vec<TcpStream> = (0..8).map(|_| client(&node)).collect();
    let places: Vec<u8> = streams.iter_mut().map(place).collect();
    let at = |worker: u8| places.iter().position(|place| *place == worker);
    let (busy, sender) = (at(0).expect("one"), at(1).expect("one"));
    streams[busy].write_all(b"wait").expect("sent");
    std::thread::sleep(BLOCKED);
    streams[sender].write_all(b"send").expect("sent");
    wait_until(&node, |s| s.sum(|w| w.messages_sent) == 1);
    go.send(()).expect("the actor waits");
    let (sent_us, taken_us) = told.recv().expect("received");
    assert!(
        taken_us >= sent_us,
        "sent at {sent_us}, taken at {taken_us}"
    );
}
