//! The cryptography of `dimpl`: HMAC, hashes and AES-GCM of `ring`, which the project has anyway, and AES-CCM of RustCrypto.
//!
//! The only cipher suite in use is `TLS_PSK_WITH_AES_128_CCM_8` (RFC 6655). `dimpl` checks the primitives with test vectors
//! when a configuration is built; it insists on a suite of DTLS 1.3 too, which no configuration permits.

use std::cell::Cell;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt as _, KeyInit as _};
use ccm::aead::AeadInOut as _;
use ccm::consts::{U8, U12};
use dimpl::crypto::{
    Aad, Buf, Cipher, CryptoProvider, Dtls12CipherSuite, Dtls13CipherSuite, HashAlgorithm, HashContext, HashProvider,
    HmacProvider, KeyProvider, Nonce, SecureRandom, SignatureAlgorithm, SignatureVerifier, SigningKey,
    SupportedDtls12CipherSuite, SupportedDtls13CipherSuite, TmpBuf,
};
use dimpl::{CryptoError, CryptoOperation};
use ring::rand::SecureRandom as _;
use ring::{aead, digest, hmac};

use super::wire::COOKIE;

/// Octets of an AES-128 key.
const KEY: usize = 16;
/// Octets of the tag of AES-CCM-8.
const CCM_TAG: usize = 8;
/// Octets of the tag of AES-GCM.
const GCM_TAG: usize = 16;

/// Returns the primitives that a configuration uses.
pub(super) fn provider() -> CryptoProvider {
    CryptoProvider {
        kx_groups: &[],
        signature_verification: &NoCertificates,
        key_provider: &NoCertificates,
        secure_random: &System,
        hash_provider: &Hashes,
        hmac_provider: &Hmac,
        cipher_suites: &[&PskAes128Ccm8],
        dtls13_cipher_suites: &[&Aes128GcmSha256],
    }
}

thread_local! {
    /// The cookie that the next computation returns.
    static CHECKED_COOKIE: Cell<Option<[u8; COOKIE]>> = const { Cell::new(None) };
}

/// Lets `process` accept a `ClientHello` with a cookie that the caller has checked.
///
/// `dimpl` makes cookies with a secret of each connection, so that it has state for every address that sends a `ClientHello`.
/// The server of this module checks the cookie before there is a connection. Afterwards the connection computes the cookie
/// again, as the first HMAC of `process`, to compare it.
pub(super) fn with_checked_cookie<T>(cookie: [u8; COOKIE], process: impl FnOnce() -> T) -> T {
    CHECKED_COOKIE.set(Some(cookie));
    let result = process();
    CHECKED_COOKIE.set(None);
    result
}

fn failed(operation: CryptoOperation) -> CryptoError {
    CryptoError::OperationFailed(operation)
}

/// Returns the position of the tag at the end of a ciphertext.
fn tag_start(ciphertext: &TmpBuf<'_>, tag: usize) -> Result<usize, CryptoError> {
    ciphertext.len().checked_sub(tag).ok_or_else(|| failed(CryptoOperation::Decrypt))
}

/// `TLS_PSK_WITH_AES_128_CCM_8`.
#[derive(Debug)]
struct PskAes128Ccm8;

impl SupportedDtls12CipherSuite for PskAes128Ccm8 {
    fn suite(&self) -> Dtls12CipherSuite {
        Dtls12CipherSuite::PSK_AES128_CCM_8
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn key_lengths(&self) -> (usize, usize, usize) {
        // RFC 6655, 3: no key of a MAC, the key of AES, the fixed part of the nonce.
        (0, KEY, 4)
    }

    fn explicit_nonce_len(&self) -> usize {
        8
    }

    fn tag_len(&self) -> usize {
        CCM_TAG
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        let cipher = ccm::Ccm::new_from_slice(key).map_err(|_| failed(CryptoOperation::CreateCipher))?;
        Ok(Box::new(Aes128Ccm8(cipher)))
    }
}

struct Aes128Ccm8(ccm::Ccm<Aes128, U8, U12>);

impl std::fmt::Debug for Aes128Ccm8 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Aes128Ccm8")
    }
}

impl Cipher for Aes128Ccm8 {
    fn encrypt(&mut self, plaintext: &mut Buf, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let tag = self.0.encrypt_inout_detached(&nonce.0.into(), &aad, plaintext.as_mut().into());
        plaintext.extend_from_slice(&tag.map_err(|_| failed(CryptoOperation::Encrypt))?);
        Ok(())
    }

    fn decrypt(&mut self, ciphertext: &mut TmpBuf<'_>, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let error = || failed(CryptoOperation::Decrypt);
        let start = tag_start(ciphertext, CCM_TAG)?;
        let tag = ciphertext.as_ref().last_chunk::<CCM_TAG>().copied().ok_or_else(error)?;
        ciphertext.truncate(start);
        let plaintext = self.0.decrypt_inout_detached(&nonce.0.into(), &aad, ciphertext.as_mut().into(), &tag.into());
        plaintext.map_err(|_| error())
    }
}

