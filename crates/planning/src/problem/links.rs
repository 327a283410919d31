//! The links of a fleet, kept by receiver: a matrix, or only those that exist.

/// A usable link into some receiver.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The index of the sender.
    pub from: usize,
    /// d̂_ij, the divergence, 0 to 2.
    pub divergence: f64,
    /// K_ij, the energy of sending a model, in joules.
    pub energy: f64,
}

/// d̂_ij and K_ij of every link.
#[derive(Debug, Clone)]
pub struct Links {
    devices: usize,
    store: Store,
}

#[derive(Debug, Clone)]
enum Store {
    /// Receiver-major squares; a missing link, and a device's own, has NaN energy.
    Dense { divergence: Vec<f64>, energy: Vec<f64> },
    /// Links of receiver j at `first[j]..first[j + 1]`, senders ascending.
    Sparse { first: Vec<usize>, from: Vec<u32>, divergence: Vec<f64>, energy: Vec<f64> },
}

/// The links into one receiver as they are kept; a missing one has NaN energy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// Ascending; `None` where every device has its place.
    pub(crate) senders: Option<&'a [u32]>,
    pub(crate) divergence: &'a [f64],
    pub(crate) energy: &'a [f64],
}

/// Links are equal if the same links exist with the same values, however they are kept.
impl PartialEq for Links {
    fn eq(&self, other: &Links) -> bool {
        self.devices == other.devices
            && (0..self.devices).all(|j| self.incoming(j).eq(other.incoming(j)))
    }
}

impl Links {
    /// From squares with row = sender, NaN energy meaning no link. The diagonal is ignored.
    pub fn from_rows(devices: usize, mut divergence: Vec<f64>, mut energy: Vec<f64>) -> Links {
        energy.iter_mut().step_by(devices + 1).for_each(|own| *own = f64::NAN);
        transpose(devices, &mut divergence);
        transpose(devices, &mut energy);
        divergence.iter_mut().chain(&mut energy).for_each(|x| *x = unsigned(*x));
        Links { devices, store: Store::Dense { divergence, energy } }
    }

    /// Creates links from (sender, receiver, divergence, energy) in any order, without duplicates or loops.
    pub fn from_list(devices: usize, mut list: Vec<(u32, u32, f64, f64)>) -> Links {
        list.sort_unstable_by_key(|&(from, to, ..)| (to, from));
        let mut first = vec![0; devices + 1];
        for &(_, to, ..) in &list {
            first[to as usize + 1] += 1;
        }
        for j in 0..devices {
            first[j + 1] += first[j];
        }
        let store = Store::Sparse {
            first,
            from: list.iter().map(|l| l.0).collect(),
            divergence: list.iter().map(|l| unsigned(l.2)).collect(),
            energy: list.iter().map(|l| unsigned(l.3)).collect(),
        };
        Links { devices, store }
    }

    /// Returns the number of devices, whether or not they have links.
    pub fn devices(&self) -> usize {
        self.devices
    }

    /// Returns the number of links that exist.
    pub fn count(&self) -> usize {
        (0..self.devices).map(|j| self.incoming(j).count()).sum()
    }

