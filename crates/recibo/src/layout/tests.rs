use super::*;

const NARROW: Width = Width(60);
const WIDE: Width = Width(120);

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn the_width_is_that_of_columns_then_of_the_terminal_then_80() {
    for (variable, terminal, columns) in [
        (None, None, 80),
        (None, Some(100), 100),
        (Some("120"), Some(100), 120),
        (Some("120"), None, 120),
        (Some("20"), None, 60),
        (Some("900"), None, 200),
        (None, Some(10), 60),
        (None, Some(500), 200),
        (None, Some(0), 80),
        (Some("0"), Some(100), 80),
        (Some(""), Some(100), 100),
        (Some("wide"), None, 80),
    ] {
        assert_eq!(Width::of(variable, terminal).columns(), columns, "{variable:?} {terminal:?}");
    }
}

#[test]
fn no_word_of_a_text_is_split_or_lost() {
    let id = format!("toolu-01|{}", "a-b/".repeat(30));
    let text = format!("The key is {id}, and 12{NO_BREAK}s are over.");
    let laid_out = prose("  - ", &text, NARROW);
    assert_eq!(laid_out, format!("  - The key is\n    {id},\n    and 12 s are over.\n"));
}

#[test]
fn facts_stand_below_each_other() {
    let rows = [("run", "r".to_owned()), ("twin", "x ".repeat(30).trim().to_owned())];
    let expected =
        format!("  run:  r\n  twin: {}\n        {}\n", "x ".repeat(26).trim(), "x x x x");
    assert_eq!(paint::plain(&facts("  ", &rows, NARROW)), expected);
}

#[test]
fn parts_flow_over_lines_and_stay_whole() {
    let parts = owned(&["2026-09-13", "", &"r".repeat(50), "ok"]);
    let long = "r".repeat(50);
    assert_eq!(flow(&parts, "  ", NARROW), format!("2026-09-13\n  {long}  ok\n"));
    assert_eq!(flow(&parts, "  ", WIDE), format!("2026-09-13  {long}  ok\n"));
}

#[test]
fn a_table_is_aligned_where_it_fits_and_whole_where_it_does_not() {
    let rows = [owned(&["a", "", "first"]), owned(&["bbb", "", "é"])];
    assert_eq!(table(&rows, NARROW), "a    first\nbbb  é\n");
    let id = "i".repeat(58);
    let rows = [owned(&["a", &id]), owned(&["bbb", "ok"])];
    assert_eq!(table(&rows, NARROW), format!("a\n    {id}\nbbb  ok\n"));
    assert_eq!(table(&rows, WIDE), format!("a    {id}\nbbb  ok\n"));
    let exact = [owned(&["a", &"i".repeat(57)]), owned(&["b", ""])];
    assert!(table(&exact, NARROW).starts_with("a  i"), "60 columns are 60");
}

#[test]
fn colours_take_no_room() {
    let red = paint::bad(&"r".repeat(58));
    assert_eq!(paint::plain(&flow(&[red], "", NARROW)), format!("{}\n", "r".repeat(58)));
    let rows = [vec![paint::bad("a"), "x".into()], owned(&["bb", "y"])];
    assert_eq!(paint::plain(&table(&rows, NARROW)), "a   x\nbb  y\n");
}

#[test]
fn a_command_that_is_too_long_can_still_be_copied() {
    let line = "recibo resolve run_82f 'call|17' --as retryable --reason '...'   # it did not";
    assert_eq!(command("    ", line, WIDE), format!("    {line}\n"));
    assert_eq!(
        command("    ", line, NARROW),
        "    # it did not\n    recibo resolve run_82f 'call|17' --as retryable \\\n      --reason \
         '...'\n"
    );
    let path = format!("POST /v1/{}", "a/".repeat(40));
    assert_eq!(command("    ", &path, NARROW), format!("    {path}\n"));
}