/// `TLS_AES_128_GCM_SHA256` of DTLS 1.3.
#[derive(Debug)]
struct Aes128GcmSha256;

impl SupportedDtls13CipherSuite for Aes128GcmSha256 {
    fn suite(&self) -> Dtls13CipherSuite {
        Dtls13CipherSuite::AES_128_GCM_SHA256
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        HashAlgorithm::SHA256
    }

    fn key_len(&self) -> usize {
        KEY
    }

    fn iv_len(&self) -> usize {
        aead::NONCE_LEN
    }

    fn tag_len(&self) -> usize {
        GCM_TAG
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        let key = aead::UnboundKey::new(&aead::AES_128_GCM, key).map_err(|_| failed(CryptoOperation::CreateCipher))?;
        Ok(Box::new(Aes128Gcm(aead::LessSafeKey::new(key))))
    }

    fn encrypt_sn(&self, key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
        let mut block = (*sample).into();
        if let Ok(cipher) = Aes128::new_from_slice(key) {
            cipher.encrypt_block(&mut block);
        }
        block.into()
    }
}

#[derive(Debug)]
struct Aes128Gcm(aead::LessSafeKey);

impl Cipher for Aes128Gcm {
    fn encrypt(&mut self, plaintext: &mut Buf, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let tag = self.0.seal_in_place_separate_tag(nonce, aead::Aad::from(&aad[..]), plaintext.as_mut());
        plaintext.extend_from_slice(tag.map_err(|_| failed(CryptoOperation::Encrypt))?.as_ref());
        Ok(())
    }

    fn decrypt(&mut self, ciphertext: &mut TmpBuf<'_>, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let start = tag_start(ciphertext, GCM_TAG)?;
        let nonce = aead::Nonce::assume_unique_for_key(nonce.0);
        let opened = self.0.open_in_place(nonce, aead::Aad::from(&aad[..]), ciphertext.as_mut());
        opened.map_err(|_| failed(CryptoOperation::Decrypt))?;
        ciphertext.truncate(start);
        Ok(())
    }
}

#[derive(Debug)]
struct Hashes;

impl HashProvider for Hashes {
    fn create_hash(&self, algorithm: HashAlgorithm) -> Box<dyn HashContext> {
        // The suites above use SHA-256 only.
        let algorithm = if algorithm == HashAlgorithm::SHA384 { &digest::SHA384 } else { &digest::SHA256 };
        Box::new(Hash(digest::Context::new(algorithm)))
    }
}

struct Hash(digest::Context);

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

impl HashContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn clone_and_finalize(&self, out: &mut Buf) {
        out.clear();
        out.extend_from_slice(self.0.clone().finish().as_ref());
    }
}

#[derive(Debug)]
struct Hmac;

impl HmacProvider for Hmac {
    fn hmac(&self, hash: HashAlgorithm, key: &[u8], data: &[u8], out: &mut [u8]) -> Result<usize, CryptoError> {
        let algorithm = match hash {
            HashAlgorithm::SHA256 => hmac::HMAC_SHA256,
            HashAlgorithm::SHA384 => hmac::HMAC_SHA384,
            other => return Err(CryptoError::UnsupportedHmacHash(other)),
        };
        let tag = hmac::sign(&hmac::Key::new(algorithm, key), data);
        let tag = tag.as_ref();
        out.get_mut(..tag.len()).ok_or_else(|| failed(CryptoOperation::ComputeHmac))?.copy_from_slice(tag);
        Ok(tag.len())
    }

    fn hmac_sha256(&self, key: &[u8], data: &[u8]) -> Result<[u8; 32], CryptoError> {
        if let Some(cookie) = CHECKED_COOKIE.take() {
            return Ok(cookie);
        }
        let mut out = [0; 32];
        self.hmac(HashAlgorithm::SHA256, key, data, &mut out)?;
        Ok(out)
    }
}

#[derive(Debug)]
struct System;

impl SecureRandom for System {
    fn fill(&self, octets: &mut [u8]) -> Result<(), CryptoError> {
        ring::rand::SystemRandom::new().fill(octets).map_err(|_| failed(CryptoOperation::FillRandom))
    }
}

/// The functions of certificates, which connections with pre-shared keys do not use.
#[derive(Debug)]
struct NoCertificates;

impl SignatureVerifier for NoCertificates {
    fn verify_signature(
        &self,
        _certificate: &[u8],
        _data: &[u8],
        _signature: &[u8],
        _hash: HashAlgorithm,
        algorithm: SignatureAlgorithm,
    ) -> Result<(), CryptoError> {
        Err(CryptoError::UnsupportedSignatureAlgorithm(algorithm))
    }
}

impl KeyProvider for NoCertificates {
    fn load_private_key(&self, _key: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        Err(CryptoError::InvalidPrivateKey)
    }
}
