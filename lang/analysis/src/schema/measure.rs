//! How it is measured: factors, phases, loads, gates, repetitions, estimates, agreements.

use super::{Count, Kind, NODE, NodeSpec, Type, Variant, argument, setting, word};

/// `factor`.
pub static FACTOR: NodeSpec = NodeSpec {
    name: "factor",
    doc: "Something that varies, and its levels; read as `${NAME}`. `candidate` is built in (the candidates); `cores` \
          means the first N CPUs of the candidate's set. Inside a phase it holds for that phase alone, and its levels \
          may be shares of a figure (`of=`).",
    example: "factor pool 8 16 32 64",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "Its name.")],
    rest: Some(argument("level", Type::Level, "A level.")),
    settings: &[setting(
        "of",
        Type::Figure,
        "ceiling.throughput",
        "The figure that levels such as \"30%\" are shares of.",
    )],
    key: 1,
    defines: Some(Kind::Factor),
    ..NODE
};

/// `phase`.
pub static PHASE: NodeSpec = NodeSpec {
    name: "phase",
    doc: "A set of cells measured by one procedure. Phases depend on each other through what they read.",
    example: "phase ceiling like=saturation { over candidate cores; repeat 6 }",
    count: Count::Some,
    arguments: &[argument("name", Type::Name, "Its name, the first part of its figures.")],
    settings: &[setting(
        "like",
        Type::Reference(Kind::Definition),
        "saturation",
        "The definition that this one amends.",
    )],
    children: &[
        &OVER, &WITH, &FACTOR, &LOAD, &PGBENCH, &START, &REPEAT, &GATE, &CARRIED, &SEARCH, &ESTIMATE, &CHOOSE, &DEMAND,
        &PUBLISH,
    ],
    key: 1,
    defines: Some(Kind::Phase),
    ..NODE
};

static OVER: NodeSpec = NodeSpec {
    name: "over",
    doc: "The factors whose levels are combined into cells.",
    example: "over candidate cores",
    rest: Some(argument("factor", Type::Reference(Kind::Factor), "A factor.")),
    ..NODE
};

static WITH: NodeSpec = NodeSpec {
    name: "with",
    doc: "A factor whose level another phase chose.",
    example: "with pool from=pool-sweep",
    count: Count::Any,
    arguments: &[argument("factor", Type::Reference(Kind::Factor), "The factor.")],
    settings: &[
        setting("from", Type::Reference(Kind::Phase), "pool-sweep", "The phase that chose its level.").required()
    ],
    key: 1,
    ..NODE
};

/// Connections that a load may have at the most.
pub const MOST_CONNECTIONS: i64 = 65_535;

