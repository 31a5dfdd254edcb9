//! The credential scan, played against a corpus of what real tools say: `secrets/corpus.txt`.

use recibo_core::json::canonicalize;
use recibo_core::secret::{mask, mask_json, mask_member};

const CORPUS: &str = include_str!("secrets/corpus.txt");

struct Case<'a> {
    line: usize,
    /// `None`: nothing is masked.
    kind: Option<&'a str>,
    surface: &'a str,
    marked: String,
}

fn cases() -> impl Iterator<Item = Case<'static>> {
    let lines = CORPUS.lines().enumerate();
    lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#')).map(|(i, text)| {
        let mut parts = text.splitn(3, ' ');
        let mut part = || parts.next().unwrap_or_else(|| panic!("line {}", i + 1));
        let (kind, surface, marked) = (part(), part(), part().replace('¦', ""));
        Case { line: i + 1, kind: (kind != "-").then_some(kind), surface, marked }
    })
}

impl Case<'_> {
    fn plain(&self) -> String {
        self.unescaped(self.marked.replace(['⟦', '⟧'], ""))
    }

    /// The case with its marked parts masked.
    fn masked(&self) -> String {
        let mut masked = String::new();
        for part in self.marked.split('⟦') {
            let Some((_, after)) = part.split_once('⟧') else {
                masked.push_str(part);
                continue;
            };
            let quote = if self.surface == "summary" && masked.ends_with(':') { "\"" } else { "" };
            let kind = self.kind.unwrap_or("none");
            masked.push_str(&format!("{quote}[REDACTED:{kind}]{quote}{after}"));
        }
        self.unescaped(masked)
    }

    fn unescaped(&self, text: String) -> String {
        if self.surface == "text" { text.replace("\\n", "\n") } else { text }
    }
}

/// What the scan makes of a case, and what it says of itself.
fn scan(surface: &str, text: &str) -> (String, bool) {
    match surface {
        "text" => {
            let scan = mask(text);
            (scan.text.to_string(), scan.redacted())
        }
        "label" => {
            let (name, value) = text.split_once(" = ").expect("a label is `name = value`");
            let scan = mask_member(name, value);
            (format!("{name} = {}", scan.text), scan.redacted())
        }
        _ => mask_json(&canonicalize(text.as_bytes()).expect("a summary is JSON")),
    }
}

fn expected(case: &Case<'_>) -> String {
    match case.surface {
        "summary" => canonicalize(case.masked().as_bytes()).expect("a summary is JSON"),
        _ => case.masked(),
    }
}

#[test]
fn every_secret_of_the_corpus_is_masked_and_nothing_else_is() {
    let (mut found, mut masked_exactly, mut secrets) = (0, 0, 0);
    let (mut touched, mut harmless) = (0, 0);
    let mut wrong = Vec::new();
    for case in cases() {
        let (seen, redacted) = scan(case.surface, &case.plain());
        let is_right = seen == expected(&case) && redacted == case.kind.is_some();
        if case.kind.is_some() {
            secrets += 1;
            found += u32::from(redacted);
            masked_exactly += u32::from(is_right);
        } else {
            harmless += 1;
            touched += u32::from(redacted);
        }
        if !is_right {
            wrong.push(format!("line {}: {} became {seen}", case.line, case.marked));
        }
    }
    let figures = format!(
        "{found} of {secrets} secrets found, {masked_exactly} masked exactly; {touched} of \
         {harmless} harmless cases touched"
    );
    println!("{figures}");
    assert!(secrets >= 200 && harmless >= 200, "{figures}");
    assert!(wrong.is_empty(), "{figures}\n{}", wrong.join("\n"));
}

#[test]
fn what_is_masked_once_is_not_masked_again() {
    for case in cases() {
        let (once, _) = scan(case.surface, &case.plain());
        assert_eq!(scan(case.surface, &once), (once.clone(), false), "line {}", case.line);
    }
}
