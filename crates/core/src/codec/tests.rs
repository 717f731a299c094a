//! Properties of the codec: values survive a round trip, stored bytes are copied, rows can be
//! concatenated, no bytes cause a panic, and errors say what to do.

use bytes::{Bytes, BytesMut};
use proptest::prelude::{ProptestConfig, Strategy, any as any_value, proptest};
use prost::{Message, encoding::uint64};

use super::{
    arbitrary::{Cases, Source, any},
    generated::note::Case,
    *,
};
use crate::{
    effect::Action,
    event::{
        ActivityFailed, Fact, Guards, RunPaused, TimerSpec, UpdateCompleted, UpdateOutcome,
        UpdateRequest,
    },
    failure::Failure,
    payload::Payload,
    time::Timestamp,
};

/// Bytes to draw a value from.
fn entropy() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any_value::<u8>(), 0..400)
}

/// Draws each case of a type from the same bytes.
fn each_case<T: Cases>(bytes: &[u8], check: impl Fn(T)) {
    for (_, draw) in T::cases() {
        check(draw(&mut Source::random(bytes.to_vec())));
    }
}

fn history_of(event: &Event) -> Bytes {
    encode_row(&[Record::Event(event.clone())]).events
}

fn notes_of(note: &Note) -> Bytes {
    encode_row(&[Record::Note(note.clone())]).notes
}

fn numbered(fact: impl Into<Fact>) -> Event {
    Event { number: 7, time: Timestamp::EPOCH, body: Body::new(fact) }
}

#[track_caller]
fn check_event(event: &Event) {
    let row = history_of(event);
    assert_eq!(&decode_events(row.clone()).unwrap(), std::slice::from_ref(event));

    // The same bytes as generated code writes, except for number zero, which never occurs.
    let history = generated::History::decode(row.clone()).unwrap();
    assert_eq!(history.encode_to_vec() == row, event.number != 0);
}

#[track_caller]
fn check_effect(effect: &Effect) {
    assert_eq!(decode_effect(encode_effect(effect)).as_ref(), Ok(effect));
}

fn decode_everything(bytes: &Bytes) {
    let _ = decode_events(bytes.clone());
    let _ = decode_notes(bytes.clone());
    let _ = decode_body(bytes.clone());
    let _ = decode_effect(bytes.clone());
    let _ = decode_answer(bytes.clone());
    let _ = decode_wait_details(bytes.clone());
    let _ = decode_run_details(bytes.clone());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_fact_survives(bytes in entropy(), frame in any::<Event>()) {
        each_case(&bytes, |fact: Fact| {
            let body = Body::new(fact).with_extension(frame.body.extension.clone());
            check_event(&Event { body, ..frame.clone() });
        });
    }

    #[test]
    fn every_note_survives(bytes in entropy()) {
        each_case(&bytes, |note: Note| assert_eq!(decode_notes(notes_of(&note)), Ok(vec![note])));
    }

    #[test]
    fn every_effect_survives(bytes in entropy(), effect in any::<Effect>()) {
        each_case(&bytes, |action: Action| check_effect(&Effect { action, ..effect.clone() }));
    }

    #[test]
    fn rows_beside_the_log_survive(
        wait in any::<Option<WaitDetails>>(),
        run in any::<RunDetails>(),
        answer in any::<EffectOutcome>(),
    ) {
        assert_eq!(decode_wait_details(encode_wait_details(wait.as_ref())), Ok(wait));
        assert_eq!(decode_run_details(encode_run_details(&run)), Ok(run));
        assert_eq!(decode_answer(encode_answer(&answer)), Ok(answer));
    }

    #[test]
    fn rows_put_together_are_one_history(rows in any::<Vec<(Vec<Event>, Vec<Note>)>>()) {
        let mut events = BytesMut::new();
        let mut notes = BytesMut::new();
        for (row_events, row_notes) in &rows {
            let row_events = row_events.iter().cloned().map(Record::Event);
            let row_notes = row_notes.iter().cloned().map(Record::Note);
            let records: Vec<_> = row_events.chain(row_notes).collect();
            let row = encode_row(&records);
            assert_eq!(decode_row(&row), Ok(records));
            events.extend_from_slice(&row.events);
            notes.extend_from_slice(&row.notes);
        }
        let (all_events, all_notes): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let history = generated::History::decode(events.clone()).unwrap();
        assert_eq!(history.events.len(), all_events.concat().len());
        assert_eq!(decode_events(events.freeze()), Ok(all_events.concat()));
        assert_eq!(decode_notes(notes.freeze()), Ok(all_notes.concat()));
    }

    #[test]
    fn fields_of_a_newer_version_survive_numbering(body in any::<Body>(), event in any::<Event>()) {
        let mut stored = BytesMut::from(encode_body(&body));
        uint64::encode(999, &event.number, &mut stored);
        let stored = stored.freeze();
        let note = generated::Note { case: Some(Case::InputBuffered(stored.clone())) };
        let notes: Bytes = generated::Notes { notes: vec![note] }.encode_to_vec().into();

        let read = decode_notes(notes.clone()).unwrap();
        assert_eq!(read, [Note::InputBuffered(body.clone())]);
        assert_eq!(notes_of(&read[0]), notes);

        let buffered = decode_body(stored.clone()).unwrap();
        let row = history_of(&Event { body: buffered, ..event });
        let events = decode_events(row.clone()).unwrap();
        let copied = events[0].body.stored().unwrap();
        assert_eq!(copied, &stored);
        assert!(row.as_ptr_range().contains(&copied.as_ptr()), "the body is a slice of the row");
        assert_eq!(history_of(&events[0]), row);
    }

    #[test]
    fn random_bytes_never_panic(bytes in entropy()) {
        decode_everything(&bytes.into());
    }

    #[test]
    fn damaged_bytes_never_panic(
        event in any::<Event>(),
        note in any::<Note>(),
        effect in any::<Effect>(),
        place: proptest::sample::Index,
        byte: u8,
    ) {
        for bytes in [history_of(&event), notes_of(&note), encode_effect(&effect)] {
            let place = place.index(bytes.len());
            decode_everything(&bytes.slice(..place));
            let mut bytes = BytesMut::from(bytes);
            bytes[place] = byte;
            decode_everything(&bytes.freeze());
        }
    }

    #[test]
    fn a_row_that_is_cut_off_is_refused(event in any::<Event>(), place: proptest::sample::Index) {
        let row = history_of(&event);
        let place = place.index(row.len() - 1) + 1;
        assert!(!decode_events(row.slice(..place)).unwrap_err().newer());
    }
}

