//! What others learn from verdicts on models that they choose: without a limit a row of an examiner, with it hardly anything. An honest fleet does not notice
//! the limit.

use crate::common::in_memory_network::Network;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use stlf_data::{Class, Shape};
use stlf_learn::{Params, Spec};
use stlf_method::divergence::{Settings, sketch};
use stlf_planning::plan::Way;
use stlf_protocol::device::Holdings;
use stlf_protocol::verdict_record::VerdictRecord;
use stlf_protocol::wire::Sending;
use stlf_protocol::{Device, Place, Setup};

use crate::attack::nearest;
use crate::common::{ALL, alike, data, devices_with, going_round, handing_on, setup};

const COLUMNS: usize = 12;
const HIDDEN: usize = 64;
/// Classes of the fleet. No row is of the last.
const CLASSES: usize = 4;
const SEEN: usize = CLASSES - 1;
const ROWS: usize = 60;
const SHAPE: Shape = Shape { channels: 1, height: 1, width: COLUMNS };

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0
}

/// Rows of three classes, every third of the same.
fn rows(seed: u64) -> Vec<Vec<f64>> {
    let mut centres = ChaCha8Rng::seed_from_u64(1);
    let centres: Vec<f64> = (0..SEEN * COLUMNS).map(|_| normal(&mut centres)).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let of_class = |class: usize| &centres[class * COLUMNS..][..COLUMNS];
    let mut row = |row| of_class(row % SEEN).iter().map(|c| c + normal(&mut rng)).collect();
    (0..ROWS).map(&mut row).collect()
}

/// Devices with tables, the first half with labels.
fn tables() -> (Setup, Vec<Holdings>) {
    let means = sketch::Settings::means(SHAPE).with(|s| s.privacy = None);
    let spec = Spec::mlp(SHAPE, CLASSES).unwrap();
    let setup = Setup { spec, shape: SHAPE, divergence: Settings::Sketch(means), ..setup() };
    let of = |place: Place| {
        let inputs = rows(place.index() as u64).concat().iter().map(|x| *x as f32).collect();
        let labels: Vec<Class> = (0..ROWS).map(|row| (row % SEEN) as Class).collect();
        let has_labels = place.index() < ALL.len() / 2;
        let labels = if has_labels { labels } else { Vec::new() };
        let unlabeled = ROWS - labels.len();
        Holdings { inputs, labels, unlabeled, answers: Vec::new() }
    };
    (setup, ALL.into_iter().map(of).collect())
}

/// A model that takes rows for the first class if they lie below a threshold in a direction, and else for the last. So it is right on those rows of the first
/// class that lie below.
fn splits(direction: &[f64], threshold: f64) -> Params {
    let mut first = vec![0.0; HIDDEN * COLUMNS];
    let mut first_bias = vec![0.0; HIDDEN];
    let mut second = vec![0.0; CLASSES * HIDDEN];
    for (unit, sign, class) in [(0, -1.0, 0), (1, 1.0, SEEN)] {
        let weights = direction.iter().map(|d| sign * d);
        first.splice(unit * COLUMNS..(unit + 1) * COLUMNS, weights);
        first_bias[unit] = -sign * threshold;
        second[class * HIDDEN + unit] = 1.0;
    }
    let second_bias = [0.0, -9.0, -9.0, 0.0];
    let all = first.into_iter().chain(first_bias).chain(second).chain(second_bias);
    Params::from(all.map(|x| x as f32).collect::<Vec<f32>>())
}

/// A source that has its examiner try a model in every epoch, and hears of the verdict by the link that is not used after it.
struct Attacker {
    network: Network,
    liar: Place,
    examiner: Place,
    epochs: u64,
}

impl Attacker {
    /// Against an examiner that has this record, or none.
    fn new(record: Option<VerdictRecord>) -> Attacker {
        let (setup, holdings) = tables();
        let mut network = Network::new(devices_with(&setup, holdings), 5);
        network.begin(ALL[0], 1, &ALL);
        network.run().unwrap();
        let plan = network.devices[0].plan().unwrap();
        let Sending { from: liar, to: examiner } = plan.examinations[0];
        if let Some(record) = record {
            let device = &mut network.devices[examiner.index()];
            device.limit_verdicts(record, &device.sample_names(None));
        }
        Attacker { network, liar, examiner, epochs: 1 }
    }

    /// Whether the examiner is said to refuse a model.
    fn is_refused(&mut self, model: Params) -> bool {
        let Attacker { network, liar, examiner, epochs, .. } = self;
        *epochs += 1;
        network.forbidden.clear();
        network.send_instead(*liar, *examiner, model);
        network.begin(ALL[0], *epochs, &ALL);
        network.run().unwrap();
        assert!(network.finished.iter().all(|finished| *finished));
        network.forbidden.contains(&(*liar, *examiner))
    }

    /// Where enough rows lie below in a direction, between these, for a model to be believed: at one of the rows.
    fn threshold(&mut self, direction: &[f64], mut between: [f64; 2], exact: f64) -> f64 {
        while between[1] - between[0] > exact {
            let middle = (between[0] + between[1]) / 2.0;
            let model = splits(direction, middle);
            let side = usize::from(!self.is_refused(model));
            between[side] = middle;
        }
        (between[0] + between[1]) / 2.0
    }

