//! Connections over the loopback interface: replies, closes, slow readers.

mod common;

use common::*;

#[test]
fn an_echo_comes_back_and_the_node_stops() {
    let node = echo(config(2));
    let mut clients: Vec<_> = (0..10).map(|_| client(&node)).collect();
    for round in 0..10 {
        for (n, stream) in clients.iter_mut().enumerate() {
            let line = format!("client {n} round {round}\n");
            assert_eq!(ask(stream, line.as_bytes()), line.as_bytes());
        }
    }
    let stats = node.stats();
    assert_eq!(stats.sum(|w| w.connections), 10);
    assert_eq!(stats.workers[0].connections, 5, "dealt evenly");
    let handle = node.handle();
    node.stop();
    for stream in &mut clients {
        assert_eq!(read_to_end(stream), b"");
    }
    node.join();
    let stats = handle.stats();
    assert_eq!(stats.sum(|w| w.bytes_in), stats.sum(|w| w.bytes_out));
    assert_eq!(stats.sum(|w| w.connections), 0);
}
