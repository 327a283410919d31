//! As much HTTP as a test needs, to a server on this machine.

use std::io::{Read, Write};
use std::net::TcpStream;

/// The answer of a server.
pub(crate) struct Reply {
    /// The status code of the answer.
    pub(crate) status: u16,
    /// The body of the answer.
    pub(crate) body: String,
}

impl Reply {
    /// Returns the body, read as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

/// One request with these header lines, `Host` among them.
pub(crate) fn send(port: u16, request: &str, headers: &[&str], body: &str) -> Reply {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(stlf_testing::DEADLINE)).unwrap();
    let headers: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "{request} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n"
    );
    // A server may refuse before it has read everything.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 14];
    loop {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(read) => bytes.extend_from_slice(&part[..read]),
        }
        // Some servers keep the connection open; then the length says when it is all there.
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
            });
            if length.is_some_and(|length: usize| rest.len() >= length) {
                break;
            }
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Reply { status, body: if chunked { unchunk(rest) } else { rest.to_owned() } }
}

fn unchunk(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || after.len() < size {
            break;
        }
        body.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    body
}

/// As the server's own page asks.
pub(crate) fn ask(port: u16, request: &str, body: &str) -> Reply {
    let host = format!("Host: 127.0.0.1:{port}");
    send(port, request, &[&host, "Content-Type: application/json"], body)
}
