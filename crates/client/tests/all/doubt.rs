//! Against a server that says what the test wants: what is sent again, and what never is.

use rufous_client::{Builder, Client, Error, Pipeline, cmd};
use rufous_resp::{Reply, ReplyParser};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What to do with the nth command of a name, counted from 1 over all connections: the reply, or
/// `None` for hanging up.
type Script = fn(name: &str, count: usize, port: u16) -> Option<String>;

struct Server {
    port: u16,
    counts: Arc<Mutex<HashMap<String, usize>>>,
}

impl Server {
    async fn start(script: Script) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let counts = Arc::<Mutex<HashMap<String, usize>>>::default();
        let all = counts.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, all.clone(), script, port));
            }
        });
        Self { port, counts }
    }

    fn builder(&self) -> Builder {
        Builder::new(&format!("redis://127.0.0.1:{}", self.port)).unwrap()
    }

    async fn client(&self) -> Client {
        self.builder().connect().await.unwrap()
    }

    fn count(&self, name: &str) -> usize {
        self.counts.lock().unwrap().get(name).copied().unwrap_or(0)
    }
}

async fn serve(
    mut stream: TcpStream,
    counts: Arc<Mutex<HashMap<String, usize>>>,
    script: Script,
    port: u16,
) {
    let (mut parser, mut buffer) = (ReplyParser::default(), Vec::new());
    loop {
        let (used, request) = parser.parse(&buffer).unwrap();
        buffer.drain(..used);
        let Some(Reply::Array(words)) = request else {
            if !matches!(stream.read_buf(&mut buffer).await, Ok(1..)) {
                return;
            }
            continue;
        };
        let Some(Reply::Bulk(name)) = words.first() else {
            return;
        };
        let name = String::from_utf8_lossy(name).to_uppercase();
        let count = {
            let mut counts = counts.lock().unwrap();
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            *count
        };
        let reply = match &name[..] {
            "HELLO" => Some("-ERR unknown command 'HELLO'\r\n".to_owned()),
            "CLIENT" => Some("+OK\r\n".to_owned()),
            "INFO" => Some("$17\r\ncluster_enabled:1\r\n".to_owned()),
            _ => script(&name, count, port),
        };
        let Some(reply) = reply else { return };
        if stream.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_write_that_may_have_been_done_is_not_sent_again() {
    let script: Script = |name, count, _| match name {
        "CLUSTER" => Some("*0\r\n".into()),
        _ if count == 1 => None,
        _ => Some(format!(":{count}\r\n")),
    };
    let server = Server::start(script).await;
    let client = server.client().await;
    let lost = client.incr_by("n", 1).await.unwrap_err();
    assert!(lost.maybe_done(), "{lost}");
    assert_eq!(server.count("INCRBY"), 1);
    // A read is, and so is a write of which that was said.
    assert_eq!(client.get::<i64>("n").await.unwrap(), 2);
    let allowed = cmd("SADD").arg("s").arg("a").idempotent();
    assert_eq!(allowed.query::<i64>(&client).await.unwrap(), 2);

    // In a pipeline, too, each stands for itself.
    let replies = Pipeline::new()
        .push(cmd("STRLEN").arg("n"))
        .push(cmd("APPEND").arg("n").arg("x"))
        .run(&client)
        .await;
    assert!(replies[0].is_ok(), "{replies:?}");
    assert!(replies[1].as_ref().unwrap_err().maybe_done(), "{replies:?}");
    assert!(server.count("APPEND") <= 1);

    let both = Pipeline::new().push(cmd("HSET").arg("h").arg("f").arg(1));
    assert!(both.atomic(&client).await.unwrap_err().maybe_done());
    assert_eq!((server.count("MULTI"), server.count("EXEC")), (1, 0));
}

#[tokio::test]
async fn silence_is_tried_elsewhere_for_reads_alone() {
    let silent: Script = |name, _, _| Some(if name == "CLUSTER" { "*0\r\n" } else { "" }.into());
    let server = Server::start(silent).await;
    let builder = server.builder().attempts(4);
    // Enough to connect on a busy machine.
    let builder = builder.attempt_timeout(Duration::from_millis(500));
    let client = builder.connect().await.unwrap();
    let late = client.incr_by("n", 1).await.unwrap_err();
    assert!(late.maybe_done(), "{late}");
    assert_eq!(client.stats().retries, 0);
    let gave_up = client.get::<i64>("n").await.unwrap_err();
    assert!(
        matches!(gave_up, Error::GaveUp { attempts: 4, .. }),
        "{gave_up}"
    );
    assert!(client.stats().timeouts > 0);
}

#[tokio::test]
async fn refusals_for_the_time_being_are_tried_again() {
    let script: Script = |name, count, port| {
        Some(match (name, count) {
            ("CLUSTER", _) => "*0\r\n".into(),
            ("INCRBY", 1) => "-TRYAGAIN later\r\n".into(),
            ("INCRBY", 2) => "-CLUSTERDOWN down\r\n".into(),
            ("INCRBY", 3) => "-LOADING loading\r\n".into(),
            ("INCRBY", 4) => format!("-MOVED 5 127.0.0.1:{port}\r\n"),
            ("INCRBY", 5) => format!("-ASK 5 :{port}\r\n"),
            ("ASKING", 1) => "+OK\r\n".into(),
            ("INCRBY", 6) => ":1\r\n".into(),
            _ => "-ERR enough\r\n".into(),
        })
    };
    let server = Server::start(script).await;
    let client = server.client().await;
    assert_eq!(client.incr_by("n", 1).await, Ok(1));
    let stats = client.stats();
    assert_eq!((stats.retries, stats.moved, stats.asked), (5, 1, 1));
    assert_eq!(server.count("ASKING"), 1);
    // What is refused for good is not tried again.
    assert_eq!(
        client.incr_by("n", 1).await.unwrap_err().code(),
        Some("ERR")
    );
    assert_eq!(server.count("INCRBY"), 7);
}

#[tokio::test]
async fn who_is_sent_in_circles_gives_up() {
    let script: Script = |name, _, port| match name {
        "CLUSTER" => Some("*0\r\n".into()),
        _ => Some(format!("-MOVED 5 127.0.0.1:{port}\r\n")),
    };
    let server = Server::start(script).await;
    let client = server.builder().attempts(6).connect().await.unwrap();
    let gave_up = client.incr_by("n", 1).await.unwrap_err();
    assert!(
        matches!(gave_up, Error::GaveUp { attempts: 6, .. }),
        "{gave_up}"
    );
    assert!(!gave_up.maybe_done());
    assert_eq!(server.count("INCRBY"), 6);
}

/// Of a server without tokens a session ends with its connection, and says so.
#[tokio::test]
async fn a_session_without_tokens_is_lost_with_its_connection() {
    let script: Script = |name, count, _| match name {
        "CLUSTER" => Some("*0\r\n".into()),
        "SESSION" => Some("-ERR unknown command 'SESSION'\r\n".into()),
        "GET" if count == 2 => None,
        _ => Some(format!(":{count}\r\n")),
    };
    let server = Server::start(script).await;
    let client = server.client().await;
    let mut session = client.session();
    assert_eq!(session.query::<i64>(cmd("GET").arg("k")).await.unwrap(), 1);
    assert_eq!(session.seen(), None);
    let lost = session.run(cmd("GET").arg("k")).await.unwrap_err();
    assert!(matches!(lost, Error::Lost { .. }), "{lost}");
    let lost = session.run(cmd("GET").arg("k")).await.unwrap_err();
    assert!(matches!(lost, Error::SessionLost { .. }), "{lost}");
    session.renew();
    assert_eq!(session.query::<i64>(cmd("GET").arg("k")).await.unwrap(), 3);
    assert_eq!(server.count("SESSION"), 2);
}

/// What a node cannot say yet is on its connection alone.
#[tokio::test]
async fn a_session_with_a_reply_that_no_token_covers() {
    let script: Script = |name, count, _| match name {
        "CLUSTER" => Some("*0\r\n".into()),
        "SESSION" if count == 2 => Some("-BEHIND it compares\r\n".into()),
        "SESSION" => Some("$2\r\nab\r\n".into()),
        "SET" if count == 2 => None,
        _ => Some(format!(":{count}\r\n")),
    };
    let server = Server::start(script).await;
    let client = server.client().await;
    let mut session = client.session();
    for n in 1..4 {
        assert_eq!(session.query::<i64>(cmd("GET").arg("k")).await.unwrap(), n);
    }
    assert_eq!(session.seen(), Some(&b"ab"[..]));
    assert_eq!(session.query::<i64>(cmd("SET").arg("k")).await.unwrap(), 1);
    // Its reply is lost: whether it was done is not known, and it is not sent again.
    let lost = session.run(cmd("SET").arg("k")).await.unwrap_err();
    assert!(lost.maybe_done(), "{lost}");
    // The next one goes on at another connection, with a token of all replies.
    assert_eq!(session.query::<i64>(cmd("GET").arg("k")).await.unwrap(), 4);
    assert_eq!(server.count("SET"), 2);
}

/// The connection ends between a reply and its token: another one may not show what the reply has shown.
#[tokio::test]
async fn a_session_whose_token_is_lost_says_so() {
    let script: Script = |name, count, _| match name {
        "CLUSTER" => Some("*0\r\n".into()),
        "SESSION" if count == 2 => None,
        "SESSION" => Some("$2\r\nab\r\n".into()),
        _ => Some(format!(":{count}\r\n")),
    };
    let server = Server::start(script).await;
    let client = server.client().await;
    let mut session = client.session();
    for n in 1..3 {
        assert_eq!(session.query::<i64>(cmd("GET").arg("k")).await.unwrap(), n);
    }
    let lost = session.run(cmd("GET").arg("k")).await.unwrap_err();
    assert!(matches!(lost, Error::SessionLost { .. }), "{lost}");
    session.renew();
    assert_eq!(session.query::<i64>(cmd("GET").arg("k")).await.unwrap(), 3);
}
