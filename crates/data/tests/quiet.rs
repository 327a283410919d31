//! What a library's panic leaves behind. Alone in its program, and one test: the hook is that of the whole program.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicUsize, Ordering};

use stlf_data::quiet::caught;

static TRACES: AtomicUsize = AtomicUsize::new(0);

#[test]
#[allow(clippy::panic, reason = "panics are what is tested")]
fn a_librarys_panic_is_an_answer_and_leaves_no_trace() {
    std::panic::set_hook(Box::new(|_| {
        TRACES.fetch_add(1, Ordering::Relaxed);
    }));
    assert_eq!(caught(|| 1), Some(1));
    assert_eq!(caught(|| -> i32 { panic!("an assertion of a library's") }), None);
    #[cfg(feature = "parquet")]
    assert!(
        corrupt_files_that_make_the_reader_panic() > 0,
        "none of these files needs to be caught"
    );
    assert_eq!(TRACES.load(Ordering::Relaxed), 0);
    assert!(std::panic::catch_unwind(|| panic!("one of ours")).is_err());
    assert_eq!(TRACES.load(Ordering::Relaxed), 1);
}

/// Reads a good table once for each of its bytes, with that byte changed; how often the library panicked.
#[cfg(feature = "parquet")]
fn corrupt_files_that_make_the_reader_panic() -> usize {
    use std::path::Path;
    use std::sync::Arc;

    use parquet::data_type::DoubleType;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use stlf_data::features::{Options, read_parquet};

    let schema = "message m { optional double label; optional double x; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut bytes, schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for values in [[0.0, 1.0, 0.0], [1.5, 2.5, 3.5]] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&values, Some(&[1, 1, 1]), None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let panics = |at: usize, byte: u8| {
        let mut changed = bytes.clone();
        changed[at] = byte;
        let read = read_parquet(changed, Path::new("t.parquet"), &Options::default());
        read.is_err_and(|e| e.to_string().ends_with("it is corrupt"))
    };
    let changes = |at| [0x00, 0x7f, 0xff, bytes[at] ^ 1, bytes[at] ^ 0x10].map(|byte| (at, byte));
    (0..bytes.len()).flat_map(changes).filter(|&(at, byte)| panics(at, byte)).count()
}
