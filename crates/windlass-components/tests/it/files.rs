//! Lines and JSON lines.

use crate::stage::{Scratch, Stage, contains};

#[test]
fn a_lines_source_publishes_each_line_once_and_in_order() {
    for content in [
        "one\ntwo\n\nthree\n",
        "one\ntwo\n\nthree",
        "one\r\ntwo\r\n\r\nthree\r\n",
    ] {
        let file = Scratch::new(content);
        let stage = Stage::source("windlass.lines.source", &file.config());
        assert_eq!(
            stage.seen(),
            [r#"in="one""#, r#"in="two""#, r#"in="""#, r#"in="three""#]
        );
    }
}

#[test]
fn an_empty_file_is_an_end() {
    let file = Scratch::new("");
    for kind in ["lines.source", "jsonl.source", "csv.source", "replay"] {
        let stage = Stage::source(&format!("windlass.{kind}"), &file.config());
        assert_eq!(stage.seen(), [""; 0]);
    }
}

#[test]
fn records_says_how_many_an_invocation_publishes() {
    let file = Scratch::new("1\n2\n3\n4\n5\n");
    let config = format!("{}, records: 2", file.config());
    let stage = Stage::source("windlass.lines.source", &config);
    let result = stage.simulate();
    assert_eq!(
        result.metrics.of("runtime.channel.publish_count", "e"),
        Some(5.0)
    );
    let invocations = result.order.iter().filter(|id| *id == "in").count();
    assert_eq!(invocations, 3);
    assert_eq!(stage.log.take().len(), 5);
}

#[test]
fn a_file_that_is_not_there_is_told_with_its_path() {
    let file = Scratch::missing();
    for kind in ["lines.source", "jsonl.source", "csv.source", "replay"] {
        let told = Stage::source(&format!("windlass.{kind}"), &file.config()).fails();
        contains(&told, &["cannot open", &file.path()]);
    }
    let told = Stage::sink("windlass.lines.sink", "path: /nonexistent/file", "[[1]]").fails();
    contains(&told, &["cannot open /nonexistent/file"]);
    let told = Stage::source("windlass.lines.source", "records: 1").fails();
    contains(&told, &["config.path is missing"]);
    let config = format!("{}, records: 0", file.config());
    let told = Stage::source("windlass.lines.source", &config).fails();
    contains(
        &told,
        &["config.records has to be a whole number from 1", "is 0"],
    );
}

#[test]
fn a_huge_line_is_told_and_the_others_are_published() {
    let file = Scratch::new(format!("first\n{}\nlast\n", "x".repeat(300_000)));
    let config = format!("{}, max_line_bytes: 1000, records: 10", file.config());
    let stage = Stage::source("windlass.lines.source", &config);
    let told = stage.fails();
    contains(
        &told,
        &["line 2", "xxx", "longer than config.max_line_bytes"],
    );
    assert!(told.len() < 1000, "{told}");
    stage.log.take();
    let stage = stage.forgiving("in");
    stage.simulate();
    assert_eq!(stage.log.take(), [r#"in="first""#, r#"in="last""#]);
}

#[test]
fn lines_that_are_not_utf_8_are_told() {
    let file = Scratch::new(b"ok\n\xff\xfe\n");
    let told = Stage::source("windlass.lines.source", &file.config()).fails();
    contains(&told, &["line 2", "is not UTF-8"]);
}

#[test]
fn a_jsonl_source_publishes_values() {
    let file = Scratch::new("1\n\n\"a\"\n{\"k\": [1.5, null]}\n  \ntrue\n{\"$bytes\": \"aGk=\"}");
    let stage = Stage::source("windlass.jsonl.source", &file.config());
    let expected = [
        "in=1",
        r#"in="a""#,
        r#"in={"k":[1.5,null]}"#,
        "in=true",
        r#"in={"$bytes":"aGk="}"#,
    ];
    assert_eq!(stage.seen(), expected);
    let file = Scratch::new("1\n{\"k\": \n");
    let told = Stage::source("windlass.jsonl.source", &file.config()).fails();
    contains(&told, &["line 2", "is not JSON"]);
}

#[test]
fn a_lines_sink_writes_each_message_in_a_line() {
    let file = Scratch::missing();
    let epochs = r#"[["a", 1, 2.5], [true, {k: 1}, {bytes: raw}], [null]]"#;
    Stage::sink("windlass.lines.sink", &file.config(), epochs).seen();
    assert_eq!(file.text(), "a\n1\n2.5\ntrue\n{\"k\":1}\nraw\nnull\n");
}

#[test]
fn a_text_of_several_lines_does_not_become_several_messages() {
    let file = Scratch::missing();
    let told = Stage::sink("windlass.lines.sink", &file.config(), r#"[["a\nb"]]"#).fails();
    contains(&told, &["has several lines"]);
    let file = Scratch::missing();
    Stage::sink("windlass.jsonl.sink", &file.config(), r#"[["a\nb"]]"#).seen();
    assert_eq!(file.text(), "\"a\\nb\"\n");
}

#[test]
fn a_message_that_cannot_be_written_takes_no_other_with_it() {
    let file = Scratch::missing();
    let epochs = r#"[["one", "a\nb", "three"]]"#;
    let together = "type: batch, input: in, batch_size: 3";
    let stage = Stage::sink("windlass.lines.sink", &file.config(), epochs)
        .with("type: any_input, input: in", together)
        .forgiving("out");
    let result = stage.simulate();
    assert_eq!(file.text(), "one\nthree\n");
    assert_eq!(result.errors.len(), 1, "{:?}", result.errors);
}

#[test]
fn a_sink_appends_only_if_it_is_told_to() {
    let file = Scratch::new("old\n");
    let config = format!("{}, append: true", file.config());
    Stage::sink("windlass.lines.sink", &config, "[[new]]").seen();
    assert_eq!(file.text(), "old\nnew\n");
    Stage::sink("windlass.lines.sink", &file.config(), "[[newer]]").seen();
    assert_eq!(file.text(), "newer\n");
}

#[test]
fn a_jsonl_sink_writes_what_a_source_reads() {
    let file = Scratch::missing();
    let epochs = r#"[["a", 1, 2.5, {k: [1]}], [{bytes: "hi"}, true]]"#;
    Stage::sink("windlass.jsonl.sink", &file.config(), epochs).seen();
    assert_eq!(
        file.text(),
        "\"a\"\n1\n2.5\n{\"k\":[1]}\n{\"$bytes\":\"aGk=\"}\ntrue\n"
    );
    let stage = Stage::source("windlass.jsonl.source", &file.config());
    let expected = [
        r#"in="a""#,
        "in=1",
        "in=2.5",
        r#"in={"k":[1]}"#,
        r#"in={"$bytes":"aGk="}"#,
        "in=true",
    ];
    assert_eq!(stage.seen(), expected);
}

#[test]
fn what_only_rust_knows_cannot_be_written() {
    let file = Scratch::missing();
    let stage = Stage::sink("windlass.jsonl.sink", &file.config(), "[[1]]");
    let told = stage.with("test.Source", "test.Objects").fails();
    contains(&told, &["a u8 cannot be written as JSON"]);
}

#[test]
fn an_edge_that_has_no_room_loses_no_line() {
    let file = Scratch::new("1\n2\n3\n4\n5\n6\n");
    let config = format!("{}, records: 3", file.config());
    let stage = Stage::source("windlass.lines.source", &config).with(
        "kind: immediate, policy: {mode: queue, capacity: 1000, overflow: reject}",
        "kind: async, policy: {mode: queue, capacity: 8, overflow: reject, max_inflight: 1}",
    );
    let expected: Vec<String> = (1..=6).map(|n| format!("in=\"{n}\"")).collect();
    assert_eq!(stage.seen(), expected);
}
