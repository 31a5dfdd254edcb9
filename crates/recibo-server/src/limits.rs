//! What one client may take from the others: connections, waiting requests, and time.

use std::time::Duration;

/// Connections that are served at most where nobody says another number. Each takes about
/// 20 KiB while it is idle, so these take 320 MiB.
const CONNECTIONS_DEFAULT_MAX: u64 = 16_384;
/// Long polls where nobody says another number. Each looks at its call up to ten times a second
/// while others are written, for about 50 us: 4,096 of them take two cores.
const LONG_POLLS_DEFAULT_MAX: usize = 4_096;
/// Streams where nobody says another number. Each holds up to three pages of 500 calls, about
/// 3 MiB: these take 192 MiB.
const STREAMS_DEFAULT_MAX: usize = 64;

/// Bytes of a request line and its headers. The longest path has two ids of 256 bytes, each
/// byte percent-encoded: 1.5 KiB; the rest is room for what proxies add.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Bytes that are taken in after a body was found too large, so that the client gets to read
/// the answer: as much as the largest body that is good.
pub(crate) const DRAIN_BYTES_MAX: usize = recibo_core::limits::BATCH_BYTES_MAX;
/// How long they may take altogether.
pub(crate) const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a body may go on arriving once the service is asked to stop.
pub(crate) const BODY_TIME_AT_STOP: Duration = Duration::from_secs(1);

/// Limits of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections at the same time.
    pub connections: usize,
    /// Those of one peer address; of IPv6, of one /64 network.
    pub per_address: usize,
    /// Requests that wait for a decision at the same time.
    pub long_polls: usize,
    /// Listings that are sent whole (NDJSON) at the same time.
    pub streams: usize,
    /// How long the head of a request may take to arrive.
    pub head: Duration,
    /// How long a body may take for its next bytes, and a client to take more of an answer.
    pub stall: Duration,
    /// How long a connection stays open without a request.
    pub idle: Duration,
}

impl ConnectionLimits {
    /// The defaults of a process that may open so many descriptors: half of them go to
    /// connections, the other half is for files.
    pub fn for_descriptors(descriptors: u64) -> Self {
        let connections = (descriptors / 2).clamp(1, CONNECTIONS_DEFAULT_MAX);
        let connections = usize::try_from(connections).expect("a clamped number is small");
        Self::for_connections(connections)
    }

    /// The other defaults beside a number of connections.
    pub fn for_connections(connections: usize) -> Self {
        let part = |divisor: usize, max: usize| (connections / divisor).clamp(1, max);
        Self {
            connections,
            per_address: part(2, usize::MAX),
            // Neither alone can take all connections.
            long_polls: part(2, LONG_POLLS_DEFAULT_MAX),
            streams: part(4, STREAMS_DEFAULT_MAX),
            head: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            idle: Duration::from_secs(75),
        }
    }
}

impl Default for ConnectionLimits {
    /// Those of the usual 1024 descriptors.
    fn default() -> Self {
        Self::for_descriptors(1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_descriptors_are_for_connections_up_to_a_bound() {
        for (descriptors, connections, per_address, long_polls, streams) in [
            (0, 1, 1, 1, 1),
            (256, 128, 64, 64, 32),
            (1024, 512, 256, 256, 64),
            (u64::MAX, 16_384, 8_192, 4_096, 64),
        ] {
            let limits = ConnectionLimits::for_descriptors(descriptors);
            assert_eq!(
                (limits.connections, limits.per_address, limits.long_polls, limits.streams),
                (connections, per_address, long_polls, streams),
                "{descriptors}"
            );
        }
    }
}
