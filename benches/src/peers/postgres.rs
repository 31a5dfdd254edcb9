//! PostgreSQL over loopback: started here from the machine's own binaries, with fsync on.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls, Statement};

use super::{SCOPE, token};
use crate::failure::{Outcome, check};
use crate::workload::{Row, Samples};

const SCHEMA: &str = "
create table receipts (
    seq bigserial primary key, run_id text not null, tool_call_id text not null,
    attempt integer not null, tool text not null, effect text not null, status text not null,
    started_at bigint not null, duration_ms bigint not null, recorded_at bigint not null,
    input_hash bytea not null, output_hash bytea not null, token text not null,
    scope_id text not null, idempotency_key bytea not null,
    unique (run_id, tool_call_id, attempt)
);
create index by_key on receipts (idempotency_key);
create index by_token on receipts (token);
";

const COLUMNS: &str = "run_id, tool_call_id, attempt, tool, effect, status, started_at, \
    duration_ms, recorded_at, input_hash, output_hash, token, scope_id, idempotency_key";

/// A server of our own; stopped when dropped.
pub struct Postgres {
    bin: PathBuf,
    folder: TempDir,
    port: u16,
}

/// A connection with its statements.
pub struct Session {
    client: Client,
    insert_one: Statement,
    insert_many: Statement,
    select: Statement,
}

impl Postgres {
    /// Starts one; `None` where the machine has none.
    pub fn start(work: &Path) -> Outcome<Option<Self>> {
        let Some(bin) = find_binaries() else { return Ok(None) };
        let folder = tempfile::Builder::new()
            .prefix("postgres-")
            .permissions(std::fs::Permissions::from_mode(0o755))
            .tempdir_in(work)?;
        // Everybody may pass through, as the server runs as another user.
        std::fs::set_permissions(work, std::fs::Permissions::from_mode(0o755))?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let this = Self { bin, folder, port };
        if rustix::process::geteuid().is_root() {
            let owned = Command::new("chown").arg("postgres").arg(this.folder.path()).status()?;
            check(owned.success(), || "there is no user postgres to run the server as".into())?;
        }
        this.tool("initdb", "-A trust -U postgres -E UTF8 --locale=C")?;
        let options = format!(
            "-w -l {}/log -o \"-c listen_addresses=127.0.0.1 -c port={port} -c fsync=on \
             -c synchronous_commit=on -c max_connections=200 -c unix_socket_directories={}\" start",
            this.folder.path().display(),
            this.folder.path().display(),
        );
        this.tool("pg_ctl", &options)?;
        Ok(Some(this))
    }

    fn tool(&self, name: &str, arguments: &str) -> Outcome<()> {
        let (bin, data) = (self.bin.join(name), self.folder.path().join("data"));
        let line = format!("{} -D {} {arguments}", bin.display(), data.display());
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("su");
            command.args(["postgres", "-s", "/bin/sh", "-c", &line]);
            command
        } else {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &line]);
            command
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let status = command.current_dir(self.folder.path()).status()?;
        check(status.success(), || format!("{name} failed"))
    }

    /// Makes the table.
    pub async fn create_table(&self) -> Outcome<()> {
        Ok(self.connect().await?.batch_execute(SCHEMA).await?)
    }

    async fn connect(&self) -> Outcome<Client> {
        let settings = format!("host=127.0.0.1 port={} user=postgres", self.port);
        let (client, connection) = tokio_postgres::connect(&settings, NoTls).await?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                eprintln!("a PostgreSQL connection ended: {error}");
            }
        });
        Ok(client)
    }

    /// Connections with prepared statements.
    pub async fn sessions(&self, count: usize) -> Outcome<Vec<Session>> {
        let one = format!(
            "insert into receipts ({COLUMNS}) values \
             ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
        );
        let many = format!(
            "insert into receipts ({COLUMNS}) select * from unnest($1::text[], $2::text[], \
             $3::int[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bigint[], \
             $9::bigint[], $10::bytea[], $11::bytea[], $12::text[], $13::text[], $14::bytea[])"
        );
        // What a decision is made from: all attempts of a call.
        let select = "select attempt, status, tool, effect, started_at, duration_ms, recorded_at, \
            input_hash, output_hash, token, scope_id, idempotency_key from receipts \
            where run_id = $1 and tool_call_id = $2 order by attempt";
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            let client = self.connect().await?;
            let insert_one = client.prepare(&one).await?;
            let insert_many = client.prepare(&many).await?;
            let select = client.prepare(select).await?;
            sessions.push(Session { client, insert_one, insert_many, select });
        }
        Ok(sessions)
    }

    /// Bytes of the table and its indexes.
    pub async fn table_bytes(&self) -> Outcome<u64> {
        let client = self.connect().await?;
        let query = "select pg_total_relation_size('receipts')";
        Ok(client.query_one(query, &[]).await?.try_get::<_, i64>(0)?.unsigned_abs())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The folder goes away in any case.
        let _ = self.tool("pg_ctl", "-m immediate stop");
    }
}

