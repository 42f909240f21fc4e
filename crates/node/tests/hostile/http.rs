//! Browsers that were made to send requests to the server's port.

use crate::common::*;

const BODY: &str = "SET stolen yes\r\nGET stolen\r\n";

fn attack(server: &Server, head: &str) {
    let mut client = server.client();
    client.try_send(format!("{head}\r\n\r\n{BODY}").as_bytes());
    let got = client.read_to_end();
    assert!(
        !got.windows(3).any(|w| w == b"+OK"),
        "{head}: {}",
        got.escape_ascii()
    );
}

#[test]
fn nothing_of_an_http_request_runs() {
    let server = Server::start(&[]);
    let witness = Witness::start(&server);
    for head in [
        "POST / HTTP/1.1\r\nHost: 127.0.0.1",
        "post /x HTTP/1.0",
        "GET / HTTP/1.1\r\nHost: 127.0.0.1",
        "PUT /x HTTP/1.1\r\nhost: localhost\r\nContent-Length: 28",
        "OPTIONS * HTTP/1.1\r\nUser-Agent: x\r\nHOST: y",
    ] {
        attack(&server, head);
    }
    witness.finish();
    assert_eq!(server.client().run(&["EXISTS", "stolen"]), Reply::Int(0));
    // Each worker tells once a minute, so that the log cannot be filled this way.
    let told = server.log().matches("speaks HTTP").count();
    assert!((1..=2).contains(&told), "{}", server.log());
}
