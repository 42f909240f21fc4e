//! Stops in good order keep everything, without a tail to cut; logging may be
//! switched off and on while the node runs.

use crate::audit::wire::Reply;
use crate::node::{Clients, Node, folder};

fn ok() -> Reply {
    Reply::Status("OK".into())
}

#[test]
fn a_node_that_stops_in_good_order_starts_with_the_same_data() {
    let (_temporary, dir) = folder();
    let mut clients = Clients::new(3, 300);
    for (round, fsync) in ["no", "everysec", "always", "no"].into_iter().enumerate() {
        let settings = format!("--appendfsync {fsync} --workers {}", [2, 3, 1, 3][round]);
        let mut node = Node::start(&dir, &settings);
        clients.audit(&node);
        assert_eq!(node.info("load_cut_bytes"), "0", "a clean log has no tail");
        let load = clients.load(&node);
        node.takes(&load, 500);
        match round {
            0 => node.signal("TERM"),
            1 => node.signal("INT"),
            _ => {
                // It closes this connection, with everybody's.
                let mut client = node.client();
                let words = [["SHUTDOWN", "NOSAVE"], ["SHUTDOWN", "SAVE"]][round % 2];
                assert!(client.run(&words).is_err());
            }
        }
        let status = node.wait();
        assert_eq!(status.code(), Some(0), "{}", node.log());
        clients.rest(load);
    }
    let node = Node::start(&dir, "--workers 2");
    clients.audit(&node);
    assert_eq!(node.info("load_cut_bytes"), "0");
    assert_eq!(clients.refusals(), [""; 0]);
}

/// Without a log, but with a data folder.
const UNLOGGED: &str = "--appendonly no --save 86400 1000000000";

/// Without a log a stop saves, where a schedule says that data is to be kept.
#[test]
fn without_a_log_a_stop_saves_if_there_is_a_schedule() {
    let (_temporary, dir) = folder();
    let mut clients = Clients::new(2, 200);
    let settings = "--appendonly no --save 3600 1";
    for workers in [2, 1, 3] {
        let mut node = Node::start(&dir, &format!("{settings} --workers {workers}"));
        clients.audit(&node);
        let load = clients.load(&node);
        clients.rest_after(&node, load, 300);
        node.signal("TERM");
        assert_eq!(node.wait().code(), Some(0), "{}", node.log());
    }
    let node = Node::start(&dir, settings);
    clients.audit(&node);
}

#[test]
fn logging_is_switched_off_and_on() {
    let (_temporary, dir) = folder();
    let mut before = Clients::new(2, 200);
    let node = Node::start(&dir, UNLOGGED);
    before.fill(&node);
    // Switched on under load, it covers what there was and what comes.
    let load = before.load(&node);
    node.takes(&load, 200);
    assert_eq!(node.run("CONFIG SET appendonly yes"), ok());
    node.until("the log is on", || node.info("aof_enabled") == "1");
    node.wait_until_saved();
    node.takes(&load, 500);
    node.kill();
    before.rest(load);
    let node = Node::start(&dir, "--workers 3");
    before.audit(&node);

    // Switched off, what was acknowledged until then stays; a save adds the rest.
    let load = before.load(&node);
    before.rest_after(&node, load, 500);
    assert_eq!(node.run("CONFIG SET appendonly no"), ok());
    assert_eq!(node.run("SET unlogged 1"), ok());
    node.kill();
    let node = Node::start(&dir, &format!("{UNLOGGED} --workers 1"));
    node.run("DEL unlogged");
    before.audit(&node);
    let load = before.load(&node);
    before.rest_after(&node, load, 500);
    assert_eq!(node.run("SAVE"), ok());
    assert_eq!(node.run("SET unlogged 1"), ok());
    node.kill();
    let node = Node::start(&dir, UNLOGGED);
    assert_eq!(node.run("EXISTS unlogged"), Reply::Int(0));
    before.audit(&node);
}
