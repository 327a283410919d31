//! Libraries that panic where they should return an error: caught, and without a word.

use std::cell::Cell;
use std::panic::{UnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// The result of `work`, which reads what may be corrupt; `None` where it panicked. The panic leaves no
/// trace on standard error, while those of other threads do as before.
pub fn caught<T>(work: impl FnOnce() -> T + UnwindSafe) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    let was = QUIET.replace(true);
    let result = catch_unwind(work).ok();
    QUIET.set(was);
    result
}
