//! Tests of the profiles and of settings in config files.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the failure")]

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use viaduct_netem::{
    Duplex, Link, LinkConfig, LinkSettings, LinksConfig, Probability, Profile,
    config::{BottleneckConfig, LinkConfigError, LinkPatch},
    link::{Bottleneck, Delay, DeliveryTrace, Jitter, LinkDropReason, Loss, OPPORTUNITY_OCTETS, Outages},
    profile::LteDirection,
};
use viaduct_units::Mono;

const MS: Duration = Duration::from_millis(1);

fn settings(profile: Profile) -> LinkSettings {
    profile.settings().unwrap().a_to_b
}

#[test]
fn each_profile_is_found_by_its_name_and_can_be_written_and_read() {
    for profile in Profile::ALL {
        assert_eq!(profile.name().parse(), Ok(profile));
        assert_eq!(serde_json::to_value(profile).unwrap(), profile.name());
        assert_eq!(serde_json::from_value::<Profile>(profile.name().into()).unwrap(), profile);
        let config = profile.config();
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(serde_json::from_str::<Duplex<LinkConfig>>(&written).unwrap(), config, "{written}");
        assert_ne!(settings(profile).bottleneck, Bottleneck::None);
    }
    let error = "lte".parse::<Profile>().unwrap_err().to_string();
    assert!(error.contains("\"lte\"") && error.contains("lte-driving, lossy-0.3"), "{error}");
}

#[test]
fn the_reference_lists_each_profile_with_its_figures_and_their_source() {
    let reference = include_str!("../../../docs/reference/links.md");
    for profile in Profile::ALL {
        let row = format!("| `{profile}` | {} | {} |", profile.description(), profile.source());
        assert!(reference.lines().any(|line| line == row), "docs/reference/links.md lacks this row:\n{row}");
    }
}

#[test]
fn each_key_of_the_examples_in_the_reference_is_a_setting() {
    let reference = include_str!("../../../docs/reference/links.md");
    let schema = serde_json::to_string(&schemars::schema_for!(LinksConfig)).unwrap();
    let examples = reference.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let keys: Vec<&str> = examples
        .flat_map(|example| example.split(':').map(|before| before.rsplit(|letter| !is_word(letter)).next().unwrap()))
        .filter(|key| !key.is_empty())
        .collect();
    assert!(keys.len() > 20, "{keys:?}");
    for key in keys {
        assert!(schema.contains(&format!("\"{key}\":")), "`{key}` is no setting");
    }
}

/// Sends messages of the given size every 100 ms in packets of at most 1500 octets. Returns mean and standard deviation of
/// the time until the last packet of a message arrives, in milliseconds.
fn message_delay(profile: Profile, octets: usize) -> (f64, f64) {
    let mut link = Link::new(settings(profile), 1).unwrap();
    let delays: Vec<f64> = (0..10_000).map(|number| delay_of(&mut link, Mono(100 * MS * number), octets)).collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    let variance = delays.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / delays.len() as f64;
    (mean, variance.sqrt())
}

fn delay_of(link: &mut Link, now: Mono, octets: usize) -> f64 {
    for start in (0..octets).step_by(1500) {
        link.handle_packet(now, Bytes::from(vec![0; (octets - start).min(1500)]));
    }
    let mut last = now;
    while let Some(due) = link.poll_timeout() {
        while link.poll_deliver(due).is_some() {
            last = due;
        }
    }
    last.since(now).as_secs_f64() * 1e3
}

/// `reported/mqtt_client.toml`: Table V, rows `g5_0` and `g5_100`.
#[test]
fn messages_over_5g_take_as_long_as_in_the_table() {
    let empty = message_delay(Profile::FiveG, 100);
    assert!((empty.0 / 13.6 - 1.0).abs() < 0.02 && (empty.1 / 1.6 - 1.0).abs() < 0.02, "{empty:?}");
    let scan = message_delay(Profile::FiveG, 180_000);
    assert!((scan.0 / 21.9 - 1.0).abs() < 0.02, "{scan:?}");
}

