use std::ops::ControlFlow;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::instance::Room;
use super::*;

/// A dense or sparse random instance: opening costs (`None`: never), and `service[client][facility]`.
#[derive(Debug, Clone)]
struct Case {
    opening: Vec<Opening>,
    service: Vec<Vec<Option<f64>>>,
}

impl Case {
    fn instance(&self) -> Result<Instance, FacilityError> {
        self.within(Room::default())
    }

    fn within(&self, room: Room) -> Result<Instance, FacilityError> {
        Instance::within(room, self.opening.clone(), self.service.len(), &|client, list| {
            for (facility, cost) in self.service[client].iter().enumerate() {
                if let Some(cost) = *cost {
                    list.push(Candidate { facility: facility as u32, cost });
                }
            }
        })
    }

    /// The optimum by trying every set of facilities.
    fn enumerate(&self) -> Option<f64> {
        let m = self.opening.len();
        (0..1u32 << m)
            .filter(|set| {
                (0..m).all(|i| match self.opening[i] {
                    Opening::May(_) => true,
                    Opening::Must(_) => set >> i & 1 == 1,
                    Opening::Never => set >> i & 1 == 0,
                })
            })
            .map(|set| {
                let open = |i: &usize| set >> i & 1 == 1;
                let opened: f64 = (0..m).filter(open).map(|i| self.opening[i].cost()).sum();
                let served: f64 = self
                    .service
                    .iter()
                    .map(|row| {
                        (0..m).filter(open).filter_map(|i| row[i]).fold(f64::INFINITY, f64::min)
                    })
                    .sum();
                opened + served
            })
            .min_by(f64::total_cmp)
            .filter(|cost| cost.is_finite())
    }
}

fn prove(instance: &Instance) -> Solution {
    solve(instance, &Limits::default(), &mut |_| ControlFlow::Continue(()))
}

