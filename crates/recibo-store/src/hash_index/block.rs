//! Bytes of a block, and the filter over one. Knows no tables.

use crate::codec::CodecError;

/// Version byte of blocks and summaries.
pub(super) const VERSION: u8 = 1;
/// Prefix, then value in 48 bits: more events than any disk holds.
const ENTRY_LEN: usize = 8 + 6;
/// A redb page of 4,096 bytes keeps 4,080 for the value of one row with a number as its key;
/// 1 + 291 * 14 = 4,075.
pub(super) const BLOCK_ENTRIES: usize = 291;

/// 49 * 64 / 291 = 10.8 bits per entry: about one false hit in 150 misses. More would not fit
/// ten blocks' summaries into a page.
const FILTER_WORDS: usize = 49;
const FILTER_BITS: u64 = FILTER_WORDS as u64 * 64;
const FILTER_PROBES: u32 = 7;
pub(super) const FILTER_LEN: usize = FILTER_WORDS * 8;

/// Sorted by prefix, then by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) prefix: u64,
    pub(super) value: u64,
}

/// A block being filled.
pub(super) struct BlockBuilder {
    bytes: Vec<u8>,
}

impl BlockBuilder {
    pub(super) fn new() -> Self {
        let mut bytes = Vec::with_capacity(1 + BLOCK_ENTRIES * ENTRY_LEN);
        bytes.push(VERSION);
        Self { bytes }
    }

    pub(super) fn push(&mut self, entry: Entry) {
        assert!(entry.value >> 48 == 0, "2^48 events fill no disk that exists");
        self.bytes.extend_from_slice(&entry.prefix.to_be_bytes());
        self.bytes.extend_from_slice(&entry.value.to_be_bytes()[2..]);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.truncate(1);
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len() / ENTRY_LEN
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The entries of a block, which has at least one.
#[derive(Clone, Copy)]
pub(super) struct Block<'a>(&'a [[u8; ENTRY_LEN]]);

impl<'a> Block<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let broken = CodecError { what: "block of the hash index" };
        match bytes {
            [VERSION, rest @ ..] => match rest.as_chunks::<ENTRY_LEN>() {
                ([], _) => Err(broken),
                (entries, []) => Ok(Self(entries)),
                _ => Err(broken),
            },
            _ => Err(broken),
        }
    }

    pub(super) fn len(self) -> usize {
        self.0.len()
    }

    pub(super) fn get(self, index: usize) -> Option<Entry> {
        self.0.get(index).map(read)
    }

    pub(super) fn last(self) -> Entry {
        read(&self.0[self.0.len() - 1])
    }

    pub(super) fn entries(self) -> impl Iterator<Item = Entry> + 'a {
        self.0.iter().map(read)
    }

    /// Index of the first entry after one.
    pub(super) fn after(self, entry: Entry) -> usize {
        self.0.partition_point(|bytes| read(bytes) <= entry)
    }

    /// The values of a prefix, newest first.
    pub(super) fn values(self, prefix: u64) -> Vec<u64> {
        let from = self.0.partition_point(|bytes| read(bytes).prefix < prefix);
        let same = self.0[from..].iter().map(read).take_while(|entry| entry.prefix == prefix);
        let mut values: Vec<u64> = same.map(|entry| entry.value).collect();
        values.reverse();
        values
    }
}

fn read(bytes: &[u8; ENTRY_LEN]) -> Entry {
    let [a, b, c, d, e, f, g, h, value @ ..] = *bytes;
    let [i, j, k, l, m, n] = value;
    Entry {
        prefix: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        value: u64::from_be_bytes([0, 0, i, j, k, l, m, n]),
    }
}

/// Says of most prefixes that are not in a block that they are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter([u64; FILTER_WORDS]);

impl Filter {
    pub(super) const EMPTY: Self = Self([0; FILTER_WORDS]);

    pub(super) fn add(&mut self, prefix: u64) {
        for (word, bit) in probes(prefix) {
            self.0[word] |= bit;
        }
    }

    pub(super) fn may_hold(&self, prefix: u64) -> bool {
        probes(prefix).all(|(word, bit)| self.0[word] & bit != 0)
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        for word in self.0 {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
    }

    pub(super) fn read(bytes: &[u8; FILTER_LEN]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let mut filter = Self::EMPTY;
        for (word, bytes) in filter.0.iter_mut().zip(words) {
            *word = u64::from_be_bytes(*bytes);
        }
        filter
    }
}

/// Where a prefix leaves its marks. The prefixes of a block share their first bits, so all
/// bits are mixed first.
fn probes(prefix: u64) -> impl Iterator<Item = (usize, u64)> {
    let mixed = (prefix ^ (prefix >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let (start, step) = ((mixed >> 32) as u32, mixed as u32 | 1);
    (0..FILTER_PROBES).map(move |probe| {
        let place = u64::from(start.wrapping_add(probe.wrapping_mul(step)));
        let bit = (place * FILTER_BITS) >> 32;
        ((bit / 64) as usize, 1 << (bit % 64))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_block_fits_into_a_page_and_reads_back() {
        let mut builder = BlockBuilder::new();
        let entries: Vec<Entry> =
            (0..BLOCK_ENTRIES as u64).map(|n| Entry { prefix: n << 40, value: n * 7 }).collect();
        entries.iter().for_each(|entry| builder.push(*entry));
        assert_eq!(builder.len(), BLOCK_ENTRIES);
        assert!(builder.bytes().len() <= 4080);
        let block = Block::parse(builder.bytes()).unwrap();
        assert!(block.entries().eq(entries.iter().copied()));
        assert_eq!(block.values(5 << 40), [35]);
        assert!(block.values(1).is_empty());
    }

    #[test]
    fn damaged_bytes_are_no_block() {
        for bytes in [&[][..], &[VERSION], &[VERSION, 1], &[2; 1 + ENTRY_LEN]] {
            assert!(Block::parse(bytes).is_err());
        }
    }

    #[test]
    fn the_filter_of_a_full_block_misses_nothing_and_rarely_errs() {
        let mixed = |n: u64| 0xABCD << 48 | n.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 16;
        let mut filter = Filter::EMPTY;
        (0..BLOCK_ENTRIES as u64).for_each(|n| filter.add(mixed(n)));
        assert!((0..BLOCK_ENTRIES as u64).all(|n| filter.may_hold(mixed(n))));
        let wrong = (1_000..101_000).filter(|n| filter.may_hold(mixed(*n))).count();
        assert!(wrong < 1_200, "{wrong} of 100,000");
    }
}
