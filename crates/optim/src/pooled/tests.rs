use std::ops::ControlFlow;

use proptest::prelude::*;

use super::mixture::Part;
use super::*;
use crate::facility::Opening;

#[derive(Debug, Clone)]
struct Case {
    opening: Vec<Opening>,
    spread: Vec<f64>,
    clients: Vec<Client>,
}

impl Case {
    fn instance(&self) -> Instance {
        Instance::new(self.opening.clone(), self.spread.clone(), self.clients.len(), |j| {
            self.clients[j].clone()
        })
    }

    fn feasible(&self) -> bool {
        let may = |i: u32| self.opening[i as usize] != Opening::Never;
        self.clients
            .iter()
            .all(|c| c.own.is_some_and(may) || c.candidates.iter().any(|link| may(link.facility)))
    }

    fn allows(&self, set: u32) -> bool {
        self.opening.iter().enumerate().all(|(i, opening)| match opening {
            Opening::May(_) => true,
            Opening::Must(_) => set >> i & 1 == 1,
            Opening::Never => set >> i & 1 == 0,
        })
    }

    /// One client's cost with the facilities in `set` open, by trying every subset of its links.
    fn serve(&self, client: &Client, set: u32) -> f64 {
        if client.own.is_some_and(|i| set >> i & 1 == 1) {
            return 0.0;
        }
        let links: Vec<&Candidate> =
            client.candidates.iter().filter(|c| set >> c.facility & 1 == 1).collect();
        (1..1u32 << links.len())
            .map(|subset| {
                let used = (0..links.len()).filter(|k| subset >> k & 1 == 1).map(|k| links[k]);
                let has = |i: &u32| used.clone().any(|c| c.facility == *i);
                if !client.required.iter().all(has) {
                    return f64::INFINITY;
                }
                let mut parts: Vec<Part> = used
                    .clone()
                    .map(|c| Part {
                        slope: c.slope,
                        inverse_spread: self.spread[c.facility as usize].max(1e-280).recip(),
                    })
                    .collect();
                client.constant + mixture::value(&mut parts) + used.map(|c| c.charge).sum::<f64>()
            })
            .fold(f64::INFINITY, f64::min)
    }

    fn enumerate(&self) -> f64 {
        (0..1u32 << self.opening.len())
            .filter(|&set| self.allows(set))
            .map(|set| {
                let open = (0..self.opening.len()).filter(|i| set >> i & 1 == 1);
                open.map(|i| self.opening[i].cost()).sum::<f64>()
                    + self.clients.iter().map(|c| self.serve(c, set)).sum::<f64>()
            })
            .fold(f64::INFINITY, f64::min)
    }
}

