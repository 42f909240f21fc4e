//! gRPC over one connection, as far as etcd needs it: a call is a POST over HTTP/2 whose body, and
//! whose answer's, is messages behind five bytes each; a trailer has the status.
//!
//! ```text
//!   0            1          5        5+n
//!   ┌────────────┬──────────┬─────────┐
//!   │ compressed │ length n │ message │   (big-endian; compressed: always 0 here)
//!   └────────────┴──────────┴─────────┘
//! ```

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use prost::Message;
use std::marker::PhantomData;
use std::sync::Arc;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// Limit on the bytes of an answer. A mapping has at most 1 MiB, and a member announces some
/// hundred bytes.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
const PREFIX: usize = 5;
/// Bytes that etcd may send ahead of what was read, for each call and for all.
const WINDOW: u32 = 1024 * 1024;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const REASON: HeaderName = HeaderName::from_static("grpc-message");

#[derive(Clone, Debug, Error)]
pub(super) enum Fault {
    /// No connection, or one that failed: whether a call had an effect is unknown.
    #[error("{0}")]
    Link(String),
    /// etcd's answer.
    #[error("{message} (gRPC status {code})")]
    Status { code: u32, message: String },
}

impl From<h2::Error> for Fault {
    fn from(error: h2::Error) -> Self {
        Self::Link(error.to_string())
    }
}

/// Where an etcd listens.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// `host:port`, as in the address.
    pub(super) authority: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// The name in its certificate, and what checks it; none: without TLS.
    pub(super) tls: Option<(ServerName<'static>, Arc<rustls::ClientConfig>)>,
}

/// A connection. Clones use the same one, and it ends with the last clone and call.
#[derive(Clone)]
pub(super) struct Link {
    send: SendRequest<Bytes>,
    task: Arc<JoinHandle<()>>,
    /// `https://host:port`, before the name of a call.
    base: String,
    /// Proves the user of the node; empty: none.
    token: Option<HeaderValue>,
}

impl Link {
    pub(super) async fn open(place: &Place) -> Result<Self, Fault> {
        let link = |error: std::io::Error| Fault::Link(format!("{}: {error}", place.authority));
        let to = (place.host.as_str(), place.port);
        let stream = TcpStream::connect(to).await.map_err(link)?;
        stream.set_nodelay(true).map_err(link)?;
        match &place.tls {
            None => Self::over(stream, format!("http://{}", place.authority)).await,
            Some((name, config)) => {
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(name.clone(), stream).await;
                Self::over(
                    stream.map_err(link)?,
                    format!("https://{}", place.authority),
                )
                .await
            }
        }
    }