    /// A row of the examiner: the one that decides in a direction, and how that moves with every column of it.
    fn row(&mut self) -> Vec<f64> {
        const TURN: f64 = 0.01;
        const EXACT: f64 = 0.01 * TURN;
        let mut rng = ChaCha8Rng::seed_from_u64(12);
        let direction: Vec<f64> = (0..COLUMNS).map(|_| normal(&mut rng) / 4.0).collect();
        let at = self.threshold(&direction, [-8.0, 8.0], EXACT);
        let mut column = |k: usize| {
            let mut turned = direction.clone();
            turned[k] += TURN;
            let around = [at - 4.0 * TURN, at + 4.0 * TURN];
            (self.threshold(&turned, around, EXACT) - at) / TURN
        };
        (0..COLUMNS).map(&mut column).collect()
    }

    /// How far that is from the nearest row of the examiner, as a share of the range of its numbers.
    fn is_off(&mut self) -> f64 {
        let found = self.row();
        let rows = rows(self.examiner.index() as u64);
        let all = || rows.iter().flatten().copied();
        let range = all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min);
        nearest(&found, &rows) / range
    }
}

#[test]
fn without_a_limit_verdicts_rebuild_a_row_and_with_it_they_do_not() {
    let mut unlimited = Attacker::new(None);
    let off = unlimited.is_off();
    println!("{} epochs, {:.1} % of the range off", unlimited.epochs, 100.0 * off);
    assert!(off < 0.01, "{off}");
    let mut limited = Attacker::new(Some(VerdictRecord::default()));
    let off = limited.is_off();
    println!("with a limit {:.1} %", 100.0 * off);
    assert!(off > 0.1, "{off}");
    // It is on disk, so that another start gives nothing back: whatever is asked, the answer is the same.
    let examiner = &limited.network.devices[limited.examiner.index()];
    let text = serde_json::to_string(examiner.judged().unwrap()).unwrap();
    let record = VerdictRecord::read(text.as_bytes()).unwrap();
    let mut again = Attacker::new(Some(record.clone()));
    for threshold in [-8.0, 8.0] {
        let model = splits(&[0.3; COLUMNS], threshold);
        assert!(again.is_refused(model));
    }
    assert_eq!(again.network.devices[again.examiner.index()].judged(), Some(&record));
}

/// Three epochs of devices with these records, in which nothing changes; what they have then.
fn three_epochs(setup: &Setup, records: &[VerdictRecord]) -> (Network, Vec<VerdictRecord>) {
    let mut devices = devices_with(setup, alike(&data()));
    for (device, record) in devices.iter_mut().zip(records) {
        device.limit_verdicts(record.clone(), &device.sample_names(None));
    }
    let mut network = Network::new(devices, 5);
    for epoch in 1..=3 {
        network.begin(ALL[0], epoch, &ALL);
        network.run().unwrap();
        assert!(network.finished.iter().all(|finished| *finished));
    }
    assert_eq!((&network.refused[..], &network.forbidden[..]), (&[][..], &[][..]));
    let read = |device: &Device| {
        let text = serde_json::to_string(device.judged().unwrap()).unwrap();
        VerdictRecord::read(text.as_bytes()).unwrap()
    };
    let records = network.devices.iter().map(read).collect();
    (network, records)
}

#[test]
fn an_honest_fleet_ends_as_without_a_limit_and_says_nothing_twice() {
    for setup in [setup(), handing_on(), going_round()] {
        let mut free = Network::new(devices_with(&setup, alike(&data())), 5);
        free.begin(ALL[0], 1, &ALL);
        free.run().unwrap();
        let empty = vec![VerdictRecord::default(); ALL.len()];
        let (network, records) = three_epochs(&setup, &empty);
        assert!(records.iter().any(|record| *record != VerdictRecord::default()));
        for (limited, free) in network.devices.iter().zip(&free.devices) {
            let told = |device: &Device| {
                let tried = Way::ALL.map(|way| device.tried(way));
                (tried, device.outcome().cloned(), device.refuses())
            };
            assert!(told(limited) == told(free));
        }
        let (_, again) = three_epochs(&setup, &records);
        assert!(again == records, "the same models again tell nothing new");
    }
}

#[test]
fn who_handed_on_two_wrong_models_is_not_tried_again() {
    let (setup, liar, after) = (handing_on(), ALL[0], ALL[1]);
    let mut devices = devices_with(&setup, alike(&data()));
    let examiner = &mut devices[after.index()];
    examiner.limit_verdicts(VerdictRecord::default(), &examiner.sample_names(None));
    let mut network = Network::new(devices, 5);
    let mut records = Vec::new();
    for epoch in 1..=4 {
        // Untrained models, another one in each epoch; at last its own.
        if epoch < 4 {
            network.send_instead(liar, after, Params::initial(&setup.spec, epoch));
        } else {
            let own = network.devices[liar.index()].sent_model(Way::First).unwrap();
            network.send_instead(liar, after, own);
        }
        network.forbidden.clear();
        network.begin(ALL[0], epoch, &ALL);
        network.run().unwrap();
        assert_eq!(network.devices[after.index()].refuses(), [liar], "{epoch}");
        assert!(network.forbidden.contains(&(liar, after)));
        records.push(network.devices[after.index()].judged().unwrap().clone());
    }
    assert!(records[0] != records[1] && records[1] == records[2] && records[2] == records[3]);
}
