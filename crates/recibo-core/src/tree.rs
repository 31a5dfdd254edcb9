//! The Merkle tree of RFC 6962 (section 2.1): leaf and node hashes, and the frontier from
//! which a log grows without holding its leaves.

use crate::hash::sha256;

/// A hash of a leaf, of a node or of the whole tree.
pub type Hash = [u8; 32];

/// Every how many levels a finished subtree is reported by [`Frontier::push`]: storing one
/// level in eight costs 1/255 of the leaves and leaves at most 255 hashes to any node.
pub const STORED_LEVEL_STEP: u32 = 8;

/// The hash of a leaf: SHA-256(0x00 || line), the line without its line feed.
pub fn leaf_hash(line: &[u8]) -> Hash {
    sha256(&[&[0], line])
}

/// The hash of a node: SHA-256(0x01 || left || right).
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    sha256(&[&[1], left, right])
}

/// The root of a tree over these leaf hashes, computed as the specification defines it. For
/// checkers and tests; a log grows by its [`Frontier`].
pub fn root_of(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => sha256(&[]),
        [leaf] => *leaf,
        _ => {
            // The largest power of two below the number of leaves.
            let split = leaves.len().next_power_of_two() / 2;
            node_hash(&root_of(&leaves[..split]), &root_of(&leaves[split..]))
        }
    }
}

/// Stored parts that are no frontier: a tree of `size` leaves has one node for each binary
/// one of its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a tree of {size} leaves has {} frontier nodes, not {nodes}", size.count_ones())]
pub struct FrontierError {
    /// The number of leaves.
    pub size: u64,
    /// The number of nodes given.
    pub nodes: usize,
}

/// The roots of the complete subtrees that a tree consists of, the largest (leftmost)
/// first: all that is needed to append a leaf and to know the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    nodes: Vec<Hash>,
}

impl Frontier {
    /// The frontier of the empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// The frontier of a stored tree: its number of leaves, and its nodes from left to right.
    ///
    /// # Errors
    /// If there are not as many nodes as the size has binary ones.
    pub fn from_parts(size: u64, nodes: Vec<Hash>) -> Result<Self, FrontierError> {
        if nodes.len() != size.count_ones() as usize {
            return Err(FrontierError { size, nodes: nodes.len() });
        }
        Ok(Self { size, nodes })
    }

    /// The number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The nodes from left to right, the largest subtree first.
    pub fn nodes(&self) -> &[Hash] {
        &self.nodes
    }

    /// Appends a leaf hash. `on_node(level, index, hash)` is called for every complete
    /// subtree that this leaf finishes and whose level (8, 16, 24 ...) is worth storing; a
    /// node of level `l` and index `i` spans the leaves `i << l .. (i + 1) << l`.
    ///
    /// # Panics
    /// At 2^64 - 1 leaves, which no ledger reaches.
    pub fn push(&mut self, leaf: Hash, mut on_node: impl FnMut(u32, u64, Hash)) {
        let merges = self.size.trailing_ones();
        self.size = self.size.checked_add(1).expect("a log has fewer than 2^64 leaves");
        let mut hash = leaf;
        for level in 1..=merges {
            let left = self.nodes.pop().expect("one node for each binary one of the size");
            hash = node_hash(&left, &hash);
            if level % STORED_LEVEL_STEP == 0 {
                on_node(level, (self.size >> level) - 1, hash);
            }
        }
        self.nodes.push(hash);
    }

    /// The root hash of the tree; of the empty tree SHA-256 of nothing.
    pub fn root(&self) -> Hash {
        let mut nodes = self.nodes.iter().rev();
        let Some(last) = nodes.next() else {
            return sha256(&[]);
        };
        nodes.fold(*last, |right, left| node_hash(left, &right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(n: u64) -> Vec<Hash> {
        (0..n).map(|i| leaf_hash(&i.to_be_bytes())).collect()
    }

    #[test]
    fn a_growing_frontier_has_the_root_of_the_specification() {
        let all = leaves(300);
        let mut frontier = Frontier::new();
        assert_eq!(frontier.root(), root_of(&[]));
        for (i, leaf) in all.iter().enumerate() {
            frontier.push(*leaf, |_, _, _| {});
            assert_eq!(frontier.root(), root_of(&all[..=i]), "{i}");
            let again = Frontier::from_parts(frontier.size(), frontier.nodes().to_vec());
            assert_eq!(again.as_ref(), Ok(&frontier));
        }
    }

    #[test]
    fn finished_subtrees_of_every_eighth_level_are_reported() {
        let all = leaves((1 << 16) + 300);
        let mut frontier = Frontier::new();
        let mut seen = Vec::new();
        for leaf in &all {
            frontier.push(*leaf, |level, index, hash| seen.push((level, index, hash)));
        }
        assert_eq!(seen.iter().filter(|node| node.0 == 8).count(), 257);
        assert_eq!(seen.iter().filter(|node| node.0 == 16).count(), 1);
        for (level, index, hash) in seen {
            let span = (index as usize) << level..(index as usize + 1) << level;
            assert_eq!(hash, root_of(&all[span]), "level {level}, index {index}");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        assert!(Frontier::from_parts(0, vec![]).is_ok());
        for (size, nodes) in [(0, 1), (1, 0), (3, 1), (4, 2), (u64::MAX, 63)] {
            let refused = Frontier::from_parts(size, vec![[0; 32]; nodes]);
            assert_eq!(refused, Err(FrontierError { size, nodes }));
        }
    }
}
