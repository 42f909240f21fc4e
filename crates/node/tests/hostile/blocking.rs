//! Clients that wait for data: they hold nobody up, and go without a trace.

use crate::common::*;

const WAITERS: usize = 200;

fn blocked(client: &mut Client) -> u64 {
    client.info("blocked_clients")
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < HANG, "never: {what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn many_wait_and_each_gets_one() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let mut waiters: Vec<Client> = (0..WAITERS).map(|_| server.client()).collect();
    for (n, waiter) in waiters.iter_mut().enumerate() {
        // Keys of both workers, one or several of them.
        let key = format!("queue:{}", n % 4);
        match n % 3 {
            0 => waiter.send(&request(&["BLPOP", "queue:all", &key, "0"])),
            _ => waiter.send(&request(&["BLPOP", &key, "queue:all", "0"])),
        }
    }
    let mut client = server.client();
    until("all wait", || blocked(&mut client) == WAITERS as u64);
    witness.goes_on();
    for n in 0..WAITERS {
        client.run(&["RPUSH", "queue:all", &n.to_string()]);
    }
    let mut taken: Vec<Vec<u8>> = waiters
        .iter_mut()
        .map(|w| w.read().array().remove(1).bulk())
        .collect();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), WAITERS, "each got another one");
    assert_eq!(client.run(&["LLEN", "queue:all"]).int(), 0);
    assert_eq!(blocked(&mut client), 0);
    witness.finish();
}

#[test]
fn who_goes_away_takes_nothing() {
    let server = Server::start(&[]);
    let mut waiters: Vec<Client> = (0..WAITERS).map(|_| server.client()).collect();
    for waiter in &mut waiters {
        waiter.send(&request(&["BLPOP", "a", "b", "c", "0"]));
        waiter.send(&request(&["SET", "never", "1"]));
    }
    let mut client = server.client();
    until("all wait", || blocked(&mut client) == WAITERS as u64);
    // Half of them say so, half only send no more.
    for (n, waiter) in waiters.iter().enumerate() {
        if n % 2 == 0 {
            let _ = waiter.stream().shutdown(std::net::Shutdown::Write);
        } else {
            let _ = waiter.stream().shutdown(std::net::Shutdown::Both);
        }
    }
    until("nobody waits", || blocked(&mut client) == 0);
    for key in ["a", "b", "c"] {
        assert_eq!(client.run(&["RPUSH", key, "x"]).int(), 1);
        assert_eq!(client.run(&["LLEN", key]).int(), 1);
    }
    assert_eq!(client.run(&["EXISTS", "never"]).int(), 0);
}
