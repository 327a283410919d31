//! Methods side by side: means over targets, then mean and interval over seeds.

use crate::record::Row;

/// A mean and the standard deviation of what it is the mean of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The mean of the values.
    pub mean: f64,
    /// The sample standard deviation; 0 of a single value.
    pub deviation: f64,
    /// The number of values that it is the mean of.
    pub count: usize,
}

/// 97.5 % of Student's t distribution with 1, 2, 3 … degrees of freedom lies below these.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

impl Spread {
    /// Returns the spread of these values, or `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        let deviation = if values.len() > 1 { (squares / (n - 1.0)).sqrt() } else { 0.0 };
        (!values.is_empty()).then_some(Spread { mean, deviation, count: values.len() })
    }

    /// Half of the 95 % interval of the mean, by Student's t: what stands after ± everywhere; 0 of a single value.
    pub fn half_interval(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let quantile = STUDENT.get(self.count - 2).copied().unwrap_or(1.96);
        quantile * self.deviation / (self.count as f64).sqrt()
    }

    /// The 95 % interval of the mean; the mean itself of a single value.
    pub fn interval(&self) -> (f64, f64) {
        let half = self.half_interval();
        (self.mean - half, self.mean + half)
    }
}

/// The results of one method over all seeds.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The name of the method.
    pub method: String,
    /// Mean accuracy of a seed's targets; none where no target had a model or the truth is not known.
    pub accuracy: Option<Spread>,
    /// The accuracy of a seed's worst target.
    pub worst: Option<Spread>,
    /// The number of targets of a seed.
    pub targets: Spread,
    /// The number of those of which the accuracy is known.
    pub scored: Spread,
    /// The number of links of a seed.
    pub links: Spread,
    /// The energy of a seed's links, in joules.
    pub joules: Spread,
    /// The bytes that cross a seed's links.
    pub bytes: Spread,
    /// Joules of a seed, with measuring where the method needs it.
    pub total_joules: Spread,
    /// Bytes of a seed, with measuring where the method needs it.
    pub total_bytes: Spread,
    /// The total joules over what it would cost if every source sent to every target, which needs no measuring: above 1 where the
    /// choice of links cost more than it saved.
    pub energy_share: Option<Spread>,
}

/// The methods in the order in which they first appear.
pub fn summarise(rows: &[Row]) -> Vec<Line> {
    let mut methods: Vec<&str> = Vec::new();
    rows.iter().for_each(|row| {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    });
    methods.into_iter().filter_map(|method| line(method, rows)).collect()
}

