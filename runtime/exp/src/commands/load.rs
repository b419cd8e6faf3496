//! `exp load`: the generator, alone or driven over standard input.

use crate::args::{Load, RunFormat};
use crate::exit::Exit;
use crate::terminal;

/// Sends load to a URL, or takes orders.
pub fn run(arguments: &Load) -> Exit {
    if arguments.control {
        let code = load::control(std::io::stdin().lock(), std::io::stdout());
        return if code == 0 { Exit::Ok } else { Exit::Failed };
    }
    terminal::note(&format!("{:?} {:?}", arguments.url, arguments.format == RunFormat::Json));
    Exit::Usage
}
