//! `windlass graph render`.

use windlass::graph::render::Picture;

use super::registry::registry;
use super::{plan, source};
use crate::args::{Render, RenderFormat};
use crate::outcome::{Outcome, Verdict};
use crate::terminal::{Terminal, pretty};

pub(crate) fn run(args: &Render, terminal: &Terminal) -> Outcome {
    let registry = registry();
    let format = args.format.into();
    let Some(valid) = source::valid(&args.source, &registry, format, terminal)? else {
        return Ok(Verdict::Bad);
    };
    let plan = valid.compile()?;
    let mut text = match args.format {
        RenderFormat::Mermaid => plan.draw(Picture::Mermaid),
        RenderFormat::Text => plan.draw(Picture::Text),
        RenderFormat::Dot => plan.draw(Picture::Dot),
        RenderFormat::Svg => plan.draw(Picture::Svg),
        RenderFormat::Json => pretty(&plan::to_json(&plan, &registry))?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    terminal.print_to(args.output.file.as_deref(), &text)?;
    Ok(Verdict::Fine)
}
