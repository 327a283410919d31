//! One's own pictures: a folder `domain/class/picture.png`.
//!
//! Domains and classes are the folders' names, in alphabetical order; so are the files. A domain
//! need not have every class. Pictures without a class lie in a folder `unlabeled` beside the
//! classes. Files that are not named `.png`, `.jpg` or `.jpeg`, and hidden ones, are passed over.
//! Transparency is dropped.

use std::path::{Path, PathBuf};

use image::imageops::{self, FilterType};

use crate::dataset::Values;
use crate::domains::{Colour, luma};
use crate::picture::{self, entries, is_picture};
use crate::{Class, Dataset, Error, Shape};

/// Names of the folder for pictures without a class.
const UNLABELED: [&str; 2] = ["unlabeled", "_unlabeled"];

/// The options by which the pictures of a folder are read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Rows and columns that every picture is brought to, whatever its proportions. Left out: all
    /// pictures must have one size already.
    pub size: Option<[u32; 2]>,
    /// Grey (ITU-R BT.601) or coloured. Left out: coloured as soon as one picture is.
    pub colour: Option<Colour>,
    /// All classes in their order, where the folder need not have pictures of each. Left out: those that it has.
    pub classes: Option<Vec<String>>,
}

/// A picture and what its place says about it.
struct Sample {
    path: PathBuf,
    domain: usize,
    /// `None` for one without a class.
    class: Option<usize>,
}

/// What a tree of folders holds.
struct Listing {
    domains: Vec<String>,
    classes: Vec<String>,
    /// The samples by domain, class and name, those without a class first.
    samples: Vec<Sample>,
}

/// Reads all pictures of a folder.
///
/// # Errors
/// Names the picture that cannot be read or has another size, or says what the folder lacks.
pub fn load(folder: &Path, options: &Options) -> Result<Dataset, Error> {
    let listing = Listing::new(folder, options.classes.as_deref())?;
    let (size, colour) = common(&listing.samples, options)?;
    let [height, width] = size;
    let channels = match colour {
        Colour::Grey => 1,
        Colour::Rgb => 3,
    };
    let shape = Shape { channels, height: height as usize, width: width as usize };
    let mut joined: Option<Dataset> = None;
    for (number, domain) in listing.domains.into_iter().enumerate() {
        let samples = || listing.samples.iter().filter(|s| s.domain == number);
        let paths: Vec<&Path> = samples().map(|sample| sample.path.as_path()).collect();
        // `Listing` holds the number of classes in bounds.
        let labels = samples().map(|sample| sample.class.map(|class| class as Class)).collect();
        let values = Values::Pixels(read_all(&paths, size, colour)?);
        let set = Dataset::new(domain, shape, values, labels, listing.classes.clone())?;
        joined = Some(match joined {
            Some(all) => all.join(set)?,
            None => set,
        });
    }
    joined.ok_or_else(|| nothing(folder))
}

/// The files of a folder's pictures, in the order of [`load`].
///
/// # Errors
/// Says what the folder lacks.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    Ok(Listing::new(folder, None)?.samples.into_iter().map(|sample| sample.path).collect())
}

/// What a folder of pictures holds, by the names of its folders and the headers of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey {
    /// The names of the domains, in their order.
    pub domains: Vec<String>,
    /// Whether a domain has pictures with a class.
    pub labeled: Vec<bool>,
    /// The names of the classes, in their order.
    pub classes: Vec<String>,
    /// Rows and columns of the pictures, each pair once.
    pub sizes: Vec<[u32; 2]>,
}

/// Looks at a folder of pictures without reading the pictures themselves.
///
/// # Errors
/// Names the picture that cannot be read, or says what the folder lacks.
pub fn survey(folder: &Path) -> Result<Survey, Error> {
    let Listing { domains, classes, samples } = Listing::new(folder, None)?;
    let mut labeled = vec![false; domains.len()];
    let mut sizes = Vec::new();
    for sample in &samples {
        let header = picture::header(&sample.path)?;
        labeled[sample.domain] |= sample.class.is_some();
        let size = [header.height, header.width];
        if !sizes.contains(&size) {
            sizes.push(size);
        }
    }
    Ok(Survey { domains, labeled, classes, sizes })
}

