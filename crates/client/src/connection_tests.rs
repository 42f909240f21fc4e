//! A connection against servers that are a few bytes each, friendly ones and others.

use super::*;
use crate::command::cmd;
use std::future::Future;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};

/// Longer than anything here takes; only a hang comes so far.
fn hang() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(50)
}

struct Fixture {
    connection: Connection,
    pushes: Arc<AtomicU64>,
}

/// A connection to a server that runs `serve` with the first client.
async fn with_server<F: Future<Output = ()> + Send + 'static>(
    max_reply: usize,
    serve: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> Fixture {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { serve(listener.accept().await.unwrap().0).await });
    let config = Config {
        max_reply,
        ..Config::default()
    };
    let pushes = Arc::new(AtomicU64::new(0));
    let addr = Addr::new("127.0.0.1", port);
    let connection = Connection::open(&addr, &config, pushes.clone()).await;
    Fixture {
        connection: connection.unwrap(),
        pushes,
    }
}

impl Fixture {
    async fn ping(&self, deadline: Instant) -> Batch {
        self.connection
            .send(cmd("PING").encoded(), 1, deadline)
            .await
    }
}

const PING: usize = "*1\r\n$4\r\nPING\r\n".len();

async fn read_pings(stream: &mut TcpStream, count: usize) {
    stream.read_exact(&mut vec![0; PING * count]).await.unwrap();
}

/// What a server does that answers the first request so and then waits.
async fn answer(bytes: &'static [u8], max_reply: usize) -> (Fixture, Batch) {
    let fixture = with_server(max_reply, move |mut stream| async move {
        read_pings(&mut stream, 1).await;
        stream.write_all(bytes).await.unwrap();
        let _ = stream.read_u8().await;
    })
    .await;
    let batch = fixture.ping(hang()).await;
    (fixture, batch)
}

#[tokio::test]
async fn requests_of_many_tasks_get_their_own_replies() {
    // The server reads nothing until it gets a signal, and then counts; there are more requests than
    // may be pending, and the batches are of several sizes.
    let fixture = with_server(1 << 20, |stream| async move {
        let (mut reader, mut writer) = stream.into_split();
        let mut seen = 0u64;
        let mut part = 0;
        let mut buf = vec![0; 4096];
        while let Ok(n @ 1..) = reader.read(&mut buf).await {
            part += n;
            while part >= PING {
                part -= PING;
                seen += 1;
                let reply = format!(":{seen}\r\n");
                writer.write_all(reply.as_bytes()).await.unwrap();
            }
        }
    })
    .await;
    let connection = Arc::new(fixture.connection);
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..PENDING + 500 {
        let connection = connection.clone();
        tasks.spawn(async move {
            let replies = 1 + n % 3;
            let bytes = cmd("PING").encoded().repeat(replies);
            (replies, connection.send(bytes, replies, hang()).await)
        });
    }
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (replies, batch) = done.unwrap();
        assert_eq!(batch.failure, None);
        let numbers: Vec<i64> = batch.values.into_iter().map(|v| v.to().unwrap()).collect();
        assert_eq!(numbers.len(), replies);
        assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
        all.extend(numbers);
    }
    all.sort_unstable();
    assert!(all.iter().zip(1..).all(|(&a, b)| a == b), "each reply once");
}

#[tokio::test]
async fn pushes_are_counted_and_dropped() {
    let (fixture, batch) = answer(b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+PONG\r\n", 1000).await;
    assert_eq!(batch.values, [Value::Status("PONG".into())]);
    assert_eq!(fixture.pushes.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn what_breaks_the_protocol_ends_the_connection() {
    let many: &'static [u8] = b"*1000000000\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n_\r\n";
    let cases: [(&'static [u8], &str); 5] = [
        (b"HTTP/1.1 200 OK\r\n", "no reply type"),
        (b"$-7\r\n", "malformed"),
        (b"$999999999\r\nx", "size limit"),
        (many, "more than 32 bytes"),
        (b"+PONG\r\n+PONG\r\n", "without a request"),
    ];
    for (bytes, reason) in cases {
        let (fixture, first) = answer(bytes, 32).await;
        if first.failure.is_none() {
            // The reply was good; it is what followed it that was not.
            fixture
                .connection
                .closed
                .subscribe()
                .wait_for(|&c| c)
                .await
                .unwrap();
            continue;
        }
        let error = first.failure.unwrap();
        assert!(error.to_string().contains(reason), "{error}");
        assert!(error.maybe_done());
        assert!(fixture.connection.is_closed());
    }
}

#[tokio::test]
async fn a_lost_connection_says_what_may_have_been_done() {
    let fixture = with_server(1000, |mut stream| async move {
        read_pings(&mut stream, 1).await;
        stream.write_all(b"+PONG\r\n").await.unwrap();
        read_pings(&mut stream, 1).await;
    })
    .await;
    let batch = fixture
        .connection
        .send(cmd("PING").encoded().repeat(2), 2, hang())
        .await;
    assert_eq!(batch.values, [Value::Status("PONG".into())]);
    let lost = |maybe_done| Some(lost(&fixture.connection.addr, maybe_done));
    assert_eq!(batch.failure, lost(true));
    assert_eq!(fixture.ping(hang()).await.failure, lost(false));
}

#[tokio::test]
async fn silence_closes_and_slowness_does_not() {
    let silent = with_server(1000, |mut stream| async move {
        let _ = stream.read(&mut [0; 100]).await;
        let _ = stream.read(&mut [0; 100]).await;
    })
    .await;
    let late = silent.ping(soon()).await.failure;
    assert!(
        matches!(
            late,
            Some(Error::Timeout {
                maybe_done: true,
                ..
            })
        ),
        "{late:?}"
    );
    assert!(silent.connection.is_closed());

    let slow = with_server(1000, |mut stream| async move {
        read_pings(&mut stream, 1).await;
        // A sign of life, while the reply is to come when the client has given up.
        stream.write_all(b"+PO").await.unwrap();
        read_pings(&mut stream, 1).await;
        stream.write_all(b"NG\r\n:2\r\n").await.unwrap();
        let _ = stream.read_u8().await;
    })
    .await;
    // However slow this machine is: until the signal has arrived.
    let begun = slow.connection.received.load(Ordering::Relaxed);
    let received = slow.connection.received.clone();
    let first = slow.connection.send(
        cmd("PING").encoded(),
        1,
        Instant::now() + Duration::from_secs(1),
    );
    let late = first.await.failure;
    assert!(matches!(late, Some(Error::Timeout { .. })), "{late:?}");
    if received.load(Ordering::Relaxed) > begun {
        assert!(!slow.connection.is_closed());
        // The late reply is dropped, and not taken for the next one's.
        assert_eq!(slow.ping(hang()).await.values, [Value::Int(2)]);
    }
}
