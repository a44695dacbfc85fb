// Servers that answer late, wrong, or not at all. Each test is one interleaving.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { pause, stands, until } from './common.mjs';

const leading = (more) => ({ session: 's', state: 'leading', seen: 2, term: 7, remaining_ms: 1400, ttl_ms: 1500, ...more });
const waiting = { session: 's', state: 'waiting', seen: 1, remaining_ms: 0, ttl_ms: 1500 };

/** A server that answers as it is told: `answer(path, body, n)` gives a body, or sends by itself. */
async function fake(t, answer) {
  const asked = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const part of request) text += part;
    asked.push({ path: request.url, body: JSON.parse(text || 'null'), headers: request.headers });
    const said = await answer(request.url, asked.length, response);
    if (said === undefined || response.writableEnded) return;
    response.setHeader('content-type', 'application/json');
    response.statusCode = said.status ?? 200;
    response.end(typeof said === 'string' ? said : JSON.stringify(said));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => (server.closeAllConnections(), server.close()));
  return { server: `http://127.0.0.1:${server.address().port}`, asked };
}

const over = { ...waiting, state: 'lost', seen: 3 };
const isResign = (path) => path.endsWith('/resign');
const isBegin = (path) => path.endsWith('/sessions');

test('an answer with more than the ttl is trusted for the ttl, and nothing renews it', async (t) => {
  const { server } = await fake(t, (path, n) => {
    if (n === 1) return leading({ remaining_ms: 1e12, ttl_ms: 1e12 });
    return isResign(path) ? over : undefined;
  });
  const { election, told } = stands(t, { server });
  const from = performance.now();
  await election.start();
  assert.ok(election.remaining() <= 1500, `${election.remaining()}`);
  await until('the loss', () => told.includes('lost 7: trust has ended'));
  assert.ok(performance.now() - from < 2500);
});

test('the timer ends trust while a request is open that is still waited for', async (t) => {
  // The ttl is long, so that the request is waited for long; what is granted is short.
  const { server } = await fake(t, (path, n) => {
    if (n === 1) return leading({ remaining_ms: 300, ttl_ms: 40_000 });
    return isResign(path) ? over : undefined;
  });
  const done = [];
  const { election, errors } = stands(t, {
    server,
    ttlSeconds: 40,
    onBecomeLeader: async () => { await pause(800); done.push('began'); },
    onLoseLeadership: () => done.push('stopped'),
  });
  await election.start();
  const { signal } = election;
  const from = performance.now();
  await until('the loss', () => signal.aborted);
  assert.ok(performance.now() - from < 5000);
  assert.equal(errors.length, 0, 'nothing was given up yet');
  await until('the callbacks', () => done.length === 2);
  assert.deepEqual(done, ['began', 'stopped'], 'it was lost while it began');
});

test('a slow answer is counted from before its request was sent', async (t) => {
  let answered;
  const { server } = await fake(t, async (path, n) => {
    if (n > 1) return isResign(path) ? over : undefined;
    await pause(400);
    answered = performance.now();
    return leading();
  });
  const { election } = stands(t, { server });
  const from = performance.now();
  await election.start();
  await until('the end', () => !election.isLeader());
  assert.ok(answered - from > 390 && performance.now() - from < 1700);
});

test('a late answer to a beat after stop() revives nothing', async (t) => {
  let beats = 0;
  const { server, asked } = await fake(t, async (path) => {
    if (isBegin(path)) return leading();
    if (isResign(path)) return over;
    beats += 1;
    await pause(300);
    return leading({ seen: 2 + beats });
  });
  const { election, told } = stands(t, { server });
  await election.start();
  await until('a beat in flight', () => beats > 0);
  await election.stop();
  assert.ok(!election.isLeader());
  const sent = asked.length;
  await pause(500);
  assert.equal(election.isLeader(), false);
  assert.equal(asked.length, sent, 'nothing is asked after stop()');
  assert.ok(isResign(asked.at(-1).path));
  assert.deepEqual(told, ['became 7', 'stopping 7: this process stops', 'lost 7: this process stops']);
});

