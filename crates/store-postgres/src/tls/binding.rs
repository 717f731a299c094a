//! Channel binding: the digest of the database's certificate, computed with the hash function of
//! its signature (`tls-server-end-point`, RFC 5929).

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

/// Digest of this DER certificate; `None` if its signature algorithm defines no digest.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let algorithm = hash_of(signature_algorithm(certificate)?)?;
    Some(digest(algorithm, certificate).as_ref().to_vec())
}

/// Object identifier of the signature algorithm. A certificate is a sequence of the signed part,
/// this identifier and the signature.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (content, _) = element(certificate)?;
    let (_, after_signed) = element(content)?;
    let (algorithm, _) = element(after_signed)?;
    element(algorithm).map(|(identifier, _)| identifier)
}

/// Content of the first element, and the bytes after it.
fn element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
const ECDSA: [u8; 6] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04];

/// The specification replaces MD5 and SHA-1 by SHA-256.
fn hash_of(identifier: &[u8]) -> Option<&'static Algorithm> {
    let rsa = identifier.strip_prefix(&RSA);
    let ecdsa = identifier.strip_prefix(&ECDSA);
    match (rsa, ecdsa) {
        (Some([4 | 5 | 11]), _) | (_, Some([1] | [3, 2])) => Some(&SHA256),
        (Some([12]), _) | (_, Some([3, 3])) => Some(&SHA384),
        (Some([13]), _) | (_, Some([3, 4])) => Some(&SHA512),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
        SignatureAlgorithm,
    };

    use super::*;

    fn certificate(algorithm: &'static SignatureAlgorithm) -> Vec<u8> {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(vec!["db.example.org".to_owned()]).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_digest_is_that_of_the_signature() {
        let p256 = certificate(&PKCS_ECDSA_P256_SHA256);
        assert_eq!(end_point(&p256).unwrap(), digest(&SHA256, &p256).as_ref());
        let p384 = certificate(&PKCS_ECDSA_P384_SHA384);
        assert_eq!(end_point(&p384).unwrap(), digest(&SHA384, &p384).as_ref());
    }

    #[test]
    fn without_a_defined_digest_there_is_none() {
        assert_eq!(end_point(&certificate(&PKCS_ED25519)), None);
        let whole = certificate(&PKCS_ECDSA_P256_SHA256);
        for length in 0..40 {
            assert_eq!(end_point(&whole[..length]), None);
        }
    }
}
