//! Downloads from a server of our own on the loopback interface that answers by a script.

use super::download::{Outcome, download};
use super::*;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Nothing on the loopback interface takes this long.
const DEADLINE: Duration = Duration::from_secs(10);

/// How the server answers one request.
#[derive(Clone)]
enum Answer {
    /// What is asked for, ranges included.
    Serve(Vec<u8>),
    /// All of it, whatever range is asked for.
    ServeWhole(Vec<u8>),
    /// The right length, but the connection ends after so many bytes.
    Cut(Vec<u8>, usize),
    NotFound,
}

struct Server {
    address: SocketAddr,
    /// The ranges that were asked for.
    ranges: Arc<Mutex<Vec<Option<String>>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    fn start(script: Vec<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ranges = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&ranges);
        let thread = std::thread::spawn(move || {
            for answer in script {
                let (stream, _) = listener.accept().unwrap();
                stream.set_read_timeout(Some(DEADLINE)).unwrap();
                stream.set_write_timeout(Some(DEADLINE)).unwrap();
                match read_range(&stream) {
                    Some(range) => {
                        seen.lock().unwrap().push(range.clone());
                        // A client that was told to stop hangs up.
                        let _ = send(&stream, &answer, range.as_deref());
                    }
                    None => return,
                }
            }
        });
        Server { address, ranges, thread: Some(thread) }
    }

    fn mirror(&self) -> String {
        format!("http://{}/", self.address)
    }

    fn ranges(&self) -> Vec<Option<String>> {
        self.ranges.lock().unwrap().clone()
    }
}

