//! Codecs by themselves: what they write, read and refuse.

use std::sync::Mutex;

use abide_core::{
    event::{Body, Fact, MemoUpserted, SignalReceived},
    failure::Failure,
    payload::Payloads,
    time::Timestamp,
};
use pollster::block_on;

use super::*;
use crate::unread;

fn payload(data: impl Into<Bytes>) -> Payload {
    encoded_payload("json/plain", data)
}

fn keys(id: &str) -> KeyRing {
    KeyRing::new(Key::new(id, &[7; 32]).unwrap())
}

fn encode(codecs: &Codecs, payload: &Payload) -> Payload {
    block_on(codecs.encode(vec![payload.clone()])).unwrap().remove(0)
}

fn decode(codecs: &Codecs, payload: &Payload) -> Result<Payload, CodecError> {
    Ok(block_on(codecs.decode(vec![payload.clone()]))?.remove(0))
}

fn refused(codecs: &Codecs, payload: &Payload, problem: CodecProblem, text: &str) {
    let error = decode(codecs, payload).unwrap_err();
    assert_eq!(error.problem(), problem, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

/// Blobs in memory.
#[derive(Clone, Default)]
struct Shelf(Arc<Mutex<std::collections::BTreeMap<BlobId, Bytes>>>);

impl BlobStore for Shelf {
    fn put(&self, id: BlobId, content: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        self.0.lock().unwrap().insert(id, content);
        Box::pin(async { Ok(()) })
    }

    fn get(&self, id: BlobId, _: usize) -> BoxFuture<'_, Result<Bytes, BlobError>> {
        let found = self.0.lock().unwrap().get(&id).cloned();
        Box::pin(async { found.ok_or(BlobError::Missing) })
    }
}

#[test]
fn data_passes_all_codecs_and_comes_back() {
    let shelf = Shelf::default();
    let offload = Offload::new(shelf.clone()).from_size(300);
    let codecs = Codecs::new().compress().encrypt(keys("k")).with(offload);
    // Random enough to stay large when it is compressed.
    let noise: String = (0..600_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
    for data in ["", "small", &"large".repeat(1_000), &noise] {
        let plain = payload(data.to_owned());
        let sent = encode(&codecs, &plain);
        assert!(data.is_empty() || !sent.data.windows(5).any(|part| part == b"large"));
        assert_eq!(decode(&codecs, &sent), Ok(plain.clone()));
        assert_eq!(encode(&codecs, &plain), sent, "the same data has the same bytes");
    }
    assert_eq!(shelf.0.lock().unwrap().len(), 1, "only the large one is stored outside");
}

#[test]
fn data_without_codecs_is_read_as_it_is() {
    let codecs = Codecs::new().compress().encrypt(keys("k"));
    for old in [Payload::new("1"), payload("1"), Payload::default()] {
        assert_eq!(decode(&codecs, &old), Ok(old.clone()));
    }
}

#[test]
fn the_order_of_codecs_may_change() {
    let (one, other) = (Codecs::new().compress().encrypt(keys("k")), {
        Codecs::new().encrypt(keys("k")).compress()
    });
    let plain = payload("text ".repeat(500));
    assert_eq!(decode(&other, &encode(&one, &plain)), Ok(plain.clone()));
    assert_eq!(decode(&one, &encode(&other, &plain)), Ok(plain));
}

#[test]
fn compression_is_skipped_unless_it_pays() {
    let codecs = Codecs::new().compress();
    let small = payload("x".repeat(400));
    assert_eq!(encode(&codecs, &small), small);
    let large = payload("x".repeat(10_000));
    assert!(encode(&codecs, &large).data.len() < 200);
    let compressed = encode(&codecs, &large);
    let twice = Codecs::new().with(Compress::new().from_size(0));
    assert_eq!(encode(&twice, &compressed), compressed, "it does not become smaller again");
}

#[test]
fn a_bomb_is_refused() {
    let large = payload(vec![0; 1 << 20]);
    let sent = encode(&Codecs::new().compress(), &large);
    let careful = Codecs::new().with(Compress::new().to_size(100_000));
    refused(&careful, &sent, CodecProblem::Refused, "more than 100000 bytes decompressed");
    refused(&careful, &encoded_payload("codec/zlib", "??"), CodecProblem::Refused, "damaged");
}

/// Many small payloads may hold as much as a large one.
#[test]
fn all_that_is_decoded_at_once_has_a_bound() {
    let large = payload(vec![0; 1 << 20]);
    let sent = encode(&Codecs::new().compress(), &large);
    let careful = Codecs::new().compress().decode_at_most(5 << 20);
    let many = |count| block_on(careful.decode(vec![sent.clone(); count]));
    assert_eq!(many(4).unwrap().len(), 4);
    let error = many(6).unwrap_err();
    assert_eq!(error.problem(), CodecProblem::Refused);
    assert!(error.to_string().contains("more than 5242880 bytes when it is decoded"), "{error}");
    // What is not encoded was held before, and takes no room.
    assert_eq!(block_on(careful.decode(vec![large; 9])).unwrap().len(), 9);
}

/// Counts how many reads it has at once.
#[derive(Clone, Default)]
struct Busy {
    shelf: Shelf,
    reads: Arc<Mutex<(usize, usize)>>,
}

impl BlobStore for Busy {
    fn put(&self, id: BlobId, content: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        self.shelf.put(id, content)
    }

    fn get(&self, id: BlobId, size: usize) -> BoxFuture<'_, Result<Bytes, BlobError>> {
        Box::pin(async move {
            {
                let mut reads = self.reads.lock().unwrap();
                reads.0 += 1;
                reads.1 = reads.1.max(reads.0);
            }
            tokio::task::yield_now().await;
            self.reads.lock().unwrap().0 -= 1;
            self.shelf.get(id, size).await
        })
    }
}

#[tokio::test]
async fn a_history_of_large_payloads_is_read_at_once_in_part() {
    let store = Busy::default();
    let codecs = Codecs::new().with(Offload::new(store.clone()).from_size(10));
    let plain: Vec<_> = (0..100).map(|number| payload(format!("{number:20}"))).collect();
    let sent = codecs.encode(plain.clone()).await.unwrap();
    assert_eq!(codecs.decode(sent).await, Ok(plain));
    assert_eq!(store.reads.lock().unwrap().1, AT_ONCE);
}

#[test]
fn where_encryption_is_required_nothing_else_is_read() {
    let compress = || Codecs::new().compress();
    let required = compress().encrypt(keys("k")).require_encryption();
    let plain = payload("text ".repeat(500));
    for foreign in [plain.clone(), encode(&compress(), &plain)] {
        refused(&required, &foreign, CodecProblem::Refused, "not encrypted");
    }
    let mut value = vec![plain.clone()];
    assert!(block_on(required.decode_all(&mut value)).is_err(), "plain data is looked at too");
    let sent = encode(&required, &plain);
    assert_eq!(decode(&required, &sent), Ok(plain));
}

fn signal(number: u64, input: Payload) -> Event {
    let received = SignalReceived { input: vec![input], ..SignalReceived::default() };
    event(number, received)
}

fn event(number: u64, fact: impl Into<Fact>) -> Event {
    Event { number, time: Timestamp::EPOCH, body: Body::new(fact.into()) }
}

#[test]
fn signals_that_cannot_be_decoded_are_marked_and_hide_nothing_else() {
    let codecs = Codecs::new().compress().encrypt(keys("k"));
    let good = encode(&codecs, &payload("1"));
    let strange = encode(&Codecs::new().encrypt(keys("strange")), &payload("2"));
    let forged = encoded_payload("codec/zlib", "??");
    let events = [good.clone(), strange, forged].into_iter().zip(1..);
    let events: Vec<_> = events.map(|(input, number)| signal(number, input)).collect();
    let reasons = |events: &[Event]| -> Vec<_> {
        let signals = events.iter().map(|event| match &event.body.fact {
            Fact::SignalReceived(signal) => unread::reason(signal).map(|unread| unread.never),
            other => panic!("{other:?}"),
        });
        signals.collect()
    };
    let mut decoded = events.clone();
    block_on(codecs.decode_events(&mut decoded)).unwrap();
    assert_eq!(reasons(&decoded), [None, Some(false), Some(true)]);
    assert_eq!(decoded[0], signal(1, payload("1")));
    let skips = codecs.clone().skip_unreadable_signals();
    let mut decoded = events.clone();
    block_on(skips.decode_events(&mut decoded)).unwrap();
    assert_eq!(reasons(&decoded), [None, Some(true), Some(true)]);
    let mut unread = events;
    Codecs::new().check_events(&mut unread).unwrap();
    assert_eq!(reasons(&unread), [Some(false); 3], "without codecs, each waits for its codec");

    // Other events come from programs of the run, and nothing is decided without them.
    let memo = MemoUpserted { memo: [("note".into(), good)].into(), ..MemoUpserted::default() };
    let mut other = vec![event(1, memo.clone()), signal(2, payload("1"))];
    assert!(Codecs::new().check_events(&mut other).is_err());
    assert!(block_on(Codecs::new().compress().decode_events(&mut other)).is_err());
}

#[test]
fn older_keys_still_decrypt_after_rotation() {
    let [old, new] =
        ["old", "new"].map(|id| Key::new(id, &id.repeat(32).as_bytes()[..32]).unwrap());
    let before = Codecs::new().encrypt(KeyRing::new(old.clone()));
    let after = KeyRing::new(new).with_decryption_key(old).unwrap();
    let after = Codecs::new().encrypt(after);
    let plain = payload("secret");
    let written_before = encode(&before, &plain);
    assert_eq!(decode(&after, &written_before), Ok(plain.clone()));
    let written_after = encode(&after, &plain);
    assert_eq!(written_after.metadata["key-id"], "new");
    refused(&before, &written_after, CodecProblem::Missing, "key \"new\", which this program does");
}

#[test]
fn every_changed_bit_is_noticed() {
    let codecs = Codecs::new().encrypt(keys("k"));
    let sent = encode(&codecs, &payload("secret"));
    for bit in 0..sent.data.len() * 8 {
        let mut data = sent.data.to_vec();
        data[bit / 8] ^= 1 << (bit % 8);
        let forged = Payload { data: data.into(), ..sent.clone() };
        assert!(decode(&codecs, &forged).is_err(), "bit {bit}");
    }
    for length in 0..sent.data.len() {
        let cut = Payload { data: sent.data.slice(..length), ..sent.clone() };
        assert!(decode(&codecs, &cut).is_err(), "{length} bytes");
    }
    let other = Codecs::new().encrypt(KeyRing::new(Key::new("k", &[8; 32]).unwrap()));
    refused(&other, &sent, CodecProblem::Refused, "damaged or forged, or key \"k\" here is not");
}

#[test]
fn different_data_and_different_keys_have_different_bytes() {
    let one = Codecs::new().encrypt(keys("k"));
    let sent = encode(&one, &payload("secret"));
    assert_ne!(sent, encode(&one, &payload("Secret")));
    assert_ne!(sent, encode(&one, &encoded_payload("text/plain", "secret")), "metadata counts");
    assert_ne!(sent.data, encode(&Codecs::new().encrypt(keys("l")), &payload("secret")).data);
}

/// The bytes on disk stay readable, and repeats by newer programs have the same bytes.
#[test]
fn what_is_encrypted_is_pinned() {
    let codecs = Codecs::new().encrypt(keys("k"));
    let sent = encode(&codecs, &payload("1"));
    let hex: String = sent.data.iter().map(|byte| format!("{byte:02x}")).collect();
    let pinned = "01016bc2a16f4c08bd20029196015ce0f82d7eb85083bf52f1b44f81ec20f7c4f8d77a64bfa717d165\
                  fdb0ff5894f09aa53c0b3152c17497c4df57d092284a2727520bef2cf0";
    assert_eq!(hex, pinned);
}

/// A repeat by a program of another version has the same bytes only as long as this holds.
#[test]
fn what_is_compressed_is_pinned() {
    let sent = encode(&Codecs::new().compress(), &payload("text ".repeat(200)));
    let hex: String = sent.data.iter().map(|byte| format!("{byte:02x}")).collect();
    let pinned = "7801ed93b10900200cc046a5a383b31f789368918ab4821d3cd933fc43bae4809040048f5ca511f700630be7\
                  350b71b84ef168329803ebe0eb0d1e5c46838b";
    assert_eq!(hex, pinned);
}

#[test]
fn an_encoding_without_codec_says_what_to_do() {
    let sent = encode(&Codecs::new().encrypt(keys("k")), &payload("secret"));
    let none = Codecs::new();
    refused(&none, &sent, CodecProblem::Missing, "codec/aes-256-gcm: the payload is encoded, and");
    let other = Codecs::new().compress();
    refused(&other, &sent, CodecProblem::Missing, "it has [\"codec/zlib\"]: add the codec");
    let nested =
        (0..40).fold(payload("1"), |inner, _| encoded_payload("codec/again", pack(&inner)));
    refused(&Codecs::new().with(Again), &nested, CodecProblem::Refused, "more than 16 times");
}

/// Unpacks what was packed.
struct Again;

impl Codec for Again {
    fn name(&self) -> &str {
        "again"
    }

    fn reads(&self, encoding: &str) -> bool {
        encoding == "codec/again"
    }

    fn encode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async { Ok(payloads) })
    }

    fn decode(&self, payloads: Vec<Payload>) -> BoxFuture<'_, Result<Vec<Payload>, CodecError>> {
        Box::pin(async move {
            payloads.into_iter().map(|payload| unpack("again", payload.data)).collect()
        })
    }
}

