//! Whether the log has the marks of chains that were written last: what a node reports of its copies
//! must outlive it.

/// See the module's description.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// Some were written since the log was last looked at.
    are_new: bool,
    /// The frame that has the others, until it is logged.
    frame: Option<u64>,
}

impl Marks {
    pub(super) fn on_mark(&mut self) {
        self.are_new = true;
    }

    /// The log has committed this position; `open` is that of the open frame.
    pub(super) fn on_log(&mut self, open: u64, logged: u64) {
        if std::mem::take(&mut self.are_new) {
            self.frame = Some(open);
        }
        self.frame = self.frame.filter(|frame| *frame > logged);
    }

    pub(super) fn are_logged(self) -> bool {
        !self.are_new && self.frame.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_logged_with_their_frame() {
        let mut marks = Marks::default();
        assert!(marks.are_logged());
        marks.on_mark();
        assert!(!marks.are_logged());
        marks.on_log(7, 5);
        assert!(!marks.are_logged());
        marks.on_log(8, 6);
        assert!(!marks.are_logged());
        marks.on_mark();
        marks.on_log(9, 7);
        assert!(!marks.are_logged(), "there are later ones");
        marks.on_log(10, 9);
        assert!(marks.are_logged());
    }
}
