use proptest::prelude::*;

use super::*;

impl Scaler<'_> {
    /// The inputs of the samples of one device, which must be all that it has.
    fn inputs(&self, samples: &[usize]) -> Vec<f32> {
        self.scaling(samples).inputs(self.data, samples)
    }
}

/// A table of features, all rows of one device.
fn table(rows: &[&[f64]]) -> Dataset {
    let shape = Shape { channels: 1, height: 1, width: rows[0].len() };
    let values = Values::Features(rows.concat());
    Dataset::new("t", shape, values, vec![None; rows.len()], Vec::new()).unwrap()
}

/// The inputs of one device that has all rows.
fn all(data: &Dataset, scale: Scale) -> Vec<f32> {
    Scaler::new(data, scale).inputs(&(0..data.len()).collect::<Vec<_>>())
}

fn column(values: &[f64], scale: Scale) -> Vec<f32> {
    let rows: Vec<&[f64]> = values.chunks(1).collect();
    all(&table(&rows), scale)
}

/// Returns values that look like a sensor's.
fn readings(count: usize) -> Vec<f64> {
    (0..count).map(|k| 20.0 + ((k * 37) % 101) as f64 / 10.0).collect()
}

fn close(a: &[f32], b: &[f32], by: f32) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= by)
}

#[test]
fn the_fleet_s_scale_is_that_of_the_whole_table() {
    let rows: [&[f64]; 4] = [&[1.0, 0.1], &[3.0, 0.1], &[5.0, 0.1], &[7.0, 0.1]];
    let data = table(&rows);
    let unit = 5f32.sqrt();
    let expected = [-3.0 / unit, 0.0, -1.0 / unit, 0.0, 1.0 / unit, 0.0, 3.0 / unit, 0.0];
    assert!(close(&all(&data, Scale::Fleet), &expected, 1e-6));
    // Who holds a row makes no difference, nor does what else it holds.
    assert_eq!(Scaler::new(&data, Scale::Fleet).inputs(&[3]), all(&data, Scale::Fleet)[6..]);
    assert_eq!(all(&data, Scale::None), [1.0, 0.1, 3.0, 0.1, 5.0, 0.1, 7.0, 0.1]);
}

#[test]
fn an_own_scale_is_that_of_the_device_s_rows_alone() {
    let data = table(&[&[1.0], &[1000.0], &[3.0], &[3000.0], &[5.0], &[5000.0]]);
    let scaler = Scaler::new(&data, Scale::Own);
    let small = scaler.inputs(&[0, 2, 4]);
    assert!(close(&small, &[-1.224_745, 0.0, 1.224_745], 1e-6), "{small:?}");
    assert_eq!(small, scaler.inputs(&[1, 3, 5]));
    assert_eq!(scaler.inputs(&[]), [0f32; 0]);
    assert_eq!(scaler.inputs(&[1]), [0.0], "a single row has no deviation");
}

#[test]
fn both_stand_side_by_side() {
    let data = table(&[&[1.0, 7.0], &[2.0, 7.0], &[4.0, 9.0], &[9.0, 8.0]]);
    let both = Scaler::new(&data, Scale::Both);
    assert_eq!(both.shape(), Shape { channels: 1, height: 1, width: 4 });
    assert_eq!(Scaler::new(&data, Scale::Own).shape(), data.shape());
    let rows = [2, 0, 3];
    let [fleet, own] = [Scale::Fleet, Scale::Own].map(|s| Scaler::new(&data, s).inputs(&rows));
    let expected: Vec<f32> =
        fleet.chunks(2).zip(own.chunks(2)).flat_map(|(f, o)| [f, o].concat()).collect();
    assert_eq!(both.inputs(&rows), expected);
}

#[test]
fn pictures_have_no_scale() {
    let shape = Shape::grey(1);
    let data = Dataset::new("p", shape, Values::Pixels(vec![0, 255]), vec![None; 2], Vec::new());
    let data = data.unwrap();
    for scale in Scale::ALL {
        let scaler = Scaler::new(&data, scale);
        assert_eq!((scaler.scale(), scaler.shape()), (Scale::None, shape));
        assert_eq!(scaler.inputs(&[0, 1]), [-1.0, 1.0]);
    }
}

#[test]
fn a_few_wild_readings_change_little() {
    let spread = |inputs: &[f32]| {
        let most = inputs.iter().copied().fold(f32::MIN, f32::max);
        most - inputs.iter().copied().fold(f32::MAX, f32::min)
    };
    for (count, wild) in [(6, 1), (10, 1), (25, 1), (100, 5), (400, 20)] {
        let plain = readings(count);
        for scale in [Scale::Own, Scale::Fleet] {
            let expected = spread(&column(&plain, scale));
            for (reading, end) in [(1e30, 10.0), (-1e30, -10.0), (f64::from(f32::MAX), 10.0)] {
                let got = column(&[&plain[..], &vec![reading; wild]].concat(), scale);
                assert_eq!(got[count..], vec![end; wild], "{count} {scale:?} {reading}");
                let rest = spread(&got[..count]);
                // Brought to the edge, they still widen the scale a little.
                assert!(rest > expected / 3.0, "{count} {scale:?} {reading}: {rest}");
            }
        }
    }
}

