//! What goes wrong around a service on demand: what dead ones left behind, places without room for a
//! socket, other users, other versions, and processes that inherit too much.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};

use recibo_adapter::now_ms;
use recibo_tests::binary::{Server, path};
use serde_json::{Value, json};

use super::{
    command, exec, fails, folder, on, pause, recibo, services, signal, status, succeeds, until,
};

fn run(data: &Path, call: &str) -> std::process::Output {
    exec(data, call).output().expect("the binary runs")
}

fn note(data: &Path) -> Value {
    let text = fs::read_to_string(data.join("service.json")).expect("a note");
    serde_json::from_str(&text).expect("a document")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn what_a_dead_service_left_behind_is_no_hindrance() {
    let (_temp, data) = folder();
    succeeds(&run(&data, "a"));
    let [first] = services(&data)[..] else { panic!("one service") };
    signal(first, "-KILL");
    until("it is gone", || services(&data).is_empty());
    assert!(data.join("service.json").exists() && data.join("service.sock").exists());
    succeeds(&run(&data, "b"));
    let second = note(&data);
    assert_ne!(second["pid"], first);
    assert_eq!(succeeds(&recibo(&data, &["stop"])).matches("stopped").count(), 1);
    assert!(!data.join("service.json").exists() && !data.join("service.sock").exists());

    // A note that names another process, a socket that is none, a note that is none.
    let mut foreign = second;
    foreign["pid"] = std::process::id().into();
    fs::write(data.join("service.json"), foreign.to_string()).expect("a note");
    fs::write(data.join("service.sock"), "no socket").expect("a file");
    fs::write(data.join("service.lock"), "12345").expect("a file");
    succeeds(&run(&data, "c"));
    succeeds(&recibo(&data, &["stop"]));
    fs::write(data.join("service.json"), "{\"url\":").expect("a note");
    succeeds(&run(&data, "d"));
    let calls = succeeds(&recibo(&data, &["run", "r", "--json"]));
    assert_eq!(calls.matches("\"state\":\"ok\"").count(), 4, "{calls}");
}

#[test]
fn where_the_folder_has_no_room_for_a_socket_it_is_in_the_runtime_folder() {
    let (temp, data) = folder();
    let runtime = temp.path().join("run");
    let long = temp.path().join("x".repeat(120));
    // A file system without sockets says no to the same system call.
    fs::create_dir_all(data.join("service.sock/taken")).expect("a folder");
    for data in [&long, &data] {
        let with_runtime = |mut command: Command| {
            command.env("XDG_RUNTIME_DIR", &runtime).output().expect("the binary runs")
        };
        succeeds(&with_runtime(exec(data, "a")));
        let socket = note(data)["socket"].as_str().expect("a path").to_owned();
        assert!(Path::new(&socket).starts_with(runtime.join("recibo")), "{socket}");
        assert_eq!((mode(Path::new(&socket)), mode(&runtime.join("recibo"))), (0o600, 0o700));
        // The note says where it is; who looks for it needs no runtime folder.
        succeeds(&run(data, "b"));
        assert_eq!(services(data).len(), 1);
        succeeds(&recibo(data, &["stop"]));
        assert!(!Path::new(&socket).exists());
        // One that others can enter is none.
        fs::set_permissions(runtime.join("recibo"), PermissionsExt::from_mode(0o755))
            .expect("ours");
        let refused = with_runtime(exec(data, "c"));
        fails(&refused, 31, &["no socket can be made", "0700", "recibo serve", "--alone"]);
        let mut alone = exec(data, "c");
        succeeds(&with_runtime(on_its_own(&mut alone)));
        fs::set_permissions(runtime.join("recibo"), PermissionsExt::from_mode(0o700))
            .expect("ours");
    }
}

fn on_its_own(command: &mut Command) -> Command {
    command.env("RECIBO_ALONE", "1");
    std::mem::replace(command, Command::new("true"))
}

/// As after a suspension of the machine, or of the service alone.
#[test]
fn a_service_that_stands_still_is_waited_for() {
    let (_temp, data) = folder();
    succeeds(&run(&data, "a"));
    let [pid] = services(&data)[..] else { panic!("one service") };
    signal(pid, "-STOP");
    let mut waiting = exec(&data, "b").stdout(Stdio::piped()).spawn().expect("the binary runs");
    // Longer than its idle time.
    pause(2_500);
    assert!(waiting.try_wait().expect("a child").is_none(), "nothing was decided without it");
    signal(pid, "-CONT");
    succeeds(&waiting.wait_with_output().expect("it ends"));
    let call = succeeds(&recibo(&data, &["call", "r", "b", "--json"]));
    assert_eq!(call.matches("\"attempt\":").count(), 1, "{call}");
    assert_eq!(services(&data), [pid]);
}

#[test]
fn nothing_of_the_process_that_starts_it_is_kept_open() {
    let (temp, data) = folder();
    let lock = temp.path().join("lock");
    // The usual way to let one job run at a time: the lock is a descriptor that children inherit.
    let script = format!(
        "exec 9>'{0}'; flock 9; said=$('{1}' exec --run r --call a --tool t -- echo done); \
         echo \"$said\"",
        lock.display(),
        path().display()
    );
    let mut shell = on(Command::new("sh"), &data);
    // Stdout and stderr are pipes: they would not end if the service held them.
    let output = shell.args(["-c", &script]).env("RECIBO_IDLE_EXIT", "60s").output();
    let said = succeeds(&output.expect("a shell"));
    assert!(said.starts_with("done\n[receipt: "), "{said}");
    let [pid] = services(&data)[..] else { panic!("it is still there") };
    let free = Command::new("flock").args(["-n"]).arg(&lock).arg("true").status();
    assert!(free.expect("flock runs").success(), "the service holds the lock");
    // It belongs to no terminal and keeps no folder busy, and `ps` says whose it is.
    let place = fs::read_link(format!("/proc/{pid}/cwd")).expect("a folder");
    assert_eq!(place, Path::new("/"));
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("a state");
    let session = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3));
    assert_eq!(session, Some(&*pid.to_string()), "{stat}");
    let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).expect("words");
    assert!(words.contains("serve\0--on-demand\0--data\0"), "{words}");
    let environment = fs::read_to_string(format!("/proc/{pid}/environ")).expect("variables");
    assert!(!environment.contains("HOME=") && !environment.contains("PATH="), "{environment}");
    succeeds(&recibo(&data, &["stop"]));
}