#[test]
fn a_blob_that_is_gone_damaged_or_too_large_is_an_error() {
    let shelf = Shelf::default();
    let codecs = Codecs::new().with(Offload::new(shelf.clone()).from_size(10).to_size(1_000));
    let sent = encode(&codecs, &payload("x".repeat(500)));
    let (id, content) = shelf.0.lock().unwrap().pop_first().unwrap();
    refused(&codecs, &sent, CodecProblem::Missing, "is not in the store");
    shelf.0.lock().unwrap().insert(id, content.slice(1..));
    refused(&codecs, &sent, CodecProblem::Missing, "is damaged: restore it");
    let large = block_on(codecs.encode(vec![payload("x".repeat(2_000))])).unwrap_err();
    assert_eq!(large.problem(), CodecProblem::Refused);
    refused(&codecs, &encoded_payload("codec/reference", "{}"), CodecProblem::Refused, "damaged");
}

#[test]
fn texts_of_failures_are_hidden_and_shown_again() {
    let codecs = Codecs::new().encrypt(keys("k")).hide_failure_texts();
    let cause = Failure { message: "card 4711".into(), ..Failure::default() };
    let details: Payloads = vec![payload("1234")];
    let failure = Failure {
        message: "no money".into(),
        stack: "at pay()".into(),
        error_type: "Declined".into(),
        details,
        causes: cause.into(),
        ..Failure::default()
    };
    let mut sent = failure.clone();
    block_on(codecs.encode_all(&mut sent)).unwrap();
    let shown = format!("{sent:?}");
    assert!(["money", "4711", "1234", "pay"].iter().all(|text| !shown.contains(text)), "{shown}");
    assert_eq!(sent.error_type, "Declined");
    let texts = &mut Failure { details: Payloads::new(), ..sent.clone() };
    let unreadable = Codecs::new().check_plain(texts).unwrap_err();
    assert_eq!(unreadable.problem(), CodecProblem::Missing, "a program without codecs is told");
    block_on(codecs.decode_all(&mut sent)).unwrap();
    assert_eq!(sent, failure);
}