/// `load`.
pub static LOAD: NodeSpec = NodeSpec {
    name: "load",
    doc: "The traffic that a candidate gets, and for how long.",
    example: "load closed connections=64 for=\"20s\" warm-up=\"10s\"",
    arguments: &[argument(
        "loop",
        Type::Word(&[
            word("closed", "N connections; each sends its next request on the answer."),
            word("open", "A rate, on schedule, whatever the answers do."),
        ]),
        "`closed` or `open`.",
    )],
    settings: &[
        setting("workload", Type::Reference(Kind::Workload), "mixed", "The traffic; the only workload where left out."),
        setting(
            "rate",
            Type::Rate,
            "\"${rate}\"",
            "Requests per second, open loop only. Left out where `ramp` and `step` say how the rate goes, or where each stream \
             has a rate of its own.",
        ),
        setting(
            "arrivals",
            Type::Word(&[
                word("constant", "On schedule: each request is due when the rate has amounted to it."),
                word("poisson", "At random: a seeded Poisson process of the same rate."),
            ]),
            "poisson",
            "How the requests are spread in time, open loop only.",
        )
        .default("constant"),
        setting("connections", Type::IntegerOrFactor(1, MOST_CONNECTIONS), "64", "Connections.").required(),
        setting(
            "keep-alive",
            Type::Word(&[
                word("on", "Connections are opened before the start and kept."),
                word(
                    "off",
                    "Each request has a connection of its own, at most `connections` at a time; opening it counts as part of \
                     the request.",
                ),
            ]),
            "off",
            "Whether connections are kept.",
        )
        .default("on"),
        setting("for", Type::Duration, "\"20s\"", "The window; where there are ramps and steps, they make it."),
        setting("warm-up", Type::Duration, "\"10s\"", "Load before the window.").default("10s"),
        setting("timeout", Type::Duration, "\"10s\"", "An answer that takes longer has timed out.").default("10s"),
        setting(
            "with",
            Type::Word(&[
                word("exp", "Our own generator: every answer validated, every request accounted for."),
                word("wrk", "wrk: closed loop, one stream; statuses and service times only."),
                word("oha", "oha: one stream; statuses, percentiles of service (closed) or of its own correction (open), ttfb."),
                word("vegeta", "vegeta: open loop, one stream; statuses and service times only."),
                word("h2load", "h2load: one stream; statuses and service times only; an open loop is a rate per connection."),
            ]),
            "wrk",
            "What sends the load. What another tool can't account for is said in the report; a gate or figure that needs it is refused.",
        )
        .default("exp"),
        setting(
            "protocol",
            Type::Word(&[
                word("http1", "HTTP/1.1, one request at a time on a connection."),
                word("http2", "HTTP/2: by ALPN where the candidate has `tls`, by prior knowledge where not."),
            ]),
            "http2",
            "The protocol on each connection.",
        )
        .default("http1"),
        setting("in-flight", Type::Integer(1, 1_000), "8", "Requests at one time on each connection; HTTP/2 only.")
            .default("1"),
        setting("proxy", Type::Text, "\"127.0.0.1:3128\"", "Address of an HTTP proxy that all connections go through."),
    ],
    children: &[&RAMP, &STEP],
    ..NODE
};

/// `ramp`.
pub static RAMP: NodeSpec = NodeSpec {
    name: "ramp",
    doc: "A leg of an open loop's window in which the rate goes evenly from one value to another. Legs follow each other in \
          the order of the study, and the requests are the integral of the rate. The warm-up has the rate of the start.",
    example: "ramp up from=\"100/s\" to=\"5000/s\" over=\"10s\"",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "Its name, by which a profile can amend it.")],
    settings: &[
        setting("from", Type::Rate, "\"100/s\"", "Requests per second at its start.").required(),
        setting("to", Type::Rate, "\"5000/s\"", "Requests per second at its end.").required(),
        setting("over", Type::Duration, "\"10s\"", "Its length.").required(),
    ],
    key: 1,
    ..NODE
};

/// `step`.
pub static STEP: NodeSpec = NodeSpec {
    name: "step",
    doc: "A leg of an open loop's window with a constant rate. See `ramp`.",
    example: "step peak rate=\"5000/s\" for=\"10s\"",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "Its name, by which a profile can amend it.")],
    settings: &[
        setting("rate", Type::Rate, "\"5000/s\"", "Requests per second.").required(),
        setting("for", Type::Duration, "\"10s\"", "Its length.").required(),
    ],
    key: 1,
    ..NODE
};

static PGBENCH: NodeSpec = NodeSpec {
    name: "pgbench",
    doc: "The database alone, by pgbench, on a fresh clone.",
    example: "pgbench script=\"sql/insert.sql\" clients=64 jobs=8 for=\"30s\"",
    settings: &[
        setting("script", Type::File, "\"sql/insert.sql\"", "The script of one transaction.").required(),
        setting("clients", Type::Integer(1, 10_000), "64", "Concurrent clients.").default("64"),
        setting("jobs", Type::Integer(1, 1_024), "8", "Threads of pgbench.").default("4"),
        setting("for", Type::Duration, "\"30s\"", "The window, in whole seconds.").required(),
        setting(
            "rate",
            Type::Rate,
            "\"500/s\"",
            "Transactions per second on a schedule of random gaps; latency then counts from when one was due. As fast as possible where left out.",
        ),
        setting(
            "latency-limit",
            Type::Duration,
            "\"10ms\"",
            "With a rate: a transaction that would begin later than this is skipped, and skipped ones void the repetition.",
        ),
    ],
    ..NODE
};