#[test]
fn a_ledger_that_is_taken_away_takes_its_service_with_it() {
    let (_temp, data) = folder();
    succeeds(&run(&data, "a"));
    let mut patient = exec(&data, "b");
    patient.env("RECIBO_IDLE_EXIT", "60s");
    succeeds(&recibo(&data, &["stop"]));
    succeeds(&patient.output().expect("the binary runs"));
    let [old] = services(&data)[..] else { panic!("one service") };
    fs::remove_dir_all(&data).expect("it is ours");
    // Another ledger begins there at once, and knows nothing of the first.
    succeeds(&run(&data, "a"));
    until("the old one ends", || !services(&data).contains(&old));
    assert_eq!(status(&data)["events"], 4);
    // The ledger file alone.
    let [pid] = services(&data)[..] else { panic!("one service") };
    fs::remove_file(data.join("ledger.redb")).expect("it is there");
    until("it ends", || !services(&data).contains(&pid));
    fails(&run(&data, "c"), 31, &["ledger.redb", "recibo init --fresh"]);
}

#[test]
fn a_ledger_that_is_put_aside_is_not_kept_by_its_service() {
    let (_temp, data) = folder();
    succeeds(&run(&data, "a"));
    succeeds(&recibo(&data, &["init", "--fresh"]));
    assert!(services(&data).is_empty());
    assert_eq!(status(&data)["running"], false);
    succeeds(&run(&data, "a"));
}

/// Whoever has started a service may die before it is ready, and others start one meanwhile.
#[test]
fn of_two_services_that_are_started_at_once_one_stays_and_is_found() {
    let (_temp, data) = folder();
    succeeds(&run(&data, "a"));
    succeeds(&recibo(&data, &["stop"]));
    for round in 0..5 {
        let mut orphans: Vec<_> = (0..3)
            .map(|_| {
                let mut orphan = command(&data);
                orphan.args(["serve", "--on-demand", "--data"]).arg(&data);
                orphan.stdout(Stdio::null()).stderr(Stdio::null());
                orphan.spawn().expect("the binary runs")
            })
            .collect();
        succeeds(&run(&data, &format!("b{round}")));
        let pid = u32::try_from(status(&data)["pid"].as_u64().expect("a pid")).expect("a pid");
        until("the others end", || services(&data) == [pid]);
        succeeds(&recibo(&data, &["stop"]));
        for orphan in &mut orphans {
            orphan.wait().expect("it ends");
        }
    }
}