test('a beat that is not answered is given up, and another keeps the term', async (t) => {
  let beats = 0;
  const { server } = await fake(t, async (path) => {
    if (isBegin(path)) return leading();
    if (isResign(path)) return over;
    // The first hangs, and is answered "lost" when it is of no interest any more.
    if (++beats === 1) return pause(2300).then(() => over);
    await pause(50);
    return leading();
  });
  const { election, told, errors } = stands(t, { server });
  await election.start();
  await pause(2800);
  assert.ok(election.isLeader());
  assert.deepEqual(told, ['became 7']);
  assert.equal(errors[0].code, 'late');
});

test('a session that is not known is lost, and begun again under another key', async (t) => {
  let term = 7;
  const { server, asked } = await fake(t, async (path, _n, response) => {
    if (isBegin(path)) return leading({ term });
    if (isResign(path)) return over;
    if (term++ > 7) return pause(100).then(() => leading({ term: 8 }));
    response.writeHead(410, { 'content-type': 'application/problem+json' });
    response.end('{"code":"no_session","title":"there is no such session","status":410}');
  });
  const { election, told } = stands(t, { server });
  await election.start();
  await until('the second term', () => told.length === 3);
  assert.deepEqual(told, ['became 7', 'lost 7: there is no such session', 'became 8']);
  const keys = asked.filter(({ path }) => isBegin(path)).map(({ headers }) => headers['idempotency-key']);
  assert.equal(new Set(keys).size, 2);
});

test('the same session is begun again, when the answer to the first request was lost', async (t) => {
  const { server, asked } = await fake(t, (path, n, response) => {
    if (n === 1) return void response.destroy();
    if (isBegin(path)) return leading();
    return isResign(path) ? over : pause(100).then(() => leading());
  });
  const { election } = stands(t, { server });
  await election.start();
  await until('a leader', () => election.isLeader());
  assert.equal(asked[0].headers['idempotency-key'], asked[1].headers['idempotency-key']);
});

test('another term in an answer is another reign: the first is lost, the work ends, then it begins', async (t) => {
  let term = 7;
  const { server } = await fake(t, async (path) => {
    if (isResign(path)) return over;
    if (!isBegin(path)) await pause(100);
    const said = leading({ term });
    term = 9;
    return said;
  });
  const { election, told } = stands(t, { server, drainSeconds: 0.1 });
  let working = true;
  await election.start();
  const work = election.runIfLeader(({ signal }) => until('loss', () => signal.aborted).then(() => pause(600)).then(() => (working = false)));
  await until('the loss', () => told.length > 1);
  await pause(500);
  assert.ok(working && !election.isLeader(), 'no other term beside work of the first');
  await work;
  await until('the next term', () => election.token === 9);
  assert.equal(working, false);
  assert.match(told[1], /^lost 7/);
});

test('errors and nonsense extend nothing, end nothing, and are retried within the trust', async (t) => {
  const bad = [
    (r) => r.writeHead(503, { 'content-type': 'application/problem+json' }).end('{"code":"store_away","detail":"the store is away","may_have_applied":true}'),
    (r) => r.writeHead(200).end('<html>not what was asked for</html>'),
    (r) => r.writeHead(200).end('[1]'),
    (r) => r.writeHead(200).end(JSON.stringify(leading({ term: 'seven' }))),
    (r) => r.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
    (r) => r.destroy(),
  ];
  let n = 0;
  const { server } = await fake(t, async (path, _n, response) => {
    if (isBegin(path)) return leading();
    if (isResign(path)) return over;
    await pause(60);
    if (n++ % 2 === 1) return leading();
    return void bad[(n >> 1) % bad.length](response);
  });
  const { election, told, errors } = stands(t, { server, accessToken: 'a-secret' });
  await election.start();
  await until('all of them', () => errors.length >= bad.length);
  assert.ok(election.isLeader());
  assert.deepEqual(told, ['became 7']);
  const away = errors.find((error) => error.code === 'store_away');
  assert.deepEqual([away.message, away.mayHaveApplied], ['the store is away', true]);
  assert.doesNotMatch(inspect([errors, election], { depth: 9 }), /a-secret/);
});

