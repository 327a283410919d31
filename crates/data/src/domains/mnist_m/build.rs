//! Makes MNIST-M out of MNIST and any photographs.
//!
//! As the published set was made (Ganin et al., 2016): behind each digit lies a random 28×28 piece
//! of a photograph, and where there is ink at all, the photograph's colour is inverted.

use std::path::{Path, PathBuf};

use image::RgbImage;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::super::{Domain, Half, SIDE, mnist};
use super::invert;
use crate::Error;
use crate::idx::Idx;
use crate::picture::{entries, is_picture, open};

/// What MNIST-M is made from, and where it goes.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The folder with the files of MNIST.
    pub mnist: PathBuf,
    /// The folder with photographs, PNG or JPEG; subfolders are searched too.
    pub photographs: PathBuf,
    /// The folder that the files of MNIST-M are written to.
    pub output: PathBuf,
    /// The half to make, training or test.
    pub half: Half,
    /// How many images, the first ones of MNIST. Left out: all.
    pub samples: Option<usize>,
    /// The seed from which the pieces of photographs are drawn.
    pub seed: u64,
}

/// Where the piece behind a digit is taken from, as fractions of 2³².
struct Piece {
    digit: usize,
    across: u32,
    down: u32,
}

/// Makes one half of MNIST-M and writes its two files, both or neither. Image i is MNIST's image i.
///
/// `progress` hears how many photographs are done, and of how many.
///
/// # Errors
/// When MNIST or a photograph cannot be read, a photograph is too small, or the files cannot be
/// written.
pub fn build(recipe: &Recipe, mut progress: impl FnMut(usize, usize)) -> Result<(), Error> {
    let photographs = photographs(&recipe.photographs)?;
    let read = mnist::files(recipe.half).read(&recipe.mnist)?;
    let count = recipe.samples.map_or(read.labels.len(), |most| most.min(read.labels.len()));
    if count == 0 {
        return Err(Error::setting("samples", "at least one image must be made"));
    }

    // By photograph, so that each is read once and only one is in memory.
    let mut pieces: Vec<Vec<Piece>> = photographs.iter().map(|_| Vec::new()).collect();
    for digit in 0..count {
        let mut rng = generator(recipe.seed, recipe.half, digit as u64);
        let photograph = scaled(rng.next_u32(), photographs.len());
        let (across, down) = (rng.next_u32(), rng.next_u32());
        pieces[photograph].push(Piece { digit, across, down });
    }
    const PIXELS: usize = SIDE * SIDE;
    let mut images = vec![0; count * PIXELS * 3];
    for (done, (path, pieces)) in photographs.iter().zip(pieces).enumerate() {
        let photograph = open(path)?.into_rgb8();
        let (width, height) = photograph.dimensions();
        if width.min(height) < SIDE as u32 {
            let message = format!("is {height}×{width} pixels, smaller than {SIDE}×{SIDE}");
            return Err(Error::content(path, message).with_hint("remove it, or enlarge it"));
        }
        for piece in pieces {
            let ink = &read.images[piece.digit * PIXELS..][..PIXELS];
            let image = &mut images[piece.digit * PIXELS * 3..][..PIXELS * 3];
            lay_over(&photograph, &piece, ink, image);
        }
        progress(done + 1, photographs.len());
    }

    // The labels were bytes 0 to 9 in MNIST's file, and every digit has one.
    let labels = read.labels[..count].iter().map(|label| label.unwrap_or(0) as u8).collect();
    let images = Idx::new(vec![count as u32, SIDE as u32, SIDE as u32, 3], images)?;
    let labels = Idx::new(vec![count as u32], labels)?;
    let names = Domain::MnistM.file_names(recipe.half).unwrap_or_default();
    let [images_at, labels_at] = names.map(|name| recipe.output.join(name));
    let (images, labels) = (images.prepare(&images_at)?, labels.prepare(&labels_at)?);
    images.publish()?;
    labels.publish()
}

fn lay_over(photograph: &RgbImage, piece: &Piece, ink: &[u8], image: &mut [u8]) {
    let (width, height) = photograph.dimensions();
    let left = scaled(piece.across, width as usize - SIDE + 1);
    let top = scaled(piece.down, height as usize - SIDE + 1);
    let ground = photograph.as_raw();
    for y in 0..SIDE {
        let row = &ground[((top + y) * width as usize + left) * 3..][..SIDE * 3];
        for (at, &value) in row.iter().enumerate() {
            let pixel = y * SIDE + at / 3;
            image[y * SIDE * 3 + at] = invert(value, ink[pixel]);
        }
    }
}

