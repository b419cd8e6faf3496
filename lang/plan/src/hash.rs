//! Content hashes: equal content, equal hash, on every machine.

use std::fmt;
use std::io::BufWriter;

use serde::{Deserialize, Serialize};

/// A BLAKE3 digest in hexadecimal, shortened to 32 digits (128 bits).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    /// The hash of a value's JSON. Types of this crate hold no maps with unstable order, so the JSON is stable.
    pub fn of(value: &impl Serialize) -> Self {
        // JSON comes in pieces of a few bytes; a hasher is faster with more at once.
        let mut buffered = BufWriter::with_capacity(8_192, blake3::Hasher::new());
        // Writing to a hasher can't fail, and the plan's types have only string keys and finite numbers; a value that
        // serde refuses hashes as its error, which still differs from every valid value.
        let refused = serde_json::to_writer(&mut buffered, value).err().map(|error| error.to_string());
        let mut hasher = match buffered.into_inner() {
            Ok(hasher) => hasher,
            Err(error) => error.into_parts().1.into_parts().0,
        };
        if let Some(error) = refused {
            hasher.update(error.as_bytes());
        }
        Self::from_digest(&hasher)
    }

    /// The hash of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(bytes);
        Self::from_digest(&hasher)
    }

    fn from_digest(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize().to_hex().as_str()[..32].to_owned())
    }

    /// The hexadecimal digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first twelve digits, enough for names of images and databases.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
