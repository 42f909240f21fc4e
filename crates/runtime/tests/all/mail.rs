//! Messages to workers from threads that are none, and tasks that the end of a
//! node waits for.

use crate::common::*;
use rufous_base::{Actor, Effects, Input, WorkerId};
use rufous_runtime::{Runtime, Untold, start};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

type Letter = (u32, u32);

/// Tells what each worker was told, and waits for `go` at each of it.
fn told(
    workers: usize,
    go: Option<Receiver<()>>,
) -> (
    Runtime<impl Actor<Message = Letter>>,
    Receiver<(WorkerId, Letter)>,
) {
    let (tell, told) = channel();
    let go = Arc::new(Mutex::new(go));
    let node = start(config(workers), move |me| {
        let (tell, go) = (tell.clone(), Arc::clone(&go));
        by::<Letter, _>(move |_, input, _: &mut Effects<Letter>| {
            if let Input::Told { message } = input {
                let _ = tell.send((me, message));
                if let Some(go) = &*go.lock().expect("whole") {
                    let _ = go.recv();
                }
            }
        })
    })
    .expect("starts");
    (node, told)
}

#[test]
fn sleeping_workers_hear_everything_once_and_in_order() {
    const EACH: u32 = 2_000;
    let (node, told) = told(2, None);
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let teller = node.teller();
            std::thread::spawn(move || {
                for number in 0..EACH {
                    let to = WorkerId((number % 2) as u16);
                    let mut letter = (thread, number);
                    while let Err(Untold::Full(back)) = teller.tell(to, letter) {
                        letter = back;
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut next = [0, 0, 0];
    let mut by_worker = [[None; 3]; 2];
    for _ in 0..3 * EACH {
        let (worker, (thread, number)) = told.recv().expect("told");
        assert_eq!(usize::from(worker.0), number as usize % 2);
        let last = &mut by_worker[worker.index()][thread as usize];
        assert!(*last < Some(number), "in order");
        *last = Some(number);
        next[thread as usize] += 1;
    }
    assert_eq!(next, [EACH; 3]);
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("ends"));
}

/// Sends until there is no room; returns how many fitted.
fn fill(node: &Runtime<impl Actor<Message = Letter>>) -> u32 {
    let teller = node.teller();
    (0..)
        .find(|number| match teller.tell(WorkerId(0), (0, *number)) {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error, Untold::Full((0, *number)));
                true
            }
        })
        .expect("it is bounded")
}

#[test]
fn what_waits_is_bounded_and_comes_all_the_same() {
    let (go, gone) = channel::<()>();
    let (node, told) = told(1, Some(gone));
    assert_eq!(node.teller().tell(WorkerId(0), (9, 9)), Ok(()));
    // The worker is busy with this one until it may go on.
    assert_eq!(told.recv().expect("told"), (WorkerId(0), (9, 9)));
    let fitted = fill(&node);
    assert_eq!(fitted, 64);
    drop(go);
    for number in 0..fitted {
        assert_eq!(told.recv().expect("told").1, (0, number));
    }
}

#[test]
fn who_has_ended_or_never_was_is_told_nothing() {
    let (node, _told) = told(2, None);
    let teller = node.teller();
    assert_eq!(teller.workers(), 2);
    assert_eq!(teller.tell(WorkerId(2), (1, 1)), Err(Untold::Gone((1, 1))));
    node.stop();
    node.join();
    assert_eq!(teller.tell(WorkerId(0), (1, 1)), Err(Untold::Gone((1, 1))));
}

#[test]
fn the_end_of_a_node_waits_for_last_tasks() {
    let node = echo(config(1));
    let (done, is_done): (Sender<&str>, _) = channel();
    let stopping = node.stopping();
    node.spawn_to_end(async move {
        stopping.await;
        // Longer than a node without anything under way takes.
        for _ in 0..20 {
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let _ = done.send("said goodbye");
    });
    assert!(is_done.try_recv().is_err(), "it waits for the stop");
    node.stop();
    node.join();
    assert_eq!(is_done.try_recv(), Ok("said goodbye"));
}