/// A fleet: every device is a facility and a client, and serves itself where it is open.
fn fleet() -> impl Strategy<Value = Case> {
    (2usize..9).prop_flat_map(|n| {
        let opening = prop_oneof![
            5 => (0.0..1.5f64).prop_map(Opening::May),
            1 => Just(Opening::May(0.0)),
            1 => (0.0..1.5f64).prop_map(Opening::Must),
            3 => Just(Opening::Never),
        ];
        let some = |most: f64| prop_oneof![4 => 0.0..most, 1 => Just(0.0)];
        let link = prop::option::weighted(0.85, (some(1.0), some(0.15)));
        (
            prop::collection::vec(opening, n),
            prop::collection::vec(0.001..0.3f64, n),
            prop::collection::vec(prop_oneof![4 => 0.0..0.5f64, 1 => Just(0.0)], n),
            prop::collection::vec(prop::collection::vec(link, n), n),
            prop::option::weighted(0.2, (0..n, 0..n)),
        )
            .prop_map(move |(mut opening, spread, constant, links, pinned)| {
                let mut clients: Vec<Client> = (0..n)
                    .map(|j| Client {
                        constant: constant[j],
                        own: Some(j as u32),
                        required: Vec::new(),
                        candidates: (0..n)
                            .filter(|&i| i != j)
                            .filter_map(|i| {
                                let (slope, charge) = links[j][i]?;
                                Some(Candidate { facility: i as u32, slope, charge })
                            })
                            .collect(),
                    })
                    .collect();
                if let Some((i, j)) = pinned
                    && clients[j].candidates.iter().any(|c| c.facility as usize == i)
                {
                    clients[j].required = vec![i as u32];
                    clients[j].own = None;
                    opening[i] = Opening::Must(0.3);
                    opening[j] = Opening::Never;
                }
                Case { opening, spread, clients }
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn the_optimum_is_that_of_enumeration(case in fleet()) {
        prop_assume!(case.feasible());
        let expected = case.enumerate();
        let solution = solve(&case.instance(), &Limits::default(), &mut |_| ControlFlow::Continue(()));
        prop_assert!(
            (solution.objective - expected).abs() <= 1e-8 * expected.max(1e-6),
            "{} against {expected}", solution.objective
        );
        prop_assert_eq!(solution.status, Status::Optimal);
        let set = (0..solution.open.len()).filter(|&i| solution.open[i]).fold(0, |s, i| s | 1 << i);
        prop_assert!(case.allows(set));
        for (j, mixture) in solution.mixtures.iter().enumerate() {
            let weight: f64 = mixture.iter().map(|(_, w)| w).sum();
            let own = case.clients[j].own.is_some_and(|i| solution.open[i as usize]);
            let whole = f64::from(u8::from(!own));
            prop_assert!((weight - whole).abs() < 1e-9);
            prop_assert!(mixture.iter().all(|&(i, _)| solution.open[i as usize]));
            for i in &case.clients[j].required {
                prop_assert!(mixture.iter().any(|(k, _)| k == i));
            }
        }
    }

    #[test]
    fn an_early_stop_has_a_true_gap(case in fleet(), patience in 0u32..6) {
        prop_assume!(case.feasible());
        let expected = case.enumerate();
        let mut asked = 0;
        let solution = solve(&case.instance(), &Limits::default(), &mut |_| {
            asked += 1;
            if asked > patience { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        prop_assert!(solution.objective >= expected - 1e-9);
        prop_assert!(solution.lower_bound <= expected + 1e-9);
    }
}

/// Links and devices alike, so that choosing links is hard: one client, `n` facilities.
fn alike(n: usize, clients: usize) -> Case {
    let link = |i: usize| Candidate { facility: i as u32, slope: 0.2, charge: 0.01 };
    let client =
        Client { constant: 0.1, candidates: (0..n).map(link).collect(), ..Client::default() };
    Case {
        opening: (0..n).map(|i| Opening::Must(0.01 + 1e-7 * i as f64)).collect(),
        spread: (0..n).map(|i| 1.0 + 1e-6 * i as f64).collect(),
        clients: vec![client; clients],
    }
}

#[test]
fn a_stop_is_heard_within_one_clients_choice() {
    // Without a stop this client's choice takes all the branchings that it may have.
    for (clients, links) in [(1, 60), (300, 16)] {
        let instance = alike(links, clients).instance();
        let mut reached = 0;
        for patience in [0, 1, 3, 12] {
            let mut asked = 0;
            let solution = solve(&instance, &Limits::default(), &mut |_| {
                asked += 1;
                if asked > patience { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            assert!(asked <= patience + 3, "{asked} questions, the stop was at {patience}");
            assert!(solution.lower_bound > 0.0 && solution.lower_bound <= solution.objective);
            assert_eq!(solution.status, Status::Feasible(crate::status::Stop::Observer));
            reached = reached.max(asked);
        }
        assert!(reached > 12, "the search ended by itself");
    }
}

proptest! {
    #[test]
    fn the_scale_of_costs_changes_no_solution(case in fleet(), power in -14i32..15) {
        prop_assume!(case.feasible());
        let scale = 10f64.powi(power);
        let mut scaled = case.clone();
        for opening in &mut scaled.opening {
            if let Opening::May(cost) | Opening::Must(cost) = opening {
                *cost *= scale;
            }
        }
        for spread in &mut scaled.spread {
            *spread *= scale * scale;
        }
        for client in &mut scaled.clients {
            client.constant *= scale;
            for link in &mut client.candidates {
                link.slope *= scale;
                link.charge *= scale;
            }
        }
        let go_on = &mut |_: &Progress| ControlFlow::Continue(());
        let one = solve(&case.instance(), &Limits::default(), go_on);
        let other = solve(&scaled.instance(), &Limits::default(), go_on);
        let expected = one.objective * scale;
        prop_assert!((other.objective - expected).abs() <= 1e-9 * expected.max(1e-9 * scale));
        prop_assert_eq!(other.status, Status::Optimal);
    }
}

#[test]
fn no_spread_at_all_is_one_source_each() {
    let client = |own, candidates| Client { own: Some(own), candidates, ..Client::default() };
    let link = Candidate { facility: 0, slope: 0.16033725293680595, charge: 0.0 };
    let case = Case {
        opening: vec![Opening::May(0.0), Opening::May(0.6319533961461157)],
        spread: vec![0.0, 0.0],
        clients: vec![client(0, Vec::new()), client(1, vec![link])],
    };
    let solution = solve(&case.instance(), &Limits::default(), &mut |_| ControlFlow::Continue(()));
    assert_eq!((solution.open, solution.status), (vec![true, false], Status::Optimal));
    assert_eq!(solution.mixtures[1], [(0, 1.0)]);
    assert!((solution.objective - link.slope).abs() < 1e-9);
    let stopped = solve(&case.instance(), &Limits::default(), &mut |_| ControlFlow::Break(()));
    assert!(
        (stopped.objective - case.enumerate()).abs() < 1e-9,
        "{stopped:?} {}",
        case.enumerate()
    );
}
