//! What sends the load: our own generator, or a tool that people trust, and what each can account for.

use serde::{Deserialize, Serialize};

use crate::gate::Gate;
use crate::phase::Metric;

/// What sends the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// Our own generator.
    #[default]
    Exp,
    /// wrk: closed loop.
    Wrk,
    /// oha: closed loop, and open loop with its latency correction.
    Oha,
    /// vegeta: open loop.
    Vegeta,
    /// h2load: closed loop, and a rate per connection.
    H2load,
}

/// Something that a generator can account for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Account {
    /// Headers and bodies of answers are checked; a status always is.
    Contents,
    /// Every request that was sent or due is counted, so that conservation can be checked.
    Conservation,
    /// Request sent → last byte.
    Service,
    /// Request sent → first byte.
    Ttfb,
    /// Due → last byte.
    Corrected,
    /// Due → sent.
    SendTimes,
    /// Times at which the generator itself stood still.
    Stalls,
    /// Whole distributions; where they are missing, only the percentiles that the tool prints are known.
    Distributions,
}

impl Account {
    /// Every account.
    pub const ALL: [Self; 8] = [
        Self::Contents,
        Self::Conservation,
        Self::Service,
        Self::Ttfb,
        Self::Corrected,
        Self::SendTimes,
        Self::Stalls,
        Self::Distributions,
    ];

    /// What is meant, for people: the object of "can't give".
    pub fn words(self) -> &'static str {
        match self {
            Self::Contents => "a check of headers and bodies (statuses only)",
            Self::Conservation => "how many requests were sent",
            Self::Service => "service times",
            Self::Ttfb => "times to the first byte",
            Self::Corrected => "corrected latencies",
            Self::SendTimes => "when requests were due and sent",
            Self::Stalls => "its own stalls and queues",
            Self::Distributions => "whole distributions (percentiles only)",
        }
    }
}

impl Tool {
    /// Every tool.
    pub const ALL: [Self; 5] = [Self::Exp, Self::Wrk, Self::Oha, Self::Vegeta, Self::H2load];

    /// The name in the language and the report; also that of the program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exp => "exp",
            Self::Wrk => "wrk",
            Self::Oha => "oha",
            Self::Vegeta => "vegeta",
            Self::H2load => "h2load",
        }
    }

    /// The tool called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// Whether it is our own generator.
    pub fn is_own(&self) -> bool {
        *self == Self::Exp
    }

    /// Whether it can send that loop.
    pub fn sends(self, open: bool) -> bool {
        match self {
            Self::Exp | Self::Oha | Self::H2load => true,
            Self::Wrk => !open,
            Self::Vegeta => open,
        }
    }

    /// Whether it accounts for this in that loop.
    pub fn gives(self, account: Account, open: bool) -> bool {
        match (self, account) {
            (Self::Exp, _) => true,
            // With its correction on, oha's latency begins at its own late tick, and it tells no other.
            (Self::Oha, Account::Service) => !open,
            (Self::Oha, Account::Corrected) => open,
            (Self::Oha, Account::Ttfb) => true,
            (_, Account::Service) => true,
            (Self::Wrk | Self::Vegeta | Self::H2load, Account::Distributions) => true,
            (Self::H2load, Account::Conservation) => !open,
            _ => false,
        }
    }

    /// What it can't account for in that loop.
    pub fn lacks(self, open: bool) -> Vec<Account> {
        let missing = |account: &Account| {
            let needless = !open && matches!(account, Account::Corrected | Account::SendTimes);
            !needless && !self.gives(*account, open)
        };
        Account::ALL.into_iter().filter(missing).collect()
    }
}

/// The account that a gate can't do without.
pub fn needed_by_gate(gate: &Gate) -> Option<Account> {
    match gate {
        Gate::SendLag { .. } => Some(Account::SendTimes),
        Gate::Stalls { .. } | Gate::GeneratorBottleneck { .. } => Some(Account::Stalls),
        Gate::LittlesLaw { .. } => Some(Account::Service),
        _ => None,
    }
}

/// The account that a metric is derived from.
pub fn needed_by_metric(metric: Metric) -> Option<Account> {
    match metric {
        Metric::ServiceP50 | Metric::ServiceP99 => Some(Account::Service),
        Metric::TtfbP99 => Some(Account::Ttfb),
        Metric::CorrectedP50 | Metric::CorrectedP99 | Metric::CorrectedP999 => Some(Account::Corrected),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_lacks_in_a_loop() {
        use Account::{Conservation, Contents, Corrected, Distributions, SendTimes, Service, Stalls, Ttfb};
        for (tool, open, lacks) in [
            (Tool::Exp, true, vec![]),
            (Tool::Wrk, false, vec![Contents, Conservation, Ttfb, Stalls]),
            (Tool::Oha, false, vec![Contents, Conservation, Stalls, Distributions]),
            (Tool::Oha, true, vec![Contents, Conservation, Service, SendTimes, Stalls, Distributions]),
            (Tool::Vegeta, true, vec![Contents, Conservation, Ttfb, Corrected, SendTimes, Stalls]),
            (Tool::H2load, false, vec![Contents, Ttfb, Stalls]),
        ] {
            assert_eq!(tool.lacks(open), lacks, "{} open={open}", tool.name());
        }
        assert!(!Tool::Wrk.sends(true) && !Tool::Vegeta.sends(false));
    }
}