#[test]
fn a_packet_over_ethernet_takes_its_length_and_the_delay() {
    // 1500 octets and 38 of overhead are 12.304 us, 12 304 bits.
    let mut link = Link::new(settings(Profile::Ethernet), 1).unwrap();
    link.handle_packet(Mono::default(), Bytes::from(vec![0; 1500]));
    assert_eq!(link.poll_timeout(), Some(Mono(Duration::from_nanos(150_000 + 12_304))));
}

#[test]
fn the_interrupted_link_is_out_in_both_directions_at_once() {
    let links = Profile::Outage.settings().unwrap();
    assert_eq!(links.a_to_b.outages, links.b_to_a.outages);
    let mut link = Link::new(links.a_to_b, 1).unwrap();
    let mut arrives = |ms: u32| {
        link.handle_packet(Mono(MS * ms), Bytes::from_static(b"packet"));
        link.poll_deliver(Mono(MS * ms + MS)).is_some()
    };
    let found = [1999, 2000, 2249, 2250, 6999, 7000, 7249, 7250].map(&mut arrives);
    assert_eq!(found, [true, false, false, true, true, false, false, true]);
    assert_eq!(link.counters().dropped(LinkDropReason::Outage), 4);
}

/// Statistics of a trace.
#[derive(Debug)]
struct Statistics {
    mbps: f64,
    /// Deviation of the rate over 100 ms and over 1 s, divided by the mean.
    variation: [f64; 2],
    /// Share of 100 ms without an opportunity.
    empty: f64,
}

fn statistics(trace: &DeliveryTrace) -> Statistics {
    let counts = |window: u32| {
        let windows = usize::try_from(trace.period().as_millis()).unwrap() / window as usize;
        let mut counts = vec![0.0; windows];
        for ms in trace.opportunities_ms() {
            if let Some(count) = counts.get_mut((ms / window) as usize) {
                *count += 1.0;
            }
        }
        counts
    };
    let variation = |window| {
        let counts = counts(window);
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        (counts.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / counts.len() as f64).sqrt() / mean
    };
    let hundred = counts(100);
    let empty = hundred.iter().filter(|count| **count == 0.0).count() as f64 / hundred.len() as f64;
    Statistics {
        mbps: trace.opportunities_ms().len() as f64 * OPPORTUNITY_OCTETS as f64 * 8e-6 / trace.period().as_secs_f64(),
        variation: [variation(100), variation(1000)],
        empty,
    }
}

/// The figures of `ATT-LTE-driving-2016.up` and `.down`.
#[test]
fn the_synthetic_lte_traces_have_the_statistics_of_the_recorded_ones() {
    let recorded = [
        (LteDirection::Up, Statistics { mbps: 1.910, variation: [1.219, 0.883], empty: 0.138 }),
        (LteDirection::Down, Statistics { mbps: 4.560, variation: [1.039, 0.851], empty: 0.072 }),
    ];
    for (direction, recorded) in recorded {
        let found = statistics(&direction.trace());
        assert!((found.mbps / recorded.mbps - 1.0).abs() < 0.01, "{direction:?}: {found:?}");
        for (found, recorded) in found.variation.iter().zip(recorded.variation) {
            assert!((found / recorded - 1.0).abs() < 0.05, "{direction:?}: {found}, {recorded}");
        }
        assert!((found.empty - recorded.empty).abs() < 0.01, "{direction:?}: {found:?}");
    }
}

#[test]
fn the_figures_of_the_recorded_lte_traces_are_those_of_the_recording() {
    for (file, mbps, variation, empty) in [
        ("att-lte-driving-2016.up", 1.91, [1.22, 0.88], 0.138),
        ("att-lte-driving-2016.down", 4.56, [1.04, 0.85], 0.072),
    ] {
        let Some(text) = recording(file) else { return };
        let found = statistics(&DeliveryTrace::parse(&text).unwrap());
        assert!((found.mbps - mbps).abs() < 0.005 && (found.empty - empty).abs() < 0.0005, "{file}: {found:?}");
        assert!(found.variation.iter().zip(variation).all(|(one, other)| (one - other).abs() < 0.005), "{found:?}");
    }
}

