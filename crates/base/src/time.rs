//! Time as a value: the driver reads the clocks once for many commands and
//! hands the result in; nothing below it ever looks at a clock.

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Microseconds since an arbitrary start; never goes back.
    pub mono_us: u64,
    /// Microseconds since the Unix epoch; may jump.
    pub unix_us: u64,
}

impl Now {
    /// Milliseconds since the Unix epoch, the unit of expiry times.
    pub fn unix_ms(self) -> u64 {
        self.unix_us / 1000
    }

    /// Seconds since the Unix epoch.
    pub fn unix_s(self) -> u64 {
        self.unix_us / 1_000_000
    }
}