#[test]
fn a_ledger_that_one_process_has_alone_for_a_moment_is_waited_for() {
    let (temp, data) = folder();
    let (begun, gate) = (temp.path().join("begun"), temp.path().join("gate"));
    let script = format!(
        "touch '{}'; until test -e '{}'; do sleep 0.01; done",
        begun.display(),
        gate.display()
    );
    let mut first = command(&data)
        .args(["exec", "--alone", "--run", "r", "--call", "a", "--tool", "t", "--"])
        .args(["sh", "-c", &script])
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    until("it has begun", || begun.exists());
    let mut second = exec(&data, "b").stdout(Stdio::piped()).spawn().expect("the binary runs");
    pause(300);
    assert!(second.try_wait().expect("a child").is_none());
    fs::write(&gate, "").expect("a file");
    assert!(first.wait().expect("it ends").success());
    succeeds(&second.wait_with_output().expect("it ends"));
    // While a service runs, nobody is alone.
    fails(&recibo(&data, &["calls", "--alone"]), 1, &["a service runs on", "without --alone"]);
}

#[test]
fn an_older_service_gives_way_to_a_newer_command_and_a_newer_one_is_named() {
    let (_temp, data) = folder();
    let pretend = |version: &str| {
        let mut note = note(&data);
        note["version"] = version.into();
        fs::write(data.join("service.json"), note.to_string()).expect("a note");
    };
    succeeds(&run(&data, "a"));
    let [older] = services(&data)[..] else { panic!("one service") };
    pretend("0.0.9");
    let output = run(&data, "b");
    succeeds(&output);
    assert!(output.stderr.is_empty(), "{output:?}");
    let [newer] = services(&data)[..] else { panic!("one service") };
    assert_ne!(older, newer);
    pretend("99.0.0");
    fails(&run(&data, "c"), 0, &["is 99.0.0", "update this command"]);
    assert_eq!(services(&data), [newer]);
    // One that a person has started stays, whatever its version.
    let server = Server::start(&data);
    pretend("0.0.9");
    fails(&run(&data, "d"), 0, &["is 0.0.9", "update the service and start it again"]);
    assert_eq!(services(&data), [server.pid()]);
}

#[test]
fn a_service_that_cannot_start_says_why_to_whoever_has_started_it() {
    let (temp, data) = folder();
    let with = |name: &str, value: &str| {
        let mut command = exec(&data, "a");
        command.env(name, value).output().expect("the binary runs")
    };
    fails(&with("RECIBO_IDLE_EXIT", "soon"), 31, &["cannot start a service", "soon"]);
    fails(&with("RECIBO_LOG", "=="), 31, &["`==` is no log filter"]);
    let file = temp.path().join("file");
    fs::write(&file, "").expect("a file");
    let output = exec(&file.join("data"), "a").output().expect("the binary runs");
    fails(&output, 31, &["cannot make", "file/data"]);
    assert!(services(&data).is_empty());
    succeeds(&run(&data, "a"));
}

#[test]
fn a_service_that_finds_no_address_leaves_the_one_that_runs_alone() {
    let (_temp, data) = folder();
    succeeds(&run(&data, "a"));
    let running = services(&data);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = taken.local_addr().expect("an address").to_string();
    let refused = recibo(&data, &["serve", "--listen", &address]);
    fails(&refused, 1, &["cannot listen on", "--listen"]);
    assert_eq!(services(&data), running);
}

