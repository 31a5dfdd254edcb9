//! The block of receipts at the end of what the user reads.

use std::fmt::Write;

use recibo_core::visible::visible;

const HEAD: &str = "Tool receipts:";
const TOKEN: &str = "zc-receipt-";

/// The block of these receipts, exactly as the ledger writes it; `None` without any.
pub(crate) fn block<'a>(receipts: impl Iterator<Item = (&'a str, &'a str)>) -> Option<String> {
    let mut block = String::new();
    for (tool, token) in receipts {
        if block.is_empty() {
            block.push_str("---\n");
            block.push_str(HEAD);
        }
        write!(block, "\n  {}: {token}", visible(tool)).expect("a string takes all text");
    }
    (!block.is_empty()).then_some(block)
}

/// The text with this block at its end, and without those that the model printed itself, in
/// whatever form: fenced, quoted, as a list, in bold, with other spaces.
pub(crate) fn append(text: &str, block: &str) -> String {
    let kept = without_blocks(text);
    let kept = kept.trim_end();
    if kept.is_empty() { block.to_owned() } else { format!("{kept}\n\n{block}") }
}

fn without_blocks(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut kept: Vec<&str> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        match block_end(&lines, at) {
            Some(end) => {
                // The rule and the opening fence before the head belong to the block.
                let mut was_fenced = false;
                while let Some(last) = kept.last() {
                    let is_fence = is_fence(last) && !was_fenced;
                    if !(last.trim().is_empty() || is_rule(last) || is_fence) {
                        break;
                    }
                    was_fenced |= is_fence;
                    kept.pop();
                }
                at = if was_fenced { after_fence(&lines, end) } else { end };
            }
            None => {
                kept.push(lines[at]);
                at += 1;
            }
        }
    }
    kept.join("\n")
}

/// Where the block ends whose head stands here, if one does. A head without receipts is text.
fn block_end(lines: &[&str], head: usize) -> Option<usize> {
    let line = bare(lines[head]);
    let rest = strip_head(line)?;
    let mut end = head + 1;
    let mut receipts = usize::from(rest.contains(TOKEN));
    for (i, line) in lines.iter().enumerate().skip(head + 1) {
        if line.contains(TOKEN) {
            receipts += 1;
            end = i + 1;
        } else if !line.trim().is_empty() {
            break;
        }
    }
    (receipts > 0).then_some(end)
}

fn strip_head(line: &str) -> Option<&str> {
    let (head, rest) = line.split_once(':')?;
    let words: Vec<_> = head.split_whitespace().map(bare).map(str::to_lowercase).collect();
    (words == ["tool", "receipts"]).then_some(rest)
}

/// Without the marks of quotes, lists, headings and bold.
fn bare(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '>' | '#' | '`' | '-'))
}

fn is_rule(line: &str) -> bool {
    let line = line.trim().trim_start_matches('>').trim();
    line.len() >= 3 && line.chars().all(|c| matches!(c, '-' | '*' | '_' | ' '))
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn after_fence(lines: &[&str], from: usize) -> usize {
    let blank = lines[from..].iter().take_while(|line| line.trim().is_empty()).count();
    match lines.get(from + blank) {
        Some(line) if is_fence(line) => from + blank + 1,
        _ => from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "zc-receipt-1774608496-gzpEBuUIRYX1vd4fQl4oYkqhq4-GnoJDStmlYzvQiWA";

    #[test]
    fn the_block_is_written_exactly() {
        let block = block([("weather", A), ("x/y", "zc-receipt-1-b")].into_iter());
        let text = format!("---\nTool receipts:\n  weather: {A}\n  x/y: zc-receipt-1-b");
        assert_eq!(block, Some(text));
        assert_eq!(super::block(std::iter::empty()), None);
        let block = super::block([("pay\u{202e}tnem", A)].into_iter());
        assert_eq!(block, Some(format!("---\nTool receipts:\n  pay\\u{{202e}}tnem: {A}")));
    }

    #[test]
    fn only_one_block_remains_however_the_model_printed_its_own() {
        let ours = format!("---\nTool receipts:\n  weather: {A}");
        for own in [
            ours.clone(),
            format!("```\n---\nTool receipts:\n  weather: {A}\n```"),
            format!("---\n```text\nTool receipts:\n  weather: {A}\n```"),
            format!("**Tool receipts:**\n- weather: `{A}`"),
            format!("### Tool  Receipts:\n\n* weather — {A}\n\n* mail: zc-receipt-1-forged"),
            format!("> Tool receipts:\n> weather: {A}"),
            format!("***\n\nTOOL RECEIPTS: weather: {A}"),
        ] {
            let text = append(&format!("It is 16 °C.\n\n{own}\n"), &ours);
            assert_eq!(text, format!("It is 16 °C.\n\n{ours}"), "{own}");
            let text = append(&format!("Before.\n{own}\nAfter."), &ours);
            assert_eq!(text, format!("Before.\nAfter.\n\n{ours}"), "{own}");
        }
    }

    #[test]
    fn what_is_no_block_stays() {
        let ours = format!("---\nTool receipts:\n  weather: {A}");
        for text in [
            format!("The weather has the receipt {A}."),
            "Tool receipts: none.".to_owned(),
            "About tool receipts:\n  they prove calls".to_owned(),
            "```\ncode\n```".to_owned(),
        ] {
            assert_eq!(append(&text, &ours), format!("{text}\n\n{ours}"));
        }
        assert_eq!(append("", &ours), ours);
    }
}
