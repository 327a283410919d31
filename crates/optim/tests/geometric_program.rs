//! Geometric programs: optimality conditions, closed forms, sensitivities, statuses, scaling.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use stlf_optim::gp::{GeometricProgram, GpError, Settings, Solution, Status};
use stlf_optim::posynomial::{Monomial, Posynomial, Variable};

fn x(variable: usize) -> Monomial {
    Monomial::from(Variable(variable))
}

fn c(coefficient: f64) -> Monomial {
    Monomial::try_from(coefficient).unwrap()
}

/// Adds `factor · ∂ ln g / ∂ ln x` to the gradient.
fn add_log_gradient(gradient: &mut [f64], factor: f64, g: &Posynomial, point: &[f64]) {
    for term in g.terms() {
        for &(v, exponent) in term.exponents() {
            gradient[v.0] += factor * exponent * term.eval(point) / g.eval(point);
        }
    }
}

/// The conditions of Karush, Kuhn and Tucker for the convex form: feasible, multipliers of the right sign,
/// zero where there is slack, and a stationary Lagrangian.
fn assert_optimal(program: &GeometricProgram, bounds: (f64, f64), solution: &Solution) {
    assert!(matches!(solution.status, Status::Solved | Status::AlmostSolved));
    let (values, duals) = (&solution.values, &solution.duals);
    let mut gradient = vec![0.0; values.len()];
    add_log_gradient(&mut gradient, 1.0, program.objective(), values);
    for (g, &dual) in program.inequalities().iter().zip(&duals.inequalities) {
        let slack = -g.log_eval(values);
        assert!(slack > -1e-6 && dual > -1e-6, "slack {slack}, dual {dual}");
        assert!((dual * slack).abs() < 1e-5, "slack {slack}, dual {dual}");
        add_log_gradient(&mut gradient, dual, g, values);
    }
    for (f, &dual) in program.equalities().iter().zip(&duals.equalities) {
        assert!(f.log_eval(values).abs() < 1e-6);
        add_log_gradient(&mut gradient, dual, &f.clone().into(), values);
    }
    for (v, value) in values.iter().enumerate() {
        let (below, above) = ((value / bounds.0).ln(), (bounds.1 / value).ln());
        assert!(below > -1e-6 && above > -1e-6);
        assert!((duals.lower[v] * below).abs() < 1e-5 && (duals.upper[v] * above).abs() < 1e-5);
        assert!(duals.lower[v] > -1e-6 && duals.upper[v] > -1e-6);
        gradient[v] += duals.upper[v] - duals.lower[v];
    }
    // Within a gap of 1e-8 the gradient is known to about its square root.
    let largest = gradient.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    assert!(largest < 1e-3, "the Lagrangian is not stationary: {gradient:?}");
}

const VARIABLES: usize = 5;
const BOUNDS: (f64, f64) = (1e-2, 1e2);

fn posynomials(terms: std::ops::Range<usize>) -> impl Strategy<Value = Posynomial> {
    let exponents = prop::collection::vec(prop_oneof![Just(0.0), -2.0..2.0f64], VARIABLES);
    let term = (0.1..10.0f64, exponents).prop_map(|(coefficient, exponents)| {
        let powers = exponents.into_iter().enumerate().map(|(v, a)| (Variable(v), a));
        Monomial::new(coefficient, powers).unwrap()
    });
    prop::collection::vec(term, terms).prop_map(|terms| Posynomial::sum(terms).unwrap())
}