#[test]
fn the_sentinel_survives() {
    let event = Event { time: Timestamp::NEVER, ..numbered(RunPaused::default()) };
    let read = decode_events(history_of(&event)).unwrap();
    assert_eq!(read[0].time.to_string(), "9999-12-31T23:59:59.999999999Z");
}

#[test]
fn a_long_chain_of_causes_survives() {
    let causes = vec![Failure::default(); 100_000].into();
    let failure = Failure { causes, ..Failure::default() };
    check_event(&numbered(ActivityFailed { failure, ..ActivityFailed::default() }));
}

#[test]
fn nothing_differs_from_something_empty() {
    assert_eq!(encode_wait_details(None), "");
    assert_ne!(encode_wait_details(Some(&WaitDetails::default())), "");
    let request = UpdateRequest { input: vec![Payload::default()], ..UpdateRequest::default() };
    check_event(&numbered(crate::event::UpdateAccepted { update: "".into(), request }));
    for outcome in
        [UpdateOutcome::Completed(vec![]), UpdateOutcome::Completed(vec![Payload::default()])]
    {
        check_event(&numbered(UpdateCompleted { update: "".into(), accepted: 0, outcome }));
    }
}

#[track_caller]
fn check_error(error: DecodeError, newer: bool, text: &str) {
    assert_eq!(error.to_string(), text);
    assert_eq!(error.newer(), newer);
}

#[test]
fn what_a_newer_version_wrote_is_named() {
    let check = |error, place: &str, what: &str| {
        let newer = "is unknown here: it was written by a newer version of Abide; upgrade this one";
        check_error(error, true, &format!("cannot read {place}: {what} {newer}"));
    };
    let body = Bytes::from_static(&[0xba, 0x3e, 0]);
    check(decode_body(body.clone()).unwrap_err(), "body", "tag 999 of Body");
    let event = [&[10, 7, 8, 5, 26, 3], &*body].concat();
    let error = decode_events(event.into()).unwrap_err();
    check(error, "History entry at byte 0, event 5", "tag 999 of Body");
    let notes = Bytes::from_static(&[10, 2, 18, 0, 10, 2, 122, 0]);
    check(decode_notes(notes).unwrap_err(), "Notes entry at byte 4", "tag 15 of Note");
    let effect = Bytes::from_static(&[10, 2, 10, 0, 122, 0]);
    check(decode_effect(effect).unwrap_err(), "effect", "tag 15 of Effect");
    let answer = Bytes::from_static(&[16, 99]);
    check(decode_answer(answer).unwrap_err(), "answer, Failed", "value 99 of DeliveryFailure");
    let entry = Bytes::from_static(&[16, 1]);
    check(decode_events(entry).unwrap_err(), "History entry at byte 0", "tag 2 of History");
}

#[test]
fn damage_is_said_to_be_damage() {
    let check = |error, text: &str| {
        check_error(error, false, &format!("cannot read {text}"));
    };
    check(
        decode_events(Bytes::from_static(&[10, 9, 8, 5])).unwrap_err(),
        "History entry at byte 0: the bytes are damaged or cut off (failed to decode Protobuf \
         message: buffer underflow); restore them from a backup",
    );
    check(
        decode_body(Bytes::from_static(&[0x52, 0])).unwrap_err(),
        "body, RunStarted.run: it is not the 16 bytes of a run id; restore the bytes from a backup",
    );
    check(
        decode_answer(Bytes::new()).unwrap_err(),
        "answer: it is missing, although it is always written; restore the bytes from a backup",
    );
}

/// Other SDKs that set no guards may omit the message.
#[test]
fn a_timer_without_guards_is_read() {
    let spec = TimerSpec {
        timer: "t".into(),
        fire_at: Timestamp::EPOCH,
        origin: None,
        details: None,
        guards: Guards::default(),
    };
    let wire: generated::TimerSpec = spec.to_wire();
    assert!(wire.guards.is_some(), "we write it");
    assert_eq!(TimerSpec::from_wire(generated::TimerSpec { guards: None, ..wire }), Ok(spec));
}
