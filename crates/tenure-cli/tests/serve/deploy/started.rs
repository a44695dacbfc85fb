//! Units, manifests and the compose file start the real program, and their probes are answered.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use serde_json::Value;

use super::{text, texts, words, yaml};
use crate::common::{World, wait_for};
use crate::web::{Served, Web, served};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tenure");

/// The words of a unit's command.
fn exec_start(unit: &str) -> Vec<String> {
    let text = text(unit);
    let line = text.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/tenure "));
    line.unwrap_or_else(|| panic!("{unit}")).split(' ').map(str::to_owned).collect()
}

/// Starts a server as it is written, but on a port, a store and tokens of this world.
fn start(world: &World, name: &str, line: &[String]) -> Served {
    let tokens = world.path("tokens");
    std::fs::create_dir_all(&tokens).unwrap();
    for scope in ["viewer", "candidate", "operator"] {
        std::fs::write(tokens.join(scope), format!("{scope}-token\n")).unwrap();
    }
    let tokens = tokens.to_str().unwrap();
    let here = |word: &String| {
        let word = word.replace(":7117", ":0").replace("$(POD_NAME)", name);
        word.replace("/etc/tenure/tokens", tokens).replace("/run/secrets", tokens)
    };
    let line: Vec<_> = std::iter::once("--json".into()).chain(line.iter().map(here)).collect();
    assert_eq!(line[1], "serve");
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    served(world.background(name, &line))
}