#[tokio::test]
async fn a_folder_keeps_blobs_private_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("blobs");
    let store = LocalFolder::open(&path).unwrap();
    let content = Bytes::from("large object");
    let id = BlobId::of(&content);
    assert_eq!(store.get(id, 100).await, Err(BlobError::Missing));
    store.put(id, content.clone()).await.unwrap();
    store.put(id, content.clone()).await.unwrap();
    assert_eq!(store.get(id, content.len()).await, Ok(content.clone()));
    assert_eq!(store.get(id, 3).await.unwrap().len(), 3, "never more than was asked for");
    let name = id.to_string();
    let file = path.join(&name[..2]).join(&name);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
    for damaged in ["large", "large tcejbo"] {
        std::fs::write(&file, damaged).unwrap();
        store.put(id, content.clone()).await.unwrap();
        assert_eq!(store.get(id, content.len()).await, Ok(content.clone()), "it is mended");
    }
    // What another process left, or writes just now, is in no one's way.
    let foreign = file.parent().unwrap().join(format!(".{name}.1.0"));
    std::fs::write(&foreign, "unfinished").unwrap();
    std::fs::remove_file(&file).unwrap();
    store.put(id, content.clone()).await.unwrap();
    assert_eq!(std::fs::read(&foreign).unwrap(), b"unfinished");
    std::fs::remove_file(&foreign).unwrap();
    assert!(LocalFolder::open(path.join("deep/er")).is_ok());
    std::fs::remove_dir_all(path.join("deep")).unwrap();
    let files = std::fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(files, 1, "no unfinished files stay");
}
