// PostgreSQL's functions, by each kind of client, on a real server; and the recipe's own shape.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { after, before, test } from 'node:test';
import { runIfLeader, LeaderElection, queryOf } from 'tenure-client';
import { millis } from '../dist/esm/postgres.js';
import { pause, stands, until } from './common.mjs';

const require = createRequire(import.meta.url);
const { Pool } = require('pg');
const postgres = require('postgres');

const url = process.env.TENURE_TEST_POSTGRES_URL;
assert.ok(url, 'TENURE_TEST_POSTGRES_URL is not set: run `cargo xtask test`');
let fresh = 0;
const space = () => `ts-${process.pid}-${++fresh}`;
let pool;
before(() => (pool = new Pool({ connectionString: url, max: 4 })));
after(() => pool.end());

/** What a Supabase client is: a function's name, and its arguments by name; the answer is JSON. */
function supabase(schema) {
  return {
    schema: (name) => supabase(name),
    async rpc(name, args) {
      const list = Object.keys(args).map((key, n) => `${key} => $${n + 1}`).join(', ');
      const text = `SELECT to_json(f) AS data FROM "${schema}".${name}(${list}) AS f`;
      try {
        const { rows } = await pool.query(text, Object.values(args));
        return { data: JSON.parse(JSON.stringify(rows[0].data)), error: null };
      } catch (error) {
        return { data: null, error: { message: error.message } };
      }
    },
  };
}

const clients = {
  pg: () => [pool, () => {}],
  'postgres.js': () => { const sql = postgres(url, { max: 2 }); return [sql, () => sql.end()]; },
  supabase: () => [supabase('public'), () => {}],
  'a function': () => [(text, values) => pool.query(text, values), () => {}],
};

for (const [name, make] of Object.entries(clients)) {
  test(`by ${name}: it leads, is renewed, and hands over`, async (t) => {
    const [client, end] = make();
    const namespace = space();
    const first = stands(t, { namespace, id: 'first' }, client);
    await first.election.start();
    assert.ok(first.election.isLeader());
    const second = stands(t, { namespace, id: 'second' }, client);
    await second.election.start();
    for (const began = performance.now(); performance.now() - began < 2000; await pause(20)) {
      assert.ok(first.election.isLeader() && !second.election.isLeader());
      assert.ok(first.election.remaining() <= 1350, 'less the margin');
    }
    const { rows } = await pool.query("SELECT tenure.fence($1, 'jobs', $2)", [namespace, first.election.token]);
    assert.equal(rows.length, 1);
    const token = first.election.token;
    await first.election.stop();
    await until('the second', () => second.election.isLeader());
    assert.ok(second.election.token > token);
    await assert.rejects(pool.query("SELECT tenure.fence($1, 'jobs', $2)", [namespace, token]), { code: 'TN001' });
    await second.election.stop();
    assert.deepEqual([first.errors, second.errors], [[], []]);
    const left = await pool.query('SELECT count(*) FROM tenure.members WHERE ns = $1', [namespace]);
    assert.equal(left.rows[0].count, '0', 'they have left');
    await end();
  });
}

test('two processes of one id are two', async (t) => {
  const namespace = space();
  const one = stands(t, { namespace, id: 'worker-1' }, pool);
  const two = stands(t, { namespace, id: 'worker-1' }, pool);
  await Promise.all([one.election.start(), two.election.start()]);
  await until('a leader', () => one.election.isLeader() || two.election.isLeader());
  await pause(1700);
  assert.equal(one.election.isLeader() && two.election.isLeader(), false);
});

test('an operator asks for a step-down', async (t) => {
  const namespace = space();
  const first = stands(t, { namespace, id: 'first' }, pool);
  await first.election.start();
  const second = stands(t, { namespace, id: 'second' }, pool);
  await second.election.start();
  await pool.query("SELECT tenure.ask_step_down($1, 'jobs')", [namespace]);
  await until('the second', () => second.election.isLeader());
  assert.match(first.told[1], /^stopping 1: an operator asked/);
  assert.equal(first.election.isLeader(), false);
});

