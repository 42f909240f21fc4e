//! Counters, each declared in one place: what it counts, and its names in INFO and in the metrics.

/// A counter or gauge of a `T`.
#[derive(Debug)]
pub struct Figure<T> {
    /// The name in INFO.
    pub info: &'static str,
    /// The name of the metric, if there is one. A name that ends in `_total` is a counter.
    pub metric: Option<&'static str>,
    /// What it counts.
    pub help: &'static str,
    pub read: fn(&T) -> u64,
}

/// Declares a structure of counters, with `FIGURES`, a list of them in the order of declaration, and
/// `add`, which adds those of another worker.
#[macro_export]
macro_rules! figures {
    ($(#[$doc:meta])* $vis:vis struct $name:ident {
        $($field:ident($info:literal $(, $metric:literal)?): $help:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $name {
            $(#[doc = $help] $vis $field: u64,)*
        }

        impl $name {
            $vis const FIGURES: &[$crate::figures::Figure<Self>] = &[$($crate::figures::Figure {
                info: $info,
                metric: $crate::figures!(@metric $($metric)?),
                help: $help,
                read: |figures| figures.$field,
            }),*];

            /// Adds the counters of another worker of the same node.
            $vis fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
    (@metric $metric:literal) => { Some($metric) };
    (@metric) => { None };
}

#[cfg(test)]
mod tests {
    crate::figures! {
        /// Of a door.
        struct Door {
            opened("door_opened", "door_opened_total"): "Times that it was opened.";
            bells("door_bells"): "Bells.";
        }
    }

    #[test]
    fn what_is_declared_is_listed_and_added() {
        let mut sum = Door {
            opened: 1,
            bells: 2,
        };
        sum.add(&Door {
            opened: 10,
            bells: 20,
        });
        let list: Vec<_> = Door::FIGURES
            .iter()
            .map(|figure| (figure.info, figure.metric, figure.help, (figure.read)(&sum)))
            .collect();
        let opened = Some("door_opened_total");
        assert_eq!(
            list,
            [
                ("door_opened", opened, "Times that it was opened.", 11),
                ("door_bells", None, "Bells.", 22)
            ]
        );
    }
}
