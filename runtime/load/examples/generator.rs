//! The generator as a process of its own, without the rest of `exp`: for the tests that stop it by signals.

fn main() -> std::process::ExitCode {
    let code = load::control(std::io::stdin().lock(), std::io::stdout());
    std::process::ExitCode::from(u8::try_from(code).unwrap_or(1))
}
