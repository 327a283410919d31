//! Whether a target believes the models that it received.
//!
//! A source's own numbers claim that its model errs on a share e_i of the target's samples, at most: ε̂_i + ½ d̂_ij. Two models that keep
//! their claims differ on a share e_i + e_k at most. If two differ more often, one of them does not keep its claim: they contradict each
//! other. Which one that is, the target's labels tell where it knows some, and else the other models that it received, each with one
//! vote, whatever it claims. A model that is outvoted is refused. Where nobody can tell, none of them decides alone.
//!
//! A model may also contradict itself: if it doubts far more of the samples than its source claims that it errs on. That needs no other model.
//!
//! Models that contradict nobody keep the weights that were planned. So nothing changes where all are honest and their claims hold. Where all are
//! refused, the planned weights stay as well: the target has nothing better until it gets another model.

use stlf_data::Class;
use stlf_planning::witness::{Claim, best_weights};

use crate::adapt::LEAST_LABELS;
use crate::known::Known;

/// How much more often than they claim two models may differ. Divergences are estimates, and the bound leaves out what no classifier could learn.
pub(crate) const TOLERANCE: f64 = 0.1;

/// How much more often others must agree with one of two models that contradict each other.
const DECISIVE: f64 = 0.05;

/// By labels, a model is refused only if it has less than this share right of what another one has. What is not so bad is weighed by labels anyway
/// ([`crate::known`]).
pub(crate) const HALF: f64 = 0.5;

/// The largest weight of a model that another one contradicts, where nobody can tell which is right.
const MOST_DISPUTED: f64 = 2.0 / 3.0;

/// The confidence with which a share among the samples is taken for one of all: 1 − δ.
pub(crate) const DELTA: f64 = 1e-3;

/// The most samples on which models are compared.
pub const MOST_SAMPLES: usize = 1000;

/// A model that a target received.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// What it says of the samples on which models are compared.
    pub classes: Vec<Class>,
    /// Its mean [doubt](crate::expectation::doubt) about these samples, less what it [doubts too much](crate::expectation::Tried::modesty).
    pub doubt: f64,
    /// Its planned weight; 0 of a witness.
    pub weight: f64,
    /// What its source's own numbers say.
    pub claim: Claim,
}

impl Heard {
    /// What a target's own model says of the same samples: it has no weight, and is not held against itself by doubt.
    pub fn own(classes: Vec<Class>, claim: Claim) -> Heard {
        Heard { classes, doubt: 0.0, weight: 0.0, claim }
    }
}

/// What a target makes of the models that it received.
#[derive(Debug, Clone, PartialEq)]
pub struct Trust {
    /// The weight of each model.
    pub weights: Vec<f64>,
    /// Those that are refused, ascending.
    pub refused: Vec<usize>,
    /// Those that contradict each other without anybody to tell which is right, ascending.
    pub disputed: Vec<usize>,
}

/// The numbers of the samples on which a target with so many compares models: those whose labels it knows, and others at equal steps.
pub fn compared(samples: usize, known: &[Known]) -> Vec<usize> {
    let step = samples.div_ceil(MOST_SAMPLES).max(1);
    let mut compared: Vec<usize> = (0..samples).step_by(step).collect();
    compared.extend(known.iter().map(|(sample, _)| *sample));
    compared.sort_unstable();
    compared.dedup();
    compared
}

/// Known labels by their place among the samples on which models are compared.
pub fn among_compared(compared: &[usize], known: &[Known]) -> Vec<Known> {
    let place = |sample: usize| compared.binary_search(&sample).ok();
    known.iter().filter_map(|&(sample, class)| Some((place(sample)?, class))).collect()
}

/// Which models a target believes. The labels that it knows are given by their place among the samples on which models are compared.
///
/// # Panics
/// If models say something of different numbers of samples.
pub fn trust(heard: &[Heard], known: &[Known]) -> Trust {
    let planned: Vec<f64> = heard.iter().map(|model| model.weight).collect();
    let samples = heard.first().map_or(0, |model| model.classes.len());
    assert!(heard.iter().all(|m| m.classes.len() == samples), "all say something of all samples");
    let bench = Bench::new(heard, known);
    let mut standing: Vec<usize> = (0..heard.len()).collect();
    let mut disputed = Vec::new();
    // What labels or a model's own doubt refute needs no other model.
    standing.retain(|&model| !bench.is_refuted(model) && !bench.doubts_its_claim(model));
    while let Some((accused, opponents)) = bench.weakest(&standing) {
        let support = |model: usize| bench.support(model, &standing);
        let strongest = opponents.iter().map(|&k| support(k)).fold(0.0, f64::max);
        if !bench.decides(support(accused), strongest) {
            disputed = bench.disputed(&standing);
            break;
        }
        standing.retain(|&model| model != accused);
    }
    let refused: Vec<usize> = (0..heard.len()).filter(|model| !standing.contains(model)).collect();
    let lost: f64 = refused.iter().map(|&model| planned[model]).sum();
    let mut weights = planned;
    if lost > 0.0 && !standing.is_empty() {
        let claims: Vec<Claim> = standing.iter().map(|&model| heard[model].claim).collect();
        weights.fill(0.0);
        for (&model, weight) in standing.iter().zip(best_weights(&claims)) {
            weights[model] = weight;
        }
    }
    share_alike(&mut weights, &disputed);
    Trust { weights, refused, disputed }
}