    /// Returns the links into `receiver`, by ascending index of their senders.
    pub fn incoming(&self, receiver: usize) -> impl Iterator<Item = Link> + '_ {
        let row = self.row(receiver);
        let values = row.divergence.iter().zip(row.energy).enumerate();
        values.filter_map(move |(k, (&divergence, &energy))| {
            let from = row.senders.map_or(k, |senders| senders[k] as usize);
            (!energy.is_nan()).then_some(Link { from, divergence, energy })
        })
    }

    /// The links into `receiver` as they are kept.
    pub(crate) fn row(&self, receiver: usize) -> Row<'_> {
        match &self.store {
            Store::Dense { divergence, energy } => {
                let row = receiver * self.devices..(receiver + 1) * self.devices;
                Row { senders: None, divergence: &divergence[row.clone()], energy: &energy[row] }
            }
            Store::Sparse { first, from, divergence, energy } => {
                let row = first[receiver]..first[receiver + 1];
                Row {
                    senders: Some(&from[row.clone()]),
                    divergence: &divergence[row.clone()],
                    energy: &energy[row],
                }
            }
        }
    }

    /// Returns the link from one device to another, or `None` if it does not exist.
    pub fn get(&self, from: usize, to: usize) -> Option<Link> {
        let (at, store_divergence, store_energy) = match &self.store {
            Store::Dense { divergence, energy } => (to * self.devices + from, divergence, energy),
            Store::Sparse { first, from: senders, divergence, energy } => {
                let row = first[to]..first[to + 1];
                let k = senders[row.clone()].binary_search(&(from as u32)).ok()?;
                (row.start + k, divergence, energy)
            }
        };
        let link = Link { from, divergence: store_divergence[at], energy: store_energy[at] };
        (from != to && !link.energy.is_nan()).then_some(link)
    }

    /// Takes a link away; later it is as if it had never been listed.
    pub(crate) fn remove(&mut self, from: usize, to: usize) {
        let n = self.devices;
        match &mut self.store {
            Store::Dense { energy, .. } => energy[to * n + from] = f64::NAN,
            Store::Sparse { first, from: senders, energy, .. } => {
                let row = first[to]..first[to + 1];
                if let Ok(k) = senders[row.clone()].binary_search(&(from as u32)) {
                    energy[row.start + k] = f64::NAN;
                }
            }
        }
    }

    /// Changes one link's values, for asking "what if".
    pub fn set(&mut self, link: Link, to: usize) {
        let n = self.devices;
        let (at, store_divergence, store_energy) = match &mut self.store {
            Store::Dense { divergence, energy } => (to * n + link.from, divergence, energy),
            Store::Sparse { first, from: senders, divergence, energy } => {
                let row = first[to]..first[to + 1];
                match senders[row.clone()].binary_search(&(link.from as u32)) {
                    Ok(k) => (row.start + k, divergence, energy),
                    Err(_) => return,
                }
            }
        };
        store_divergence[at] = link.divergence;
        store_energy[at] = link.energy;
    }

    /// The mean of K over the links of some senders, 0 where there are none, and their number.
    pub(crate) fn mean_energy(&self, counts: impl Fn(usize) -> bool) -> (f64, usize) {
        let (mut sum, mut count) = (0.0, 0usize);
        for j in 0..self.devices {
            for link in self.incoming(j).filter(|link| counts(link.from)) {
                sum += link.energy;
                count += 1;
            }
        }
        (if count == 0 { 0.0 } else { sum / count as f64 }, count)
    }
}

/// Without the sign that a zero may have in a file; nobody wants to read that a link takes -0 J.
fn unsigned(number: f64) -> f64 {
    number + 0.0
}

/// Transposes a square in place, block by block so that both sides stay in the cache.
pub(crate) fn transpose(n: usize, values: &mut [f64]) {
    const BLOCK: usize = 32;
    for row in (0..n).step_by(BLOCK) {
        for column in (row..n).step_by(BLOCK) {
            for i in row..(row + BLOCK).min(n) {
                for j in column.max(i + 1)..(column + BLOCK).min(n) {
                    values.swap(i * n + j, j * n + i);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_and_a_list_hold_the_same_links() {
        let n = 70;
        let value = |i: usize, j: usize| (i * n + j) as f64;
        let present = |i: usize, j: usize| i != j && !(i * 7 + j * 3).is_multiple_of(5);
        let mut divergence = vec![0.0; n * n];
        let mut energy = vec![f64::NAN; n * n];
        let mut list = Vec::new();
        for i in 0..n {
            for j in 0..n {
                divergence[i * n + j] = value(i, j);
                if present(i, j) {
                    energy[i * n + j] = value(i, j) + 0.5;
                    list.push((i as u32, j as u32, value(i, j), value(i, j) + 0.5));
                }
            }
        }
        list.reverse();
        let dense = Links::from_rows(n, divergence, energy);
        let sparse = Links::from_list(n, list);
        assert_eq!(dense, sparse);
        assert_eq!(dense.count(), sparse.count());
        for i in 0..n {
            for j in 0..n {
                assert_eq!(dense.get(i, j).is_some(), present(i, j));
                assert_eq!(dense.get(i, j), sparse.get(i, j));
            }
        }
    }

    #[test]
    fn zero_has_no_sign() {
        let dense = Links::from_rows(2, vec![-0.0; 4], vec![-0.0; 4]);
        let sparse = Links::from_list(2, vec![(0, 1, -0.0, -0.0)]);
        for link in [dense.get(0, 1), sparse.get(0, 1)] {
            let Link { divergence, energy, .. } = link.expect("it is there");
            assert!(divergence.is_sign_positive() && energy.is_sign_positive());
        }
    }

    #[test]
    fn a_removed_link_is_gone_from_both() {
        let mut links = Links::from_list(3, vec![(0, 1, 1.0, 2.0), (2, 1, 1.0, 4.0)]);
        links.remove(2, 1);
        assert_eq!(links.get(2, 1), None);
        assert_eq!(links.mean_energy(|_| true), (2.0, 1));
    }
}
