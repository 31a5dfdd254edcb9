//! What is measured, how it is summed up, and how it is shown: one table and JSON files.

use std::path::PathBuf;

use serde::Serialize;

use crate::failure::Outcome;

/// A goal, as a bound on a value.
#[derive(Clone, Copy, Debug, Serialize)]
pub enum Goal {
    /// The value must be this large.
    AtLeast(f64),
    /// The value must be this small.
    AtMost(f64),
}

impl Goal {
    /// Whether a value meets it.
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

/// A measured quantity, from several slices.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it is.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// The middle slice.
    pub median: f64,
    /// The smallest slice.
    pub min: f64,
    /// The largest slice.
    pub max: f64,
    /// All slices, in the order measured.
    pub slices: Vec<f64>,
}

/// A value against its goal.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// What is compared with what.
    pub what: String,
    /// The value.
    pub value: f64,
    /// Its unit; `x` for a ratio.
    pub unit: &'static str,
    /// Its goal; none for a value that only informs.
    pub goal: Option<Goal>,
}

/// The results of a scenario.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Name of the scenario and of its file.
    pub scenario: &'static str,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Ratios and goals.
    pub verdicts: Vec<Verdict>,
    /// What a reader has to know beside them.
    pub notes: Vec<String>,
}

impl Report {
    /// An empty report.
    pub fn new(scenario: &'static str) -> Self {
        Self { scenario, figures: Vec::new(), verdicts: Vec::new(), notes: Vec::new() }
    }

    /// Adds a figure; gives its median.
    pub fn figure(&mut self, what: impl Into<String>, unit: &'static str, slices: &[f64]) -> f64 {
        let mut sorted = slices.to_vec();
        sorted.sort_by(f64::total_cmp);
        let figure = Figure {
            what: what.into(),
            unit,
            median: median(&sorted),
            min: sorted.first().copied().unwrap_or(f64::NAN),
            max: sorted.last().copied().unwrap_or(f64::NAN),
            slices: slices.to_vec(),
        };
        eprintln!("  {} {} {}", figure.what, short(figure.median), unit);
        let median = figure.median;
        self.figures.push(figure);
        median
    }

    /// Adds a value against a goal.
    pub fn goal(&mut self, what: impl Into<String>, unit: &'static str, value: f64, goal: Goal) {
        self.verdicts.push(Verdict { what: what.into(), value, unit, goal: Some(goal) });
    }

    /// Adds a value without a goal.
    pub fn value(&mut self, what: impl Into<String>, unit: &'static str, value: f64) {
        self.verdicts.push(Verdict { what: what.into(), value, unit, goal: None });
    }

    /// Adds a sentence.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        eprintln!("  {text}");
        self.notes.push(text);
    }

    /// Writes `results/SCENARIO.json`.
    pub fn write(&self) -> Outcome<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(std::fs::write(results().join(format!("{}.json", self.scenario)), text)?)
    }
}

/// The middle of sorted values.
pub fn median(sorted: &[f64]) -> f64 {
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// A quantile of sorted values.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((q * last as f64).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Where result files go.
pub fn results() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("results")
}

/// Prints the table of all scenarios, as Markdown.
pub fn print(reports: &[Report]) {
    println!("\n| scenario | figure | median | min..max | unit |\n|---|---|---|---|---|");
    for report in reports {
        for figure in &report.figures {
            let (median, min, max) = (short(figure.median), short(figure.min), short(figure.max));
            let (what, unit) = (&figure.what, figure.unit);
            println!("| {} | {what} | {median} | {min}..{max} | {unit} |", report.scenario);
        }
    }
    println!("\n| scenario | compared | value | goal | met |\n|---|---|---|---|---|");
    for report in reports {
        for verdict in &report.verdicts {
            let (goal, met) = match verdict.goal {
                None => ("-".into(), "-"),
                Some(goal) => {
                    let text = match goal {
                        Goal::AtLeast(bound) => format!(">= {} {}", short(bound), verdict.unit),
                        Goal::AtMost(bound) => format!("<= {} {}", short(bound), verdict.unit),
                    };
                    (text, if goal.is_met(verdict.value) { "yes" } else { "**no**" })
                }
            };
            let value = format!("{} {}", short(verdict.value), verdict.unit);
            println!("| {} | {} | {value} | {goal} | {met} |", report.scenario, verdict.what);
        }
    }
    println!();
    for report in reports {
        for note in &report.notes {
            println!("- {}: {note}", report.scenario);
        }
    }
}

/// Three digits that matter; thousands apart.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "-".into();
    }
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