/// Asks as a kubelet does: by the pod's address, without a token.
fn probe(web: &Web, path: &str) -> u16 {
    let port = web.address().rsplit_once(':').unwrap().1;
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: 10.244.1.17:7117\r\nUser-Agent: kube-probe/1.30\r\n\
         Accept: */*\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The unit of the server starts it; that of `run` runs its command where the election is led.
#[test]
fn units_start_the_program() {
    let world = World::new();
    let served = start(&world, "unit", &exec_start("systemd/tenure-serve.service"));
    assert_eq!(served.web.get("/livez").0, 200);

    let command = world.path("nightly");
    std::fs::write(
        &command,
        "#!/bin/sh\necho \"term $TENURE_TERM of $TENURE_ELECTION\"\nsleep 1000\n",
    )
    .unwrap();
    Command::new("chmod").arg("755").arg(&command).status().unwrap();
    let line = exec_start("systemd/tenure-run@.service");
    let line: Vec<String> = line
        .iter()
        .map(|word| word.replace("/etc/tenure/run.d/%i", command.to_str().unwrap()))
        .map(|word| word.replace("%I", "nightly"))
        .collect();
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut run = world.background("run", &line);
    run.until_printed("term 1 of nightly");
    run.signal(rustix::process::Signal::TERM);
    assert_ne!(run.code(), 2, "{}", run.said());
}

/// systemd itself finds nothing wrong with the units, where it is there to be asked.
#[test]
fn systemd_takes_the_units() {
    let world = World::new();
    let mut units = Vec::new();
    for name in ["tenure-serve.service", "tenure-run@.service"] {
        let unit = text(&format!("systemd/{name}")).replace("/usr/bin/tenure", PROGRAM);
        let place = world.path(name);
        std::fs::write(&place, unit).unwrap();
        units.push(place);
    }
    let asked = Command::new("systemd-analyze").arg("verify").args(&units).output();
    let Ok(said) = asked else {
        eprintln!("there is no systemd-analyze: the units were started, and not verified");
        return;
    };
    let said_of_ours = String::from_utf8_lossy(&said.stderr).into_owned();
    let ours = said_of_ours.lines().filter(|line| line.contains("tenure"));
    assert_eq!(ours.collect::<Vec<_>>(), [""; 0], "{said_of_ours}");
}

/// Everything in a list that is named like this.
fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|item| item["name"] == name)
}

/// The pods of the manifests start the server, and the kubelet's probes are answered: ready, and
/// whichever member leads. No probe asks for the leader.
#[test]
fn manifests_start_the_program_and_their_probes_are_answered() {
    for file in ["kubernetes/sidecar.yaml", "kubernetes/dashboard.yaml"] {
        let Some(documents) = yaml(file) else { return };
        let deployment = &documents[0];
        assert_eq!(
            (&deployment["apiVersion"], &deployment["kind"]),
            (&"apps/v1".into(), &"Deployment".into())
        );
        let pod = &deployment["spec"]["template"];
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], pod["metadata"]["labels"]);
        let spec = &pod["spec"];
        let sidecar = named(&spec["initContainers"], "tenure");
        let container = sidecar.or(named(&spec["containers"], "tenure")).unwrap();
        if sidecar.is_some() {
            assert_eq!(container["restartPolicy"], "Always", "else the application never starts");
        }
        let world = World::new();
        let served = start(&world, "pod-1", &words(&container["args"]));
        let port = container["ports"][0]["name"].as_str().unwrap();
        for kind in ["livenessProbe", "readinessProbe"] {
            let get = &container[kind]["httpGet"];
            let path = get["path"].as_str().unwrap();
            assert_eq!(get["port"], port);
            assert!(["/livez", "/readyz"].contains(&path), "{kind} asks {path}");
            wait_for(path, || (probe(&served.web, path) == 200).then_some(()));
        }
        assert_eq!(probe(&served.web, "/v1/elections"), 401, "a stranger needs a token");
        assert!(served.said["member"].as_str().unwrap().contains("pod-1"));
        // What is mounted is what the files are read from.
        let volume = container["volumeMounts"][0]["name"].as_str().unwrap();
        assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/tenure/tokens");
        assert!(named(&spec["volumes"], volume).unwrap()["secret"].is_object());
        if let Some(service) = documents.get(1) {
            assert_eq!(service["spec"]["selector"], pod["metadata"]["labels"]);
            assert_eq!(service["spec"]["ports"][0]["targetPort"], port);
            let host = format!("--host={}", service["metadata"]["name"].as_str().unwrap());
            assert!(words(&container["args"]).contains(&host), "it knows its service's name");
        }
        if let Some(app) = named(&spec["containers"], "app") {
            let token = named(&app["env"], "TENURE_TOKEN").unwrap();
            assert_eq!(token["valueFrom"]["secretKeyRef"]["key"], "candidate");
            let client = served.web.clone().bearer("candidate-token");
            let begun = client.post("/v1/elections/jobs/sessions", &serde_json::json!({}));
            assert_eq!(begun.unwrap().0, 201);
        }
    }
}

/// The compose file starts the program with lines that it takes; what it mounts is there; and
/// Prometheus asks the server by a name that the server goes by, with a token that it knows.
#[test]
fn the_compose_file_starts_the_program() {
    let Some(compose) = yaml("compose/compose.yaml") else { return };
    let services = &compose[0]["services"];
    let world = World::new();
    let line = words(&services["server"]["command"]);
    let served = start(&world, "server", &line);
    assert_eq!(served.web.clone().bearer("viewer-token").get("/metrics").0, 200);
    let Some(prometheus) = yaml("prometheus/prometheus.yaml") else { return };
    let job = &prometheus[0]["scrape_configs"][0];
    assert_eq!(job["job_name"], "tenure", "an alert asks for this job");
    let target = job["static_configs"][0]["targets"][0].as_str().unwrap();
    let host = target.strip_suffix(":7117").unwrap();
    assert!(services[host].is_object() && line.contains(&format!("--host={host}")), "{target}");
    assert_eq!(job["authorization"]["credentials_file"], "/run/secrets/viewer");
    assert!(words(&services["prometheus"]["secrets"]).contains(&"viewer".into()));

    let line = words(&services["job"]["command"]);
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut job = world.background("job", &line);
    world.next_leader("nightly", 0);
    job.signal(rustix::process::Signal::TERM);
    assert_ne!(job.code(), 2, "{}", job.said());

    let mut all = Vec::new();
    texts(services, &mut all);
    let mounts = all.iter().filter(|text| text.starts_with("../") && text.contains(':'));
    let places: Vec<_> = mounts.map(|text| text.split(':').next().unwrap()).collect();
    assert!(places.len() >= 3, "{places:?}");
    for place in places {
        assert!(super::folder().join("compose").join(place).exists(), "{place}");
    }
    let image = text("Dockerfile");
    assert!(image.contains("--bin tenure") && image.contains("/usr/bin/tenure"));
}

/// The program takes each line that the runbook says to type: its verb, and its options.
#[test]
fn the_runbook_has_commands_that_the_program_takes() {
    let book = std::fs::read_to_string(super::folder().join("../docs/operations.md")).unwrap();
    let typed = book.lines().filter_map(|line| line.strip_prefix("$ tenure "));
    let mut lines: Vec<&str> = typed.map(|line| line.split('#').next().unwrap().trim()).collect();
    let quoted = book.split('`').skip(1).step_by(2).filter_map(|text| text.strip_prefix("tenure "));
    lines.extend(quoted);
    assert!(lines.len() > 15, "{lines:?}");
    for line in lines {
        let words = line.split(' ').filter(|word| !matches!(*word, "…"));
        let mut words: Vec<_> = words.map(|word| word.trim_matches('"')).collect();
        // A reason of two words is one argument.
        if let Some(at) = words.iter().position(|word| *word == "--reason") {
            words.truncate(at + 1);
            words.push("because");
        }
        words.push("--help");
        let said = Command::new(PROGRAM).args(&words).output().unwrap();
        let error = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.success(), "tenure {line}: {error}");
    }
}
