//! Checks every invariant of the tree, computed from its leaves: tests call this after each step.

use super::node::{INNER_HEAP, Inner, Node};
use super::{FAN, Seq};

impl Seq {
    /// Panics unless every invariant holds. This visits everything.
    pub fn check(&self) {
        match &self.root {
            Node::Empty => assert_eq!(self.len, 0),
            Node::Inner(inner) => assert!(inner.len > 1, "a root with a single child"),
            Node::Leaf(_) => {}
        }
        let height = self.root.height();
        let (count, heap) = check_node(&self.root, height);
        assert_eq!(count, self.len, "items");
        assert_eq!(heap, self.bytes(), "bytes");
    }
}

/// The items and bytes of a subtree whose leaves must lie `height` levels below.
fn check_node(node: &Node, height: usize) -> (usize, usize) {
    match node {
        Node::Empty => (0, 0),
        Node::Leaf(leaf) => {
            assert_eq!(height, 0, "a leaf above others");
            leaf.check();
            (leaf.count(), leaf.heap())
        }
        Node::Inner(inner) => {
            assert!(height > 0, "an inner node among leaves");
            check_inner(inner, height)
        }
    }
}

fn check_inner(inner: &Inner, height: usize) -> (usize, usize) {
    assert!((1..=FAN).contains(&inner.len), "{} children", inner.len);
    let (mut items, mut bytes) = (0, INNER_HEAP);
    for child in 0..inner.len {
        let kid = &inner.kids[child];
        let (count, heap) = check_node(kid, height - 1);
        assert!(count > 0, "an empty child");
        assert_eq!(count, inner.counts[child], "items of a child");
        assert_eq!(
            super::node::key_of(kid.first()),
            inner.keys[child],
            "key of a child"
        );
        items += count;
        bytes += heap;
    }
    assert!(
        inner.kids[inner.len..]
            .iter()
            .all(|kid| matches!(kid, Node::Empty)),
        "a child behind the last"
    );
    assert_eq!(bytes, inner.heap, "bytes of a subtree");
    (items, bytes)
}
