//! JSON documents that people can read too.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::Formatter;

/// Writes a document and a line break: the outer levels one item a line, matrices one
/// row a line, everything deeper in one line.
pub fn write_json(out: &mut dyn Write, document: &impl Serialize) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Shallow::default());
    document.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

#[derive(Default)]
struct Shallow {
    depth: usize,
    /// Whether anything stands in the brackets that close next.
    filled: bool,
}

impl Shallow {
    const OBJECTS: usize = 2;
    const ARRAYS: usize = 3;

    fn item<W: ?Sized + Write>(&self, out: &mut W, first: bool, deepest: usize) -> io::Result<()> {
        if self.depth <= deepest {
            out.write_all(if first { b"\n" } else { b",\n" })?;
            self.indent(out, self.depth)
        } else if first {
            Ok(())
        } else {
            out.write_all(b", ")
        }
    }

    fn close<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        bracket: &[u8],
        deepest: usize,
    ) -> io::Result<()> {
        self.depth -= 1;
        if self.filled && self.depth < deepest {
            out.write_all(b"\n")?;
            self.indent(out, self.depth)?;
        }
        self.filled = true;
        out.write_all(bracket)
    }

    fn indent<W: ?Sized + Write>(&self, out: &mut W, depth: usize) -> io::Result<()> {
        (0..depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Shallow {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]", Self::ARRAYS)
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first, Self::ARRAYS)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}", Self::OBJECTS)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first, Self::OBJECTS)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outer_levels_break_and_the_inner_do_not() {
        let value =
            serde_json::json!({"a": {"m": [[1, 2], [3]], "n": {}}, "b": [{"x": 1, "y": []}]});
        let mut text = Vec::new();
        write_json(&mut text, &value).unwrap();
        let expected = "{\n  \"a\": {\n    \"m\": [\n      [1, 2],\n      [3]\n    ],\n    \"n\": {}\n  },\n  \
                        \"b\": [\n    {\"x\": 1, \"y\": []}\n  ]\n}\n";
        assert_eq!(String::from_utf8(text.clone()).unwrap(), expected);
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&text).unwrap(), value);
    }
}