#[test]
fn status_and_stop_say_what_runs_and_start_nothing() {
    let (_temp, data) = folder();
    for arguments in [&["status"][..], &["stop"]] {
        fails(&recibo(&data, arguments), 1, &["there is no ledger"]);
    }
    succeeds(&run(&data, "a"));
    let running = status(&data);
    assert_eq!((&running["running"], &running["on_demand"]), (&json!(true), &json!(true)));
    assert_eq!((&running["in_flight"], &running["unknown"]), (&json!(0), &json!(0)));
    assert!(running["bytes"].as_u64().is_some_and(|bytes| bytes > 4096), "{running}");
    let page = succeeds(&recibo(&data, &["status"]));
    // Its lines end anywhere between two words.
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["runs on demand: process", "version 0.", "since 20", "service.sock", "4 events"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let stopped = succeeds(&recibo(&data, &["stop", "--json"]));
    assert_eq!(stopped, format!("{{\"stopped\":{}}}\n", running["pid"]));
    assert!(services(&data).is_empty());
    assert_eq!(succeeds(&recibo(&data, &["stop", "--json"])), "{\"stopped\":null}\n");
    let still = status(&data);
    assert_eq!((&still["running"], &still["pid"]), (&json!(false), &json!(null)));
    assert_eq!(still["events"], 4);
    assert!(succeeds(&recibo(&data, &["status"])).contains("none runs"));
    assert!(services(&data).is_empty(), "looking has started one");
    // A service that a person has started is one too.
    let server = Server::start(&data);
    let running = status(&data);
    assert_eq!((&running["pid"], &running["on_demand"]), (&json!(server.pid()), &json!(false)));
    succeeds(&recibo(&data, &["stop"]));
    assert!(services(&data).is_empty());
}

/// The folder is one that everybody may enter: nothing in it is for anybody but its owner.
#[test]
fn each_way_in_of_another_user_is_closed() {
    let (temp, data) = folder();
    succeeds(&run(&data, "a"));
    for file in fs::read_dir(&data).expect("a folder").flatten() {
        assert_eq!(mode(&file.path()), 0o600, "{file:?}");
    }
    assert_eq!(mode(&data), 0o700);
    if fs::metadata("/proc/self").expect("a process").uid() != 0 {
        // Only root can be another user too; the modes are what binds that one.
        return;
    }
    for open in [temp.path(), &data] {
        fs::set_permissions(open, PermissionsExt::from_mode(0o755)).expect("it is ours");
    }
    let binary = temp.path().join("recibo");
    fs::copy(path(), &binary).expect("a copy");
    let other = |words: &[&str]| {
        let mut command = on(Command::new("setpriv"), &data);
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).args(words);
        command.current_dir("/").output().expect("setpriv runs")
    };
    let before = status(&data)["events"].clone();
    let [pid] = services(&data)[..] else { panic!("one service") };
    let file = |name: &str| data.join(name).to_str().expect("text").to_owned();
    let connect =
        format!("import socket; socket.socket(socket.AF_UNIX).connect({:?})", file("service.sock"));
    let binary = binary.to_str().expect("text");
    for words in [
        &["python3", "-c", &connect][..],
        &["cat", &file("admin.key")],
        &["cat", &file("lease.key")],
        &["cat", &file("service.json")],
        &["cat", &file("service.log")],
        // Who could lock it would keep everybody from starting the service.
        &["flock", "-n", &file("service.lock"), "true"],
        &["rm", "-f", &file("service.sock")],
        &["kill", &pid.to_string()],
        &[binary, "status"],
        &[binary, "stop"],
        &[binary, "calls"],
        &[binary, "exec", "--run", "r", "--call", "x", "--tool", "t", "--", "true"],
    ] {
        let output = other(words);
        assert!(!output.status.success(), "{words:?}: {output:?}");
    }
    assert_eq!((services(&data), &status(&data)["events"]), (vec![pid], &before));

    // Whoever was first in a place that everybody can write to.
    let shared = temp.path().join("shared");
    fs::create_dir(&shared).expect("a folder");
    fs::set_permissions(&shared, PermissionsExt::from_mode(0o777)).expect("it is ours");
    let taken = shared.join("recibo");
    assert!(other(&["mkdir", "-m", "700", taken.to_str().expect("text")]).status.success());
    let long = temp.path().join("x".repeat(120));
    let mut command = exec(&long, "a");
    let refused = command.env("XDG_RUNTIME_DIR", &shared).output().expect("the binary runs");
    fails(&refused, 31, &["no socket can be made", "not this user's alone"]);
}

#[test]
fn without_a_word_it_ends_after_a_minute() {
    let (_temp, data) = folder();
    let mut command = exec(&data, "a");
    let output = command.env_remove("RECIBO_IDLE_EXIT").output().expect("the binary runs");
    let began_ms = now_ms();
    succeeds(&output);
    let [pid] = services(&data)[..] else { panic!("one service") };
    while services(&data) == [pid] {
        pause(500);
    }
    let lasted_ms = now_ms() - began_ms;
    assert!(lasted_ms > 58_000, "{lasted_ms}");
}
