//! The truth log on disk: JSON lines, only ever added to.
//!
//! A provider that is killed finds its things again. Nothing is synced: the machine is not supposed to
//! die, only the process.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use super::truth::Entry;

/// Why a truth log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system says no.
    #[error("cannot open the truth log")]
    Io(#[from] io::Error),
    /// A line in the middle is not an entry.
    #[error("line {line} of the truth log is not an entry")]
    Garbled {
        /// Counted from 1.
        line: usize,
        /// Where the line stops making sense.
        #[source]
        source: serde_json::Error,
    },
}

/// A truth log that is open for writing.
#[derive(Debug)]
pub(super) struct LogFile(File);

impl LogFile {
    /// Opens or makes the file, and reads what it says.
    ///
    /// A last line without an end was being written when its process was killed. Nobody was answered
    /// before the line was whole, so it is cut off.
    pub(super) fn open(path: &Path) -> Result<(Self, Vec<Entry>), ReadError> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let read = |(index, line)| {
            serde_json::from_str(line).map_err(|source| ReadError::Garbled { line: index + 1, source })
        };
        let entries = text[..whole].lines().enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
        // Only what can be the start of an entry is cut off: a file of somebody else stays as it is.
        let rest = &text[whole..];
        if !rest.is_empty() && !rest.starts_with('{') {
            read((entries.len(), rest))?;
        }
        file.set_len(whole as u64)?;
        Ok((Self(file), entries))
    }

    /// Adds one line, in one write, so that a kill leaves at most one line cut short.
    pub(super) fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.0.write_all(&line)
    }
}
