//! The published files: MNIST, USPS and MNIST-M as they are distributed.
//!
//! Found through `STLF_DATA`; without it these tests are skipped, and say so.

use stlf_data::dataset::Values;
use stlf_data::domains::{Colour, Domain, Half, Options, Pairing, UspsFit, load};
use stlf_data::{Dataset, Shape};

fn options(half: Half) -> Option<Options> {
    let folder = stlf_testing::data()?;
    Some(Options { folder: Some(folder), half, ..Options::default() })
}

fn histogram(set: &Dataset) -> [usize; 10] {
    let mut counts = [0; 10];
    for i in 0..set.len() {
        counts[usize::from(set.label(i).unwrap())] += 1;
    }
    counts
}

fn pixels(set: &Dataset) -> &[u8] {
    match set.values() {
        Values::Pixels(pixels) => pixels,
        Values::Features(_) => panic!("digits are pixels"),
    }
}

#[test]
fn labels_are_as_published() {
    let expected: [(Domain, Half, [usize; 10]); 6] = [
        (Domain::Mnist, Half::Train, [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        (Domain::Mnist, Half::Test, [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
        (Domain::Usps, Half::Train, [1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644]),
        (Domain::Usps, Half::Test, [359, 264, 198, 166, 200, 160, 170, 147, 166, 177]),
        (Domain::MnistM, Half::Train, [1994, 2281, 1929, 2076, 1945, 1775, 1971, 2093, 1922, 2014]),
        (Domain::MnistM, Half::Test, [271, 340, 313, 316, 318, 283, 272, 306, 286, 295]),
    ];
    for (domain, half, counts) in expected {
        let Some(options) = options(half) else { return };
        let set = load(&[domain], &options).unwrap();
        assert_eq!(histogram(&set), counts, "{domain} {half}");
        let channels = if domain == Domain::MnistM { 3 } else { 1 };
        assert_eq!(set.shape(), Shape { channels, height: 28, width: 28 });
    }
}

/// Whatever the photograph, its colour is inverted where MNIST's pixel is above 0. So along the edge
/// of the ink the neighbours differ more than the photograph's own neighbours do, and inverting again
/// by the right digit makes the picture smoother than leaving it does.
#[test]
fn mnist_m_is_mnist_index_by_index() {
    let Some(mut options) = options(Half::Test) else { return };
    options.colour = Some(Colour::Rgb);
    let mnist = load(&[Domain::Mnist], &options).unwrap();
    let mnist_m = load(&[Domain::MnistM], &options).unwrap();
    let roughness = |image: &[u8]| -> u32 {
        let differ = |a: &u8, b: &u8| u32::from(a.abs_diff(*b));
        let across = image.chunks_exact(28).flat_map(|row| row.iter().zip(&row[1..]));
        let down = image.chunks_exact(784).flat_map(|channel| channel.iter().zip(&channel[28..]));
        across.chain(down).map(|(a, b)| differ(a, b)).sum()
    };
    let undone = |over: &[u8], digit: &[u8]| -> Vec<u8> {
        over.iter().zip(digit).map(|(&p, &ink)| if ink > 0 { 255 - p } else { p }).collect()
    };
    for i in 0..mnist_m.len() {
        assert_eq!(mnist.label(i), mnist_m.label(i));
        let image = |set, i: usize| &pixels(set)[i * 3 * 784..(i + 1) * 3 * 784];
        let over = image(&mnist_m, i);
        let with_own = roughness(&undone(over, image(&mnist, i)));
        assert!(with_own < roughness(over), "image {i} is not MNIST's image {i}");
        assert!(with_own < roughness(&undone(over, image(&mnist, i + 1))), "image {i}");
    }
}

#[test]
fn loaded_together_no_handwriting_appears_twice() {
    let Some(options) = options(Half::Train) else { return };
    let all = load(&[Domain::Mnist, Domain::Usps, Domain::MnistM], &options).unwrap();
    let of = |domain: usize| (0..all.len()).filter(|&i| all.domain(i) == domain).count();
    assert_eq!((of(0), of(1), of(2)), (40_000, 7_291, 20_000));
    let shared = Options { pairing: Pairing::Shared, ..options };
    let both = load(&[Domain::Mnist, Domain::MnistM], &shared).unwrap();
    assert_eq!(both.len(), 80_000);
    assert_eq!(both.label(20_000), all.label(0));
}

#[test]
fn usps_padded_has_a_black_frame_and_enlarged_has_as_much_ink() {
    let Some(options) = options(Half::Test) else { return };
    let padded = load(&[Domain::Usps], &options).unwrap();
    let resampled = Options { usps_fit: UspsFit::Resample, ..options };
    let resampled = load(&[Domain::Usps], &resampled).unwrap();
    let ink = |set: &Dataset| pixels(set).iter().map(|&p| f64::from(p)).sum::<f64>();
    let ratio = ink(&resampled) / ink(&padded);
    let area = (28.0 / 16.0) * (28.0 / 16.0);
    assert!((ratio / area - 1.0).abs() < 0.01, "{ratio}");
    assert!(pixels(&padded).chunks_exact(784).all(|image| image[..6 * 28].iter().all(|&p| p == 0)));
}
