use super::*;

const HASHES: (InputHash, OutputHash) =
    (InputHash::from_bytes([1; 32]), OutputHash::from_bytes([2; 32]));

fn fields() -> SignedFields<'static> {
    SignedFields {
        tool: "t",
        input_hash: &HASHES.0,
        output_hash: &HASHES.1,
        timestamp: 7,
        namespace: "n",
        run_id: "r",
        tool_call_id: "c",
        attempt: 1,
        scope_id: "s",
    }
}

#[test]
fn framing_keeps_fields_apart() {
    assert_eq!(frame(&[b"a", b"bc"]), b"\0\0\0\x01a\0\0\0\x02bc");
    assert_ne!(frame(&[b"ab", b"c"]), frame(&[b"a", b"bc"]));
    assert_ne!(frame(&[]), frame(&[b""]));
}

#[test]
fn a_token_is_bound_to_every_field() {
    let key = ScopeKey::new(&mut [9; 32]);
    let token = key.sign(&fields());
    assert!(key.verify(&token, &fields()));
    let (input, output) = (InputHash::from_bytes([3; 32]), OutputHash::from_bytes([3; 32]));
    for changed in [
        SignedFields { tool: "u", ..fields() },
        SignedFields { input_hash: &input, ..fields() },
        SignedFields { output_hash: &output, ..fields() },
        SignedFields { timestamp: 8, ..fields() },
        SignedFields { namespace: "m", ..fields() },
        SignedFields { run_id: "s", ..fields() },
        SignedFields { tool_call_id: "d", ..fields() },
        SignedFields { attempt: 2, ..fields() },
        SignedFields { scope_id: "t", ..fields() },
    ] {
        assert!(!key.verify(&token, &changed), "{changed:?}");
    }
    assert!(!key.verify(&Token { epoch: 8, ..token }, &fields()));
    assert!(!ScopeKey::new(&mut [8; 32]).verify(&token, &fields()));
}

#[test]
fn the_callers_copy_of_the_key_is_wiped() {
    let mut secret = [5; 32];
    ScopeKey::new(&mut secret);
    assert_eq!(secret, [0; 32]);
}

#[test]
fn a_token_has_one_spelling() {
    let token = Token { epoch: u64::MAX, digest: [0xff; 32] };
    let text = token.to_string();
    assert_eq!(text.parse(), Ok(token));
    assert_eq!(receipt_line(&token), format!("[receipt: {text}]"));
    let zero = Token { epoch: 0, digest: [0; 32] };
    assert_eq!(zero.to_string().parse(), Ok(zero));
    let digits = &text[text.len() - 43..];
    for seconds in ["", "00", "01", "+1", "1_0", "18446744073709551616", "٣"] {
        let bad = format!("zc-receipt-{seconds}-{digits}");
        assert_eq!(bad.parse::<Token>(), Err(TokenError), "{bad}");
    }
    assert_eq!(format!(" {text}").parse::<Token>(), Err(TokenError));
    assert_eq!(format!("{text}\n").parse::<Token>(), Err(TokenError));
}

#[test]
fn an_idempotency_key_has_one_spelling() {
    let key = IdempotencyKey::derive("default", "r", "c");
    let text = key.to_string();
    assert_eq!((text.len(), text.parse()), (56, Ok(key)));
    // The last character carries one bit; the other spellings of it are refused.
    let last = if text.ends_with('q') { "r" } else { "b" };
    for bad in [
        text.to_uppercase(),
        text[4..].to_owned(),
        format!("{}{last}", &text[..55]),
        format!("{text}="),
        format!("rk2_{}", &text[4..]),
    ] {
        assert_eq!(bad.parse::<IdempotencyKey>(), Err(KeyError), "{bad}");
    }
}
