//! CSV files.

use crate::stage::{Scratch, Stage, contains};

#[test]
fn records_are_objects_with_values_recognised() {
    let file = Scratch::new("name,age,ok,note\nAda,36,true,\"a, b\"\nBob,1.5,no,\n");
    let stage = Stage::source("windlass.csv.source", &file.config());
    assert_eq!(
        stage.seen(),
        [
            r#"in={"age":36,"name":"Ada","note":"a, b","ok":true}"#,
            r#"in={"age":1.5,"name":"Bob","note":null,"ok":"no"}"#,
        ]
    );
}

#[test]
fn numbers_that_would_not_come_back_stay_text() {
    let file = Scratch::new("0042,12345678901234567890123,-7,+5,1e3,NaN,\n");
    let config = format!("{}, header: false", file.config());
    let stage = Stage::source("windlass.csv.source", &config);
    let expected = r#"in=["0042","12345678901234567890123",-7,"+5",1000.0,"NaN",null]"#;
    assert_eq!(stage.seen(), [expected]);
    let stage = Stage::source("windlass.csv.source", &format!("{config}, typed: false"));
    let expected = r#"in=["0042","12345678901234567890123","-7","+5","1e3","NaN",""]"#;
    assert_eq!(stage.seen(), [expected]);
}

#[test]
fn delimiters_are_one_character() {
    let file = Scratch::new("a;b\n1;2\n");
    let config = format!("{}, delimiter: ';'", file.config());
    let stage = Stage::source("windlass.csv.source", &config);
    assert_eq!(stage.seen(), [r#"in={"a":1,"b":2}"#]);
    for wrong in ["';;'", "''", "'ä'", r#"'"'"#] {
        let config = format!("{}, delimiter: {wrong}", file.config());
        let told = Stage::source("windlass.csv.source", &config).fails();
        contains(&told, &["config.delimiter"]);
    }
}

#[test]
fn a_header_alone_has_no_records_and_a_missing_newline_is_fine() {
    let file = Scratch::new("a,b\n");
    assert_eq!(
        Stage::source("windlass.csv.source", &file.config()).seen(),
        [""; 0]
    );
    let file = Scratch::new("a,b\n1,2");
    let stage = Stage::source("windlass.csv.source", &file.config());
    assert_eq!(stage.seen(), [r#"in={"a":1,"b":2}"#]);
}

#[test]
fn a_record_of_another_length_is_told_with_its_place() {
    let file = Scratch::new("a,b\n1,2\n1,2,3\n4,5\n");
    let stage = Stage::source("windlass.csv.source", &file.config());
    contains(&stage.fails(), &[&file.path(), "line: 3", "3 fields"]);
    stage.log.take();
    let stage = stage.forgiving("in");
    stage.simulate();
    assert_eq!(
        stage.log.take(),
        [r#"in={"a":1,"b":2}"#, r#"in={"a":4,"b":5}"#]
    );
}

#[test]
fn a_quote_that_is_never_closed_does_not_take_all_memory() {
    let file = Scratch::new(format!("a\n\"{}", "x,y\n".repeat(100_000)));
    let config = format!("{}, max_record_bytes: 1000", file.config());
    let told = Stage::source("windlass.csv.source", &config).fails();
    contains(&told, &["longer than config.max_record_bytes", "quote"]);
}

#[test]
fn a_sink_takes_its_columns_from_the_first_record() {
    let file = Scratch::missing();
    let epochs = r#"[[{b: 1, a: "x, y"}], [{a: 'say "hi"'}, {a: null, b: [1, 2]}]]"#;
    Stage::sink("windlass.csv.sink", &file.config(), epochs).seen();
    assert_eq!(
        file.text(),
        "a,b\n\"x, y\",1\n\"say \"\"hi\"\"\",\n,\"[1,2]\"\n"
    );
}

#[test]
fn a_sink_with_columns_writes_them_in_order() {
    let file = Scratch::missing();
    let config = format!("{}, columns: [b, a]", file.config());
    Stage::sink("windlass.csv.sink", &config, "[[{a: 1, b: 2}, [3, 4]]]").seen();
    assert_eq!(file.text(), "b,a\n2,1\n3,4\n");
    let config = format!("{config}, header: false, delimiter: ';', append: true");
    Stage::sink("windlass.csv.sink", &config, "[[{a: 5}]]").seen();
    assert_eq!(file.text(), "b,a\n2,1\n3,4\n;5\n");
}

#[test]
fn a_file_that_goes_on_has_one_header() {
    let file = Scratch::missing();
    let config = format!("{}, append: true", file.config());
    for _ in 0..2 {
        Stage::sink("windlass.csv.sink", &config, "[[{a: 1}]]").seen();
    }
    assert_eq!(file.text(), "a\n1\n1\n");
}

#[test]
fn records_that_do_not_fit_are_told() {
    let file = Scratch::missing();
    for (epochs, what) in [
        ("[[{a: 1}], [{b: 1}]]", "\"b\", and there is no such column"),
        ("[[1]]", "an object or a list"),
        ("[['x']]", "an object or a list"),
    ] {
        let told = Stage::sink("windlass.csv.sink", &file.config(), epochs).fails();
        contains(&told, &[what]);
    }
    let config = format!("{}, columns: [a, b]", file.config());
    let told = Stage::sink("windlass.csv.sink", &config, "[[[1]]]").fails();
    contains(&told, &["1 fields, and there are 2 columns"]);
    for wrong in ["[]", "[1]", "x"] {
        let config = format!("{}, columns: {wrong}", file.config());
        let told = Stage::sink("windlass.csv.sink", &config, "[]").fails();
        contains(&told, &["config.columns"]);
    }
}