/// The same of models that were sent to a target that may have one of its own on its labels, a witness that costs nothing. That one takes no part in
/// the mixture, so that the others keep their weights where it would be all that is left; and where no other device could send a model, none
/// is refused.
///
/// # Panics
/// If models say something of different numbers of samples.
pub fn trust_sent(
    sent: Vec<Heard>,
    own: Option<Heard>,
    has_others: bool,
    known: &[Known],
) -> Trust {
    let planned: Vec<f64> = sent.iter().map(|model| model.weight).collect();
    let heard: Vec<Heard> = sent.into_iter().chain(own).collect();
    let Trust { mut weights, mut refused, mut disputed } = trust(&heard, known);
    let sent = planned.len();
    let own = weights.drain(sent..).sum::<f64>();
    [&mut refused, &mut disputed].into_iter().for_each(|which| which.retain(|at| *at < sent));
    let total: f64 = weights.iter().sum();
    if total <= 0.0 {
        weights = planned;
    } else if own > 0.0 {
        weights.iter_mut().for_each(|weight| *weight /= total);
    }
    if refused.len() == sent && !has_others {
        refused.clear();
    }
    Trust { weights, refused, disputed }
}

/// Gives models that contradict each other the same part each of what they have together, if one of them had almost all.
fn share_alike(weights: &mut [f64], disputed: &[usize]) {
    let total: f64 = disputed.iter().map(|&model| weights[model]).sum();
    if disputed.iter().all(|&model| weights[model] <= MOST_DISPUTED * total) {
        return;
    }
    disputed.iter().for_each(|&model| weights[model] = total / disputed.len() as f64);
}

/// What is known of how models agree.
struct Bench {
    /// How often each two differ, as a share.
    differ: Vec<Vec<f64>>,
    /// What each claims to err, at most 1.
    errors: Vec<f64>,
    /// How much each doubts the samples.
    doubts: Vec<f64>,
    /// The share of known labels that each has right, where enough are known.
    right: Option<Vec<f64>>,
    /// How far a share among the samples may be from that of all.
    deviation: f64,
    /// The same of the labels.
    labels: usize,
}

impl Bench {
    fn new(heard: &[Heard], known: &[Known]) -> Bench {
        let share = |count: usize, of: usize| count as f64 / of.max(1) as f64;
        let differ = |a: &Heard, b: &Heard| {
            let pairs = a.classes.iter().zip(&b.classes);
            share(pairs.filter(|(a, b)| a != b).count(), a.classes.len())
        };
        let right = |model: &Heard| {
            let right = known.iter().filter(|(sample, class)| model.classes[*sample] == *class);
            share(right.count(), known.len())
        };
        let samples = heard.first().map_or(0, |model| model.classes.len()).max(1);
        Bench {
            differ: heard.iter().map(|a| heard.iter().map(|b| differ(a, b)).collect()).collect(),
            errors: heard.iter().map(|model| model.claim.error.min(1.0)).collect(),
            doubts: heard.iter().map(|model| model.doubt).collect(),
            right: (known.len() >= LEAST_LABELS).then(|| heard.iter().map(right).collect()),
            deviation: ((2.0 / DELTA).ln() / (2.0 * samples as f64)).sqrt(),
            labels: known.len(),
        }
    }

    /// Whether a model is wrong on more labels than what it claims allows, but for one chance in a thousand, and another one is far better.
    fn is_refuted(&self, model: usize) -> bool {
        let Some(right) = &self.right else { return false };
        // Hoeffding's inequality.
        let deviation = ((1.0 / DELTA).ln() / (2.0 * self.labels as f64)).sqrt();
        let best = right.iter().copied().fold(0.0, f64::max);
        right[model] < HALF * best
            && 1.0 - right[model] > self.errors[model] + TOLERANCE + deviation
    }

    /// Whether a model doubts more of the samples than what it claims allows.
    fn doubts_its_claim(&self, model: usize) -> bool {
        self.doubts[model] > self.errors[model] + TOLERANCE + self.deviation
    }

    /// Whether two models differ more often than what both claim allows.
    fn contradict(&self, a: usize, b: usize) -> bool {
        a != b && self.differ[a][b] > self.errors[a] + self.errors[b] + TOLERANCE + self.deviation
    }