static START: NodeSpec = NodeSpec {
    name: "start",
    doc: "A candidate's start, with no load: from the request to start it to its first ready answer (`ready`). Images are \
          built and containers made beforehand, and the host's page cache is as earlier repetitions left it.",
    example: "start for=\"5s\"",
    settings: &[setting(
        "for",
        Type::Duration,
        "\"5s\"",
        "The window. It begins with the request to start; the candidate must be ready within it.",
    )
    .default("5s")],
    ..NODE
};

/// `repeat`.
pub static REPEAT: NodeSpec = NodeSpec {
    name: "repeat",
    doc: "How many valid repetitions each cell gets, and in which order. A void repetition is measured again until \
          `at-most` is reached.",
    example: "repeat 6 at-most=12 order=blocks",
    arguments: &[argument("count", Type::Integer(1, 10_000), "Valid repetitions.")],
    settings: &[
        setting(
            "at-most",
            Type::Integer(1, 100_000),
            "12",
            "Repetitions that are measured at the most, void ones included; twice the valid ones where left out.",
        ),
        setting(
            "order",
            Type::Word(&[
                word(
                    "blocks",
                    "Randomised complete blocks: every block holds each cell once, in a seeded random order.",
                ),
                word("listed", "As listed, all repetitions of a cell in a row."),
            ]),
            "blocks",
            "The order.",
        )
        .default("blocks"),
    ],
    ..NODE
};

