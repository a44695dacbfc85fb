//! Channel binding: what ties a password's proof to the server's certificate, so that
//! no server in between can pass it on (`tls-server-end-point`, RFC 5929).

use sha2::{Digest, Sha256, Sha384, Sha512};

/// The hash of a certificate, by the function that it is signed with, and SHA-256 in
/// the place of weaker ones. `None` if its signature names no such function: then
/// there is nothing that both sides could agree on.
pub(crate) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (whole, _) = element(certificate, SEQUENCE)?;
    let (_, rest) = element(whole, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (name, _) = element(algorithm, OBJECT)?;
    // RSA with (1.2.840.113549.1.1.x), and ECDSA with (1.2.840.10045.4.3.x).
    let hash = match name {
        [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, kind] => match kind {
            4 | 5 | 11 => Hash::Short,
            12 => Hash::Middle,
            13 => Hash::Long,
            _ => return None,
        },
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01] => Hash::Short,
        [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, kind] => match kind {
            2 => Hash::Short,
            3 => Hash::Middle,
            4 => Hash::Long,
            _ => return None,
        },
        _ => return None,
    };
    Some(match hash {
        Hash::Short => Sha256::digest(certificate).to_vec(),
        Hash::Middle => Sha384::digest(certificate).to_vec(),
        Hash::Long => Sha512::digest(certificate).to_vec(),
    })
}

enum Hash {
    Short,
    Middle,
    Long,
}

const SEQUENCE: u8 = 0x30;
const OBJECT: u8 = 0x06;

/// The content of the first element, if it is of this kind, and what follows it (DER).
fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if *first != kind {
        return None;
    }
    let (length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            (digits.iter().fold(0, |sum, digit| sum << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let wrapped = |kind: u8, content: &[u8]| {
            let length = u8::try_from(content.len()).unwrap();
            [&[kind, 0x81, length], content].concat()
        };
        let algorithm = wrapped(SEQUENCE, &wrapped(OBJECT, algorithm));
        wrapped(SEQUENCE, &[wrapped(SEQUENCE, b"what is signed"), algorithm].concat())
    }

    #[test]
    fn the_function_is_the_one_that_the_certificate_is_signed_with() {
        const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
        const ECDSA: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
        let length = |name: &[u8], kind: u8| {
            let signed = certificate(&[name, &[kind]].concat());
            end_point(&signed).map(|hash| hash.len())
        };
        assert_eq!([5, 11, 12, 13].map(|kind| length(&RSA, kind)), [32, 32, 48, 64].map(Some));
        assert_eq!([2, 3, 4].map(|kind| length(&ECDSA, kind)), [32, 48, 64].map(Some));
        assert_eq!(length(&RSA, 10), None, "it names its function elsewhere");
        assert_eq!(length(&[0x2b, 0x65], 0x70), None, "Ed25519 has none");
    }

    #[test]
    fn damaged_certificates_have_none() {
        let whole = certificate(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 2]);
        for cut in 0..whole.len() {
            assert_eq!(end_point(&whole[..cut]), None, "{cut}");
        }
        assert_eq!(end_point(&[0x30, 0x85, 1, 1, 1, 1, 1]), None);
    }
}
