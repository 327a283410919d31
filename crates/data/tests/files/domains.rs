//! Domains from small files made here: what is read, and what is said about bad ones.

use std::path::Path;

use stlf_data::dataset::Values;
use stlf_data::domains::{Colour, Domain, Half, Options, Pairing, UspsFit, load};
use stlf_data::idx::Idx;
use stlf_data::{Dataset, Error, Shape};

/// Files of every domain in which image i is filled with i, and its label is i modulo 10.
fn folder(images: &[(Domain, u32)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for &(domain, count) in images {
        let size: &[u32] = match domain {
            Domain::Mnist => &[28, 28],
            Domain::Usps => &[16, 16],
            _ => &[28, 28, 3],
        };
        write(folder.path(), domain, Half::Train, count, size);
        write(folder.path(), domain, Half::Test, count, size);
    }
    folder
}

fn write(folder: &Path, domain: Domain, half: Half, count: u32, size: &[u32]) {
    let pixels: u32 = size.iter().product();
    let values = (0..count).flat_map(|i| vec![i as u8; pixels as usize]).collect();
    let labels = (0..count).map(|i| (i % 10) as u8).collect();
    let [images_name, labels_name] = domain.file_names(half).unwrap();
    let images = Idx::new([&[count], size].concat(), values).unwrap();
    images.write_file(&folder.join(images_name)).unwrap();
    let labels = Idx::new(vec![count], labels).unwrap();
    labels.write_file(&folder.join(labels_name)).unwrap();
}

fn options(folder: &tempfile::TempDir) -> Options {
    Options { folder: Some(folder.path().to_owned()), ..Options::default() }
}

/// What the middle pixel says the image's number is.
fn numbers(set: &Dataset) -> Vec<u8> {
    let Values::Pixels(pixels) = set.values() else { panic!("pixels") };
    pixels.chunks_exact(set.shape().len()).map(|image| image[14 * 28 + 14]).collect()
}

#[test]
fn every_domain_has_its_shape_and_mixtures_are_grey() {
    let folder = folder(&[(Domain::Mnist, 12), (Domain::Usps, 3), (Domain::MnistM, 4)]);
    let options = options(&folder);
    let rgb = Shape { channels: 3, height: 28, width: 28 };
    let mnist = load(&[Domain::Mnist], &options).unwrap();
    assert_eq!((mnist.len(), mnist.shape()), (12, Shape::grey(28)));
    assert_eq!((mnist.label(11), mnist.classes().len()), (Some(1), 10));
    assert_eq!(load(&[Domain::Usps], &options).unwrap().shape(), Shape::grey(28));
    assert_eq!(load(&[Domain::MnistM], &options).unwrap().shape(), rgb);
    let mixed = load(&[Domain::Usps, Domain::MnistM], &options).unwrap();
    assert_eq!((mixed.len(), mixed.shape()), (7, Shape::grey(28)));
    assert_eq!(mixed.domains(), ["usps", "mnist-m"]);
    let coloured = Options { colour: Some(Colour::Rgb), ..options.clone() };
    assert_eq!(load(&[Domain::Usps, Domain::MnistM], &coloured).unwrap().shape(), rgb);
    let grey = Options { colour: Some(Colour::Grey), half: Half::Test, ..options };
    assert_eq!(numbers(&load(&[Domain::MnistM], &grey).unwrap()), [0, 1, 2, 3]);
}

#[test]
fn no_handwriting_is_in_both_mnist_and_mnist_m() {
    let both = [Domain::MnistM, Domain::Mnist];
    let few = folder(&[(Domain::Mnist, 12), (Domain::MnistM, 4)]);
    let set = load(&both, &options(&few)).unwrap();
    assert_eq!(numbers(&set), (0..12).collect::<Vec<u8>>());
    assert_eq!((set.domain(3), set.domain(4)), (0, 1));
    let as_many = folder(&[(Domain::Mnist, 12), (Domain::MnistM, 12)]);
    let set = load(&both, &options(&as_many)).unwrap();
    assert_eq!(numbers(&set), (0..12).collect::<Vec<u8>>());
    assert_eq!((set.domain(5), set.domain(6)), (0, 1));
    let shared = Options { pairing: Pairing::Shared, ..options(&as_many) };
    assert_eq!(load(&both, &shared).unwrap().len(), 24);
    let limited = Options { samples: Some(2), ..options(&few) };
    assert_eq!(numbers(&load(&both, &limited).unwrap()), [0, 1, 4, 5]);
}

#[test]
fn usps_is_padded_or_enlarged() {
    let folder = folder(&[(Domain::Usps, 8)]);
    let corner = |fit| {
        let set = load(&[Domain::Usps], &Options { usps_fit: fit, ..options(&folder) }).unwrap();
        let Values::Pixels(pixels) = set.values() else { panic!("pixels") };
        (pixels[7 * 784], pixels[7 * 784 + 6 * 28 + 6])
    };
    assert_eq!(corner(UspsFit::Pad), (0, 7));
    assert_eq!(corner(UspsFit::Resample), (7, 7));
}

fn error(domain: Domain, folder: &tempfile::TempDir) -> (String, Option<String>) {
    let error = load(&[domain], &options(folder)).unwrap_err();
    let place = format!("{}/", folder.path().display());
    let text = error.to_string().replace(&place, "").replace(place.trim_end_matches('/'), "DIR");
    (text, error.hint().map(str::to_owned))
}

#[test]
fn missing_files_are_named_with_the_remedy() {
    let empty = folder(&[]);
    let (text, hint) = error(Domain::MnistM, &empty);
    assert_eq!(text, "DIR: the train half of mnist-m needs mnistm-train-images-idx4-ubyte.gz here");
    let hint = hint.unwrap();
    assert!(hint.starts_with("run `stlf data fetch mnist-m`, or place mnistm-train-images"));
    let nowhere = load(&[Domain::Mnist], &Options::default()).unwrap_err();
    assert_eq!(
        nowhere.to_string(),
        "data folder: mnist is read from files, and no folder is given"
    );
}

#[test]
fn bad_files_are_refused() {
    let bad = folder(&[(Domain::Mnist, 5)]);
    let [images, labels] = Domain::Mnist.file_names(Half::Train).unwrap();
    let write = |name: &str, dimensions: &[u32], values: Vec<u8>| {
        let array = Idx::new(dimensions.to_vec(), values).unwrap();
        array.write_file(&bad.path().join(name)).unwrap();
    };
    let text = || error(Domain::Mnist, &bad).0;
    write(&labels, &[5], vec![0, 1, 2, 10, 4]);
    assert_eq!(text(), format!("{labels}: label 3 is 10, expected a digit 0 to 9"));
    write(&labels, &[4], vec![0; 4]);
    let stem = images.trim_end_matches(".gz");
    assert_eq!(text(), format!("{labels}: holds 4 labels for the 5 images of {stem}"));
    write(&labels, &[5, 1], vec![0; 5]);
    assert_eq!(text(), format!("{labels}: holds 5×1 values, expected a list"));
    write(&images, &[5, 16, 16], vec![0; 5 * 256]);
    assert_eq!(
        text(),
        format!("{images}: holds 5×16×16 values, expected images of 28×28 for mnist")
    );
    write(&images, &[0, 28, 28], vec![]);
    write(&labels, &[0], vec![]);
    assert_eq!(text(), format!("{images}: holds no images"));
    let path = bad.path().join(&images);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert_eq!(text(), format!("{images}: the gzip data ends early"));
}

#[test]
fn a_plain_file_serves_as_well() {
    let folder = folder(&[(Domain::Usps, 3)]);
    for name in Domain::Usps.file_names(Half::Train).unwrap() {
        let array = Idx::read_file(&folder.path().join(&name)).unwrap();
        array.write_file(&folder.path().join(name.trim_end_matches(".gz"))).unwrap();
        std::fs::remove_file(folder.path().join(&name)).unwrap();
    }
    assert_eq!(load(&[Domain::Usps], &options(&folder)).unwrap().len(), 3);
}

#[test]
fn names_are_those_that_users_type() {
    for domain in Domain::ALL {
        assert_eq!(domain.name().parse::<Domain>().unwrap(), domain);
    }
    let error = "minst".parse::<Domain>().unwrap_err();
    assert_eq!(error.to_string(), "domain: there is no domain \"minst\"");
    assert!(error.hint().unwrap().contains("mnist, usps, mnist-m"));
    let message =
        |domains: &[Domain]| load(domains, &Options::default()).map_err(|e: Error| e.to_string());
    assert_eq!(message(&[]).unwrap_err(), "domains: no domain is listed");
    let twice = [Domain::Mnist, Domain::Mnist];
    assert_eq!(message(&twice).unwrap_err(), "domains: mnist is listed twice");
}
