use super::*;

fn layer(text: &str) -> Layer {
    parse(text).unwrap()
}

#[test]
fn logs_are_a_setting_like_any_other() {
    let said = |variable: &str, value: &str| {
        Layer::from_variables(|name| (name == variable).then(|| value.to_owned())).unwrap()
    };
    let file = || layer("dataDir: /x\nlogLevel: debug\nlogFormat: json\n");
    let config = file().resolve().unwrap();
    assert_eq!((&*config.log_level, config.log_format.as_deref()), ("debug", Some("json")));
    let config = said("CONCERT_LOG_LEVEL", "info,concert_engine=trace").over(file()).resolve().unwrap();
    assert_eq!(config.log_level, "info,concert_engine=trace");
    for (word, level) in [("WARNING", "warn"), ("CRITICAL", "error"), ("DEBUG", "debug"), ("odd", "info")] {
        let config = said("LOG_LEVEL", word).over(layer("dataDir: /x")).resolve().unwrap();
        assert_eq!(config.log_level, level, "{word}");
    }
    let wrong = layer("dataDir: /x\nlogLevel: loud\nlogFormat: xml\n").resolve().unwrap_err().to_string();
    assert!(wrong.contains("logLevel: \"loud\"") && wrong.contains("logFormat: \"xml\""), "{wrong}");
}

#[test]
fn what_is_said_first_counts() {
    let flags = layer("{\"listen\": \"127.0.0.1:1\"}");
    let variables = Layer::from_variables(|name| match name {
        "CONCERT_LISTEN" => Some("127.0.0.1:2".into()),
        "CONCERT_DATA_DIR" => Some("/variables".into()),
        "CONCERT_DEV" => Some("true".into()),
        _ => None,
    });
    let file = layer("dataDir: /file\npollInterval: 30s\n");
    let config = flags.over(variables.unwrap()).over(file).resolve().unwrap();
    assert_eq!(config.listen, "127.0.0.1:1".parse().unwrap());
    assert_eq!(config.data_dir, PathBuf::from("/variables"));
    assert_eq!(config.poll_interval, Some(Duration::from_secs(30)));
    assert!(config.is_dev);
    assert_eq!(config.admin_listen, ADMIN_LISTEN.parse().unwrap());
}

#[test]
fn everything_that_is_wrong_is_said_with_its_field() {
    let text = "dev: true\nlisten: 0.0.0.0:1\nadminListen: x\ndataDir: /d\npollInterval: 0s\n\
                reconcileTimeout: '5'\nmaxReconcileRate: 0\nonly: mothership\n\
                providers: [{name: a, endpoint: ''}]\n";
    let Err(Error::Invalid(findings)) = layer(text).resolve() else { panic!("it makes no sense") };
    let fields = [
        "listen: with dev",
        "adminListen: ",
        "pollInterval: must be longer",
        "reconcileTimeout: must be",
        "maxReconcileRate: must",
        "inventory: must be set",
        "providers[0].endpoint: ",
    ];
    assert_eq!(findings.len(), fields.len(), "{findings:?}");
    for (finding, field) in findings.iter().zip(fields) {
        assert!(finding.starts_with(field), "{finding:?} should start with {field:?}");
    }
}

#[test]
fn development_is_told_to_this_machine_alone() {
    for (admin, is_fine) in [
        ("127.0.0.1:8001", true),
        ("'[::1]:8001'", true),
        ("'0'", true),
        ("0.0.0.0:8001", false),
        ("':8001'", false),
        ("10.0.0.1:8001", false),
    ] {
        let text = |dev: bool| format!("dataDir: /d\ndev: {dev}\nadminListen: {admin}\n");
        let findings = match layer(&text(true)).resolve() {
            Err(Error::Invalid(findings)) => findings,
            _ => Vec::new(),
        };
        assert_eq!(findings.is_empty(), is_fine, "{admin}: {findings:?}");
        assert!(findings.iter().all(|it| it.starts_with("adminListen: with dev it must be a loopback")));
        layer(&text(false)).resolve().unwrap();
    }
}