/// A method's mean accuracy minus another's, seed by seed: what draws have in common is in no interval of it. None where no seed has both.
pub fn paired(rows: &[Row], method: &str, other: &str) -> Option<Spread> {
    let mut seeds: Vec<u64> = rows.iter().map(|row| row.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let mean = |method: &str, seed: u64| {
        let own = rows.iter().filter(|row| row.method == method && row.seed == seed);
        let known: Vec<f64> = own.filter_map(|row| row.accuracy).collect();
        Spread::of(&known).map(|spread| spread.mean)
    };
    let difference = |&seed: &u64| Some(mean(method, seed)? - mean(other, seed)?);
    Spread::of(&seeds.iter().filter_map(difference).collect::<Vec<f64>>())
}

fn line(method: &str, rows: &[Row]) -> Option<Line> {
    let of_method: Vec<&Row> = rows.iter().filter(|r| r.method == method).collect();
    let mut seeds: Vec<u64> = of_method.iter().map(|r| r.seed).collect();
    seeds.dedup();
    let per_seed = |value: &dyn Fn(&[&Row]) -> Option<f64>| {
        let values: Vec<f64> = seeds
            .iter()
            .filter_map(|seed| {
                let of_seed: Vec<&Row> =
                    of_method.iter().copied().filter(|r| r.seed == *seed).collect();
                value(&of_seed)
            })
            .collect();
        Spread::of(&values)
    };
    Some(Line {
        method: method.to_owned(),
        accuracy: per_seed(&|rows| {
            let known: Vec<f64> = rows.iter().filter_map(|r| r.accuracy).collect();
            Spread::of(&known).map(|s| s.mean)
        }),
        worst: per_seed(&|rows| rows.iter().filter_map(|r| r.accuracy).min_by(f64::total_cmp)),
        targets: per_seed(&|rows| Some(rows.len() as f64))?,
        scored: per_seed(
            &|rows| Some(rows.iter().filter(|r| r.accuracy.is_some()).count() as f64),
        )?,
        links: per_seed(&|rows| Some(rows.iter().map(|r| r.links as f64).sum()))?,
        joules: per_seed(&|rows| Some(rows.iter().map(|r| r.joules).sum()))?,
        bytes: per_seed(&|rows| Some(rows.iter().map(|r| r.bytes as f64).sum()))?,
        total_joules: per_seed(&|rows| Some(total_joules(rows)))?,
        total_bytes: per_seed(&|rows| {
            Some(rows.iter().map(|r| (r.bytes + r.measuring_bytes + r.warm_up_bytes) as f64).sum())
        })?,
        energy_share: per_seed(&|rows| {
            let all: f64 = rows.iter().map(|r| r.all_joules).sum();
            (all > 0.0).then(|| total_joules(rows) / all)
        }),
    })
}

fn total_joules(rows: &[&Row]) -> f64 {
    rows.iter().map(|row| row.joules + row.measuring_joules + row.warm_up_joules).sum()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn row(seed: u64, method: &str, accuracy: Option<f64>, links: usize) -> Row {
        let (method, target) = (method.to_owned(), "d".to_owned());
        Row {
            seed,
            method,
            target,
            accuracy,
            samples: 1,
            links,
            joules: links as f64,
            all_joules: 4.0,
            bytes: 8,
            measuring_joules: 0.0,
            measuring_bytes: 0,
            warm_up_joules: 0.0,
            warm_up_bytes: 0,
        }
    }

    #[test]
    fn targets_are_averaged_within_a_seed_and_seeds_after() {
        let rows = [
            row(0, "a", Some(1.0), 1),
            row(0, "a", Some(0.5), 2),
            row(0, "b", None, 0),
            row(1, "a", Some(0.25), 1),
            row(1, "b", None, 0),
        ];
        let lines = summarise(&rows);
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0].accuracy, Spread::of(&[0.75, 0.25]));
        assert_eq!(lines[0].links, Spread { mean: 2.0, deviation: 2f64.sqrt(), count: 2 });
        assert_eq!(lines[0].targets.mean, 1.5);
        assert_eq!(lines[0].energy_share, Spread::of(&[3.0 / 8.0, 0.25]));
        assert_eq!(lines[1].accuracy, None);
    }

    #[test]
    fn differences_are_taken_seed_by_seed() {
        let of = |seed, method, accuracy| row(seed, method, Some(accuracy), 1);
        let rows = [
            of(0, "a", 0.9),
            of(0, "a", 0.7),
            of(0, "b", 0.5),
            of(1, "a", 0.2),
            of(1, "b", 0.1),
            of(2, "a", 0.4),
        ];
        let difference = paired(&rows, "a", "b").unwrap();
        assert_eq!(difference, Spread::of(&[0.8 - 0.5, 0.2 - 0.1]).unwrap());
        assert_eq!(paired(&rows, "a", "a").map(|d| (d.mean, d.deviation)), Some((0.0, 0.0)));
        assert_eq!(paired(&rows, "a", "c"), None);
        // The mean of the worst: 0.7, 0.2 and 0.4.
        let worst = summarise(&rows)[0].worst.unwrap();
        assert_eq!(worst, Spread::of(&[0.7, 0.2, 0.4]).unwrap());
    }

    #[test]
    fn a_total_has_what_measuring_and_a_warm_up_sent_and_may_exceed_all_links() {
        let mut rows = [row(0, "a", Some(1.0), 1), row(0, "a", Some(1.0), 1)];
        (rows[0].measuring_joules, rows[0].measuring_bytes) = (10.0, 1000);
        let line = &summarise(&rows)[0];
        assert_eq!((line.joules.mean, line.total_joules.mean), (2.0, 12.0));
        assert_eq!((line.bytes.mean, line.total_bytes.mean), (16.0, 1016.0));
        assert_eq!(line.energy_share.map(|share| share.mean), Some(1.5));
        (rows[0].warm_up_joules, rows[0].warm_up_bytes) = (4.0, 500);
        let line = &summarise(&rows)[0];
        assert_eq!((line.total_joules.mean, line.total_bytes.mean), (16.0, 1516.0));
    }

    #[test]
    fn an_interval_of_the_mean_is_students() {
        // 1, 2, 3, 4, 5: deviation √2.5, so ± 2.776·√2.5/√5.
        let (low, high) = Spread::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap().interval();
        assert!((low - (3.0 - 1.9629)).abs() < 1e-3 && (high - (3.0 + 1.9629)).abs() < 1e-3);
        assert_eq!(Spread::of(&[7.0]).unwrap().interval(), (7.0, 7.0));
        assert_eq!(Spread::of(&[7.0]).unwrap().half_interval(), 0.0);
    }
}