/// Reads pictures of a shape that is known, with the path of each: one picture, those that lie in a folder, or those of folders
/// `domain/class/` inside it, in the order of [`load`]. Those of another size are resized if `resize` says so. Only where classes are given do
/// pictures in folders of these names have labels.
///
/// # Errors
/// Names the picture that cannot be read or has another size, or says what the folder lacks.
pub fn load_with_paths(
    path: &Path,
    shape: Shape,
    resize: bool,
    classes: Option<&[String]>,
) -> Result<(Dataset, Vec<PathBuf>), Error> {
    let colour = match shape.channels {
        1 => Colour::Grey,
        3 => Colour::Rgb,
        channels => {
            let message = format!("pictures have 1 or 3 channels, not {channels}");
            return Err(Error::setting("shape", message));
        }
    };
    let mut paths = match path.is_dir() {
        true => entries(path)?.into_iter().filter(|path| is_picture(path)).collect(),
        false => vec![path.to_owned()],
    };
    let mut labels = vec![None; paths.len()];
    if paths.is_empty() {
        let samples = Listing::new(path, classes)?.samples.into_iter();
        let label = |class: Option<usize>| classes.and(class).map(|class| class as Class);
        (paths, labels) = samples.map(|sample| (sample.path, label(sample.class))).unzip();
    }
    let size = [shape.height as u32, shape.width as u32];
    for path in paths.iter().filter(|_| !resize) {
        let found = picture::header(path)?;
        if [found.height, found.width] != size {
            let (rows, columns) = (found.height, found.width);
            let message = format!("is {rows}×{columns} pixels, expected {}×{}", size[0], size[1]);
            return Err(Error::content(path, message)
                .with_hint("resize it to this size; `stlf predict --resize` does it"));
        }
    }
    let pixels = read_all(&paths, size, colour)?;
    let classes = classes.unwrap_or_default().to_vec();
    let set = Dataset::new("pictures", shape, Values::Pixels(pixels), labels, classes)?;
    Ok((set, paths))
}

impl Listing {
    /// Lists the pictures of a folder, with these classes or with those that there are.
    fn new(folder: &Path, given: Option<&[String]>) -> Result<Listing, Error> {
        let mut domains = Vec::new();
        let mut classes: Vec<String> = Vec::new();
        let mut found: Vec<(PathBuf, usize, Option<String>)> = Vec::new();
        for domain in folders(folder)? {
            let before = found.len();
            for class in folders(&domain)? {
                let name = name(&class)?;
                let name = (!UNLABELED.contains(&name.as_str())).then_some(name);
                let pictures = entries(&class)?.into_iter().filter(|path| is_picture(path));
                let before = found.len();
                found.extend(pictures.map(|path| (path, domains.len(), name.clone())));
                if found.len() > before {
                    classes.extend(name);
                }
            }
            if found.len() == before {
                return Err(Error::content(&domain, "this domain has no pictures")
                    .with_hint("put pictures into domain/class/, as PNG or JPEG"));
            }
            domains.push(name(&domain)?);
        }
        if found.is_empty() {
            return Err(nothing(folder));
        }
        classes.sort();
        classes.dedup();
        if let Some(given) = given {
            if let Some(other) = classes.iter().find(|class| !given.contains(class)) {
                let message = format!("has pictures of {other:?}, which is not a class");
                return Err(Error::content(folder, message)
                    .with_hint(format!("the classes are: {}", given.join(", "))));
            }
            classes = given.to_vec();
        }
        if classes.len().max(domains.len()) > usize::from(Class::MAX) {
            let message = format!("has more than {} classes or domains", Class::MAX);
            return Err(Error::content(folder, message));
        }
        // By the names of classes, so that the order of samples does not depend on that of the classes.
        found.sort_by(|a, b| (a.1, &a.2, &a.0).cmp(&(b.1, &b.2, &b.0)));
        let number = |class: String| classes.iter().position(|known| *known == class);
        let samples = found
            .into_iter()
            .map(|(path, domain, class)| Sample { path, domain, class: class.and_then(number) })
            .collect();
        Ok(Listing { domains, classes, samples })
    }
}

fn nothing(folder: &Path) -> Error {
    Error::content(folder, "there are no pictures here")
        .with_hint("put pictures into domain/class/, as in kitchen/cup/1.png, as PNG or JPEG")
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    Ok(entries(folder)?.into_iter().filter(|path| path.is_dir()).collect())
}

fn name(folder: &Path) -> Result<String, Error> {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned).ok_or_else(|| Error::content(folder, "the name is not UTF-8 text"))
}

/// The size and colour that all pictures get. Reads only their headers.
fn common(samples: &[Sample], options: &Options) -> Result<([u32; 2], Colour), Error> {
    let mut first: Option<(&Path, [u32; 2])> = None;
    let mut colour = Colour::Grey;
    for Sample { path, .. } in samples {
        let header = picture::header(path)?;
        if header.coloured {
            colour = Colour::Rgb;
        }
        let size = [header.height, header.width];
        let (model, wanted) = *first.get_or_insert((path, size));
        if options.size.is_none() && size != wanted {
            let [[rows, columns], [first_rows, first_columns]] = [size, wanted];
            let message = format!(
                "is {rows}×{columns} pixels, but {} is {first_rows}×{first_columns}",
                model.display()
            );
            return Err(Error::content(path, message)
                .with_hint("resize all of them: data.image-size = 28 in a run, --image-size 28 for `stlf data inspect`; `stlf new NAME --images FOLDER` writes it"));
        }
    }
    let found = first.map_or([0, 0], |(_, size)| size);
    let size = options.size.unwrap_or(found);
    if size.contains(&0) {
        let [rows, columns] = size;
        return Err(Error::setting("size", format!("{rows}×{columns} pixels are not a picture")));
    }
    Ok((size, options.colour.unwrap_or(colour)))
}

