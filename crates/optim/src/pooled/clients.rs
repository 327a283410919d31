//! Asking every client for its choice, many at a time where there are many, and never for long
//! without asking whether to go on.

use rayon::prelude::*;

use super::instance::Instance;
use super::selection::Selector;
use crate::status::Leash;

/// The number of clients from which on they are asked in parallel.
const PARALLEL: usize = 256;

/// Branchings for each client in the first of several passes; each pass after it allows
/// [`GROWTH`] times as many to clients that were not done.
const FIRST: usize = 40;
const GROWTH: usize = 8;

/// Branchings, times the links that each looks at, that go on in parallel between two questions
/// whether to go on. A client that may need more is asked here, where there are questions in between.
const BATCH: usize = 1 << 17;

/// An answer, and whether more branchings could change it.
pub(super) struct Answer<T> {
    pub(super) value: T,
    pub(super) is_final: bool,
}

/// The answers of all clients, with at most `nodes` branchings each. Once told to stop, whoever
/// was not asked yet gets by with one.
pub(super) fn ask_all<T: Send>(
    instance: &Instance,
    nodes: usize,
    selector: &mut Selector,
    leash: &mut Leash<'_>,
    ask: impl Fn(usize, usize, &mut Selector, &mut Leash<'_>) -> Answer<T> + Sync,
) -> Vec<T> {
    let clients = instance.clients();
    if clients < PARALLEL {
        return (0..clients).map(|client| ask(client, nodes, selector, leash).value).collect();
    }
    let mut answers: Vec<T> = Vec::with_capacity(clients);
    let mut unsure: Vec<usize> = Vec::new();
    let mut allowed = nodes.min(FIRST);
    let mut pending: Vec<usize> = (0..clients).collect();
    let links = (instance.links() / clients).max(1);
    loop {
        for batch in pending.chunks((BATCH / links / allowed.max(1)).max(1)) {
            let go_on = leash.go_on();
            if !go_on && answers.len() == clients {
                return answers;
            }
            let asked: Vec<Answer<T>> = batch
                .par_iter()
                .map_init(Selector::default, |selector, &client| {
                    ask(client, allowed, selector, &mut Leash::new(&mut || go_on))
                })
                .collect();
            for (&client, answer) in batch.iter().zip(asked) {
                if !answer.is_final {
                    unsure.push(client);
                }
                put(&mut answers, client, answer.value);
            }
        }
        if unsure.is_empty() || allowed == nodes || leash.stopped() {
            return answers;
        }
        pending = std::mem::take(&mut unsure);
        allowed = allowed.saturating_mul(GROWTH).min(nodes);
        if allowed > BATCH / links {
            break;
        }
    }
    for client in pending {
        if leash.stopped() {
            break;
        }
        let answer = ask(client, nodes, selector, leash);
        put(&mut answers, client, answer.value);
    }
    answers
}

/// In the first pass answers come in the order of the clients.
fn put<T>(answers: &mut Vec<T>, client: usize, value: T) {
    match answers.get_mut(client) {
        Some(answer) => *answer = value,
        None => answers.push(value),
    }
}