/// A fraction of 2³² as a number from 0 to `end` − 1.
fn scaled(fraction: u32, end: usize) -> usize {
    ((u64::from(fraction) * end as u64) >> 32) as usize
}

/// One generator a digit, so that the first images are the same however many are made.
fn generator(seed: u64, half: Half, digit: u64) -> ChaCha8Rng {
    let mut key = *b"seed....index...stlf mnist-m 1..";
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&digit.to_le_bytes());
    key[31] = half as u8;
    ChaCha8Rng::from_seed(key)
}

/// All pictures of a folder and of those inside it, by name.
fn photographs(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for path in entries(&folder)? {
            // A link to a folder may lead round in a circle.
            if path.is_dir() && !path.is_symlink() {
                waiting.push(path);
            } else if is_picture(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    if found.is_empty() {
        return Err(Error::content(folder, "there are no photographs here")
            .with_hint("any PNG or JPEG pictures of at least 28×28 pixels will do"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;
    use crate::dataset::Values;
    use crate::domains::{Options, load};

    /// Two digits of MNIST, the second all ink, and two photographs.
    fn recipe(folder: &Path) -> Recipe {
        let mut ink = vec![0; 784];
        ink[5] = 1;
        ink.extend([200; 784]);
        let [images, labels] = Domain::Mnist.file_names(Half::Train).unwrap();
        Idx::new(vec![2, 28, 28], ink).unwrap().write_file(&folder.join(images)).unwrap();
        Idx::new(vec![2], vec![3, 9]).unwrap().write_file(&folder.join(labels)).unwrap();
        let photographs = folder.join("photographs");
        std::fs::create_dir_all(photographs.join("more")).unwrap();
        for (name, (width, height)) in [("a.png", (28, 40)), ("more/b.png", (35, 28))] {
            let shade = |x: u32, y: u32| Rgb([x as u8, y as u8, 7]);
            RgbImage::from_fn(width, height, shade).save(photographs.join(name)).unwrap();
        }
        let (mnist, output) = (folder.to_owned(), folder.to_owned());
        Recipe { mnist, photographs, output, half: Half::Train, samples: None, seed: 1 }
    }

    #[test]
    fn ink_inverts_the_photograph() {
        let folder = tempfile::tempdir().unwrap();
        let recipe = recipe(folder.path());
        let mut heard = Vec::new();
        build(&recipe, |done, of| heard.push((done, of))).unwrap();
        assert_eq!(heard, [(1, 2), (2, 2)]);
        let options = Options { folder: Some(folder.path().to_owned()), ..Options::default() };
        let set = load(&[Domain::MnistM], &options).unwrap();
        assert_eq!((set.label(0), set.label(1)), (Some(3), Some(9)));
        let Values::Pixels(pixels) = set.values() else { panic!("pixels") };
        let (first, second) = pixels.split_at(3 * 784);
        let blue = &first[2 * 784..];
        assert!((0..784).all(|at| blue[at] == if at == 5 { 248 } else { 7 }));
        assert!(second[2 * 784..].iter().all(|&p| p == 248));
        // Neighbours in the photograph are neighbours in the image.
        assert_eq!(first[1], first[0] + 1);
        assert_eq!(first[784 + 28], first[784] + 1);
        assert_eq!(second[1], second[0] - 1);
    }

    #[test]
    fn the_same_seed_makes_the_same_files_and_errors_leave_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut recipe = recipe(folder.path());
        let names = Domain::MnistM.file_names(Half::Train).unwrap();
        let bytes = |recipe: &Recipe| {
            build(recipe, |_, _| {}).unwrap();
            let read = |name: &String| std::fs::read(folder.path().join(name)).unwrap();
            names.iter().map(read).collect::<Vec<_>>()
        };
        assert_eq!(bytes(&recipe), bytes(&recipe));
        let one = bytes(&recipe);
        recipe.seed = 2;
        assert_ne!(bytes(&recipe), one);

        recipe.output = folder.path().join("elsewhere");
        std::fs::create_dir(&recipe.output).unwrap();
        let small = recipe.photographs.join("small.png");
        RgbImage::new(27, 99).save(&small).unwrap();
        let error = build(&recipe, |_, _| {}).unwrap_err();
        assert!(error.to_string().ends_with("small.png: is 99×27 pixels, smaller than 28×28"));
        std::fs::write(&small, "no picture").unwrap();
        assert!(build(&recipe, |_, _| {}).unwrap_err().to_string().contains("cannot be read"));
        assert_eq!(std::fs::read_dir(&recipe.output).unwrap().count(), 0);
        recipe.photographs = recipe.output.clone();
        let error = build(&recipe, |_, _| {}).unwrap_err();
        assert!(error.to_string().ends_with("elsewhere: there are no photographs here"));
    }
}