    async fn over(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        base: String,
    ) -> Result<Self, Fault> {
        let mut settings = h2::client::Builder::new();
        settings
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .enable_push(false);
        let (send, connection) = settings.handshake(stream).await?;
        let task = tokio::spawn(async move {
            // Its calls receive the error, too.
            let _ended = connection.await;
        });
        Ok(Self {
            send,
            task: Arc::new(task),
            base,
            token: None,
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    pub(super) fn set_token(&mut self, token: &str) -> Result<(), Fault> {
        let token = HeaderValue::from_str(token);
        self.token = Some(token.map_err(|_| strange("a token of other characters"))?);
        Ok(())
    }

    /// Calls with one message, to which there is one answer.
    pub(super) async fn call<A: Message + Default>(
        &self,
        method: &str,
        message: &impl Message,
    ) -> Result<A, Fault> {
        let mut stream: Stream<A> = self.begin(method).await?;
        stream.say_last(message)?;
        let answer = stream.next().await?;
        let answer = answer.ok_or_else(|| strange("a call without an answer"))?;
        // The status follows the message.
        match stream.next().await? {
            None => Ok(answer),
            Some(_) => Err(strange("two answers to one call")),
        }
    }

    /// Begins a call with any number of messages and answers.
    pub(super) async fn begin<A: Message + Default>(
        &self,
        method: &str,
    ) -> Result<Stream<A>, Fault> {
        let mut request = Request::post(format!("{}/etcdserverpb.{method}", self.base))
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            // A member of etcd without a leader answers with an error, not with old values.
            .header("hasleader", "true");
        if let Some(token) = &self.token {
            request = request.header("token", token);
        }
        let request = request.body(()).map_err(|e| Fault::Link(e.to_string()))?;
        let mut send = self.send.clone().ready().await?;
        let (answer, send) = send.send_request(request, false)?;
        Ok(Stream {
            send,
            inbound: Inbound::Promised(answer),
            received: BytesMut::new(),
            _answer: PhantomData,
        })
    }
}

/// A call under way. Dropping it ends it.
pub(super) struct Stream<A> {
    send: SendStream<Bytes>,
    inbound: Inbound,
    /// Bytes of answers that were not returned yet.
    received: BytesMut,
    _answer: PhantomData<fn() -> A>,
}

enum Inbound {
    Promised(ResponseFuture),
    Body(RecvStream),
}

impl<A: Message + Default> Stream<A> {
    pub(super) fn say(&mut self, message: &impl Message) -> Result<(), Fault> {
        Ok(self.send.send_data(frame(message), false)?)
    }

    fn say_last(&mut self, message: &impl Message) -> Result<(), Fault> {
        Ok(self.send.send_data(frame(message), true)?)
    }

    /// The next answer; `None`: the call has ended well. If the future is dropped, nothing is lost.
    pub(super) async fn next(&mut self) -> Result<Option<A>, Fault> {
        loop {
            if let Some(message) = cut(&mut self.received)? {
                let message = A::decode(message);
                return message.map(Some).map_err(|e| strange(&e.to_string()));
            }
            let body = match &mut self.inbound {
                Inbound::Body(body) => body,
                Inbound::Promised(answer) => {
                    let (head, body) = answer.await?.into_parts();
                    if head.status != StatusCode::OK {
                        return Err(strange(&format!("HTTP status {}", head.status)));
                    }
                    if head.headers.contains_key(STATUS) {
                        status(&head.headers)?;
                        return Ok(None);
                    }
                    self.inbound = Inbound::Body(body);
                    continue;
                }
            };
            match body.data().await {
                Some(bytes) => {
                    let bytes = bytes?;
                    self.received.extend_from_slice(&bytes);
                    body.flow_control().release_capacity(bytes.len())?;
                }
                None if self.received.is_empty() => {
                    let trailers = body.trailers().await?;
                    status(&trailers.unwrap_or_default())?;
                    return Ok(None);
                }
                None => return Err(strange("a message that is cut short")),
            }
        }
    }
}

fn frame(message: &impl Message) -> Bytes {
    let len = message.encoded_len();
    let mut bytes = BytesMut::with_capacity(PREFIX + len);
    bytes.put_u8(0);
    // Mappings and announcements, the longest parts of a message, are bounded.
    bytes.put_u32(u32::try_from(len).unwrap_or(u32::MAX));
    bytes.put(&message.encode_to_vec()[..]);
    bytes.freeze()
}

/// Takes the first message, if all of it was received.
fn cut(received: &mut BytesMut) -> Result<Option<Bytes>, Fault> {
    let Some(prefix) = received.first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let [compressed, len @ ..] = *prefix;
    let len = u32::from_be_bytes(len) as usize;
    if compressed != 0 {
        return Err(strange("a compressed message"));
    }
    if len > MAX_MESSAGE {
        return Err(strange(&format!(
            "a message of {len} bytes; the limit is {MAX_MESSAGE}"
        )));
    }
    if received.len() < PREFIX + len {
        return Ok(None);
    }
    received.advance(PREFIX);
    Ok(Some(received.split_to(len).freeze()))
}

/// The status in trailers, or in the headers of an answer without a body.
fn status(headers: &HeaderMap) -> Result<(), Fault> {
    let code = headers.get(STATUS).and_then(|code| code.to_str().ok());
    let code = code.and_then(|code| code.parse().ok());
    let message = headers.get(REASON).map_or(&[][..], HeaderValue::as_bytes);
    match code {
        None => Err(strange("an answer without a status")),
        Some(0) => Ok(()),
        Some(code) => Err(Fault::Status {
            code,
            message: plain(message),
        }),
    }
}

/// The text of a status: bytes other than printable ASCII are written as `%xx`.
fn plain(mut text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    while let Some((&first, rest)) = text.split_first() {
        let hex = rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match byte.filter(|_| first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                text = &rest[2..];
            }
            None => {
                bytes.push(first);
                text = rest;
            }
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    text.chars().filter(|char| !char.is_control()).collect()
}

fn strange(what: &str) -> Fault {
    Fault::Link(format!("an unexpected answer ({what}): is it an etcd?"))
}

#[cfg(test)]
mod tests {
    use super::super::messages::OfLease;
    use super::*;

    #[test]
    fn messages_arrive_in_any_pieces() {
        let whole = [frame(&OfLease { id: 300 }), frame(&OfLease { id: 0 })].concat();
        for at in 0..=whole.len() {
            let mut received = BytesMut::new();
            let mut all = Vec::new();
            for part in [&whole[..at], &whole[at..]] {
                received.extend_from_slice(part);
                while let Some(message) = cut(&mut received).expect("messages") {
                    all.push(OfLease::decode(message).expect("a message").id);
                }
            }
            assert_eq!(all, [300, 0], "cut at {at}");
            assert!(received.is_empty());
        }
    }

    #[test]
    fn what_is_not_a_message_is_an_error() {
        for bytes in [[1, 0, 0, 0, 0], [0, 0xff, 0, 0, 0]] {
            assert!(cut(&mut BytesMut::from(&bytes[..])).is_err());
        }
        assert!(status(&HeaderMap::new()).is_err());
        for (text, shown) in [
            ("a%20b", "a b"),
            ("50%", "50%"),
            ("%zz%", "%zz%"),
            ("%1b[2J%c3%a9", "[2J\u{e9}"),
        ] {
            assert_eq!(plain(text.as_bytes()), shown);
        }
    }
}