impl Drop for Server {
    /// Wakes a server that still waits; an empty request ends it.
    fn drop(&mut self) {
        let _ = TcpStream::connect_timeout(&self.address, DEADLINE);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The Range header of a request; `None` if there is no request.
fn read_range(stream: &TcpStream) -> Option<Option<String>> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    assert!(first.starts_with("GET /a.bin HTTP/1.1"), "{first}");
    let mut range = None;
    for line in lines {
        let line = line.ok()?;
        match line.split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("range") => {
                range = Some(value.to_owned());
            }
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    Some(range)
}

fn send(mut stream: &TcpStream, answer: &Answer, range: Option<&str>) -> std::io::Result<()> {
    let start = range.and_then(|r| r.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok());
    let (status, extra, length, body) = match (answer, start.unwrap_or(0)) {
        (Answer::NotFound, _) => ("404 Not Found", String::new(), 0, &[][..]),
        (Answer::Cut(all, after), start) => {
            let status = if start > 0 { "206 Partial Content" } else { "200 OK" };
            let extra = format!("Content-Range: bytes {start}-{}/{}\r\n", all.len() - 1, all.len());
            (status, extra, all.len() - start, &all[start..*after])
        }
        (Answer::Serve(all), start) if start >= all.len() => {
            ("416 Range Not Satisfiable", String::new(), 0, &[][..])
        }
        (Answer::Serve(all), start) if start > 0 => {
            let extra = format!("Content-Range: bytes {start}-{}/{}\r\n", all.len() - 1, all.len());
            ("206 Partial Content", extra, all.len() - start, &all[start..])
        }
        (Answer::Serve(all) | Answer::ServeWhole(all), _) => {
            ("200 OK", String::new(), all.len(), &all[..])
        }
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{extra}Connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)
}

/// 300,000 bytes, so that a transfer takes several reads.
fn file() -> Vec<u8> {
    (0u32..75_000).flat_map(|k| (k.wrapping_mul(2_654_435_761)).to_le_bytes()).collect()
}

const SHA256: &str = "e496e24b4de3ed92e3247412ae0a588a002b2e209bff58a8a138020cc8e75fed";

fn source(mirrors: Vec<String>) -> Source {
    Source {
        file: "a.bin".to_owned(),
        bytes: None,
        checksum: Checksum::Sha256(SHA256),
        mirrors,
        archive_of: None,
    }
}

/// Asks no proxy, whatever the environment says.
fn agent() -> ureq::Agent {
    let config = ureq::Agent::config_builder().http_status_as_error(false).proxy(None);
    config.timeout_global(Some(DEADLINE)).build().into()
}

fn go_on(_: &Progress<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_arrives_whole_and_progress_is_told() {
    let (server, folder) =
        (Server::start(vec![Answer::Serve(file())]), tempfile::tempdir().unwrap());
    let mut seen = Vec::new();
    let outcome = download(&agent(), &source(vec![server.mirror()]), folder.path(), &mut |p| {
        seen.push((p.done, p.total));
        ControlFlow::Continue(())
    });
    assert_eq!(outcome.unwrap(), Outcome::Done);
    assert_eq!(fs::read(folder.path().join("a.bin")).unwrap(), file());
    assert_eq!(names(folder.path()), ["a.bin"]);
    assert_eq!((seen[0], seen[seen.len() - 1]), ((0, Some(300_000)), (300_000, Some(300_000))));
    assert!(seen.is_sorted());
}

#[test]
fn a_cut_connection_is_resumed() {
    let script = vec![Answer::Cut(file(), 1000), Answer::Cut(file(), 2500), Answer::Serve(file())];
    let (server, folder) = (Server::start(script), tempfile::tempdir().unwrap());
    let outcome = download(&agent(), &source(vec![server.mirror()]), folder.path(), &mut go_on);
    assert_eq!(outcome.unwrap(), Outcome::Done);
    assert_eq!(fs::read(folder.path().join("a.bin")).unwrap(), file());
    let asked = [None, Some("bytes=1000-".to_owned()), Some("bytes=2500-".to_owned())];
    assert_eq!(server.ranges(), asked);
}

#[test]
fn a_mirror_that_gives_nothing_more_is_left_and_the_next_one_resumes() {
    let first = Server::start(vec![Answer::Cut(file(), 1000), Answer::Cut(file(), 1000)]);
    let second = Server::start(vec![Answer::Serve(file())]);
    let folder = tempfile::tempdir().unwrap();
    let source = source(vec![first.mirror(), second.mirror()]);
    assert_eq!(download(&agent(), &source, folder.path(), &mut go_on).unwrap(), Outcome::Done);
    assert_eq!(second.ranges(), [Some("bytes=1000-".to_owned())]);
}

#[test]
fn a_server_without_ranges_begins_anew() {
    let script = vec![Answer::Cut(file(), 1000), Answer::ServeWhole(file())];
    let (server, folder) = (Server::start(script), tempfile::tempdir().unwrap());
    let outcome = download(&agent(), &source(vec![server.mirror()]), folder.path(), &mut go_on);
    assert_eq!(outcome.unwrap(), Outcome::Done);
    assert_eq!(fs::read(folder.path().join("a.bin")).unwrap(), file());
}

#[test]
fn a_wrong_checksum_leaves_nothing() {
    let other = vec![7; 300_000];
    let (server, folder) =
        (Server::start(vec![Answer::Serve(other)]), tempfile::tempdir().unwrap());
    let source = source(vec![server.mirror()]);
    let error = download(&agent(), &source, folder.path(), &mut go_on).unwrap_err();
    assert!(error.to_string().contains("its checksum is"), "{error}");
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn a_part_that_does_not_fit_is_thrown_away_once() {
    for stale in [vec![9; 1000], vec![9; 300_000], vec![9; 400_000]] {
        let script = vec![Answer::Serve(file()), Answer::Serve(file())];
        let (server, folder) = (Server::start(script), tempfile::tempdir().unwrap());
        fs::write(folder.path().join("a.bin.part"), &stale).unwrap();
        let outcome = download(&agent(), &source(vec![server.mirror()]), folder.path(), &mut go_on);
        assert_eq!(outcome.unwrap(), Outcome::Done, "{}", stale.len());
        assert_eq!(names(folder.path()), ["a.bin"]);
        assert_eq!(server.ranges()[1], None);
    }
}

#[test]
fn the_next_mirror_is_asked_after_a_404_or_a_wrong_size() {
    let first = Server::start(vec![Answer::NotFound]);
    let second = Server::start(vec![Answer::Serve(vec![1; 10])]);
    let third = Server::start(vec![Answer::Serve(file())]);
    let folder = tempfile::tempdir().unwrap();
    let mirrors = vec![first.mirror(), second.mirror(), third.mirror()];
    let source = Source { bytes: Some(300_000), ..source(mirrors) };
    assert_eq!(download(&agent(), &source, folder.path(), &mut go_on).unwrap(), Outcome::Done);
    assert_eq!((first.ranges().len(), second.ranges().len(), third.ranges().len()), (1, 1, 1));
}

#[test]
fn a_stopped_download_goes_on_later() {
    let script = vec![Answer::Serve(file()), Answer::Serve(file())];
    let (server, folder) = (Server::start(script), tempfile::tempdir().unwrap());
    let source = source(vec![server.mirror()]);
    let outcome = download(&agent(), &source, folder.path(), &mut |progress| {
        if progress.done > 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(outcome.unwrap(), Outcome::Stopped);
    assert_eq!(names(folder.path()), ["a.bin.part"]);
    let length = fs::metadata(folder.path().join("a.bin.part")).unwrap().len();
    assert!((1..300_000).contains(&length));
    assert_eq!(download(&agent(), &source, folder.path(), &mut go_on).unwrap(), Outcome::Done);
    assert_eq!(server.ranges()[1], Some(format!("bytes={length}-")));
    assert_eq!(names(folder.path()), ["a.bin"]);
}

#[test]
fn offline_every_missing_file_is_named() {
    // A port that was free a moment ago refuses connections.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut sources = sources(Domain::MnistM);
    sources.iter_mut().for_each(|s| s.mirrors = vec![format!("http://{address}/")]);
    let folder = tempfile::tempdir().unwrap();
    let result = fetch_all(&agent(), Domain::MnistM, &sources, folder.path(), &mut go_on);
    let error = result.unwrap_err();
    assert!(error.to_string().starts_with("mnist_m_train.pt.tar.gz could not be downloaded"));
    let hint = error.hint().unwrap();
    for part in ["mnist_m_train.pt.tar.gz from http", "mnist_m_test.pt.tar.gz", "build-mnist-m"] {
        assert!(hint.contains(part), "{hint}");
    }
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn what_is_there_is_kept_and_asks_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let names =
        [Half::Train, Half::Test].map(|half| Domain::Usps.file_names(half).unwrap()).concat();
    names.iter().for_each(|name| fs::write(folder.path().join(name), "mine").unwrap());
    let fetched = fetch(Domain::Usps, folder.path(), Some("http://127.0.0.1:1"), &mut go_on);
    let kept = names.iter().map(|name| folder.path().join(name)).collect();
    assert_eq!(fetched.unwrap(), Fetched::All { new: Vec::new(), kept });
}

#[test]
fn the_table_covers_every_file_of_every_domain_that_has_files() {
    for domain in [Domain::Mnist, Domain::Usps, Domain::MnistM] {
        let folder = Path::new("");
        let files: Vec<PathBuf> =
            sources(domain).iter().flat_map(|s| files_of(domain, s, folder)).collect();
        let halves = [Half::Train, Half::Test];
        let needed = halves.map(|half| domain.file_names(half).unwrap()).concat();
        assert_eq!(files, needed.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert!(sources(domain).iter().all(|s| s.mirrors.iter().all(|m| m.ends_with('/'))));
    }
}
