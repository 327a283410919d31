//! Metrics for Prometheus, on a local port if the user asks for them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::Error;

/// The text of the current metrics, with which requests are answered.
#[derive(Clone, Default)]
pub(super) struct Numbers(Arc<Mutex<String>>);

impl Numbers {
    /// Replaces the text with which requests are answered.
    pub(super) fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The time after which a request is dropped unanswered.
const LONGEST: Duration = Duration::from_secs(5);

/// Answers requests on a local address as long as the program runs, and returns the address.
pub(super) async fn serve(address: SocketAddr, numbers: Numbers) -> Result<SocketAddr, Error> {
    let cannot = |source: std::io::Error| Error::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(cannot)?;
    let bound = listener.local_addr().map_err(cannot)?;
    tokio::spawn(async move {
        // One after the other: whoever asks is on this machine, and the answer is short.
        while let Ok((stream, _)) = listener.accept().await {
            let _ = timeout(LONGEST, answer(stream, &numbers)).await;
        }
    });
    Ok(bound)
}

async fn answer(mut stream: TcpStream, numbers: &Numbers) -> std::io::Result<()> {
    let mut request = [0; 4096];
    let mut length = 0;
    while length < request.len() && !request[..length].windows(4).any(|w| w == b"\r\n\r\n") {
        match stream.read(&mut request[length..]).await? {
            0 => break,
            n => length += n,
        }
    }
    let (status, body) = match request.starts_with(b"GET /metrics ") {
        true => ("200 OK", numbers.get()),
        false => ("404 Not Found", "there is only /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