fn opening() -> impl Strategy<Value = Opening> {
    prop_oneof![
        6 => (0.0..3.0f64).prop_map(Opening::May),
        1 => Just(Opening::May(0.0)),
        1 => (0.0..3.0f64).prop_map(Opening::Must),
        1 => Just(Opening::Never),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    (1usize..9, 1usize..12).prop_flat_map(|(facilities, clients)| {
        // Few distinct values make ties, which is where dual ascent and swaps can go wrong.
        let cost = prop_oneof![(0.0..2.0f64), (0u8..4).prop_map(f64::from)];
        let service = prop::collection::vec(
            prop::collection::vec(prop::option::weighted(0.8, cost), facilities),
            clients,
        );
        (prop::collection::vec(opening(), facilities), service)
            .prop_map(|(opening, service)| Case { opening, service })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn the_optimum_is_that_of_enumeration(case in case()) {
        match (case.instance(), case.enumerate()) {
            (Err(FacilityError::Unservable { .. }), expected) => prop_assert_eq!(expected, None),
            (Ok(instance), Some(expected)) => {
                let solution = prove(&instance);
                prop_assert_eq!(solution.status, Status::Optimal);
                prop_assert!((solution.objective - expected).abs() <= 1e-9 * expected.max(1e-9));
                prop_assert_eq!(solution.lower_bound, solution.objective);
                // The parts agree with the total, in the data as they were given.
                let opened: f64 = (0..solution.open.len())
                    .filter(|&i| solution.open[i])
                    .map(|i| case.opening[i].cost())
                    .sum();
                let mut served = 0.0;
                for (client, &facility) in solution.assigned.iter().enumerate() {
                    prop_assert!(solution.open[facility as usize]);
                    served += case.service[client][facility as usize].unwrap();
                }
                prop_assert!((opened + served - solution.objective).abs() <= 1e-9 * expected.max(1e-9));
            }
            (instance, expected) => prop_assert!(false, "{instance:?} against {expected:?}"),
        }
    }
}

/// Opening is dear and lists are cut short: what proofs must not overlook.
fn dear_case() -> impl Strategy<Value = (Case, Room)> {
    let dear = (0.0..20.0f64, 0.5..10.0f64);
    (case(), dear, 0usize..40, 1usize..4).prop_map(|(mut case, (all, spread), links, fewest)| {
        for opening in &mut case.opening {
            if let Opening::May(cost) = opening {
                *cost = all + *cost * spread;
            }
        }
        (case, Room { links, fewest })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn short_lists_prove_nothing_that_is_false((case, room) in dear_case()) {
        let Some(expected) = case.enumerate() else { return Ok(()) };
        let instance = case.within(room).unwrap();
        let solution = prove(&instance);
        let tolerance = 1e-9 * expected.max(1e-9);
        prop_assert!(solution.lower_bound <= expected + tolerance);
        prop_assert!(solution.objective >= expected - tolerance);
        if solution.status == Status::Optimal || instance.is_complete() {
            prop_assert!((solution.objective - expected).abs() <= tolerance);
        }
    }
}

#[test]
fn a_facility_that_many_share_is_on_every_list() {
    // Facility 7 is at everybody's thirtieth place; every other one is first for one client alone.
    let n = 300;
    let mut opening = vec![Opening::May(200.0); n];
    opening[7] = Opening::May(210.0);
    let cost = |client: usize, facility: usize| match facility {
        7 => 0.1,
        _ => ((facility + n - client) % n) as f64 / n as f64,
    };
    let candidates = |client: usize, list: &mut Vec<Candidate>| {
        let link = |i| Candidate { facility: i as u32, cost: cost(client, i) };
        list.extend((0..n).map(link));
    };
    let room = Room { links: 20 * n, fewest: 1 };
    let short = Instance::within(room, opening.clone(), n, &candidates).unwrap();
    assert!(!short.is_complete() && short.links() < 25 * n);
    let limits = Limits { nodes: 3, ..Limits::default() };
    let solution = solve(&short, &limits, &mut |_| ControlFlow::Continue(()));
    // Facility 7 alone; any other alone costs 200 + 150.
    let optimum = 210.0 + 0.1 * n as f64;
    assert!((solution.objective - optimum).abs() < 1e-9 * optimum, "{}", solution.objective);
    assert_eq!(solution.status, Status::Feasible(Stop::NodeLimit));
    assert!(solution.lower_bound <= optimum);
}

/// Calls until the search ended after the first "stop".
fn calls_after_stop(patience: usize, solve: impl FnOnce(&mut Observer<'_>)) -> usize {
    let mut asked = 0;
    solve(&mut |_| {
        asked += 1;
        if asked > patience { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    asked.saturating_sub(patience)
}

#[test]
fn a_stop_is_heard_at_once() {
    let instance = plane(300, 1);
    for patience in [0, 1, 2, 5, 10, 20, 50] {
        let calls = calls_after_stop(patience, |observer| {
            solve(&instance, &Limits::default(), observer);
        });
        assert!(calls <= 2, "{calls} more questions after the stop at {patience}");
    }
}

/// Devices in the plane, half of them able to open; every device can serve itself for nothing.
fn plane(n: usize, seed: u64) -> Instance {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let place: Vec<(f64, f64)> = (0..n).map(|_| (rng.random(), rng.random())).collect();
    let opening = (0..n)
        .map(|i| if i % 2 == 0 { Opening::May(rng.random()) } else { Opening::Never })
        .collect();
    Instance::new(opening, n, |client, list| {
        for facility in 0..n {
            let (dx, dy) =
                (place[client].0 - place[facility].0, place[client].1 - place[facility].1);
            list.push(Candidate { facility: facility as u32, cost: dx.hypot(dy) });
        }
    })
    .unwrap()
}

#[test]
fn limits_end_in_feasible_with_a_true_gap() {
    let instance = plane(300, 1);
    let optimum = prove(&instance);
    assert_eq!(optimum.status, Status::Optimal);
    let stopped = solve(&instance, &Limits::default(), &mut |_| ControlFlow::Break(()));
    assert!(stopped.objective >= optimum.objective * (1.0 - 1e-9));
    assert!(stopped.lower_bound <= optimum.objective * (1.0 + 1e-9));
    let loose = solve(&instance, &Limits { gap: 0.5, ..Limits::default() }, &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(relative_gap(loose.objective, loose.lower_bound) <= 0.5);
    assert!(loose.lower_bound <= optimum.objective * (1.0 + 1e-9));
}

#[test]
fn nonsense_is_refused_by_name() {
    let build = |cost: f64, open: f64| {
        Instance::new(vec![Opening::May(open)], 1, |_, list| {
            list.push(Candidate { facility: 0, cost });
        })
    };
    assert!(matches!(build(-1.0, 1.0), Err(FacilityError::Cost { client: 0, .. })));
    assert!(matches!(build(f64::NAN, 1.0), Err(FacilityError::Cost { .. })));
    assert!(matches!(build(1.0, f64::INFINITY), Err(FacilityError::OpenCost { .. })));
    let none = Instance::new(vec![Opening::Never], 1, |_, _| {});
    assert!(matches!(none, Err(FacilityError::Unservable { client: 0 })));
}

#[test]
fn what_a_list_leaves_out_may_cost_less_than_what_is_left_of_it() {
    let may = Opening::May(16.405147720436926);
    let opening = vec![may, may, Opening::Must(0.0), may, may, may];
    let service = vec![
        vec![Some(1.8293671353487098), None, None, None, Some(0.0), None],
        vec![None, Some(0.0), Some(0.4640613334979074), None, None, None],
        vec![None, None, Some(0.0), None, None, None],
        vec![None, None, Some(0.0), None, None, None],
        vec![
            Some(0.7991907563424241),
            Some(0.0),
            Some(1.0500694025367843),
            Some(0.0),
            None,
            Some(0.0),
        ],
        vec![None, None, Some(0.0), None, None, None],
        vec![Some(0.0), None, Some(0.0), None, None, None],
        vec![None, None, Some(0.0), None, None, None],
        vec![Some(1.1069126030304688), Some(0.0), None, None, None, None],
    ];
    let case = Case { opening, service };
    let expected = case.enumerate().unwrap();
    let instance = case.within(Room { links: 14, fewest: 3 }).unwrap();
    let solution = prove(&instance);
    // Facility 0 is not on the list of client 4, whose three cheapest close: it is served there for less than by any other on the list.
    assert!(solution.lower_bound <= expected + 1e-9 * expected);
    assert_ne!(solution.status, Status::Optimal);
}
