//! Declarations that several types have in common, as items of their `impl`s: how states of one form are
//! kept, and the one operation of types that merge.

/// Declares the operations of a type as an enum `Op`, and their kinds as an enum `Kind`. A row is a variant, its
/// phase and the operation as documentation writes it.
macro_rules! operations {
    (
        $(#[$meta:meta])*
        $vis:vis enum Op $(<$life:lifetime>)? {
            $($(#[$doc:meta])* $name:ident $({ $($field:ident: $of:ty),+ })? $(($($arg:ty),+))? = $phase:ident $text:literal),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis enum Op $(<$life>)? {
            $($(#[$doc])* $name $({ $($field: $of),+ })? $(($($arg),+))?,)+
        }

        impl $(<$life>)? $crate::algebra::Operation for Op $(<$life>)? {
            type Kind = Kind;

            #[inline]
            fn kind(&self) -> Kind {
                match self {
                    $(Op::$name { .. } => Kind::$name,)+
                }
            }
        }

        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum Kind {
            $($name,)+
        }

        impl $crate::algebra::Kind for Kind {
            const ALL: &'static [(Kind, &'static str)] = &[$((Kind::$name, $text)),+];

            #[inline]
            fn phase(self) -> $crate::algebra::Phase {
                match self {
                    $(Kind::$name => $crate::algebra::Phase::$phase,)+
                }
            }
        }
    };
}

/// Declares rules, each for a pair of kinds: what holds, or text and condition.
macro_rules! rules {
    ($vis:vis static $name:ident of $ty:ty: $($one:ident, $other:ident: $when:expr $(, $holds:expr)?;)+) => {
        $vis static $name: &[Rule<$ty>] = &[$(Rule {
            pair: (Kind::$one, Kind::$other),
            when: rules!(@ $when $(, $holds)?),
        }),+];
    };
    (@ $when:expr) => { $when };
    (@ $text:expr, $holds:expr) => { When::If { text: $text, holds: $holds } };
}

operations! {
    /// Operations of a type that replicas merge.
    #[derive(Clone, Copy, Debug)]
    pub enum Op<'a> {
        /// `delta` is an encoded state.
        Merge { delta: &'a [u8] } = Add "merge(x)",
    }
}

/// Items of [`crate::algebra::Algebra`]: a merge is the one operation and answers nothing.
macro_rules! merge_alone {
    () => {
        type Op<'a> = Op<'a>;
        type Kind = Kind;
        type Reply = ();

        fn execute(_: Self::View<'_>, _: &Op<'_>) {}

        fn rules() -> &'static [Rule<Self>] {
            &[Rule {
                pair: (Kind::Merge, Kind::Merge),
                when: When::Always,
            }]
        }
    };
}

/// Items of [`crate::algebra::DataType`]: a merge's bytes are those of its delta, which `check` tries.
macro_rules! merge_coded {
    ($check:expr) => {
        fn encode(Op::Merge { delta }: &Op<'_>, out: &mut Vec<u8>) {
            pack::push(out, delta);
        }

        fn decode<'a>(from: &mut &'a [u8]) -> Result<Op<'a>, Corrupt> {
            let mut rest = *from;
            let delta = table::take(&mut rest)?;
            $check(delta).map_err(|_| Corrupt)?;
            *from = rest;
            Ok(Op::Merge { delta })
        }
    };
}

/// Items of [`crate::algebra::DataType`]: a state is either packed or the large form, whose bytes on the
/// heap `heap` counts.
macro_rules! packed_or_large {
    ($heap:expr) => {
        fn from_packed(bytes: Vec<u8>) -> State {
            State::Packed(bytes)
        }

        fn packed(state: &State) -> Option<&[u8]> {
            match state {
                State::Packed(bytes) => Some(bytes),
                State::Large(_) => None,
            }
        }

        fn into_buffer(state: State) -> Option<Vec<u8>> {
            match state {
                State::Packed(bytes) => Some(bytes),
                State::Large(_) => None,
            }
        }

        fn heap_bytes(state: &State) -> usize {
            match state {
                State::Packed(_) => 0,
                State::Large(large) => $heap(large),
            }
        }
    };
}

/// Items of [`crate::algebra::DataType`]: a state is its packed bytes, none for a missing key.
macro_rules! packed_alone {
    () => {
        fn packed_view(bytes: &[u8]) -> &[u8] {
            bytes
        }

        fn from_packed(bytes: Vec<u8>) -> Vec<u8> {
            bytes
        }

        fn packed(state: &Vec<u8>) -> Option<&[u8]> {
            Some(state)
        }

        fn into_buffer(state: Vec<u8>) -> Option<Vec<u8>> {
            Some(state)
        }

        fn is_empty(view: &[u8]) -> bool {
            view.is_empty()
        }

        fn heap_bytes(_: &Vec<u8>) -> usize {
            0
        }

        fn chunk(view: &[u8], _: u64, _: usize, out: &mut Vec<u8>) -> Option<u64> {
            out.extend_from_slice(view);
            None
        }
    };
}

/// Items of [`crate::algebra::DataType`]: a state is a [`crate::table::Table`], of this shape.
macro_rules! in_table {
    ($shape:expr) => {
        fn packed_view(bytes: &[u8]) -> View<'_> {
            View::Packed(Pack(bytes))
        }

        fn from_packed(bytes: Vec<u8>) -> State {
            Table::Packed(bytes)
        }

        fn packed(state: &State) -> Option<&[u8]> {
            state.packed()
        }

        fn into_buffer(state: State) -> Option<Vec<u8>> {
            state.into_buffer()
        }

        fn is_empty(view: View<'_>) -> bool {
            view.is_empty()
        }

        fn len(view: View<'_>) -> usize {
            view.len()
        }

        fn heap_bytes(state: &State) -> usize {
            state.heap_bytes()
        }

        fn own_bytes(state: &State) -> usize {
            state.own_bytes()
        }

        fn chunk(view: View<'_>, at: u64, budget: usize, out: &mut Vec<u8>) -> Option<u64> {
            view.chunk(at, budget, out)
        }

        fn extend(state: &mut State, chunk: &[u8], tuning: &Tuning) -> Result<(), Corrupt> {
            state.extend(chunk, &$shape(tuning))
        }
    };
}

pub(crate) use {
    in_table, merge_alone, merge_coded, operations, packed_alone, packed_or_large, rules,
};