    /// What speaks for a model: labels, or how often the others agree with it.
    fn support(&self, model: usize, standing: &[usize]) -> f64 {
        if let Some(right) = &self.right {
            return right[model];
        }
        let others = standing.iter().filter(|&&other| other != model);
        let (count, sum) = others.fold((0, 0.0), |(count, sum), &other| {
            (count + 1, sum + 1.0 - self.differ[model][other])
        });
        if count == 0 { 0.0 } else { sum / f64::from(count) }
    }

    /// Whether so much less speaks for one of two models than for the other that it is refused.
    fn decides(&self, less: f64, more: f64) -> bool {
        match self.right {
            Some(_) => less < HALF * more,
            None => more - less > DECISIVE,
        }
    }

    /// Of the models that contradict another one, the one with the least support, the later of equals, and those that it contradicts.
    fn weakest(&self, standing: &[usize]) -> Option<(usize, Vec<usize>)> {
        let opponents = |model: usize| -> Vec<usize> {
            standing.iter().copied().filter(|&other| self.contradict(model, other)).collect()
        };
        let accused = standing.iter().map(|&model| (model, opponents(model)));
        let accused = accused.filter(|(_, opponents)| !opponents.is_empty());
        accused.min_by(|a, b| {
            let [first, second] = [a.0, b.0].map(|model| self.support(model, standing));
            first.total_cmp(&second).then(b.0.cmp(&a.0))
        })
    }