#[test]
fn a_replica_that_listens_everywhere_must_say_where_others_reach_it() {
    let text = |more: &str| format!("dataDir: /d\nstore: postgres://me:x@127.0.0.1/db\n{more}");
    for everywhere in ["listen: 0.0.0.0:8000\n", "listen: '[::]:8000'\n", "listen: ':8000'\n"] {
        for more in ["", "leaderElection: true\n"] {
            let wrong = layer(&text(&format!("{everywhere}{more}"))).resolve();
            let Err(Error::Invalid(findings)) = wrong else { panic!("{everywhere} is nowhere to go") };
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(
                findings[0].starts_with("advertise: ") && findings[0].contains("--advertise"),
                "{findings:?}"
            );
        }
        let said = format!("{everywhere}advertise: https://a.example:8000\n");
        assert!(layer(&text(&said)).resolve().is_ok(), "it is said");
        let alone = format!("{everywhere}only: inventory\n");
        assert!(layer(&text(&alone)).resolve().is_ok(), "no remote worker asks there");
        assert!(layer(&format!("dataDir: /d\n{everywhere}")).resolve().is_ok(), "a file has one process");
    }
    assert!(layer(&text("listen: 10.0.0.1:8000\n")).resolve().is_ok());
}

#[test]
fn the_variables_of_no8s_count() {
    let variables = |name: &str| {
        let value = match name {
            "API_PORT" => "9000",
            "BACKOFF_BASE_DELAY" => "1.5",
            "BACKOFF_MAX_DELAY" => "1m",
            "BACKOFF_JITTER_FACTOR" => "0",
            "RECONCILE_INTERVAL" => "5",
            "CONCERT_DATA_DIR" => "/d",
            "CONCERT_PLUGINS" => "/bin/host",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let config = Layer::from_variables(variables).unwrap().resolve().unwrap();
    assert_eq!(config.listen, "127.0.0.1:9000".parse().unwrap());
    let rules = config.rules;
    assert_eq!(
        (rules.backoff_base, rules.backoff_max),
        (Duration::from_millis(1500), Duration::from_secs(60))
    );
    assert_eq!((rules.jitter, rules.interval), (0.0, Duration::from_secs(5)));
    assert_eq!(config.plugins, Plugins::Program("/bin/host".into()));
    let bad = "dataDir: /d\nbackoffBaseDelay: '0'\nbackoffJitterFactor: '2'\nreconcileInterval: soon\n";
    let Err(Error::Invalid(findings)) = layer(bad).resolve() else { panic!("it makes no sense") };
    assert_eq!(findings.len(), 3, "{findings:?}");
}

#[test]
fn host_and_port_of_no8s_are_where_it_listens() {
    let listen = |host: Option<&str>, port: Option<&str>| {
        let variables = |name: &str| match name {
            "API_HOST" => host.map(str::to_owned),
            "API_PORT" => port.map(str::to_owned),
            "CONCERT_DATA_DIR" => Some("/d".to_owned()),
            _ => None,
        };
        Layer::from_variables(variables).unwrap().resolve().map(|it| it.listen.to_string())
    };
    for (host, port, expected) in [
        (None, None, LISTEN),
        (Some("localhost"), None, "127.0.0.1:8000"),
        (Some("0.0.0.0"), Some("9000"), "0.0.0.0:9000"),
        (Some("::1"), None, "[::1]:8000"),
        (Some("::"), Some("9000"), "[::]:9000"),
        (Some("[::1]"), Some("9000"), "[::1]:9000"),
    ] {
        assert_eq!(listen(host, port).unwrap(), expected, "{host:?} {port:?}");
    }
    for (host, port) in [(Some("nowhere"), None), (None, Some("x")), (Some("::1::"), None)] {
        let refused = listen(host, port).unwrap_err().to_string();
        assert!(refused.contains("listen"), "{refused}");
    }
}

#[test]
fn a_field_that_nobody_knows_is_refused() {
    let refused = parse::<Layer>("dataDir: /a\nlistn: b\n").unwrap_err();
    assert!(refused.contains("listn") && refused.contains("line 2"), "{refused}");
    let refused = Layer::from_variables(|name| (name == "CONCERT_DEV").then(|| "maybe".into()));
    assert!(refused.unwrap_err().to_string().contains("CONCERT_DEV"));
}

#[test]
fn a_certificate_needs_its_key() {
    for text in ["dataDir: /d\ntlsCertFile: a\n", "dataDir: /d\ntlsKeyFile: a\n"] {
        assert!(layer(text).resolve().unwrap_err().to_string().contains("must be set together"));
    }
    assert!(layer("dataDir: /d\ntlsCertFile: a\ntlsKeyFile: b\n").resolve().unwrap().tls_files.is_some());
}