/// The pixels of all pictures, in their order. Photographs take long to decode and resize, so all processors do it.
fn read_all<P: AsRef<Path> + Sync>(
    paths: &[P],
    size: [u32; 2],
    colour: Colour,
) -> Result<Vec<u8>, Error> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let read_part = |part: &[P]| {
        let mut pixels = Vec::new();
        part.iter().try_for_each(|path| read(path.as_ref(), size, colour, &mut pixels))?;
        Ok(pixels)
    };
    let parts = paths.chunks(paths.len().div_ceil(threads).max(1));
    let parts: Vec<Result<Vec<u8>, Error>> = std::thread::scope(|scope| {
        let started: Vec<_> = parts.map(|part| scope.spawn(|| read_part(part))).collect();
        let panicked = |cause| std::panic::resume_unwind(cause);
        started.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    Ok(parts.into_iter().collect::<Result<Vec<_>, Error>>()?.concat())
}

/// Appends a picture's pixels, channel by channel.
fn read(
    path: &Path,
    [height, width]: [u32; 2],
    colour: Colour,
    pixels: &mut Vec<u8>,
) -> Result<(), Error> {
    let mut picture = picture::open(path)?.into_rgb8();
    if picture.dimensions() != (width, height) {
        picture = imageops::resize(&picture, width, height, FilterType::Triangle);
    }
    match colour {
        Colour::Grey => pixels.extend(picture.pixels().map(|p| luma(p[0], p[1], p[2]))),
        Colour::Rgb => {
            for channel in 0..3 {
                pixels.extend(picture.pixels().map(|p| p[channel]));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use image::{GrayImage, Luma, Rgb, RgbImage};

    use super::*;

    fn grey(folder: &Path, place: &str, [height, width]: [u32; 2], shade: u8) {
        let path = folder.join(place);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        GrayImage::from_pixel(width, height, Luma([shade])).save(path).unwrap();
    }

    fn shades(set: &Dataset) -> Vec<u8> {
        let Values::Pixels(pixels) = set.values() else { panic!("pixels") };
        pixels.iter().step_by(set.shape().len()).copied().collect()
    }

    #[test]
    fn places_give_domains_classes_and_order() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        grey(at, "b/cup/1.png", [2, 3], 10);
        grey(at, "a/spoon/2.PNG", [2, 3], 20);
        grey(at, "a/spoon/1.jpg", [2, 3], 30);
        grey(at, "a/cup/9.jpeg", [2, 3], 40);
        grey(at, "a/unlabeled/0.png", [2, 3], 50);
        std::fs::write(at.join("a/cup/notes.txt"), "not a picture").unwrap();
        std::fs::create_dir(at.join(".cache")).unwrap();
        std::fs::create_dir(at.join("b/empty")).unwrap();
        let set = load(at, &Options::default()).unwrap();
        assert_eq!(set.domains(), ["a", "b"]);
        assert_eq!(set.classes(), ["cup", "spoon"]);
        assert_eq!(set.shape(), Shape { channels: 1, height: 2, width: 3 });
        assert_eq!(shades(&set), [50, 40, 30, 20, 10]);
        let files = files(at).unwrap();
        let named: Vec<_> = files.iter().map(|file| file.strip_prefix(at).unwrap()).collect();
        let [first, .., last] = &named[..] else { panic!("five files") };
        assert_eq!((named.len(), *first), (5, Path::new("a/unlabeled/0.png")));
        assert_eq!(*last, Path::new("b/cup/1.png"));
        let labels: Vec<Option<Class>> = (0..5).map(|i| set.label(i)).collect();
        assert_eq!(labels, [None, Some(0), Some(1), Some(1), Some(0)]);
        assert_eq!((set.domain(3), set.domain(4)), (0, 1));
    }

    #[test]
    fn classes_can_be_given_where_pictures_of_some_are_missing() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        grey(at, "a/unlabeled/1.png", [2, 2], 10);
        let given = ["spoon", "cup"].map(str::to_owned);
        let options = Options { classes: Some(given.to_vec()), ..Options::default() };
        let set = load(at, &options).unwrap();
        assert_eq!((set.classes(), set.label(0)), (&given[..], None));
        // Samples keep their order, whatever the order of the classes.
        grey(at, "a/spoon/1.png", [2, 2], 20);
        grey(at, "a/cup/1.png", [2, 2], 30);
        let set = load(at, &options).unwrap();
        assert_eq!(shades(&set), shades(&load(at, &Options::default()).unwrap()));
        let labels: Vec<Option<Class>> = (0..3).map(|i| set.label(i)).collect();
        assert_eq!(labels, [None, Some(1), Some(0)]);
        grey(at, "a/fork/1.png", [2, 2], 40);
        let error = load(at, &options).unwrap_err();
        assert!(error.to_string().ends_with("has pictures of \"fork\", which is not a class"));
        assert_eq!(error.hint(), Some("the classes are: spoon, cup"));
    }

    #[test]
    fn colour_and_size_are_common_to_all() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        grey(at, "a/x/1.png", [4, 4], 100);
        RgbImage::from_pixel(4, 4, Rgb([255, 0, 0])).save(at.join("a/x/2.png")).unwrap();
        let coloured = load(at, &Options::default()).unwrap();
        let Values::Pixels(pixels) = coloured.values() else { panic!("pixels") };
        assert_eq!(coloured.shape().channels, 3);
        assert_eq!((pixels[0], pixels[47], pixels[48], pixels[64]), (100, 100, 255, 0));
        let small = Options { size: Some([2, 3]), colour: Some(Colour::Grey), classes: None };
        let small = load(at, &small).unwrap();
        assert_eq!(small.shape(), Shape { channels: 1, height: 2, width: 3 });
        assert_eq!(shades(&small), [100, 76]);
    }

    #[test]
    fn pictures_without_classes_are_read_from_a_folder_of_either_kind() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let of = |path: &Path| {
            load_with_paths(path, Shape { channels: 1, height: 2, width: 3 }, false, None)
        };
        for (place, shade) in
            [("b/cup/1.png", 10), ("a/spoon/2.png", 20), ("a/unlabeled/3.png", 30)]
        {
            grey(at, place, [2, 3], shade);
        }
        let (tree, paths) = of(at).unwrap();
        let trained_on = load(at, &Options::default()).unwrap();
        assert_eq!((tree.values(), paths.len()), (trained_on.values(), 3));
        assert!(paths[0].ends_with("a/unlabeled/3.png") && tree.label(1).is_none());
        assert_eq!(shades(&of(&at.join("b/cup")).unwrap().0), [10]);
        assert_eq!(shades(&of(&at.join("b/cup/1.png")).unwrap().0), [10]);
        let coloured =
            load_with_paths(at, Shape { channels: 3, height: 2, width: 3 }, false, None).unwrap().0;
        assert_eq!(coloured.shape().channels, 3);
        let error = load_with_paths(at, Shape::grey(2), false, None).unwrap_err().to_string();
        assert!(error.ends_with("a/unlabeled/3.png: is 2×3 pixels, expected 2×2"), "{error}");
        assert!(matches!(of(&at.join("none")), Err(Error::File { .. })));
        assert!(
            load_with_paths(at, Shape { channels: 2, height: 2, width: 3 }, false, None).is_err()
        );
        let resized = load_with_paths(at, Shape::grey(2), true, None).unwrap().0;
        assert_eq!((resized.shape(), resized.len()), (Shape::grey(2), coloured.len()));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let error = || {
            let error = load(at, &Options::default()).unwrap_err();
            error.to_string().replace(at.to_str().unwrap(), "DIR")
        };
        assert_eq!(error(), "DIR: there are no pictures here");
        std::fs::create_dir_all(at.join("a/x")).unwrap();
        assert_eq!(error(), "DIR/a: this domain has no pictures");
        grey(at, "a/x/1.png", [4, 4], 100);
        grey(at, "a/x/2.png", [4, 5], 100);
        assert_eq!(error(), "DIR/a/x/2.png: is 4×5 pixels, but DIR/a/x/1.png is 4×4");
        std::fs::write(at.join("a/x/0.png"), "no picture").unwrap();
        assert!(error().starts_with("DIR/a/x/0.png: cannot be read as a picture"));
        std::fs::remove_file(at.join("a/x/2.png")).unwrap();
        let whole = std::fs::read(at.join("a/x/1.png")).unwrap();
        std::fs::write(at.join("a/x/0.png"), &whole[..whole.len() - 20]).unwrap();
        assert!(error().starts_with("DIR/a/x/0.png: cannot be read as a picture"));
        let none = Options { size: Some([0, 4]), ..Options::default() };
        std::fs::remove_file(at.join("a/x/0.png")).unwrap();
        let error = load(at, &none).unwrap_err();
        assert_eq!(error.to_string(), "size: 0×4 pixels are not a picture");
        assert!(matches!(load(&at.join("none"), &none), Err(Error::File { .. })));
    }
}