#[test]
fn the_fleet_s_ordinary_values_are_not_clipped() {
    // Heavy tails, as counts have: the largest is a hundred times all others.
    let mut values = readings(1000);
    values[7] = 3000.0;
    let mean = values.iter().map(|v| v / 1000.0).sum::<f64>();
    let deviation = values.iter().map(|v| (v - mean) * (v - mean) / 1000.0).sum::<f64>().sqrt();
    let expected: Vec<f32> = values.iter().map(|v| ((v - mean) / deviation) as f32).collect();
    assert!(expected[7] > 30.0);
    assert_eq!(column(&values, Scale::Fleet), expected);
}

#[test]
fn what_never_changes_is_0_and_what_rarely_does_still_shows() {
    assert_eq!(column(&[0.1 + 0.2, 0.3, 0.3, 0.3], Scale::Own), [0.0; 4], "but for rounding");
    // An alarm that is on in three rows of a hundred, at 0 and 1, or at 0.3 and 0.30000000000000004.
    let mut alarm = vec![0.0; 100];
    alarm[10..13].fill(1.0);
    let on = column(&alarm, Scale::Own);
    assert!((5.0..6.0).contains(&on[10]) && (-0.2..-0.1).contains(&on[0]), "{on:?}");
    let mut rounded: Vec<f64> =
        (0..100).map(|k| if k % 2 == 0 { 0.3 } else { 0.1 + 0.2 }).collect();
    rounded[10..13].fill(1.3);
    assert!(close(&column(&rounded, Scale::Own), &on, 1e-6));
    // One wild reading more does not hide it.
    alarm[50] = 1e30;
    let wild = column(&alarm, Scale::Own);
    assert_eq!(wild[50], 10.0);
    assert!(wild[10] - wild[0] > 2.0, "{wild:?}");
}

#[test]
fn small_differences_of_large_numbers_count() {
    // Seconds since 1970, of which inputs would keep two minutes.
    let early: Vec<f64> = readings(50).iter().map(|v| v + 1.7e9).collect();
    assert!(close(&column(&early, Scale::Own), &column(&readings(50), Scale::Own), 1e-5));
}

proptest! {
    #[test]
    fn neither_units_nor_the_order_of_rows_matter(
        mut values in prop::collection::vec(-100.0..100.0f64, 1..60),
        times in prop_oneof![Just(1000.0), 0.001..1000.0f64],
        plus in prop_oneof![Just(5.0), -1000.0..1000.0f64],
        turn in any::<prop::sample::Index>(),
    ) {
        let own = column(&values, Scale::Own);
        let other: Vec<f64> = values.iter().map(|v| v * times + plus).collect();
        prop_assert!(close(&column(&other, Scale::Own), &own, 1e-4));
        let turn = turn.index(values.len());
        values.rotate_left(turn);
        let mut turned = own;
        turned.rotate_left(turn);
        prop_assert_eq!(column(&values, Scale::Own), turned);
    }

    #[test]
    fn inputs_are_numbers_whatever_the_values(
        values in prop::collection::vec(any::<f32>().prop_filter("finite", |v| v.is_finite()), 1..30),
        scale in prop::sample::select(Scale::ALL.to_vec()),
    ) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let inputs = column(&values, scale);
        prop_assert!(inputs.iter().all(|v| v.is_finite()), "{inputs:?}");
        if scale == Scale::Own {
            prop_assert!(inputs.iter().all(|v| v.abs() <= 10.0), "{inputs:?}");
        }
    }
}

/// One unit for each channel of a series, from all its readings; a wild one counts as in a table.
#[test]
fn windows_are_scaled_by_channel_as_a_table_of_their_readings_is() {
    let channels = [readings(40), readings(80)[40..].iter().map(|v| 1e6 - 3.0 * v).collect()];
    let mut channels = channels.map(|values: Vec<f64>| values);
    channels[0][7] = 1e30;
    // Windows of 8, channel by channel.
    let windows: Vec<f64> = (0..5)
        .flat_map(|w| channels.iter().flat_map(move |c| c[8 * w..8 * w + 8].to_vec()))
        .collect();
    let shape = Shape { channels: 2, height: 1, width: 8 };
    let values = Values::Features(windows);
    let data = Dataset::new("t", shape, values, vec![None; 5], Vec::new()).unwrap();
    let cut = super::super::Windows { length: 8, stride: 8 };
    let series = super::super::Series { windows: cut, time: None, device: None };
    let data = data.with_series(series, Vec::new());
    let rows: Vec<[f64; 2]> = (0..40).map(|k| [channels[0][k], channels[1][k]]).collect();
    let rows: Vec<&[f64]> = rows.iter().map(|row| &row[..]).collect();
    let table = table(&rows);
    for scale in Scale::ALL {
        let scaler = Scaler::new(&data, scale);
        let lists = if scale == Scale::Both { 2 } else { 1 };
        assert_eq!(scaler.shape(), Shape { channels: 2 * lists, height: 1, width: 8 });
        let (by_window, by_row) = (all(&data, scale), all(&table, scale));
        for (k, input) in by_window.iter().enumerate() {
            let (window, channel, step) = (k / (16 * lists), k / 8 % (2 * lists), k % 8);
            assert_eq!(*input, by_row[(8 * window + step) * 2 * lists + channel], "{scale:?} {k}");
        }
        assert!(by_window.iter().all(|input| scale == Scale::None || input.abs() < 1e3));
    }
}
