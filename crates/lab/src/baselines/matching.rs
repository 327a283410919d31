//! A random matching of targets to senders in which no sender serves more than its share.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

/// One sender for each receiver out of `senders[receiver]`, of which there is at least one. No sender is taken more
/// than `most` times, or than the least number above it at which everybody can be served.
pub(super) fn one_sender_each(
    senders: &[Vec<usize>],
    devices: usize,
    most: usize,
    rng: &mut ChaCha8Rng,
) -> Vec<usize> {
    let mut senders: Vec<Vec<usize>> = senders.to_vec();
    senders.iter_mut().for_each(|list| list.shuffle(rng));
    let mut order: Vec<usize> = (0..senders.len()).collect();
    order.shuffle(rng);
    let mut matching =
        Matching { senders: &senders, most: most.max(1), served: vec![Vec::new(); devices] };
    for receiver in order {
        while !matching.serve(receiver) {
            matching.most += 1;
        }
    }
    let mut sender_of = vec![0; senders.len()];
    for (sender, receivers) in matching.served.iter().enumerate() {
        receivers.iter().for_each(|&receiver| sender_of[receiver] = sender);
    }
    sender_of
}

struct Matching<'a> {
    senders: &'a [Vec<usize>],
    most: usize,
    /// The receivers that each sender serves.
    served: Vec<Vec<usize>>,
}

impl Matching<'_> {
    /// Finds the receiver a sender: one with a place left, or one that gets a place because others move on along a
    /// shortest chain. False if there is none.
    fn serve(&mut self, receiver: usize) -> bool {
        // Breadth first over (receiver that looks for a place, who came before it, the place it would leave).
        let mut looking = vec![(receiver, None)];
        let mut seen = vec![false; self.served.len()];
        let mut next = 0;
        while next < looking.len() {
            for &sender in &self.senders[looking[next].0] {
                if std::mem::replace(&mut seen[sender], true) {
                    continue;
                }
                if self.served[sender].len() < self.most {
                    self.move_along(&looking, next, sender);
                    return true;
                }
                looking.extend(self.served[sender].iter().map(|&r| (r, Some((next, sender)))));
            }
            next += 1;
        }
        false
    }

    /// Gives `looking[at]` a place at `to`, and the place it leaves to whom it was looked for.
    fn move_along(
        &mut self,
        looking: &[(usize, Option<(usize, usize)>)],
        mut at: usize,
        mut to: usize,
    ) {
        loop {
            let (receiver, before) = looking[at];
            self.served[to].push(receiver);
            let Some((previous, left)) = before else { return };
            self.served[left].retain(|&r| r != receiver);
            (at, to) = (previous, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// The least share at which everybody can be served, by trying all choices.
    fn least_share(senders: &[Vec<usize>], devices: usize) -> usize {
        fn search(senders: &[Vec<usize>], used: &mut [usize], best: &mut usize) {
            let Some((first, rest)) = senders.split_first() else {
                *best = (*best).min(used.iter().copied().max().unwrap_or(0));
                return;
            };
            for &sender in first {
                used[sender] += 1;
                search(rest, used, best);
                used[sender] -= 1;
            }
        }
        let mut best = usize::MAX;
        search(senders, &mut vec![0; devices], &mut best);
        best
    }

    #[test]
    fn nobody_serves_more_than_must_be() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for _ in 0..300 {
            let devices = rng.random_range(1..5);
            let receivers = rng.random_range(1..7);
            let senders: Vec<Vec<usize>> = (0..receivers)
                .map(|_| {
                    let sure = rng.random_range(0..devices);
                    (0..devices).filter(|&i| i == sure || rng.random_bool(0.3)).collect()
                })
                .collect();
            let most = rng.random_range(1..4);
            let matched = one_sender_each(&senders, devices, most, &mut rng);
            let mut used = vec![0; devices];
            for (receiver, &sender) in matched.iter().enumerate() {
                assert!(senders[receiver].contains(&sender));
                used[sender] += 1;
            }
            let limit = most.max(least_share(&senders, devices));
            assert!(used.iter().all(|&u| u <= limit), "{used:?} {limit} {senders:?}");
        }
    }

    #[test]
    fn every_matching_can_come_up() {
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let senders = vec![vec![0, 1, 2]; 3];
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..200 {
            seen.insert(one_sender_each(&senders, 3, 1, &mut rng));
        }
        assert_eq!(seen.len(), 6);
    }
}
