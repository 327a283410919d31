//! Devices that know no address of each other and meet by a relay. The relay is the least that passes packets on: WebSockets over plain
//! TCP, frames of `iroh-relay`, no check of who calls.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use data_encoding::BASE64;
use stlf_node::network::{Event, Options};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::common::{ALL, DEVICES, devices};
use crate::faults::forever;
use crate::net::Fleet;

type Key = [u8; 32];

/// Where packets for each key go.
type Clients = Arc<Mutex<HashMap<Key, UnboundedSender<Vec<u8>>>>>;

/// Kinds of frames, by their first byte.
const CHALLENGE: u8 = 0;
const CONFIRMED: u8 = 2;
const TO_RELAY: [u8; 2] = [4, 5];
const PING: u8 = 9;
const PONG: u8 = 10;

/// What is hashed with the key of whoever calls (RFC 6455).
const WEB_SOCKET: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// SHA-1 as RFC 3174 has it, for the handshake of WebSockets.
fn sha1(message: &[u8]) -> [u8; 20] {
    let mut padded = message.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() < message.len() + 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let at = padded.len() - 8;
    padded[at..].copy_from_slice(&(8 * message.len() as u64).to_be_bytes());
    let mut h = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    for block in padded.chunks_exact(64) {
        let mut w = [0_u32; 80];
        for (word, bytes) in w.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes(bytes.try_into().unwrap());
        }
        for t in 16..80 {
            w[t] = (w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = h;
        for (t, word) in w.into_iter().enumerate() {
            let (f, k) = match t {
                0..20 => ((b & c) | (!b & d), 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc_u32),
                _ => (b ^ c ^ d, 0xca62_c1d6),
            };
            let sum = a.rotate_left(5).wrapping_add(f).wrapping_add(e);
            let next = sum.wrapping_add(word).wrapping_add(k);
            (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        }
        for (h, x) in h.iter_mut().zip([a, b, c, d, e]) {
            *h = h.wrapping_add(x);
        }
    }
    let mut digest = [0; 20];
    for (bytes, h) in digest.chunks_exact_mut(4).zip(h) {
        bytes.copy_from_slice(&h.to_be_bytes());
    }
    digest
}

/// A binary frame of a server.
fn framed(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x82];
    match payload.len() {
        length @ ..126 => frame.push(length as u8),
        length => {
            frame.push(126);
            frame.extend(u16::try_from(length).unwrap().to_be_bytes());
        }
    }
    frame.extend(payload);
    frame
}

/// The next binary message of a client, whose frames are masked.
async fn message(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let [kind, length] = [stream.read_u8().await.ok()?, stream.read_u8().await.ok()?];
    let length = match length & 0x7f {
        126 => u64::from(stream.read_u16().await.ok()?),
        127 => stream.read_u64().await.ok()?,
        short => u64::from(short),
    };
    let mut mask = [0; 4];
    stream.read_exact(&mut mask).await.ok()?;
    let mut payload = vec![0; usize::try_from(length).ok()?];
    stream.read_exact(&mut payload).await.ok()?;
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    (kind == 0x82).then_some(payload)
}

/// The head of a request, whose names are taken in small letters.
async fn head(stream: &mut TcpStream) -> Option<BTreeMap<String, String>> {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        text.push(stream.read_u8().await.ok()?);
    }
    let text = String::from_utf8(text).ok()?;
    let fields = text.lines().filter_map(|line| line.split_once(": "));
    Some(fields.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect())
}

async fn serve(mut stream: TcpStream, clients: Clients) -> Option<()> {
    let head = head(&mut stream).await?;
    let Some(key) = head.get("sec-websocket-key") else {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(answer).await.ok();
    };
    let accept = BASE64.encode(&sha1(format!("{key}{WEB_SOCKET}").as_bytes()));
    // Of the versions that the client speaks, the first.
    let protocol = head.get("sec-websocket-protocol").and_then(|all| all.split(", ").next());
    let protocol = protocol.map(|one| format!("Sec-WebSocket-Protocol: {one}\r\n"));
    let answer = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{}Sec-WebSocket-Accept: {accept}\r\n\r\n",
        protocol.unwrap_or_default()
    );
    stream.write_all(answer.as_bytes()).await.ok()?;
    stream.write_all(&framed(&[&[CHALLENGE][..], &[7; 16]].concat())).await.ok()?;
    let own: Key = message(&mut stream).await?.get(1..33)?.try_into().ok()?;
    stream.write_all(&framed(&[CONFIRMED])).await.ok()?;
    let (send, mut to_send) = unbounded_channel::<Vec<u8>>();
    clients.lock().unwrap().insert(own, send.clone());
    let (mut reads, mut writes) = stream.into_split();
    tokio::spawn(async move {
        while let Some(frame) = to_send.recv().await {
            if writes.write_all(&framed(&frame)).await.is_err() {
                break;
            }
        }
    });
    while let Some(frame) = message(&mut reads).await {
        let (kind, rest) = frame.split_first()?;
        if *kind == PING {
            let _ = send.send([&[PONG], rest].concat());
        } else if TO_RELAY.contains(kind) && rest.len() >= 32 {
            let (to, rest) = rest.split_at(32);
            let passed_on = [&[kind + 2], &own[..], rest].concat();
            if let Some(client) = clients.lock().unwrap().get(to) {
                let _ = client.send(passed_on);
            }
        }
    }
    Some(())
}

/// Where the relay is, and how many devices have come to it.
async fn relay() -> (String, Clients) {
    let listener = TcpListener::bind((Ipv4Addr::new(127, 0, 7, 140), 0)).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let clients = Clients::default();
    let all = clients.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, all.clone()));
        }
    });
    (url, clients)
}

#[test]
fn the_hash_is_that_of_the_standard() {
    let hex = |bytes: [u8; 20]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(hex(sha1(b"abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
    let key = format!("dGhlIHNhbXBsZSBub25jZQ=={WEB_SOCKET}");
    assert_eq!(BASE64.encode(&sha1(key.as_bytes())), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn devices_that_know_no_address_meet_by_a_relay() {
    let (url, clients) = relay().await;
    let mut fleet = Fleet::new(40);
    let by_relay = |options: Options| {
        let relay = Some(url.parse().unwrap());
        Options { peers: BTreeMap::new(), relay, ..forever(options) }
    };
    devices().into_iter().for_each(|device| fleet.start(device, by_relay));
    for place in ALL {
        let is_complete = |events: &[Event]| {
            let all = |e: &Event| matches!(e, Event::Began { devices: DEVICES, .. });
            let began = events.iter().rposition(all);
            began.is_some_and(|at| events[at..].contains(&Event::Complete))
        };
        fleet.running.get_mut(&place).unwrap().until(is_complete).await;
    }
    assert_eq!(clients.lock().unwrap().len(), DEVICES);
    fleet.stop().await;
}