impl Session {
    /// One row, durable when this returns.
    pub async fn insert_one(&self, row: &Row, samples: &Samples) -> Outcome<()> {
        let (sample, key) = (row.sample(samples), row.idempotency_key());
        let (started, attempt) = (row.started_ms as i64, row.attempt as i32);
        let inserted = self
            .client
            .execute(
                &self.insert_one,
                &[
                    &row.run_id(),
                    &row.tool_call_id(),
                    &attempt,
                    &row.tool(samples),
                    &row.effect(samples).as_str(),
                    &row.status(),
                    &started,
                    &(row.duration_ms as i64),
                    &started,
                    &sample.input_hash.as_bytes().as_slice(),
                    &sample.output_hash.as_bytes().as_slice(),
                    &token(row),
                    &SCOPE,
                    &key.as_slice(),
                ],
            )
            .await?;
        check(inserted == 1, || "a row was not inserted".into())
    }

    /// Many rows in one statement, durable when this returns.
    pub async fn insert_many(&self, rows: &[Row], samples: &Samples) -> Outcome<()> {
        fn column<'a, T>(rows: &'a [Row], of: impl Fn(&'a Row) -> T) -> Vec<T> {
            rows.iter().map(of).collect()
        }
        let started = column(rows, |row| row.started_ms as i64);
        let keys = column(rows, Row::idempotency_key);
        let inserted = self
            .client
            .execute(
                &self.insert_many,
                &[
                    &column(rows, Row::run_id),
                    &column(rows, Row::tool_call_id),
                    &column(rows, |row| row.attempt as i32),
                    &column(rows, |row| row.tool(samples)),
                    &column(rows, |row| row.effect(samples).as_str()),
                    &column(rows, Row::status),
                    &started,
                    &column(rows, |row| row.duration_ms as i64),
                    &started,
                    &column(rows, |row| row.sample(samples).input_hash.as_bytes().as_slice()),
                    &column(rows, |row| row.sample(samples).output_hash.as_bytes().as_slice()),
                    &column(rows, token),
                    &column(rows, |_| SCOPE),
                    &keys.iter().map(<[u8; 32]>::as_slice).collect::<Vec<_>>(),
                ],
            )
            .await?;
        check(inserted == rows.len() as u64, || "rows were not inserted".into())
    }

    /// The attempts of a call; how many there are.
    pub async fn select(&self, run_id: &str, tool_call_id: &str) -> Outcome<usize> {
        let rows = self.client.query(&self.select, &[&run_id, &tool_call_id]).await?;
        Ok(rows.len())
    }
}

/// The folder of `initdb` and `pg_ctl`: a folder of PATH, else Debian's newest.
fn find_binaries() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut debian: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    debian.sort();
    folders.extend(debian.into_iter().rev());
    let has = |folder: &PathBuf, name: &str| folder.join(name).is_file();
    folders
        .into_iter()
        .find(|folder| has(folder, "initdb") && has(folder, "pg_ctl") && has(folder, "postgres"))
}
