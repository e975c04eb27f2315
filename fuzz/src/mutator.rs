//! Almost valid inputs: seeds with some changes, reproducible by a seed number.

use viaduct_units::Rng;

/// Boundary values of decoders.
const INTERESTING: [u8; 12] = [0, 1, 2, 0x10, 0x3F, 0x40, 0x7F, 0x80, 0x81, 0xC0, 0xFE, 0xFF];
/// Tokens of JSON.
const TOKENS: [&[u8]; 16] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"null",
    b"true",
    b"-1",
    b"0",
    b"1e9",
    b"9223372036854775808",
    b"\"unavailable\"",
    b"\\u0000",
    b"{\"a\":[]}",
];
/// Maximum number of changes of an input.
const CHANGES_MAX: usize = 6;
/// Maximum length of an input in octets.
const OCTETS_MAX: usize = 8192;

/// A generator of inputs from seeds.
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    random: Rng,
    input: Vec<u8>,
}

impl Mutator {
    /// Creates a generator from seeds. The same seed number results in the same inputs.
    #[must_use]
    pub fn new(seeds: Vec<Vec<u8>>, seed: u64) -> Self {
        Self { seeds, random: Rng::new(seed), input: Vec::new() }
    }

    /// Returns the next input.
    pub fn next_input(&mut self) -> &[u8] {
        let chosen = self.random.below(self.seeds.len());
        self.input.clear();
        self.input.extend_from_slice(self.seeds.get(chosen).map_or(&[], Vec::as_slice));
        for _ in 0..=self.random.below(CHANGES_MAX) {
            self.change();
        }
        self.input.truncate(OCTETS_MAX);
        &self.input
    }

    fn change(&mut self) {
        let at = self.random.below(self.input.len());
        let end = (at + 1 + self.random.below(16)).min(self.input.len());
        match self.random.below(9) {
            0 | 1 => self.set(at, |octet, random| octet ^ 1 << (random & 7)),
            2 => self.set(at, |_, random| random),
            3 => self.set(at, |_, random| INTERESTING.get(usize::from(random) % INTERESTING.len()).map_or(0, |o| *o)),
            4 => drop(self.input.drain(at.min(end)..end)),
            5 => self.input.truncate(at),
            6 => {
                let copied = self.input.get(at..end).unwrap_or_default().to_vec();
                self.insert(&copied);
            }
            7 => {
                let token = self.random.below(TOKENS.len());
                self.insert(TOKENS.get(token).copied().unwrap_or_default());
            }
            _ => self.splice(),
        }
    }

    fn set(&mut self, at: usize, new: impl FnOnce(u8, u8) -> u8) {
        let random = u8::try_from(self.random.below(256)).unwrap_or(0);
        if let Some(octet) = self.input.get_mut(at) {
            *octet = new(*octet, random);
        }
    }

    fn insert(&mut self, octets: &[u8]) {
        let at = self.random.below(self.input.len() + 1);
        self.input.splice(at..at, octets.iter().copied());
    }

    /// Replaces the end of the input by the end of another seed.
    fn splice(&mut self) {
        let other = self.random.below(self.seeds.len());
        let length = self.seeds.get(other).map_or(0, Vec::len);
        let from = self.random.below(length + 1);
        let kept = self.random.below(self.input.len() + 1);
        self.input.truncate(kept);
        self.input.extend_from_slice(self.seeds.get(other).and_then(|seed| seed.get(from..)).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_reproducible_by_the_seed_number() {
        let inputs = |seed| {
            let mut mutator = Mutator::new(vec![vec![1, 2, 3, 4], vec![5; 30]], seed);
            (0..100).map(|_| mutator.next_input().to_vec()).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        assert!(inputs(3).iter().all(|input| input.len() <= OCTETS_MAX));
    }

    #[test]
    fn accepts_an_empty_list_of_seeds() {
        let mut mutator = Mutator::new(Vec::new(), 1);
        for _ in 0..1000 {
            mutator.next_input();
        }
    }
}
