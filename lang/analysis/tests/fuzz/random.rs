//! Numbers that are the same on every machine, and texts that are changed by them.

use syntax::{Token, tokens};

/// xorshift64*: any generator will do, as long as a failure can be repeated.
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `bound`; 0 where that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }

    /// Whether one of `percent` in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// One of them, by reference.
    pub fn choose<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// The tokens of these texts that are no white space, each once.
pub fn pool<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut pool: Vec<String> = texts
        .into_iter()
        .flat_map(|text| tokens(text).into_iter().map(|token| token.span.of(text).to_owned()).collect::<Vec<_>>())
        .filter(|piece| !piece.trim().is_empty())
        .collect();
    pool.sort();
    pool.dedup();
    pool
}

const SPICE: [&str; 22] = [
    "{",
    "}",
    "\"",
    ";",
    "\n",
    " ",
    "(remove)",
    "(replace)",
    "=",
    "é",
    "𝄞",
    "/-",
    "${",
    "${x}",
    "10s",
    "like=",
    "\\",
    "#",
    "\"\"\"",
    "/*",
    "-1",
    "1e400",
];

/// The text with some tokens taken out, doubled, swapped, moved, replaced or put in.
pub fn mutated(text: &str, pool: &[String], random: &mut Random) -> String {
    let mut pieces: Vec<String> = tokens(text).into_iter().map(|token: Token| token.span.of(text).to_owned()).collect();
    for _ in 0..1 + random.below(4) {
        if pieces.is_empty() {
            pieces.push(String::new());
        }
        let at = random.below(pieces.len());
        match random.below(7) {
            0 => {
                pieces.remove(at);
            }
            1 => pieces.insert(at, pieces[at].clone()),
            2 => {
                let other = random.below(pieces.len());
                pieces.swap(at, other);
            }
            3 => pieces[at].clone_from(random.choose(pool)),
            4 => pieces.insert(at, random.pick(&SPICE).to_owned()),
            5 => {
                // A character inside of a token.
                let piece = &mut pieces[at];
                let places: Vec<usize> = piece.char_indices().map(|(place, _)| place).collect();
                if let Some(&place) = places.get(random.below(places.len())) {
                    match random.chance(50) {
                        true => drop(piece.remove(place)),
                        false => piece.insert_str(place, random.pick(&SPICE)),
                    }
                }
            }
            _ => {
                let length = (1 + random.below(12)).min(pieces.len() - at);
                let part: Vec<String> = pieces.drain(at..at + length).collect();
                let to = random.below(pieces.len());
                for piece in part.into_iter().rev() {
                    pieces.insert(to, piece);
                }
            }
        }
    }
    pieces.concat()
}