prop_compose! {
    /// Bounded, and feasible at (1, 1, …): inequalities are one half there, equalities one.
    fn programs()(
        objective in posynomials(1..6),
        inequalities in prop::collection::vec(posynomials(1..5), 0..5),
        equality in prop::option::of(posynomials(1..2)),
    ) -> GeometricProgram {
        let ones = [1.0; VARIABLES];
        let mut program = GeometricProgram::new(VARIABLES, objective).unwrap();
        for g in inequalities {
            let half = c(0.5 / g.eval(&ones));
            program.at_most_one(g * half).unwrap();
        }
        if let Some(f) = equality {
            let f = f.terms()[0].clone() * c(1.0 / f.eval(&ones));
            if !f.exponents().is_empty() {
                program.equal_to_one(f).unwrap();
            }
        }
        for v in 0..VARIABLES {
            program.bound(Variable(v), BOUNDS.0, BOUNDS.1).unwrap();
        }
        program
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn solutions_satisfy_the_optimality_conditions(program in programs()) {
        assert_optimal(&program, BOUNDS, &program.solve(&Settings::default()));
    }

    #[test]
    fn the_reference_point_changes_nothing(
        program in programs(),
        reference in prop::collection::vec(0.1..10.0f64, VARIABLES),
    ) {
        let near = program.solve_near(&reference, &Settings::default()).unwrap();
        assert_optimal(&program, BOUNDS, &near);
        let plain = program.solve(&Settings::default());
        prop_assert!((near.objective / plain.objective - 1.0).abs() < 1e-5);
    }
}

/// The largest box of a given surface is a cube: `h = w = d = √(surface / 6)`.
fn largest_box(surface: f64) -> GeometricProgram {
    let (h, w, d) = (x(0), x(1), x(2));
    let mut program =
        GeometricProgram::new(3, (h.clone() * w.clone() * d.clone()).powf(-1.0)).unwrap();
    let walls = h.clone() * w.clone() + h * d.clone() + w * d;
    program.at_most_one(walls * c(2.0 / surface)).unwrap();
    program
}

#[test]
fn the_largest_box_is_a_cube() {
    for surface in [0.006, 6.0, 1e4] {
        let solution = largest_box(surface).solve(&Settings::default());
        assert_eq!(solution.status, Status::Solved);
        let side = (surface / 6.0).sqrt();
        for value in &solution.values {
            assert!((value / side - 1.0).abs() < 1e-3);
        }
        assert!((solution.objective * side.powi(3) - 1.0).abs() < 1e-6);
        // The volume grows with the surface to the power 3/2.
        assert!((solution.duals.inequalities[0] - 1.5).abs() < 1e-4);
    }
}

#[test]
fn duals_are_sensitivities() {
    // p(u) of: minimise x + 2y + 3/(xy)  s.t.  x + y ≤ u₀,  x y² = u₁,  u₂ ≤ x ≤ u₃.
    let optimum = |u: [f64; 4]| {
        let objective = x(0) + c(2.0) * x(1) + c(3.0) / (x(0) * x(1));
        let mut program = GeometricProgram::new(2, objective).unwrap();
        program.at_most_one((x(0) + x(1)) / c(u[0])).unwrap();
        program.equal_to_one(x(0) * x(1).powf(2.0) / c(u[1])).unwrap();
        program.bound(Variable(0), u[2], u[3]).unwrap();
        let solution = program.solve(&Settings::default());
        assert_eq!(solution.status, Status::Solved);
        solution
    };
    let check = |u: [f64; 4]| {
        let duals = optimum(u).duals;
        let claimed =
            [-duals.inequalities[0], -duals.equalities[0], duals.lower[0], -duals.upper[0]];
        for (place, claimed) in claimed.into_iter().enumerate() {
            let step: f64 = 1e-3;
            let (mut more, mut less) = (u, u);
            more[place] *= step.exp();
            less[place] *= (-step).exp();
            let slope = (optimum(more).objective / optimum(less).objective).ln() / (2.0 * step);
            assert!((slope - claimed).abs() < 1e-3, "{u:?} {place}: {slope} against {claimed}");
        }
        claimed
    };
    // Without the sum and the bounds, x = 2 and y = 1/2.
    assert!(check([3.0, 0.5, 0.01, 10.0])[0].abs() < 1e-5, "the sum is slack here");
    assert!(check([2.0, 0.5, 0.01, 10.0])[0] < -1e-2, "the sum binds here");
    assert!(check([5.0, 0.5, 2.5, 10.0])[2] > 1e-2, "the lower bound binds here");
    assert!(check([5.0, 0.5, 0.01, 1.0])[3] < -1e-2, "the upper bound binds here");
}

#[test]
fn infeasible_is_a_status() {
    let mut program = GeometricProgram::new(2, x(0) + x(1)).unwrap();
    program.at_most_one(x(0) + x(1)).unwrap();
    program.at_most_one(c(0.5) / x(0) + c(0.25) / x(1)).unwrap();
    let solution = program.solve(&Settings::default());
    assert_eq!(solution.status, Status::Infeasible);
    assert_eq!(solution.objective, f64::INFINITY);
    assert!(solution.values.iter().all(|v| v.is_nan()));
}

#[test]
fn unbounded_is_a_status() {
    for objective in [Posynomial::from(x(0)), x(0) + x(0) * x(1).powf(0.5)] {
        let mut program = GeometricProgram::new(2, objective).unwrap();
        program.bound(Variable(1), 0.5, 2.0).unwrap();
        let solution = program.solve(&Settings::default());
        assert_eq!(solution.status, Status::Unbounded);
        assert_eq!(solution.objective, 0.0);
    }
}

#[test]
fn the_iteration_limit_is_a_status() {
    let few = Settings { max_iterations: 2, ..Settings::default() };
    let solution = largest_box(6.0).solve(&few);
    assert_eq!(solution.status, Status::IterationLimit);
    assert_eq!(solution.iterations, 2);
}

#[test]
fn monomials_everywhere_make_a_linear_program() {
    // minimise x/y  s.t.  2 y ≤ x,  y = 3 w,  w ≥ 5: any x/y = 2 will do.
    let mut program = GeometricProgram::new(3, x(0) / x(1)).unwrap();
    program.at_most_one(c(2.0) * x(1) / x(0)).unwrap();
    program.equal_to_one(c(3.0) * x(2) / x(1)).unwrap();
    program.bound(Variable(2), 5.0, 50.0).unwrap();
    let solution = program.solve(&Settings::default());
    assert_eq!(solution.status, Status::Solved);
    assert!((solution.objective - 2.0).abs() < 1e-5);
    assert!((solution.duals.inequalities[0] - 1.0).abs() < 1e-6);
    assert!((solution.values[1] / solution.values[2] - 3.0).abs() < 1e-5);
}

/// `c x + d / x` is least `2 √(c d)`, at `√(d / c)`.
#[test]
fn coefficients_from_a_millionth_to_a_million_are_no_trouble() {
    let spread: Vec<f64> = (-6..=6).map(|power| 10f64.powi(power)).collect();
    for shift in 0..spread.len() {
        let pairs: Vec<(f64, f64)> =
            spread.iter().copied().zip(spread.iter().copied().cycle().skip(shift)).collect();
        let terms = pairs.iter().enumerate().flat_map(|(v, &(a, b))| [c(a) * x(v), c(b) / x(v)]);
        let program = GeometricProgram::new(pairs.len(), Posynomial::sum(terms).unwrap()).unwrap();
        let least: f64 = pairs.iter().map(|(a, b)| 2.0 * (a * b).sqrt()).sum();
        let solution = program.solve(&Settings::default());
        assert!(matches!(solution.status, Status::Solved | Status::AlmostSolved));
        assert!((solution.objective / least - 1.0).abs() < 1e-5, "{shift}: {solution:?}");
        let mut constrained = program.clone();
        for (v, &(a, b)) in pairs.iter().enumerate() {
            // Twice the best value of each variable, so that every bound binds.
            constrained.bound(Variable(v), 2.0 * (b / a).sqrt(), f64::INFINITY).unwrap();
        }
        let best: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).sqrt()).collect();
        let solution = constrained.solve_near(&best, &Settings::default()).unwrap();
        assert!(matches!(solution.status, Status::Solved | Status::AlmostSolved));
        assert!((solution.objective / (1.25 * least) - 1.0).abs() < 1e-5);
    }
}

#[test]
fn misuse_is_named() {
    let unknown = |variable| GpError::UnknownVariable { variable: Variable(variable), count: 1 };
    assert_eq!(GeometricProgram::new(1, x(0) + x(3)).unwrap_err(), unknown(3));
    let mut program = GeometricProgram::new(1, x(0)).unwrap();
    assert_eq!(program.at_most_one(x(1)), Err(unknown(1)));
    assert_eq!(program.equal_to_one(x(2)), Err(unknown(2)));
    assert_eq!(program.bound(Variable(1), 1.0, 2.0), Err(unknown(1)));
    for (lower, upper) in [(2.0, 1.0), (-1.0, 1.0), (f64::NAN, 1.0), (0.0, 0.0), (1.0, f64::NAN)] {
        let refused = program.bound(Variable(0), lower, upper);
        assert!(matches!(refused, Err(GpError::BadBounds { .. })), "{lower}..{upper}");
    }
    for point in [vec![], vec![0.0], vec![f64::INFINITY], vec![1.0, 1.0]] {
        let refused = program.solve_near(&point, &Settings::default());
        assert_eq!(refused.unwrap_err(), GpError::BadPoint { count: 1 });
    }
}