/// `gate`. The variants' names are those of `plan::Gate`; a test compares them.
pub static GATE: NodeSpec = NodeSpec {
    name: "gate",
    doc: "A check that voids one repetition. Missing data always fails.",
    example: "gate service-demand rise=\"6%\"",
    count: Count::Any,
    arguments: &[argument("name", Type::Text, "Which check.")],
    key: 1,
    variant: Some(0),
    variants: &[
        Variant {
            name: "census",
            doc: "Every answer as expected, every request accounted for, the generator ended well.",
            settings: &[],
            rest: None,
        },
        Variant {
            name: "counters",
            doc: "Every counter was read at the window's start and its end.",
            settings: &[],
            rest: None,
        },
        Variant { name: "rows", doc: "Rows added = writes acknowledged.", settings: &[], rest: None },
        Variant {
            name: "generator-probe",
            doc: "A no-op server on the candidate's CPUs delivered `at` times the rate finally measured.",
            settings: &[
                setting("at", Type::Percent(100.0), "\"115%\"", "How far above the measured rate.").default("115%"),
                setting("of", Type::Figure, "pool-sweep.throughput", "What the probe's rate is set from beforehand.")
                    .required(),
            ],
            rest: None,
        },
        Variant {
            name: "generator-bottleneck",
            doc: "The generator was not the bottleneck: its busiest thread had time to spare, and answers did not wait for it.",
            settings: &[
                setting("busy", Type::Percent(1.0), "\"85%\"", "Largest accepted utilisation of a thread.").default("85%"),
                setting(
                    "receive-queue",
                    Type::Percent(1.0),
                    "\"10%\"",
                    "Largest accepted time that answers waited to be read (median), as a share of the service time (median). One of up to \
                     100 µs passes always: it is a wake-up.",
                )
                .default("10%"),
            ],
            rest: None,
        },
        Variant {
            name: "service-demand",
            doc: "CPU per request rose by no more than this over the cell's lowest.",
            settings: &[setting("rise", Type::Percent(100.0), "\"6%\"", "Largest accepted rise.").default("6%")],
            rest: None,
        },
        Variant {
            name: "saturation",
            doc: "Cores used fell by no more than this below the cell's highest.",
            settings: &[setting("drop", Type::Percent(1.0), "\"5%\"", "Largest accepted drop.").default("5%")],
            rest: None,
        },
        Variant {
            name: "pace",
            doc: "Every CPU of the candidate was at its quiet pace for this share of the window.",
            settings: &[
                setting("quiet-share", Type::Percent(1.0), "\"90%\"", "Smallest accepted share.").default("90%")
            ],
            rest: None,
        },
        Variant {
            name: "steal",
            doc: "Time that the hypervisor took from the measured CPUs, as a share of the window.",
            settings: &[setting("max", Type::Percent(1.0), "\"1%\"", "Largest accepted share.").default("1%")],
            rest: None,
        },
        Variant {
            name: "stalls",
            doc: "Time lost to stalls longer than `over`, as a share of the tail that the percentile leaves.",
            settings: &[
                setting("over", Type::Duration, "\"10ms\"", "Stalls up to this length are free.").default("10ms"),
                setting("budget", Type::Percent(100.0), "\"20%\"", "Largest accepted share.").default("20%"),
                setting("quantile", Type::Percent(1.0), "\"99%\"", "The percentile that is judged.").default("99%"),
            ],
            rest: None,
        },
        Variant {
            name: "send-lag",
            doc: "Open loop: requests were sent on schedule and none was left unsent.",
            settings: &[setting("p99", Type::Duration, "\"1ms\"", "Largest accepted p99 of sent − due.").default("1ms")],
            rest: None,
        },
        Variant {
            name: "littles-law",
            doc: "Closed loop: throughput times mean latency gives the connections, within this tolerance.",
            settings: &[setting("tolerance", Type::Percent(100.0), "\"2%\"", "Tolerance.").default("2%")],
            rest: None,
        },
        Variant {
            name: "mix",
            doc: "Each stream's share of the answers is within this many points of the declared one.",
            settings: &[setting("tolerance", Type::Percent(1.0), "\"1%\"", "Tolerance, in points.").default("1%")],
            rest: None,
        },
        Variant {
            name: "clock",
            doc: "Wall clock, monotonic clock and boot clock advanced alike: no suspend, no jump.",
            settings: &[],
            rest: None,
        },
        Variant {
            name: "utilisation-law",
            doc: "Cores used never exceed the budget by more than this: counters and window fit.",
            settings: &[setting("tolerance", Type::Percent(100.0), "\"2%\"", "Tolerance.").default("2%")],
            rest: None,
        },
    ],
    ..NODE
};

static CARRIED: NodeSpec = NodeSpec {
    name: "carried",
    doc: "Conditions under which a repetition carries its rate; all must hold. Open loop only.",
    example: "carried \"achieved >= 99%\" \"corrected.p99 < 10ms\" \"errors == 0\"",
    rest: Some(argument("condition", Type::Condition, "A condition.")),
    ..NODE
};

static SEARCH: NodeSpec = NodeSpec {
    name: "search",
    doc: "A search for the highest rate that is carried. Always refused (lint `non-monotone-search`), with the grid of fixed \
          rates that answers the same question.",
    example: "search bisection from=\"1000/s\" to=\"60000/s\"",
    arguments: &[argument(
        "how",
        Type::Word(&[
            word("bisection", "Halves the range after each window."),
            word("exponential", "Doubles the rate until one is not carried, then halves the range."),
            word("ladder", "Raises the rate step by step until one is not carried."),
        ]),
        "How the next rate is found.",
    )],
    settings: &[
        setting("from", Type::Rate, "\"1000/s\"", "The lowest rate."),
        setting("to", Type::Rate, "\"60000/s\"", "The highest rate."),
        setting("within", Type::Percent(1.0), "\"2%\"", "The range at which it ends, or the step of a ladder."),
    ],
    ..NODE
};