    /// All that contradict another one.
    fn disputed(&self, standing: &[usize]) -> Vec<usize> {
        let is_disputed = |&model: &usize| standing.iter().any(|&k| self.contradict(model, k));
        standing.iter().copied().filter(is_disputed).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const SAMPLES: usize = 600;

    /// A model that is right but for every so-many-th sample, which claims to err so often.
    fn model(truth: &[Class], wrong_every: usize, weight: f64, error: f64) -> Heard {
        let says = |(k, &class): (usize, &Class)| match (k + 1).is_multiple_of(wrong_every) {
            true => (class + 1) % 10,
            false => class,
        };
        let classes = truth.iter().enumerate().map(says).collect();
        Heard {
            classes,
            doubt: 0.0,
            weight,
            claim: Claim { error, samples: 1000.0, ..Claim::NOTHING },
        }
    }

    fn truth() -> Vec<Class> {
        (0..SAMPLES).map(|k| (k * 7 % 10) as Class).collect()
    }

    /// One that gives every sample the next class.
    fn inverted(weight: f64) -> Heard {
        model(&truth(), 1, weight, 0.0)
    }

    #[test]
    fn a_target_s_own_model_tells_which_of_two_is_wrong_and_takes_no_part_in_the_mixture() {
        let truth = truth();
        let good = |weight| model(&truth, 20, weight, 0.05);
        let sent = vec![good(0.5), inverted(0.5)];
        let own = || Some(Heard::own(good(0.0).classes, good(0.0).claim));
        // Nobody can tell without it.
        assert_eq!(trust_sent(sent.clone(), None, true, &[]).disputed, [0, 1]);
        let weights = vec![1.0, 0.0];
        let expected = Trust { weights, refused: vec![1], disputed: Vec::new() };
        assert_eq!(trust_sent(sent, own(), true, &[]), expected);
        // All that is sent is wrong: it keeps its weights, and is refused only if somebody else could send a model.
        let wrong = vec![inverted(0.3), inverted(0.7)];
        for has_others in [true, false] {
            let found = trust_sent(wrong.clone(), own(), has_others, &[(0, truth[0]); 40]);
            assert_eq!(found.weights, [0.3, 0.7]);
            assert_eq!(found.refused, if has_others { vec![0, 1] } else { Vec::new() });
        }
    }

    #[test]
    fn nothing_changes_while_claims_hold() {
        let truth = truth();
        let heard =
            [model(&truth, 10, 0.7, 0.1), model(&truth, 7, 0.3, 0.2), model(&truth, 2, 0.0, 0.5)];
        let weights = vec![0.7, 0.3, 0.0];
        let expected = Trust { weights, refused: Vec::new(), disputed: Vec::new() };
        assert_eq!(trust(&heard, &[]), expected);
        // One whose claim says nothing contradicts nobody, however wrong it is.
        let mut far = heard.to_vec();
        far[2] = Heard {
            claim: Claim { error: 1.0, samples: 1000.0, ..Claim::NOTHING },
            ..inverted(0.0)
        };
        assert_eq!(trust(&far, &[]).weights, expected.weights);
        assert_eq!(trust(&heard[..1], &[]).weights, [0.7]);
        assert_eq!(trust(&[], &[]).weights, [] as [f64; 0]);
    }

    #[test]
    fn a_magnet_that_two_witnesses_contradict_gets_nothing() {
        let truth = truth();
        let heard = [inverted(1.0), model(&truth, 10, 0.0, 0.2), model(&truth, 12, 0.0, 0.3)];
        let found = trust(&heard, &[]);
        assert_eq!((found.refused, found.disputed), (vec![0], Vec::new()));
        let claims = [heard[1].claim, heard[2].claim];
        assert_eq!(found.weights[0], 0.0);
        assert_eq!(found.weights[1..], best_weights(&claims));
        // A lying witness is refused as well, and the plan stays.
        let heard = [model(&truth, 10, 1.0, 0.2), inverted(0.0), model(&truth, 12, 0.0, 0.3)];
        let found = trust(&heard, &[]);
        assert_eq!((found.weights, found.refused), (vec![1.0, 0.0, 0.0], vec![1]));
    }

    #[test]
    fn three_that_lie_alike_are_outvoted_by_four() {
        let truth = truth();
        let mut heard = vec![inverted(0.4), inverted(0.3), inverted(0.3)];
        heard.extend((0..4).map(|k| model(&truth, 9 + k, 0.0, 0.2)));
        assert_eq!(trust(&heard, &[]).refused, [0, 1, 2]);
        // Four liars outvote three honest ones: a target must hear enough.
        heard.insert(0, inverted(0.0));
        heard.pop();
        assert_eq!(trust(&heard, &[]).refused, [4, 5, 6]);
    }

    #[test]
    fn where_nobody_can_tell_none_decides_alone_and_labels_can() {
        let truth = truth();
        let heard = [inverted(0.9), model(&truth, 10, 0.1, 0.2)];
        let found = trust(&heard, &[]);
        assert_eq!((found.weights, found.disputed), (vec![0.5, 0.5], vec![0, 1]));
        let known: Vec<Known> = (0..LEAST_LABELS).map(|k| (k, truth[k])).collect();
        let found = trust(&heard, &known);
        assert_eq!((found.weights, found.refused), (vec![0.0, 1.0], vec![0]));
        assert_eq!(trust(&heard, &known[1..]).disputed, [0, 1], "too few labels");
        // Where none had almost all, nothing changes.
        let heard = [inverted(0.6), model(&truth, 10, 0.4, 0.2)];
        let found = trust(&heard, &[]);
        assert_eq!((found.weights, found.disputed), (vec![0.6, 0.4], vec![0, 1]));
    }

    #[test]
    fn labels_alone_refute_a_model_that_nobody_contradicts() {
        let truth = truth();
        let far = |weight| model(&truth, 2, weight, 1.0);
        let liar = |error| Heard {
            claim: Claim { error, samples: 1000.0, ..Claim::NOTHING },
            ..inverted(1.0)
        };
        let known: Vec<Known> = (0..10).map(|k| (k, truth[k])).collect();
        assert_eq!(trust(&[liar(0.3), far(0.0)], &known).refused, [0]);
        // One that claims little is not refuted, and of one model alone there is no better one.
        assert_eq!(trust(&[liar(0.9), far(0.0)], &known).refused, [] as [usize; 0]);
        assert_eq!(trust(&[liar(0.3)], &known).weights, [1.0]);
        assert_eq!(among_compared(&compared(2500, &[(4, 1)]), &[(4, 1)]), [(2, 1)]);
    }

    #[test]
    fn a_model_that_doubts_what_it_claims_to_know_is_refused_alone_and_among_others() {
        let truth = truth();
        let untrained = Heard { doubt: 0.9, ..model(&truth, 1, 1.0, 0.2) };
        let alone = trust(std::slice::from_ref(&untrained), &[]);
        assert_eq!((alone.refused, alone.weights), (vec![0], vec![1.0]), "there is nothing better");
        let found = trust(&[untrained.clone(), model(&truth, 10, 0.0, 0.2)], &[]);
        assert_eq!((found.refused, found.weights), (vec![0], vec![0.0, 1.0]));
        // Who claims little may doubt much, and some doubt is nobody's fault.
        for (doubt, error) in [(0.9, 0.8), (0.25, 0.1), (f64::NAN, 0.0)] {
            let honest = Heard { doubt, ..model(&truth, 4, 1.0, error) };
            assert_eq!(trust(&[honest], &[]).refused, [] as [usize; 0], "{doubt} {error}");
        }
    }

    #[test]
    fn models_are_compared_on_known_samples_and_some_others() {
        assert_eq!(compared(4, &[]), [0, 1, 2, 3]);
        let many = compared(2500, &[(4, 0), (6, 1)]);
        assert_eq!(many[..5], [0, 3, 4, 6, 9]);
        assert!(many.len() <= MOST_SAMPLES + 2);
    }
}
