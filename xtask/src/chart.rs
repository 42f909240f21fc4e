//! `cargo xtask chart`: lints the Helm chart, renders it, and asks the program whether it takes the
//! environment that pods get. What would lose data has to be refused before anything is rendered.

use crate::process::{line, output, which};
use crate::{install, project};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

/// Helm built from source takes an old one for granted.
const KUBERNETES: &str = "1.30.0";

/// Three nodes, as somebody would set them up.
const USUAL: [&str; 3] = [
    "cluster.coordinator=etcd://etcd-0.etcd:2379\\,etcd-1.etcd:2379",
    "auth.existingSecret=secret",
    "clusterSecret.existingSecret=nodes",
];

/// Everything that is off otherwise.
const MORE: [&str; 12] = [
    "etcd.tls.existingSecret=etcd-certificates",
    "etcd.tls.clientCertificate=true",
    "etcd.auth.existingSecret=etcd-user",
    "peerTls.existingSecret=peers",
    "settings.maxmemory=512mb",
    "settings.appendfsync=always",
    "persistence.storageClass=fast",
    "serviceMonitor.enabled=true",
    "antiAffinity=soft",
    "replicas=5",
    "cluster.copies=3",
    "cluster.wireVersion=1",
];

/// Values beside [`USUAL`], and what is said of them.
const REFUSED: [(&str, &str); 12] = [
    ("cluster.coordinator=", "several nodes need a coordinator"),
    (
        "cluster.coordinator=local",
        "several nodes need a coordinator",
    ),
    ("cluster.copies=4", "cluster.copies is above replicas"),
    ("maxUnavailable=2", "all copies of a slot to go at once"),
    ("auth.existingSecret=", "would be turned away"),
    (
        "clusterSecret.existingSecret=",
        "any pod could act as a node",
    ),
    ("etcd.auth.existingSecret=a", "sent without TLS"),
    ("settings.port=1", "the chart's own"),
    ("settings.cluster-copies=1", "see cluster.*"),
    ("settings.cluster-etcd-user=birds", "etcd.*"),
    ("etcd.tls.clientCertificate=true", "is in a secret"),
    (
        "replicas=1,cluster.copies=1,cluster.coordinator=local,etcd.auth.existingSecret=a",
        "cluster.coordinator is none",
    ),
];

/// Where Helm is, or why the chart cannot be tried.
pub(crate) fn helm() -> Result<PathBuf, String> {
    let own = install::go_tools().join("helm");
    match which("helm").or_else(|| own.is_file().then_some(own)) {
        Some(helm) => Ok(helm),
        None => Err("no helm: see helm.sh, or cargo xtask test --full".to_owned()),
    }
}

pub(crate) fn run() -> Result<bool> {
    let helm = helm().map_err(anyhow::Error::msg)?;
    let chart = project::root().join("deploy/helm/rufous");
    let command = |verb: &[&str], values: &[&str]| {
        let mut command = Command::new(&helm);
        command
            .args(verb)
            .arg(&chart)
            .args(["--kube-version", KUBERNETES]);
        for value in values {
            command.args(["--set", value]);
        }
        command
    };
    output(&mut command(&["lint", "--strict"], &USUAL))?;
    for (value, why) in REFUSED {
        let mut command = command(&["template", "birds"], &[&USUAL[..], &[value]].concat());
        let answer = command.output().with_context(|| line(&command))?;
        let said = String::from_utf8_lossy(&answer.stderr);
        ensure!(
            !answer.status.success() && said.contains(why),
            "{value} should be refused ({why}): {said}"
        );
    }
    for values in [USUAL.to_vec(), [&USUAL[..], &MORE].concat()] {
        let text = output(&mut command(&["template", "birds"], &values))?;
        check(&text)?;
    }
    println!("the chart is as it should be");
    Ok(true)
}

