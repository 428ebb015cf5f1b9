//! Links in markdown that lead to files.

use std::path::{Component, Path, PathBuf};

use super::Problem;
use crate::workspace::Workspace;

/// A link as it is written.
#[derive(Debug, PartialEq, Eq)]
struct Link {
    line: usize,
    target: String,
}

pub(super) fn check(workspace: &Workspace, file: &str, page: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for Link { line, target } in file_links(page) {
        let file_name = file.to_owned();
        match resolve(file, &target) {
            None => problems.push(Problem::OutsideLink {
                file: file_name,
                line,
                target,
            }),
            Some(path) if !workspace.root.join(&path).exists() => {
                problems.push(Problem::DeadLink {
                    file: file_name,
                    line,
                    target,
                });
            }
            Some(_) => {}
        }
    }
    problems
}

/// The path that a link of `file` means, relative to the root; `None` if it leaves the repository.
fn resolve(file: &str, target: &str) -> Option<PathBuf> {
    let from = Path::new(file).parent().unwrap_or(Path::new(""));
    // Like the pages of a forge: a leading slash is the root of the repository.
    let joined = match target.strip_prefix('/') {
        Some(from_root) => PathBuf::from(from_root),
        None => from.join(target),
    };
    let mut path = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => path.pop().then_some(())?,
            _ => {}
        }
    }
    Some(path)
}

/// Every link to a file, without its anchor. Code, addresses and anchors within the page are left
/// out.
fn file_links(page: &str) -> Vec<Link> {
    let mut links = Vec::new();
    let mut fence: Option<&str> = None;
    for (index, line) in page.lines().enumerate() {
        let start = line.trim_start();
        if let Some(open) = fence {
            // A closing fence is at least as long as the opening one and has nothing behind it.
            if start.starts_with(open) && start.trim_end().chars().all(|c| open.starts_with(c)) {
                fence = None;
            }
            continue;
        }
        if let Some(open) = opening_fence(start) {
            fence = Some(open);
            continue;
        }
        let prose = without_code(line);
        let targets = inline_targets(&prose)
            .into_iter()
            .chain(definition_target(&prose));
        links.extend(
            targets
                .filter_map(|target| file_part(&target))
                .map(|target| Link {
                    line: index + 1,
                    target,
                }),
        );
    }
    links
}

fn opening_fence(line: &str) -> Option<&str> {
    ['`', '~'].into_iter().find_map(|mark| {
        let length = line.chars().take_while(|c| *c == mark).count();
        (length >= 3).then(|| &line[..length])
    })
}

/// The line without its `code`: a run of backticks up to the next run of the same length.
fn without_code(line: &str) -> String {
    let mut prose = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let run = rest[start..].chars().take_while(|c| *c == '`').count();
        let inside = &rest[start + run..];
        prose.push_str(&rest[..start]);
        match closing_run(inside, run) {
            Some(end) => rest = &inside[end..],
            None => rest = inside,
        }
    }
    prose.push_str(rest);
    prose
}

fn closing_run(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text[at..].find('`').map(|offset| at + offset) {
        let run = text[start..].chars().take_while(|c| *c == '`').count();
        if run == length {
            return Some(start + run);
        }
        at = start + run;
    }
    None
}

/// The targets of `[text](target)` and `![text](target "title")`.
fn inline_targets(line: &str) -> Vec<String> {
    let mut targets = Vec::new();
    for (at, mark) in line.match_indices("](") {
        let inside = &line[at + mark.len()..];
        let target = match inside.strip_prefix('<') {
            Some(bracketed) => bracketed.split('>').next().unwrap_or_default(),
            None => {
                let mut depth = 0usize;
                let end = inside.find(|c: char| match c {
                    '(' => {
                        depth += 1;
                        false
                    }
                    ')' if depth > 0 => {
                        depth -= 1;
                        false
                    }
                    c => c == ')' || c.is_whitespace(),
                });
                &inside[..end.unwrap_or(inside.len())]
            }
        };
        targets.push(target.to_owned());
    }
    targets
}

/// The target of a definition, `[name]: target`; a footnote has none.
fn definition_target(line: &str) -> Option<String> {
    let (name, target) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
    let target = target.split_whitespace().next()?;
    (!name.starts_with('^') && !name.contains(']')).then(|| {
        target
            .trim_start_matches('<')
            .trim_end_matches('>')
            .to_owned()
    })
}

/// The file that a target names; `None` for an address and for an anchor within the page.
fn file_part(target: &str) -> Option<String> {
    let scheme = target
        .split(['/', '#', '?'])
        .next()
        .is_some_and(|start| start.contains(':'));
    if scheme || target.starts_with("//") {
        return None;
    }
    let path = target.split(['#', '?']).next().unwrap_or_default();
    (!path.is_empty()).then(|| path.replace("%20", " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(page: &str) -> Vec<String> {
        file_links(page)
            .into_iter()
            .map(|link| link.target)
            .collect()
    }

    #[test]
    fn files_are_found_in_every_form_of_link() {
        let page = "see [a](docs/a.md#part), ![b](b.png \"title\") and [c](<with space.md>)\n\
                    [d]: ../d.md\n[e](e(1).md) [f](a%20b.md)\n";
        assert_eq!(
            targets(page),
            [
                "docs/a.md",
                "b.png",
                "with space.md",
                "../d.md",
                "e(1).md",
                "a b.md"
            ]
        );
    }

    #[test]
    fn addresses_anchors_and_footnotes_are_not_files() {
        let page = "[a](https://example.org/x) [b](#part) [c](mailto:a@example.org)\n\
                    [d](//example.org)\n[^1]: a note\n[e]: http://example.org\n[x] y: z\n";
        assert_eq!(targets(page), [""; 0]);
    }

    #[test]
    fn code_holds_no_links() {
        let page = "```rust\nlet x = a[0](b);\n```\n~~~~\n[a](b)\n~~~\n[c](d)\n~~~~\n\
                    `v[i](j)` and ``a ` [k](l)`` but [m](n) and a lone ` [o](p)\n";
        assert_eq!(targets(page), ["n", "p"]);
    }

    #[test]
    fn the_line_is_the_one_of_the_link() {
        assert_eq!(
            file_links("a\n\n[b](c)\n"),
            [Link {
                line: 3,
                target: "c".to_owned()
            }]
        );
    }

    #[test]
    fn links_are_relative_to_their_page() {
        let path = |file, target| resolve(file, target).map(|path| path.display().to_string());
        assert_eq!(path("docs/a.md", "b.md").as_deref(), Some("docs/b.md"));
        assert_eq!(
            path("docs/a.md", "../README.md").as_deref(),
            Some("README.md")
        );
        assert_eq!(
            path("docs/a.md", "/README.md").as_deref(),
            Some("README.md")
        );
        assert_eq!(path("README.md", "../elsewhere.md"), None);
    }
}
