//! What the labels of a table of one's own say about its classes.

use stlf_data::Dataset;
use stlf_planning::number_format::{counted, percent};

/// Classes with fewer labels than this, in the mean, are hardly learned.
const LABELS_OF_A_CLASS: usize = 5;

/// Says that labels look like measurements, if there are hardly more of them than classes, or most classes are numbers with a fraction.
pub(super) fn too_many_classes(data: &Dataset, label: &str) -> Option<String> {
    let labels = (0..data.len()).filter(|&sample| data.label(sample).is_some()).count();
    let classes = data.classes();
    let has_fraction = |name: &&String| name.parse().is_ok_and(|number: f64| number.fract() != 0.0);
    let fractions = classes.iter().filter(has_fraction).count();
    let is_quantity = labels < LABELS_OF_A_CLASS * classes.len() || 2 * fractions > classes.len();
    (classes.len() > 2 && is_quantity).then(|| {
        format!(
            "Column {label} has {} in {}. If it is a quantity, cut it into a few ranges first: only classes can be learned.",
            counted(classes.len(), "different label"),
            counted(labels, "row")
        )
    })
}

/// Says that models keep their sources' class proportions, if these are unequal, and alike at all devices with labels: if their distance
/// from equal ones (total variation) is more than a tenth, and more than twice that of a usual device from all.
pub(super) fn unequal_classes(data: &Dataset) -> Option<String> {
    let mut devices = vec![vec![0.0; data.classes().len()]; data.domains().len()];
    let labeled = (0..data.len()).filter_map(|sample| Some((sample, data.label(sample)?)));
    labeled.for_each(|(sample, class)| devices[data.domain(sample)][usize::from(class)] += 1.0);
    let mut all = vec![0.0; data.classes().len()];
    devices.iter().for_each(|counts| all.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n));
    let total = |counts: &[f64]| counts.iter().sum::<f64>();
    let distance = |a: &[f64], b: &[f64]| {
        let differences = a.iter().zip(b).map(|(x, y)| (x / total(a) - y / total(b)).abs());
        differences.sum::<f64>() / 2.0
    };
    let from_equal = distance(&all, &vec![1.0; all.len()]);
    let labels = devices.iter().filter(|counts| total(counts) > 0.0);
    let from_all: f64 = labels.map(|counts| total(counts) * distance(counts, &all)).sum();
    let alike = from_all / total(&all) < from_equal / 2.0;
    let (most, count) = data.classes().iter().zip(&all).max_by(|a, b| a.1.total_cmp(b.1))?;
    (from_equal > 0.1 && alike).then(|| {
        format!(
            "Classes are about as frequent at all devices with labels, but not equally frequent: {} have {most}. \
             So models keep these proportions (training.balanced = false). Where devices without labels may have others, set it to true.",
            percent(count / total(&all))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, written};

    #[test]
    fn models_keep_class_proportions_that_are_as_unequal_everywhere() {
        let told = |label: fn(usize) -> usize| {
            let (_folder, table) =
                written("device,label,x", |k| format!("d{},{},{k}", k % 3, label(k / 3)));
            let (config, told) = config(&table, "label", None);
            assert_eq!(config.training.balanced, told.len() == 1);
            told
        };
        // Nine of ten at each device.
        let unequal = told(|k| usize::from(k % 10 == 0));
        assert!(unequal[1].contains("but not equally frequent: 90 % have 0. So"), "{unequal:?}");
        assert_eq!(told(|k| k % 2).len(), 1);
        // As unequal, but each device has another class.
        let (_folder, table) = written("device,label,x", |k| format!("d{},{},{k}", k % 3, k % 3));
        assert_eq!(config(&table, "label", None).1.len(), 1);
    }

    #[test]
    fn labels_that_look_like_a_quantity_are_told() {
        let row = |k: usize| format!("d{},{},{k}", k % 3, k % 20);
        let (_folder, table) = written("device,wage,x", row);
        let (_, told) = config(&table, "wage", None);
        assert!(told[1].starts_with("Column wage has 20 different labels in 90 rows."), "{told:?}");
        let (_folder, table) = written("device,wage,x", |k| format!("d{},{},{k}", k % 3, k % 18));
        assert_eq!(config(&table, "wage", None).1.len(), 1);
        let (_folder, table) = written("device,wage,x", |k| format!("d{},{}.5,{k}", k % 3, k % 4));
        let (_, told) = config(&table, "wage", None);
        assert!(told[1].starts_with("Column wage has 4 different labels in 90 rows."), "{told:?}");
    }

    #[test]
    fn a_quantity_is_told_once() {
        // Unequal at all devices alike, if its values were classes.
        let value = |k: usize| if k < 60 { 0 } else { k };
        let (_folder, table) = written("device,wage,x", |k| format!("d{},{},{k}", k % 3, value(k)));
        let (_, told) = config(&table, "wage", None);
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].starts_with("Column wage has 31 different labels in 90 rows."), "{told:?}");
    }
}
