//! The run of a session: the one that the user has named, or one for each client.

/// Which run the calls of a session belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// The user has named it: it holds for all clients.
    Named(String),
    /// It belongs to the first client. Each later `initialize` is another session of the host, and
    /// begins another run.
    Derived(String),
}

impl Run {
    /// The run of a client, counted from 1.
    pub fn of(&self, client: u32) -> String {
        match self {
            Self::Derived(run) if client > 1 => format!("{run}.{client}"),
            Self::Named(run) | Self::Derived(run) => run.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_named_is_that_of_all_clients() {
        let named = Run::Named("r".into());
        assert_eq!([named.of(1), named.of(2)], ["r", "r"]);
        let derived = Run::Derived("mcp-0".into());
        assert_eq!([derived.of(1), derived.of(2)], ["mcp-0", "mcp-0.2"]);
    }
}
