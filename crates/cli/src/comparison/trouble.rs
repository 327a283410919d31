//! What a run found that its user should know of the data: classes that are never predicted, devices with too few samples, and answers that count for
//! nobody, as text.

use std::collections::BTreeMap;

use stlf_config::Config;
use stlf_lab::Outcome;
use stlf_lab::stages::transfer::CLASSES;
use stlf_lab::summary::Spread;
use stlf_planning::number_format::{clean, counted, percent};

use super::{MOST_NAMES, few};

/// Returns a line that names the classes that no target of ST-LF is ever given, though devices have labels of them.
pub(crate) fn never_predicted(outcome: &Outcome) -> String {
    let mut classes: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for row in &outcome.classes {
        let counts = [row.labels, row.predicted, row.samples, row.right];
        let sums = classes.entry(row.class.as_str()).or_default();
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let is_known = classes.values().any(|[_, _, samples, _]| *samples > 0);
    let is_predicted = classes.values().any(|[_, predicted, ..]| *predicted > 0);
    // Where the truth is known, targets may have no sample of a class.
    let is_missed = |[labels, predicted, samples, _]: &[usize; 4]| {
        *labels > 0 && *predicted == 0 && (*samples > 0 || !is_known)
    };
    let missed: BTreeMap<&str, &[usize; 4]> =
        classes.iter().filter(|(_, counts)| is_missed(counts)).map(|(n, c)| (*n, c)).collect();
    if missed.is_empty() || !is_predicted {
        return String::new();
    }
    let sum = |at: usize| missed.values().map(|counts| counts[at]).sum::<usize>();
    let recalls = classes.values().filter(|[_, _, samples, _]| *samples > 0);
    let recalls: Vec<f64> =
        recalls.map(|[_, _, samples, right]| *right as f64 / *samples as f64).collect();
    let (samples, recall) = match Spread::of(&recalls) {
        Some(recall) => (
            format!(" and {} of targets", counted(sum(2), "sample")),
            format!("; the mean recall of all classes is {}", percent(recall.mean)),
        ),
        None => Default::default(),
    };
    format!(
        "Targets of ST-LF are never given the {} {}, which {}{samples} have{recall} (seed-*/{CLASSES}).\n",
        if missed.len() == 1 { "class" } else { "classes" },
        few(missed.keys().copied().collect()),
        counted(sum(0), "label"),
    )
}

/// Returns a line on devices that have too few samples to take part in a real fleet.
pub(crate) fn refusing(outcome: &Outcome) -> String {
    let Some(first) = outcome.refusing.first() else { return String::new() };
    let mut names: Vec<&str> = outcome.refusing.iter().map(|one| one.device.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let hint = first.why.hint().map_or(String::new(), |hint| format!("; {hint}"));
    format!(
        "{} ({}) would refuse to take part in a real fleet. Device {}: {}{hint}.\n",
        counted(names.len(), "device"),
        few(names.clone()),
        clean(&first.device),
        first.why.reason,
    )
}

/// Returns a line on answers that count for nobody.
pub(crate) fn unheard(outcome: &Outcome, config: &Config) -> String {
    let Some(path) = &config.data.answers else { return String::new() };
    let all = &outcome.unheard;
    let answers = match all.len() {
        0 => return String::new(),
        1 => "1 answer counts".to_owned(),
        many => format!("{many} answers count"),
    };
    let told: Vec<String> =
        all.iter().take(MOST_NAMES).map(|answer| clean(&answer.to_string())).collect();
    let more = match all.len() - told.len() {
        0 => String::new(),
        others => format!("; and {others} more"),
    };
    format!("{}: {answers} for no device: {}{more}.\n", path.display(), told.join("; "))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use stlf_config::answers::Unheard;
    use stlf_lab::record::ClassRow;
    use stlf_lab::stages::measure::Refusing;
    use stlf_planning::error::{Error, Reason};

    use super::*;

    fn class(class: &str, [labels, predicted, samples, right]: [usize; 4]) -> ClassRow {
        ClassRow { class: class.to_owned(), labels, predicted, samples, right }
    }

    fn told(classes: &[ClassRow]) -> String {
        never_predicted(&Outcome { classes: classes.to_vec(), ..Outcome::default() })
    }

    #[test]
    fn a_class_that_has_labels_and_is_never_predicted_is_named() {
        let [calm, storm] = [class("calm", [297, 300, 296, 296]), class("storm", [3, 0, 4, 0])];
        assert_eq!(
            told(&[calm.clone(), storm.clone()]),
            "Targets of ST-LF are never given the class storm, which 3 labels and 4 samples of targets have; \
             the mean recall of all classes is 50 % (seed-*/classes.csv).\n"
        );
        // In one of two seeds it is.
        let seen = class("storm", [3, 1, 4, 1]);
        assert_eq!(told(&[calm.clone(), storm, calm.clone(), seen]), "");
        // Targets have none of it, or nobody has a label of it.
        assert_eq!(told(&[calm.clone(), class("storm", [3, 0, 0, 0])]), "");
        assert_eq!(told(&[calm, class("storm", [0, 0, 4, 0])]), "");
        assert_eq!(told(&[class("calm", [3, 0, 0, 0])]), "", "no target has a model");
        let unknown = told(&[class("calm", [297, 300, 0, 0]), class("storm", [3, 0, 0, 0])]);
        assert!(unknown.ends_with("which 3 labels have (seed-*/classes.csv).\n"), "{unknown}");
    }

    #[test]
    fn devices_that_real_ones_would_refuse_like_are_told_once() {
        let refusing_one = |device: &str| {
            let message = "others could reconstruct 20 samples".to_owned();
            let reason = Reason::TooFewSamples { present: 20, needed: 40, message };
            let why = Error::new("divergence.features", reason).with_hint("40 are needed");
            Refusing { device: device.to_owned(), why }
        };
        let refusing = ["a", "b", "a"].map(refusing_one).to_vec();
        assert_eq!(
            super::refusing(&Outcome { refusing, ..Outcome::default() }),
            "2 devices (a, b) would refuse to take part in a real fleet. Device a: others could reconstruct 20 samples; 40 are needed.\n"
        );
        assert_eq!(super::refusing(&Outcome::default()), "");
    }

    #[test]
    fn answers_that_count_for_nobody_are_told_with_how_many_and_why() {
        let config = Config::default().with(["data.answers=asked.csv"]).unwrap();
        let of = |count: usize| {
            let answer = |line: usize| Unheard {
                line,
                device: "dock".to_owned(),
                sample: 7,
                is_known: true,
            };
            let unheard = (0..count).map(|at| answer(at + 2)).collect();
            unheard_of(&config, unheard)
        };
        assert_eq!(of(0), "");
        let one =
            "asked.csv: 1 answer counts for no device: line 2: dock does not hold sample 7.\n";
        assert_eq!(of(1), one);
        assert!(of(7).starts_with("asked.csv: 7 answers count for no device: line 2"));
        assert!(of(7).ends_with("line 6: dock does not hold sample 7; and 2 more.\n"), "{}", of(7));
    }

    fn unheard_of(config: &Config, unheard: Vec<Unheard>) -> String {
        super::unheard(&Outcome { unheard, ..Outcome::default() }, config)
    }
}