test('a database that is away: trust ends in time; the next term has a higher token', async (t) => {
  const namespace = space();
  let away = false;
  const query = (text, values) => (away ? new Promise(() => {}) : pool.query(text, values));
  const { election, told } = stands(t, { namespace, query });
  await election.start();
  const token = election.token;
  away = true;
  const remaining = election.remaining();
  const from = performance.now();
  await until('the loss', () => told.length === 2);
  assert.ok(performance.now() - from < remaining + 1000);
  assert.equal(told[1], `lost ${token}: trust has ended`);
  away = false;
  await until('the next', () => election.isLeader());
  assert.ok(election.token > token);
});

test('a call that was given up is waited for before the election is left', async (t) => {
  const namespace = space();
  let slow = false;
  const query = async (text, values) => {
    if (slow && text.includes('try_lead')) await pause(600);
    return pool.query(text, values);
  };
  const { election } = stands(t, { namespace, query });
  await election.start();
  slow = true;
  await pause(400);
  await election.stop();
  await pause(800);
  const left = await pool.query('SELECT count(*) FROM tenure.members WHERE ns = $1', [namespace]);
  assert.equal(left.rows[0].count, '0', 'a late call stood again');
});

test('evicted, it is lost with the next answer', async (t) => {
  const namespace = space();
  const { election, told } = stands(t, { namespace, id: 'me', ttlSeconds: 3, heartbeatIntervalMs: 100 }, pool);
  await election.start();
  const { rows } = await pool.query('SELECT id FROM tenure.members WHERE ns = $1', [namespace]);
  assert.match(rows[0].id, /^me#[0-9a-f]{8}$/);
  await pool.query('SELECT tenure.evict($1, $2, true)', [namespace, rows[0].id]);
  await until('the loss', () => told.length >= 2);
  await until('the next term', () => (election.token ?? 0) > 1);
});

test('spans as PostgreSQL writes them', () => {
  assert.equal(millis('00:00:09.98'), 9980);
  assert.equal(millis('1 day 02:00:00'), 26 * 3_600_000);
  assert.equal(millis('2 days 00:00:00.5'), 48 * 3_600_000 + 500);
  assert.equal(millis(1234.5), 1234.5);
  assert.equal(millis('1234.5'), 1234.5);
  for (const bad of ['', 'PT9S', '9 secs', null, undefined]) assert.ok(!(millis(bad) > 0), String(bad));
});

test('an answer that is no row, or that says nothing of time, is an error and elects no one', async (t) => {
  for (const rows of [[], [{ leads: true, term: '1', remaining: null, asked: false }], [{ leads: true, term: 'x', remaining: 900, asked: false }]]) {
    const { election, errors } = stands(t, { query: async () => rows });
    await election.start();
    assert.ok(errors.length > 0 && !election.isLeader());
    await election.stop();
  }
  assert.throws(() => queryOf(42), /first argument/);
});

// The recipe's own shape: only the import is another.
test('the recipe: a singleton cron job, a queue, work under a condition', async (t) => {
  const crons = { running: 0, startCronJobs: () => crons.running++, stopCronJobs: () => crons.running-- };
  const { startCronJobs, stopCronJobs } = crons;
  const db = supabase('public');
  const election = new LeaderElection(db, {
    serviceName: `report-${space()}`,
    candidateId: `worker-${process.env.HOSTNAME || 'local'}`,
    heartbeatIntervalMs: 1000,
    heartbeatTimeoutSeconds: 3,

    onBecomeLeader: async () => {
      startCronJobs();
    },

    onLoseLeadership: async () => {
      stopCronJobs();
    },
  });
  t.after(() => election.stop());
  await election.start();
  let ran = 0;
  if (election.isCurrentLeader()) {
    ran += 1;
  }
  assert.deepEqual([ran, crons.running], [1, 1]);

  const queueConsumer = { on: false, start() { this.on = true; }, stop() { this.on = false; } };
  const consumer = new LeaderElection(db, {
    serviceName: `queue-${space()}`,
    candidateId: `consumer-${process.pid}`,
    onBecomeLeader: () => queueConsumer.start(),
    onLoseLeadership: () => queueConsumer.stop(),
  });
  t.after(() => consumer.stop());
  await consumer.start();
  assert.ok(queueConsumer.on);

  const sent = await runIfLeader(election, async () => {
    await pause(1);
    return 'mails';
  });
  assert.equal(sent, 'mails');

  await election.stop();
  await consumer.stop();
  assert.deepEqual([crons.running, queueConsumer.on], [0, false]);
  assert.equal(await runIfLeader(election, async () => 'mails'), null);
});
