//! What is published: tables, charts, capacity plans.

use super::{Count, Kind, NODE, NodeSpec, Type, Variant, argument, setting};

/// `report`.
pub static REPORT: NodeSpec = NodeSpec {
    name: "report",
    doc: "What is published, in this order.",
    example: "report { table \"Saturation ceiling\" of=ceiling.throughput rows=candidate columns=cores }",
    children: &[&TABLE, &CHART, &CAPACITY_PLAN],
    ..NODE
};

static TABLE: NodeSpec = NodeSpec {
    name: "table",
    doc: "A table of one figure.",
    example: "table \"Saturation ceiling\" of=ceiling.throughput rows=candidate columns=cores",
    count: Count::Any,
    arguments: &[argument("title", Type::Text, "Heading.")],
    settings: &[
        setting("of", Type::Figure, "ceiling.throughput", "The figure.").required(),
        setting(
            "rows",
            Type::Reference(Kind::Factor),
            "candidate",
            "The factor whose levels are rows. Factors that are neither rows nor columns make a row for each combination; none is named where the figure has one value.",
        ),
        setting("columns", Type::Reference(Kind::Factor), "cores", "The factor whose levels are columns."),
    ],
    key: 1,
    ..NODE
};

static CHART: NodeSpec = NodeSpec {
    name: "chart",
    doc: "A chart of one figure.",
    example: "chart bar \"Saturation ceiling\" of=ceiling.throughput by=candidate group=cores",
    count: Count::Any,
    arguments: &[argument("kind", Type::Text, "What is drawn."), argument("title", Type::Text, "Heading.")],
    key: 2,
    variant: Some(0),
    variants: &[
        Variant {
            name: "bar",
            doc: "Bars.",
            settings: &[
                setting("of", Type::Figure, "ceiling.throughput", "The figure.").required(),
                setting("by", Type::Reference(Kind::Factor), "candidate", "The factor along the axis.").required(),
                setting("group", Type::Reference(Kind::Factor), "cores", "The factor within a group."),
            ],
            rest: None,
        },
        Variant {
            name: "line",
            doc: "A line for each level over the window: the median of the valid repetitions at each moment. `memory` and \
                  `throughput` have one.",
            settings: &[
                setting("of", Type::Figure, "sustained.memory", "The figure: `memory` or `throughput`.").required(),
                setting("by", Type::Reference(Kind::Factor), "candidate", "The factor whose levels have a line each.")
                    .required(),
                setting(
                    "group",
                    Type::Reference(Kind::Factor),
                    "cores",
                    "A further factor that has a line for each level.",
                ),
            ],
            rest: None,
        },
    ],
    ..NODE
};

static CAPACITY_PLAN: NodeSpec = NodeSpec {
    name: "capacity-plan",
    doc: "How many cores or instances carry a target.",
    example: "capacity-plan of=ceiling cores=4 targets=\"10000 20000\"",
    count: Count::Any,
    settings: &[
        setting("of", Type::Reference(Kind::Phase), "ceiling", "The phase whose ceilings are used.").required(),
        setting("cores", Type::Integer(1, 4_096), "4", "Cores of one instance.").required(),
        setting("targets", Type::Numbers, "\"10000 20000\"", "Targets, in requests per second.").required(),
    ],
    key_setting: Some("of"),
    ..NODE
};
