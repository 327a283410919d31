//! As much of the encoding of Protocol Buffers as ONNX needs.

/// A message under construction. Fields are written in the order of the calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A field of bytes, of text, or of packed numbers.
    pub(super) fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds a field of text.
    pub(super) fn text(&mut self, field: u32, text: &str) -> &mut Message {
        self.bytes(field, text.as_bytes())
    }

    /// Adds a field that is a message.
    pub(super) fn message(&mut self, field: u32, message: &Message) -> &mut Message {
        self.bytes(field, &message.0)
    }

    /// Adds a field that is a whole number.
    pub(super) fn number(&mut self, field: u32, value: i64) -> &mut Message {
        self.varint(u64::from(field) << 3);
        // Negative numbers are written as the two's complement of 64 bits.
        self.varint(value as u64);
        self
    }

    /// Returns the bytes that were written.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of the encoding's specification.
    #[test]
    fn fields_are_written_as_specified() {
        let mut message = Message::default();
        message.number(1, 150);
        assert_eq!(message.0, [0x08, 0x96, 0x01]);
        let mut text = Message::default();
        text.text(2, "testing");
        assert_eq!(text.0, [0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
        let mut outer = Message::default();
        outer.message(3, &message);
        assert_eq!(outer.into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut negative = Message::default();
        negative.number(1, -2);
        assert_eq!(negative.0[1..], [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
    }
}
