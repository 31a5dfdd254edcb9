//! Exit codes. Scripts read them, so none ever changes its meaning.

/// All is well.
pub const OK: u8 = 0;
/// The command failed.
pub const FAILED: u8 = 1;
/// The command line makes no sense.
pub const USAGE: u8 = 2;

/// `exec`: the command failed for good, without effect.
pub const TERMINAL: u8 = 10;
/// `exec`: the command failed without effect and may be tried again.
pub const RETRYABLE: u8 = 11;
/// `exec`: nobody knows whether the command took effect.
pub const UNKNOWN: u8 = 12;
/// `exec`: the command did not end in time; it may have taken effect.
pub const TIMEOUT: u8 = 13;
/// `exec`: the command succeeded, and that is recorded, but no key was there to sign a receipt.
pub const NO_RECEIPT: u8 = 14;
/// `exec`: not run, another attempt is under way.
pub const WAIT: u8 = 20;
/// `exec`: not run, it is done already.
pub const REUSE: u8 = 21;
/// `exec`: not run, the outside service must be asked first.
pub const CHECK_STATUS: u8 = 22;
/// `exec`: not run, and it must not be.
pub const STOP: u8 = 23;
/// `exec`: not run, the ledger refused the request.
pub const REFUSED: u8 = 30;
/// `exec`: not run, the ledger could not be reached.
pub const UNREACHABLE: u8 = 31;
/// `exec`: run, but its outcome could not be recorded.
pub const NOT_RECORDED: u8 = 32;

/// The table of `exec --help`.
pub const TABLE: &str = "\
Exit codes:
   0  it succeeded and has its receipt
   2  the command line makes no sense
  14  it succeeded, and that is recorded, but no receipt could be signed

  The command was run, and failed:
  10  for good, without effect (terminal_error)
  11  without effect, may be tried again (retryable_error); also if it could not
      be started
  12  nobody knows whether it took effect (unknown): by a signal, or with an exit
      code that --ok-exit, --retryable-exit and --terminal-exit do not name
  13  it did not end in time and was killed; it may have taken effect (timeout)

  The command was not run, since the ledger answered:
  20  wait: another attempt is under way
  21  reuse: it is done already (--done-exit names another code)
  22  check_status: ask the outside service what became of an earlier attempt
  23  stop: do not run it; `recibo explain` says why

  30  the ledger refused the request: the command was not run
  31  the ledger could not be reached or opened: the command was not run
  32  the command was run, but its outcome could not be recorded; once its lease is
      over the ledger reads it as unknown";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_exec_is_in_the_help() {
        let codes = [
            OK,
            USAGE,
            TERMINAL,
            RETRYABLE,
            UNKNOWN,
            TIMEOUT,
            NO_RECEIPT,
            WAIT,
            REUSE,
            CHECK_STATUS,
            STOP,
            REFUSED,
            UNREACHABLE,
            NOT_RECORDED,
        ];
        for code in codes {
            assert!(TABLE.lines().any(|line| line.starts_with(&format!("{code:>4}  "))), "{code}");
        }
    }
}
