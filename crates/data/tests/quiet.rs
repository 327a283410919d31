//! What a library's panic leaves behind. Alone in its program: the hook is that of the whole program.

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
    assert_eq!(TRACES.load(Ordering::Relaxed), 0);
    assert!(std::panic::catch_unwind(|| panic!("one of ours")).is_err());
    assert_eq!(TRACES.load(Ordering::Relaxed), 1);
}