test('a redirect is not followed: it would take the access token elsewhere', async (t) => {
  const thief = await fake(t, () => leading());
  const { server } = await fake(t, (_path, _n, response) => void response.writeHead(307, { location: `${thief.server}/v1/x` }).end());
  const { election, errors } = stands(t, { server, accessToken: 'a-secret' });
  await election.start();
  await until('the refusal', () => errors.length > 1);
  assert.deepEqual([thief.asked.length, election.isLeader()], [0, false]);
});

test('a server that never waits is not asked without end', async (t) => {
  const { server, asked } = await fake(t, (path) => (isResign(path) ? over : isBegin(path) ? waiting : waiting));
  const { election } = stands(t, { server });
  await election.start();
  await pause(1000);
  assert.ok(asked.length > 3 && asked.length < 40, `${asked.length} requests in two seconds`);
});

test('a server that is away is asked less and less often, and stop() returns', async (t) => {
  const { election, errors } = stands(t, { server: 'http://127.0.0.1:9' });
  await election.start();
  await pause(1500);
  assert.ok(errors.length > 2 && errors.length < 12, `${errors.length} errors`);
  assert.equal(errors[0].code, 'unreachable');
  await election.stop();
});

test('what tells of errors may fail, and work may: the campaign goes on', async (t) => {
  let n = 0;
  const { server } = await fake(t, (path) => {
    if (n++ === 0) return { status: 500 };
    return isResign(path) ? over : isBegin(path) ? leading() : pause(50).then(() => leading());
  });
  const { election } = stands(t, { server, onError: () => { throw new Error('no log'); } });
  await election.start();
  await until('a leader', () => election.isLeader());
  await assert.rejects(election.runIfLeader(() => { throw new Error('of the work'); }), /of the work/);
  assert.ok(election.isLeader());
});

test('it stops and starts again', async (t) => {
  let term = 0;
  const { server } = await fake(t, (path) => {
    if (isBegin(path)) return leading({ term: ++term });
    return isResign(path) ? over : pause(50).then(() => leading({ term }));
  });
  const { election, told } = stands(t, { server });
  for (const token of [1, 2]) {
    await Promise.all([election.start(), election.start()]);
    await until('a leader', () => election.token === token);
    await Promise.all([election.stop(), election.stop()]);
  }
  assert.deepEqual(told.filter((line) => line.startsWith('became')), ['became 1', 'became 2']);
});

test('a term that was lost, and could not be given back, is not led again', async (t) => {
  // A store that keeps the term for us as long as it is not given back.
  const store = { term: 7, hangs: false, refuses: 0 };
  const query = async (text) => {
    if (text.includes('try_lead')) {
      if (store.hangs) await new Promise(() => {});
      return [{ leads: true, term: String(store.term), remaining: 1500, asked: false }];
    }
    if (store.refuses-- > 0) throw new Error('the store is away');
    store.term += 1;
    return [{ given: true }];
  };
  const { election, told } = stands(t, { query });
  await election.start();
  Object.assign(store, { hangs: true, refuses: 2 });
  await until('the loss', () => told.length === 2);
  store.hangs = false;
  await until('the next', () => told.length > 2);
  assert.deepEqual(told, ['became 7', 'lost 7: trust has ended', 'became 8']);
});

test('what is begun slowly is stopped after it began; what goes on is told to stop', async (t) => {
  const store = { term: 1 };
  const query = async (text) => {
    if (!text.includes('try_lead')) return [{ given: ++store.term }];
    return [{ leads: true, term: store.term, remaining: 1500, asked: true }];
  };
  const done = [];
  const slow = stands(t, {
    query,
    onBecomeLeader: async () => { await pause(60); done.push('began'); },
    onLoseLeadership: () => done.push('stopped'),
  });
  await slow.election.start();
  await slow.election.stop();
  assert.deepEqual(done, ['began', 'stopped']);
  let running = true;
  const long = stands(t, {
    query,
    onBecomeLeader: () => until('the end', () => !running),
    onLoseLeadership: () => (running = false),
    drainSeconds: 0.2,
  });
  await long.election.start();
  await long.election.stop();
  await until('the end', () => !running);
});
