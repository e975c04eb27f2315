//! Connections of subscribers.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinSet;
use viaduct_bus::{Encoded, TypeInfo};
use viaduct_node::Stop;
use viaduct_node::listen::Gate;
use viaduct_ros::tcpros::{Frames, HandshakeError, Header, Request, write_length};

use super::Identity;
use super::counters::Counters;
use super::frame::{FrameError, next_frame};
use super::publication::{Publication, SendQueue};

/// Maximum number of subscribers.
pub(super) const SUBSCRIBERS_MAX: usize = 256;
/// Time limit for the subscriber's header.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest header of a subscriber. Some contain the definition of the messages.
const HEADER_BYTES_MAX: usize = 256 << 10;
/// Wait after a failed attempt to accept a connection, for example without a free file descriptor.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// The server for subscribers.
pub(super) struct Server {
    identity: Arc<Identity>,
    publications: Arc<[Arc<Publication>]>,
    counters: Arc<Counters>,
}

/// Reason why a subscriber was not accepted.
#[derive(Debug, thiserror::Error)]
enum RefusedError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("there was no connection header within {} s", HANDSHAKE_TIME_MAX.as_secs())]
    Timeout,
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Header(#[from] viaduct_ros::tcpros::HeaderError),
    #[error("{0}")]
    Handshake(#[from] HandshakeError),
    #[error("`{0}` is not published here")]
    Topic(String),
    #[error("the type of the messages has changed")]
    TypeChanged,
}

impl Server {
    pub(super) fn new(
        identity: &Arc<Identity>,
        publications: &Arc<[Arc<Publication>]>,
        counters: &Arc<Counters>,
    ) -> Arc<Self> {
        let (identity, publications) = (Arc::clone(identity), Arc::clone(publications));
        Arc::new(Self { identity, publications, counters: Arc::clone(counters) })
    }

    /// Accepts subscribers until the component stops.
    pub(super) async fn run(self: Arc<Self>, listener: TcpListener, gate: Gate, mut stop: Stop) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let accepted = tokio::select! {
                () = stop.asked() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    if let Some(place) = gate.admit(&stream, peer) {
                        let served = Arc::clone(&self).serve(stream, stop.clone());
                        connections.spawn(async move {
                            served.await;
                            drop(place);
                        });
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                    tokio::time::sleep(ACCEPT_WAIT).await;
                }
            }
        }
        // Publications end the connections when their queues are empty.
        while connections.join_next().await.is_some() {}
        Ok(())
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream, mut stop: Stop) {
        let opened = tokio::select! {
            () = stop.asked() => return,
            opened = tokio::time::timeout(HANDSHAKE_TIME_MAX, self.handshake(&mut stream)) => opened,
        };
        match opened.unwrap_or(Err(RefusedError::Timeout)) {
            Ok((publication, queue)) => {
                self.counters.subscribers.increment();
                let (reader, writer) = stream.into_split();
                tokio::select! {
                    () = until_closed(reader) => {}
                    () = queue.ended() => {}
                    _ = send(&publication, &queue, writer) => {}
                }
                publication.detach(&queue);
            }
            Err(error) => {
                tracing::debug!(%error, "a ROS subscriber was refused");
                self.counters.subscribers_refused.increment();
            }
        }
    }

    /// Reads the subscriber's header and answers it. Returns the publication that it wants, and its queue.
    async fn handshake(&self, stream: &mut TcpStream) -> Result<(Arc<Publication>, Arc<SendQueue>), RefusedError> {
        stream.set_nodelay(true)?;
        let mut frames = Frames::new(HEADER_BYTES_MAX);
        let header = next_frame(stream, &mut frames).await?;
        match self.find(&header) {
            Ok((publication, info, answer)) => {
                stream.write_all(&answer.write()).await?;
                let queue = publication.attach(&info).ok_or(RefusedError::TypeChanged)?;
                Ok((publication, queue))
            }
            Err(error) => {
                stream.write_all(&Header::refusal(&error).write()).await?;
                Err(error)
            }
        }
    }

    /// Returns the publication that a subscriber wants, its type, and the answer to the header.
    fn find(&self, header: &[u8]) -> Result<(Arc<Publication>, Arc<TypeInfo>, Header), RefusedError> {
        let request = Request::read(&Header::parse(header)?)?;
        let known = self.publications.iter().find(|one| one.topic() == request.topic);
        let offer = known.and_then(|publication| {
            let info = publication.type_info()?;
            let offer = publication.offer(&self.identity.name, &info)?;
            Some((publication, info, offer))
        });
        let Some((publication, info, offer)) = offer else {
            return Err(RefusedError::Topic(request.topic));
        };
        request.check(publication.topic(), &offer)?;
        Ok((Arc::clone(publication), info, offer.header()))
    }
}

/// Waits until a subscriber closes its connection. It sends nothing else.
async fn until_closed(mut reader: OwnedReadHalf) {
    let mut octets = [0; 64];
    while reader.read(&mut octets).await.is_ok_and(|count| count > 0) {}
}

/// Writes messages to a subscriber until the connection fails.
async fn send(publication: &Publication, queue: &SendQueue, mut writer: OwnedWriteHalf) -> io::Result<()> {
    loop {
        let (message, meta) = queue.next().await;
        write(&message, &mut writer).await?;
        publication.written(queue, &meta);
    }
}

async fn write(message: &Encoded, writer: &mut OwnedWriteHalf) -> io::Result<()> {
    // Longer messages are not put into a queue.
    let length = write_length(message.len()).unwrap_or_default();
    let mut octets = Buf::chain(length.as_slice(), message.reader());
    writer.write_all_buf(&mut octets).await
}