/// Returns a recorded trace. If it is missing, prints the reason and returns `None`. Recordings are not part of the project,
/// so the file is required only if `VIADUCT_DATA` is set.
#[expect(clippy::print_stdout, reason = "a skipped test prints the reason")]
#[expect(clippy::disallowed_methods, reason = "the test reads a file of the data folder")]
fn recording(file: &str) -> Option<String> {
    let named = std::env::var_os("VIADUCT_DATA").map(PathBuf::from);
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = named.clone().unwrap_or(default).join("traces").join(file);
    let text = std::fs::read_to_string(&path).ok();
    assert!(text.is_some() || named.is_none(), "the folder in VIADUCT_DATA has no traces/{file}");
    if text.is_none() {
        println!("skipped: traces/{file} is not in the data folder (VIADUCT_DATA)");
    }
    text
}

#[test]
fn changes_replace_whole_settings_and_those_of_a_direction_win() {
    let text = r#"{ "profile": "lossy-5", "both": { "delay": { "base_ms": 10 }, "duplicate": 0.5 },
        "a_to_b": { "bottleneck": { "rate": { "mbps": 20.5 } }, "duplicate": 0.25 }, "b_to_a": { "loss": "none" } }"#;
    let links = serde_json::from_str::<LinksConfig>(text).unwrap().links();
    let resolve = |link: LinkConfig| link.resolve(|_| Err(String::new())).unwrap();
    let (there, back) = (resolve(links.a_to_b), resolve(links.b_to_a));
    assert_eq!(there.delay, Delay { base: 10 * MS, ..Delay::default() });
    assert_eq!((there.duplicate.value(), back.duplicate.value()), (0.25, 0.5));
    assert_eq!(there.loss, Loss::Independent(Probability::new(0.05).unwrap()));
    assert_eq!((back.loss, back.overhead_octets), (Loss::None, 38));
    let Bottleneck::Rate { bits_per_second, queue_octets } = there.bottleneck else { panic!("{there:?}") };
    assert_eq!((bits_per_second.get(), queue_octets), (20_500_000, 2_500_000));
}

#[test]
fn everything_can_be_written_and_read() {
    let texts = [
        r#"{"bottleneck":{"trace":{"file":"a.up","queue_octets":9}},"loss":{"independent":0.1},"duplicate":0.01}"#,
        r#"{"bottleneck":{"lte_driving":{"direction":"down"}},"loss":{"bursts":{"loss":0.05,"packets":8}}}"#,
        r#"{"loss":{"gilbert_elliott":{"good_to_bad":0.01,"bad_to_good":0.2}},"overhead_octets":38}"#,
        r#"{"outages":{"list":[{"start_ms":0.5,"duration_ms":20},{"start_ms":100,"duration_ms":1}]}}"#,
        r#"{"outages":{"random":{"duration_ms":30,"between_ms":570}},"reorder":{"share":0.1,"by_ms":2.5}}"#,
        r#"{"outages":{"periodic":{"every_ms":1000,"duration_ms":20}},"delay":{"base_ms":3,"order":"free"}}"#,
        r#"{"delay":{"base_ms":0.15,"jitter":{"uniform_ms":0.1},"correlation":{"packets":0.25}}}"#,
        r#"{"delay":{"jitter":{"normal_ms":0.000001},"correlation":{"time_ms":20}}}"#,
        r#"{"bottleneck":"none","loss":"none","outages":"none","delay":{"jitter":"none","correlation":"none"}}"#,
    ];
    for text in texts {
        let read: LinkConfig = serde_json::from_str(text).unwrap();
        assert!(read.resolve(|_| Ok(DeliveryTrace::parse("1\n").unwrap())).is_ok(), "{text}");
        let written = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<LinkConfig>(&written).unwrap(), read, "{written}");
        let patch: LinkPatch = serde_json::from_str(text).unwrap();
        let mut patched = LinkConfig::default();
        patch.apply(&mut patched);
        assert_eq!(patched, read);
    }
}

