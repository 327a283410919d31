//! Who a device is: a key that it alone holds, and what others know it by.

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

/// A secret key. Whoever has it is the device.
#[derive(Clone)]
pub struct Identity {
    key: SigningKey,
}

impl Identity {
    /// Makes one from 32 random bytes.
    pub fn from_bytes(secret: &[u8; 32]) -> Identity {
        Identity { key: SigningKey::from_bytes(secret) }
    }

    /// The secret, to be kept where nobody else reads.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.key.to_bytes()
    }

    /// Returns what others know it by.
    pub fn id(&self) -> PeerId {
        PeerId(self.key.verifying_key().to_bytes())
    }

    /// Signs bytes for a purpose; a signature for one is none for another.
    pub fn sign(&self, purpose: &str, bytes: &[u8]) -> Vec<u8> {
        self.key.sign(&with_purpose(purpose, bytes)).to_bytes().to_vec()
    }

    /// A key for a purpose that nobody can know who has not this one.
    pub fn secret_key(&self, purpose: &str) -> [u8; 32] {
        // Ed25519's signatures are deterministic and need the key.
        Sha256::digest(self.sign(purpose, &[])).into()
    }
}

/// Never the secret.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Identity").field(&self.id()).finish()
    }
}

/// A public key, by which all others know a device or an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId([u8; 32]);

impl PeerId {
    /// Makes one from its bytes, which need not be a key of anybody.
    pub fn from_bytes(bytes: [u8; 32]) -> PeerId {
        PeerId(bytes)
    }

    /// Returns the 32 bytes of the key.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns whether this is its signature of these bytes for this purpose.
    pub fn has_signed(&self, purpose: &str, bytes: &[u8], signature: &[u8]) -> bool {
        let Ok(key) = VerifyingKey::from_bytes(&self.0) else { return false };
        let Ok(signature) = Signature::from_slice(signature) else { return false };
        key.verify_strict(&with_purpose(purpose, bytes), &signature).is_ok()
    }
}

fn with_purpose(purpose: &str, bytes: &[u8]) -> Vec<u8> {
    [purpose.as_bytes(), b"\0", bytes].concat()
}

impl std::fmt::Display for PeerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl std::str::FromStr for PeerId {
    type Err = String;

    fn from_str(text: &str) -> Result<PeerId, String> {
        let bytes = unhex(text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(PeerId).ok_or_else(|| "a key is 64 hexadecimal digits".to_owned())
    }
}

impl Serialize for PeerId {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PeerId {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<PeerId, D::Error> {
        let text = String::deserialize(input)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Writes bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads hexadecimal digits; `None` if these are none.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2))?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_of_one_key_one_purpose_and_these_bytes() {
        let (a, b) = (Identity::from_bytes(&[1; 32]), Identity::from_bytes(&[2; 32]));
        let signature = a.sign("plan", b"bytes");
        assert!(a.id().has_signed("plan", b"bytes", &signature));
        assert!(!b.id().has_signed("plan", b"bytes", &signature));
        assert!(!a.id().has_signed("roster", b"bytes", &signature));
        assert!(!a.id().has_signed("plan", b"bytez", &signature));
        assert!(!a.id().has_signed("plan", b"bytes", &signature[1..]));
        assert!(!PeerId([7; 32]).has_signed("plan", b"bytes", &signature));
    }

    #[test]
    fn ids_are_written_and_read() {
        let id = Identity::from_bytes(&[3; 32]).id();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.to_string().len(), 64);
        for wrong in ["", "ab", "zz", &"0".repeat(63)] {
            assert!(wrong.parse::<PeerId>().is_err());
        }
        let secret = format!("{:?}", Identity::from_bytes(&[3; 32]));
        assert!(!secret.contains(&hex(&[3; 32])));
    }
}
