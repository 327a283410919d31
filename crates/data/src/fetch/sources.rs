//! Every file that can be downloaded, where it lies, and its checksum.
//!
//! MNIST's checksums are those of the original distribution. USPS's are those that torchvision
//! checks; LIBSVM's pixels are a smoother rendering than that of other copies of USPS, so results on
//! the two differ. MNIST-M is a copy of keras_mnistm whose maintainer publishes the checksums.

use crate::domains::{Domain, Half};

/// A file that can be downloaded, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name of the file, in the data folder and at every mirror.
    pub file: String,
    /// The size of the file in bytes, where it is known.
    pub bytes: Option<u64>,
    /// The digest that its content must have.
    pub checksum: Checksum,
    /// Folders that hold it, in the order in which they are tried; each ends in a slash.
    pub mirrors: Vec<String>,
    /// The half that it holds all of: an archive to convert. Left out: a file as it is used.
    pub archive_of: Option<Half>,
}

/// The digest that a file must have, and how it is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// A SHA-256 hash in hexadecimal digits.
    Sha256(&'static str),
    /// MD5, where nothing better is published: against broken transfers, not against malice.
    Md5(&'static str),
}

const MNIST: [&str; 2] = [
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
];
const LIBSVM: [&str; 1] = ["https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"];
const MNIST_M: [&str; 1] = ["https://github.com/liyxi/mnist-m/releases/download/data/"];

/// The files of a domain; none for one that is drawn.
pub fn sources(domain: Domain) -> Vec<Source> {
    let whole = |file: &str, bytes: u64, sha256: &'static str| Source {
        file: file.to_owned(),
        bytes: Some(bytes),
        checksum: Checksum::Sha256(sha256),
        mirrors: MNIST.map(str::to_owned).to_vec(),
        archive_of: None,
    };
    let archive = |half: Half, file: &str, md5: &'static str, mirrors: &[&str]| Source {
        file: file.to_owned(),
        bytes: None,
        checksum: Checksum::Md5(md5),
        mirrors: mirrors.iter().map(|&mirror| mirror.to_owned()).collect(),
        archive_of: Some(half),
    };
    match domain {
        Domain::Mnist => vec![
            whole(
                "train-images-idx3-ubyte.gz",
                9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            whole(
                "train-labels-idx1-ubyte.gz",
                28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            whole(
                "t10k-images-idx3-ubyte.gz",
                1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            whole(
                "t10k-labels-idx1-ubyte.gz",
                4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ],
        Domain::Usps => vec![
            archive(Half::Train, "usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197", &LIBSVM),
            archive(Half::Test, "usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118", &LIBSVM),
        ],
        Domain::MnistM => vec![
            archive(
                Half::Train,
                "mnist_m_train.pt.tar.gz",
                "191ed53db9933bd85cc9700558847391",
                &MNIST_M,
            ),
            archive(
                Half::Test,
                "mnist_m_test.pt.tar.gz",
                "e11cb4d7fff76d7ec588b1134907db59",
                &MNIST_M,
            ),
        ],
        Domain::Strokes | Domain::StrokesCoarse | Domain::StrokesTextured => Vec::new(),
    }
}
