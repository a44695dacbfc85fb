// One member of the run under faults. It stands, and while it leads it writes: when it was led, to
// its own log, and a number, under the fence. Only a signal ends it.
import { openSync, writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { LeaderElection } from '../dist/esm/index.js';

const { Pool } = createRequire(import.meta.url)('pg');
const [transport, server, database, namespace, name, log, ttl] = process.argv.slice(2);
const file = openSync(log, 'a');
const say = (line) => writeSync(file, `${line}\n`);
const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

// A query that hangs is given up: its connection may be gone without a word.
const pool = new Pool({ connectionString: database, max: 3, application_name: name, query_timeout: 2000, connectionTimeoutMillis: 2000 });
pool.on('error', () => {});
const over = transport === 'server' ? { server } : { query: (text, values) => pool.query(text, values), namespace };
const election = new LeaderElection({ election: 'jobs', id: name, ttlSeconds: ttl / 1000, onError: (error) => say(`E ${error.code}`), ...over });

// The clock first: what is written down was so at that moment, or later.
setInterval(() => {
  const at = process.hrtime.bigint();
  const token = election.token;
  if (token !== undefined && election.isLeader()) say(`L ${token} ${at}`);
}, 4);

process.on('SIGTERM', async () => {
  await election.stop();
  process.exit(0);
});
await election.start();

for (;;) {
  await election.runIfLeader(async ({ token }) => {
    const db = await pool.connect();
    try {
      await db.query('BEGIN');
      // A member that is stopped in here would keep all others from leading: its fence holds.
      await db.query("SET LOCAL idle_in_transaction_session_timeout = '1s'");
      await db.query('SELECT tenure.fence($1, $2, $3)', [namespace, 'jobs', token]);
      const { rows } = await db.query(`SELECT n FROM "${namespace}".counter`);
      const n = Number(rows[0].n) + 1;
      await pause(2);
      await db.query(`UPDATE "${namespace}".counter SET n = $1`, [n]);
      await db.query(`INSERT INTO "${namespace}".ledger VALUES ($1, $2, $3)`, [n, token, name]);
      await db.query('COMMIT');
      say(`C ${token} ${n}`);
      db.release();
    } catch (error) {
      // Refused, or the connection is gone: whatever was open is rolled back with it.
      db.release(error);
    }
  }).catch(() => {});
  await pause(20);
}
