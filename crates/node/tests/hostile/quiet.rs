//! Updates without replies: over workers, in pipelines, with large arguments.

use crate::common::client::ok;
use crate::common::*;

#[test]
fn quiet_updates_of_both_workers_in_one_pipeline() {
    const ROUNDS: usize = 2_000;
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    let keys = [key_of(0, 0), key_of(1, 0)];
    let mut client = server.client();
    let mut one = Vec::new();
    for key in &keys {
        one.extend(request(&["QUIET", "INCR", key]));
        one.extend(request(&["QUIET", "GET", key]));
    }
    one.extend(request(&["quiet", "MSET", &keys[0], "1", &keys[1], "2"]));
    one.extend(request(&["INCR", &keys[1]]));
    let mut stream = client.sender();
    let sender = std::thread::spawn(move || {
        std::io::Write::write_all(&mut stream, &one.repeat(ROUNDS)).expect("sent")
    });
    for _ in 0..ROUNDS {
        for _ in &keys {
            assert_eq!(client.read(), ok());
            assert!(client.read().error().starts_with("ERR QUIET"));
        }
        assert_eq!(client.read(), ok());
        assert_eq!(client.read(), Reply::Int(3));
    }
    sender.join().expect("all sent");
    witness.finish();
}

#[test]
fn large_arguments_of_quiet_updates() {
    let server = Server::start(&[]);
    let value = vec![b'x'; 8 * MIB as usize];
    for client in &mut server.one_at_each_worker() {
        for worker in 0..2 {
            let key = key_of(worker, 1);
            client.ok(&[b"QUIET".as_slice(), b"SET", key.as_bytes(), &value]);
            let reply = client.run(&["STRLEN", &key]);
            assert_eq!(reply, Reply::Int(8 * MIB as i64));
            client.ok(&[b"QUIET".as_slice(), b"APPEND", key.as_bytes(), &value]);
            assert_eq!(client.run(&["DEL", &key]), Reply::Int(1));
        }
    }
}

#[test]
fn quiet_updates_in_transactions_over_workers() {
    let server = Server::start(&[]);
    for client in &mut server.one_at_each_worker() {
        let keys = [key_of(0, 2), key_of(1, 2)];
        client.ok(&["MULTI"]);
        for key in &keys {
            let queued = client.run(&["QUIET", "SET", key, "5"]);
            assert_eq!(queued, Reply::Status("QUEUED".into()));
            client.run(&["DECR", key]);
            client.run(&["QUIET", "GETDEL", key]);
        }
        let all = client.run(&["EXEC"]).array();
        assert_eq!(&all[..2], [ok(), Reply::Int(4)]);
        assert_eq!(&all[3..5], [ok(), Reply::Int(4)]);
    }
}