#[test]
fn unknown_and_invalid_settings_are_named() {
    let errors = [
        (r#"{"rate":1}"#, "unknown field `rate`"),
        (r#"{"bottleneck":{"rate":{"mbit":1}}}"#, "unknown field `mbit`"),
        (r#"{"loss":{"independent":1.5}}"#, "1.5 is not a probability"),
        (r#"{"delay":{"base_ms":-1}}"#, "-1 is not a duration in milliseconds"),
        (r#"{"delay":{"base_ms":1e300}}"#, "is not a duration in milliseconds"),
        (r#"{"delay":{"base":1}}"#, "unknown field `base`"),
    ];
    for (text, expected) in errors {
        let error = serde_json::from_str::<LinkConfig>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let keys = [
        (r#"{"bottleneck":{"rate":{"mbps":0}}}"#, "bottleneck.rate.mbps"),
        (r#"{"bottleneck":{"rate":{"mbps":1e7}}}"#, "bottleneck.rate.mbps"),
        (r#"{"bottleneck":{"trace":{"file":"x"}}}"#, "bottleneck.trace.file"),
        (r#"{"loss":{"bursts":{"loss":0.05,"packets":0.5}}}"#, "loss"),
        (r#"{"outages":{"periodic":{"every_ms":1,"duration_ms":2}}}"#, "outages"),
        (r#"{"delay":{"base_ms":3600000}}"#, "delay"),
        (r#"{"reorder":{"share":0.1,"by_ms":3600000}}"#, "reorder"),
    ];
    for (text, key) in keys {
        let config: LinkConfig = serde_json::from_str(text).unwrap();
        let error = config.resolve(|_| Err("no such file".to_owned())).unwrap_err();
        assert_eq!(error.key(), key, "{text}: {error}");
    }
}

#[test]
fn a_trace_is_read_from_its_file() {
    let config: LinkConfig = serde_json::from_str(r#"{"bottleneck":{"trace":{"file":"traces/a.up"}}}"#).unwrap();
    assert!(matches!(config.bottleneck, BottleneckConfig::Trace(_)));
    let trace = DeliveryTrace::parse("5\n10\n").unwrap();
    let read = |file: &Path| (file == Path::new("traces/a.up")).then(|| trace.clone()).ok_or_else(String::new);
    let Bottleneck::Trace { trace: found, .. } = config.resolve(read).unwrap().bottleneck else { panic!() };
    assert_eq!(*found, trace);
    let error = config.resolve(|_| Err("no such file".to_owned())).unwrap_err();
    assert_eq!(error.to_string(), "traces/a.up: no such file");
    assert!(matches!(error, LinkConfigError::Trace { .. }));
}

#[test]
fn the_schema_describes_every_setting() {
    let schema = serde_json::to_value(schemars::schema_for!(LinksConfig)).unwrap();
    let mut undescribed = Vec::new();
    find_undescribed("", &schema, &mut undescribed);
    assert!(undescribed.is_empty(), "{undescribed:?}");
    let text = schema.to_string();
    assert!(["base_ms", "time_ms", "lte-driving", "queue_octets"].iter().all(|key| text.contains(key)));
}

/// Collects the properties without a description.
fn find_undescribed(at: &str, schema: &serde_json::Value, undescribed: &mut Vec<String>) {
    let Some(object) = schema.as_object() else { return };
    for (key, value) in object {
        let at = format!("{at}/{key}");
        if key == "properties" {
            for (name, property) in value.as_object().unwrap() {
                let is_described = property.get("description").is_some() || at.contains("oneOf");
                (!is_described).then(|| undescribed.push(format!("{at}/{name}")));
            }
        }
        find_undescribed(&at, value, undescribed);
    }
}

#[test]
fn defaults_are_a_perfect_link() {
    let link = LinksConfig::default().links().a_to_b;
    assert_eq!(link.resolve(|_| Err(String::new())), Ok(LinkSettings::default()));
    assert_eq!(serde_json::from_str::<LinksConfig>("{}").unwrap(), LinksConfig::default());
    assert_eq!((link.outages, link.delay.jitter), (Outages::None, Jitter::None));
}
