//! `windlass graph diff-plan`.

use windlass::graph::PlanDiff;
use windlass::graph::check::Level;

use super::registry::registry;
use super::source;
use crate::args::{DiffPlan, Format};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::Terminal;

pub(crate) fn run(args: &DiffPlan, terminal: &Terminal) -> Outcome {
    let files = [args.one.clone(), args.two.clone()];
    source::stdin_once(&files)?;
    let registry = registry();
    let format = args.output.format;
    let mut plans = Vec::with_capacity(files.len());
    for file in &files {
        let mut opened = source::load(file, &args.limits.limits())?;
        opened.check(&registry, Level::Schema);
        let Some(valid) = opened.into_valid(format, terminal)? else {
            return Ok(Verdict::Bad);
        };
        plans.push(valid.compile()?);
    }
    let diff = PlanDiff::new(&plans[0], &plans[1]);
    match format {
        Format::Text => terminal.print(&to_text(&diff))?,
        Format::Json => terminal.print_json(&diff)?,
    }
    Ok(Verdict::Fine)
}

fn to_text(diff: &PlanDiff) -> String {
    let mut text = format!(
        "same_region_order: {}\nsame_component_regions: {}\n",
        diff.same_region_order, diff.same_component_regions
    );
    let lists = [
        ("+ component", &diff.added_components),
        ("- component", &diff.removed_components),
        ("+ edge", &diff.added_edges),
        ("- edge", &diff.removed_edges),
        ("~", &diff.changed),
    ];
    for (mark, names) in lists {
        for name in names {
            text.push_str(&format!("{mark} {name}\n"));
        }
    }
    if !diff.same_region_order {
        let (one, two) = (&diff.region_order_a, &diff.region_order_b);
        text.push_str(&format!("region_order_a: {}\n", one.join(", ")));
        text.push_str(&format!("region_order_b: {}\n", two.join(", ")));
    }
    text
}