fn check(rendered: &str) -> Result<()> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(rendered).context("no YAML")?;
    let of_kind = |kind: &str| {
        let mut found = documents.iter().filter(|one| one["kind"] == kind);
        found.next().with_context(|| format!("there is no {kind}"))
    };
    let set = of_kind("StatefulSet")?;
    let pod = &set["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let ready = &container["readinessProbe"]["httpGet"]["path"];
    ensure!(ready == "/readyz", "pods are ready by {ready}");
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    for kind in ["StatefulSet", "PodDisruptionBudget"] {
        let wanted = &of_kind(kind)?["spec"]["selector"]["matchLabels"];
        let wanted = wanted.as_object().context("labels")?;
        let is_there = |(name, value): (&String, &Value)| labels[name] == *value;
        ensure!(wanted.iter().all(is_there), "{kind} has other pods");
    }
    let name = &set["spec"]["serviceName"];
    let of_nodes = |one: &&Value| one["kind"] == "Service" && one["metadata"]["name"] == *name;
    let service = documents
        .iter()
        .find(of_nodes)
        .context("no service of nodes")?;
    ensure!(
        service["spec"]["publishNotReadyAddresses"] == true,
        "nodes do not find each other"
    );
    ensure!(
        of_kind("ConfigMap").is_err(),
        "settings that are no secrets are in the pod itself"
    );
    secrets(pod, container)?;
    accepts(container)
}

/// Passwords come from secrets alone, and files are there where variables say: in a secret that
/// is mounted.
fn secrets(pod: &Value, container: &Value) -> Result<()> {
    let of = |list: &Value| list.as_array().cloned().unwrap_or_default();
    let mounts = of(&container["volumeMounts"]);
    let volumes = of(&pod["volumes"]);
    let is_secret = |mount: &Value| {
        let mut named = volumes.iter().filter(|one| one["name"] == mount["name"]);
        named.any(|one| one["secret"]["secretName"].is_string()) && mount["readOnly"] == true
    };
    for variable in of(&container["env"]) {
        let name = variable["name"].as_str().context("a name")?;
        let of_secret = match name {
            _ if name.ends_with("_IN_CLEAR") => None,
            _ if name.contains("PASS") => Some("password"),
            _ if name.contains("SECRET") => Some("secret"),
            _ => None,
        };
        if let Some(of_secret) = of_secret {
            let key = &variable["valueFrom"]["secretKeyRef"];
            ensure!(
                key["name"].is_string() && key["key"] == of_secret,
                "{name} is of no secret"
            );
        }
        if name.ends_with("_FILE") {
            let file = variable["value"].as_str().context("a path")?;
            let folder = file.rsplit_once('/').map(|(folder, _)| folder);
            let mut there = mounts
                .iter()
                .filter(|mount| mount["mountPath"].as_str() == folder);
            ensure!(there.any(is_secret), "{name}: {file} is in no secret");
        }
    }
    Ok(())
}

/// The program takes the variables: their names are settings, their values are allowed.
fn accepts(container: &Value) -> Result<()> {
    let mut variables = BTreeMap::new();
    for variable in container["env"].as_array().context("variables")? {
        let name = variable["name"].as_str().context("a name")?;
        let value = match &variable["value"] {
            Value::String(value) => value
                .replace("$(POD_NAME)", "birds-0")
                .replace("$(POD_NAMESPACE)", "default"),
            // From the pod or a secret.
            Value::Null => "given by the cluster".to_owned(),
            other => bail!("{name} is no text but {other}: pods would be refused"),
        };
        variables.insert(name.to_owned(), value);
    }
    let coordinator = "RUFOUS_CLUSTER_COORDINATOR";
    ensure!(
        variables[coordinator].starts_with("etcd://"),
        "{variables:?}"
    );
    let mut command = Command::new(project::server_binary());
    command.arg("check-config").envs(&variables);
    let answer = command.output().with_context(|| line(&command))?;
    let said = String::from_utf8_lossy(&answer.stderr);
    ensure!(answer.status.success(), "pods would not start: {said}");
    ensure!(
        !said.contains("is no setting"),
        "pods are told more: {said}"
    );
    Ok(())
}