static ESTIMATE: NodeSpec = NodeSpec {
    name: "estimate",
    doc: "How one value is made of a cell's valid repetitions.",
    example: "estimate throughput by=best-of-valid",
    count: Count::Any,
    arguments: &[argument("metric", Type::Metric, "What is estimated.")],
    settings: &[
        setting(
            "by",
            Type::Word(&[
                word("best", "The largest."),
                word("best-of-valid", "The largest of the valid ones, where interference can only subtract."),
                word("median", "The median, with an interval by order statistics."),
                word("mean", "The mean."),
                word("majority", "Carried in more than half of the repetitions."),
            ]),
            "median",
            "The estimator.",
        )
        .required(),
        setting(
            "counting",
            Type::Word(&[
                word(
                    "pss",
                    "A page counts once, divided among the processes that share it (of a container: the cgroup's own counter).",
                ),
                word("rss", "A shared page counts once for every process. Always refused (lint `summed-rss`)."),
            ]),
            "pss",
            "How the memory of several processes is counted; of `memory` only.",
        ),
    ],
    key: 1,
    ..NODE
};

static CHOOSE: NodeSpec = NodeSpec {
    name: "choose",
    doc: "The level that later phases take with `with … from=`.",
    example: "choose pool maximising=throughput for-each=\"candidate cores\"",
    arguments: &[argument("factor", Type::Reference(Kind::Factor), "The factor whose level is chosen.")],
    settings: &[
        setting("maximising", Type::Metric, "throughput", "What is maximised.").default("throughput"),
        setting(
            "for-each",
            Type::References(Kind::Factor),
            "\"candidate cores\"",
            "Chosen anew for each combination of these.",
        )
        .required(),
    ],
    ..NODE
};

static DEMAND: NodeSpec = NodeSpec {
    name: "demand",
    doc: "The factor whose levels are amounts of a resource. The phase's figure `demand` is the smallest of them from which on \
          every one carries the load in more than half of its repetitions, for each combination of the other factors.",
    example: "demand cores",
    arguments: &[argument("factor", Type::Reference(Kind::Factor), "The factor; its levels are whole numbers.")],
    ..NODE
};

static PUBLISH: NodeSpec = NodeSpec {
    name: "publish",
    doc: "What the phase publishes of its rate grid.",
    example: "publish relevant-lower-bound",
    arguments: &[argument(
        "what",
        Type::Word(&[word("relevant-lower-bound", "The highest carried rate below the lowest that was not carried.")]),
        "`relevant-lower-bound`.",
    )],
    ..NODE
};

/// `agreement`.
pub static AGREEMENT: NodeSpec = NodeSpec {
    name: "agreement",
    doc: "A check between phases that voids the result.",
    example: "agreement two-loops { between ceiling.throughput fixed-rates.carried within=\"15%\" }",
    count: Count::Any,
    arguments: &[argument("name", Type::Name, "Its name.")],
    children: &[&BETWEEN, &OTHERWISE],
    key: 1,
    ..NODE
};

/// `between`.
pub static BETWEEN: NodeSpec = NodeSpec {
    name: "between",
    doc: "The two figures; the second is the base of the ratio.",
    example: "between ceiling.throughput pool-sweep.throughput within=\"5%\"",
    count: Count::One,
    arguments: &[argument("one", Type::Figure, "A figure."), argument("other", Type::Figure, "The base.")],
    settings: &[setting("within", Type::Percent(1.0), "\"5%\"", "Largest accepted difference.").required()],
    ..NODE
};

static OTHERWISE: NodeSpec = NodeSpec {
    name: "otherwise",
    doc: "What happens when they disagree.",
    example: "otherwise void",
    arguments: &[argument("what", Type::Word(&[word("void", "The result is void.")]), "`void`.")],
    ..NODE
};
