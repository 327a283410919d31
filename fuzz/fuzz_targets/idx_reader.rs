//! Whatever the bytes, reading IDX ends in an array or an error that says something.
//!
//! Besides the bytes as they are, they are read as the payload of gzip, which a fuzzer would hardly
//! come by itself.
#![no_main]

use std::io::Write;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use stlf_data::idx::Idx;

fuzz_target!(|bytes: &[u8]| {
    let plain = read(bytes);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).expect("a vector takes all");
    let packed = packed.finish().expect("a vector takes all");
    // Gzip in gzip is not unpacked twice.
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        assert_eq!(read(&packed), plain);
    }
});

fn read(bytes: &[u8]) -> Option<Idx> {
    match Idx::read(bytes, Path::new("fuzz")) {
        Ok(array) => {
            let mut again = Vec::new();
            array.write(&mut again).expect("a vector takes all");
            assert_eq!(Idx::read(&again[..], Path::new("fuzz")).ok().as_ref(), Some(&array));
            Some(array)
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}
