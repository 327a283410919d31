//! Whatever the bytes, a device that receives them gets a message that it would send itself, or a reason to refuse.
#![no_main]

use libfuzzer_sys::fuzz_target;
use stlf_protocol::wire::Envelope;

fuzz_target!(|bytes: &[u8]| {
    match Envelope::read(bytes) {
        Ok(envelope) => assert_eq!(Envelope::read(&envelope.to_bytes()), Ok(envelope)),
        Err(malformed) => assert!(!malformed.to_string().is_empty()),
    }
});
