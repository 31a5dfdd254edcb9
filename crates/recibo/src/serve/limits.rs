//! What clients of the service may take, as flags; and the descriptors that they are counted
//! against.

use std::time::Duration;

use recibo_server::ConnectionLimits;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Limits of connections.
#[derive(clap::Args)]
pub struct LimitArgs {
    /// Connections at the same time [default: half of the file descriptors, at most 16384]
    #[arg(long, value_name = "N", env = "RECIBO_CONNECTIONS",
          value_parser = clap::value_parser!(u32).range(1..))]
    connections: Option<u32>,
    /// Connections of one client address, or of one IPv6 /64 network [default: half of all;
    /// behind a proxy, which is one address, give as many as --connections]
    #[arg(long, value_name = "N", env = "RECIBO_CONNECTIONS_PER_ADDRESS",
          value_parser = clap::value_parser!(u32).range(1..))]
    connections_per_address: Option<u32>,
    /// Requests that wait for a decision at the same time [default: half of the connections, at
    /// most 4096]
    #[arg(long, value_name = "N", env = "RECIBO_LONG_POLLS")]
    long_polls: Option<u32>,
    /// NDJSON listings, and receipts blocks of more than 500 calls, at the same time [default: a
    /// quarter of the connections, at most 64]
    #[arg(long, value_name = "N", env = "RECIBO_STREAMS")]
    streams: Option<u32>,
    /// Seconds for the head of a request to arrive
    #[arg(long, value_name = "N", env = "RECIBO_HEAD_SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u32).range(1..=SECONDS_MAX))]
    head_seconds: u32,
    /// Seconds for the next bytes of a body to arrive, or of an answer to be taken
    #[arg(long, value_name = "N", env = "RECIBO_STALL_SECONDS", default_value_t = 30,
          value_parser = clap::value_parser!(u32).range(1..=SECONDS_MAX))]
    stall_seconds: u32,
    /// Seconds that a connection stays open without a request
    #[arg(long, value_name = "N", env = "RECIBO_IDLE_SECONDS", default_value_t = 75,
          value_parser = clap::value_parser!(u32).range(1..=SECONDS_MAX))]
    idle_seconds: u32,
}

/// A day.
const SECONDS_MAX: i64 = 86_400;

impl LimitArgs {
    /// The limits of a process that may open so many descriptors.
    pub fn limits(&self, descriptors: u64) -> ConnectionLimits {
        let default = match self.connections {
            Some(connections) => ConnectionLimits::for_connections(connections as usize),
            None => ConnectionLimits::for_descriptors(descriptors),
        };
        let given = |given: Option<u32>, default: usize| given.map_or(default, |n| n as usize);
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        ConnectionLimits {
            connections: default.connections,
            per_address: given(self.connections_per_address, default.per_address),
            long_polls: given(self.long_polls, default.long_polls),
            streams: given(self.streams, default.streams),
            head: seconds(self.head_seconds),
            stall: seconds(self.stall_seconds),
            idle: seconds(self.idle_seconds),
        }
    }
}

/// Raises the number of descriptors that this process may open as far as it is allowed to.
/// Answers that number.
pub fn raise_descriptors() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let usable = if raised.is_ok() { maximum } else { current };
    // None is no limit.
    usable.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        limits: LimitArgs,
    }

    #[test]
    fn what_is_given_counts_and_the_rest_follows() {
        let limits = |given: &str| {
            let words = std::iter::once("serve").chain(given.split_whitespace());
            Line::try_parse_from(words).map(|line| line.limits.limits(1000)).ok()
        };
        let default = ConnectionLimits::for_descriptors(1000);
        assert_eq!(limits(""), Some(default));
        assert_eq!(limits("--connections 40"), Some(ConnectionLimits::for_connections(40)));
        let all = "--connections 9 --connections-per-address 8 --long-polls 0 --streams 6 \
                   --head-seconds 5 --stall-seconds 4 --idle-seconds 3";
        let seconds = Duration::from_secs;
        assert_eq!(
            limits(all),
            Some(ConnectionLimits {
                connections: 9,
                per_address: 8,
                long_polls: 0,
                streams: 6,
                head: seconds(5),
                stall: seconds(4),
                idle: seconds(3),
            })
        );
        for bad in ["--connections 0", "--head-seconds 0", "--idle-seconds 86401"] {
            assert_eq!(limits(bad), None, "{bad}");
        }
    }
}
