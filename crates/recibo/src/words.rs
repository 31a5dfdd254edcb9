//! Words that a new reader does not know, in one place: a short meaning for where a word first
//! appears, and the page of `recibo help words`.

use recibo_core::effect::Effect;

use crate::layout::{self, Width};
use crate::paint;

/// All words, as `recibo help words` prints them.
pub const PAGE: &str = include_str!("../../../docs/words.md");

/// Words, and what stands behind the first of each.
const MEANINGS: [(&str, &str); 11] = [
    ("lease", "the time that an attempt has to report"),
    ("receipt", "the proof of a success"),
    ("adapter", "the program that runs the tool"),
    ("reconciler", "a program that asks outside services"),
    ("outside service", "what the tool talks to"),
    ("settle time", "after it, the outside service's answer is final"),
    ("idempotency key", "the call's name for the outside service"),
    ("operation key", "the caller's own name for the effect"),
    ("namespace", "the part of the ledger that a key sees"),
    ("scope", "the life of one signing key"),
    ("tool_call_id", "the call's own id"),
];

/// What an effect says, as a half sentence.
pub fn of_effect(effect: Effect) -> &'static str {
    match effect {
        Effect::ReadOnly => "running it again changes nothing",
        Effect::Idempotent => "running it again gives the same end state",
        Effect::Keyed => {
            "the outside service recognizes a repeated request by its idempotency key, for a time"
        }
        Effect::Queryable => "the outside service can be asked what happened",
        Effect::Opaque => {
            "the outside service neither recognizes a repeated request nor can be asked"
        }
    }
}

/// What the reader of a page has been told already.
#[derive(Debug, Default)]
pub struct Reader {
    told: Vec<&'static str>,
}

impl Reader {
    /// The text with the meaning behind each word that this reader sees for the first time.
    pub fn told(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (word, meaning) in MEANINGS {
            if !self.told.contains(&word)
                && let Some(end) = end_of(&text, word)
            {
                text.insert_str(end, &format!(" ({meaning})"));
                self.told.push(word);
            }
        }
        text
    }
}

/// Where a word ends that stands by itself, or as the plural.
fn end_of(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '\'');
    text.match_indices(word).find_map(|(start, _)| {
        let end = start + word.len();
        let (before, after) = (&text[..start], &text[end..]);
        let stands_alone = !before.ends_with(is_part) && !after.starts_with(is_part);
        stands_alone.then_some(end)
    })
}

/// The last lines of a page in few words: what its words mean.
pub fn notes(page: &str, width: Width) -> String {
    let page = anstream::adapter::strip_str(page).to_string();
    let words = [("lease", MEANINGS[0].1), ("conflict", "the evidence contradicts itself")];
    let words = words.into_iter().filter(|(word, _)| page.contains(word));
    let effects = Effect::ALL.into_iter().map(|effect| (effect.as_str(), of_effect(effect)));
    let effects = effects.filter(|(word, _)| page.contains(&format!("({word})")));
    let mut rows: Vec<_> =
        words.chain(effects).map(|(word, meaning)| (word, paint::faint(meaning))).collect();
    rows.push(("more words", paint::faint("recibo help words")));
    format!("\n{}", layout::facts("", &rows, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_explained_once_and_where_it_first_stands() {
        let mut reader = Reader::default();
        assert_eq!(
            reader.told("lease_expired: the lease is over, the lease of r-lease"),
            "lease_expired: the lease (the time that an attempt has to report) is over, the lease \
             of r-lease"
        );
        assert_eq!(reader.told("Its lease ends."), "Its lease ends.");
        assert_eq!(
            reader.told("the call's adapter."),
            "the call's adapter (the program that runs the tool)."
        );
    }

    #[test]
    fn every_word_with_a_meaning_is_in_the_page() {
        for (word, _) in MEANINGS {
            let word = word.trim_end_matches(" time");
            let marks = [format!("- **{word}"), format!("**{word}**"), format!("`{word}`")];
            assert!(marks.iter().any(|mark| PAGE.contains(mark.as_str())), "{word}");
        }
        for effect in Effect::ALL {
            let (word, meaning) = (effect.as_str(), of_effect(effect));
            assert!(PAGE.contains(&format!("- `{word}`: {meaning}.")), "{word}");
        }
    }

    #[test]
    fn notes_explain_the_words_of_their_page() {
        let width = Width::of_stdout();
        let text = paint::plain(&notes("c  crm/add (opaque)  lease ends in 5 s", width));
        assert!(text.contains("lease:") && text.contains("opaque:"), "{text}");
        assert!(!text.contains("keyed:") && text.contains("recibo help words"), "{text}");
    }
}
