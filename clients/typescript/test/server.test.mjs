// Sessions of a real server: what is promised, while servers and this process fail.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { LeaderElection } from 'tenure-client';
import { pause, Serve, stands, until } from './common.mjs';

const leads = (of) => until('a leader', () => of.election.isLeader());

test('it leads, goes on leading, drains, and gives the term back', async (t) => {
  const { url: server } = await Serve.start(t);
  const first = stands(t, { server, id: 'first' });
  await first.election.start();
  assert.ok(first.election.isLeader(), 'start() returns when it is known');
  const second = stands(t, { server, id: 'second' });
  await second.election.start();
  assert.equal(second.election.isCurrentLeader(), false);
  assert.equal(await second.election.runIfLeader(() => 'no'), null);
  assert.equal(second.election.token, undefined);
  assert.ok(second.election.signal.aborted);

  const token = first.election.token;
  const { signal } = first.election;
  for (const began = performance.now(); performance.now() - began < 3000; await pause(20)) {
    assert.ok(first.election.isLeader(), 'it is renewed');
    assert.ok(first.election.remaining() <= 1500);
  }
  // Work keeps the term until it has ended.
  let ended = false;
  const work = first.election.runIfLeader(async (leadership) => {
    await until('stopping', () => leadership.stopping.aborted);
    assert.ok(leadership.isCurrent(), 'it is led while the work ends');
    assert.equal(await first.election.runIfLeader(() => 'new'), null, 'no new work');
    await pause(300);
    assert.ok(leadership.isCurrent() && !second.election.isLeader());
    ended = true;
    return 'done';
  });
  await first.election.stop();
  assert.ok(ended && signal.aborted && !first.election.isLeader());
  assert.equal(await work, 'done');
  await leads(second);
  assert.ok(second.election.token > token);
  assert.deepEqual(first.told, [
    `became ${token}`,
    `stopping ${token}: this process stops`,
    `lost ${token}: this process stops`,
  ]);
  assert.deepEqual(first.errors, []);
});

test('what stops its work when it is lost is waited for before the term is given back', async (t) => {
  const { url: server } = await Serve.start(t);
  let stopped = false;
  const first = stands(t, {
    server,
    id: 'first',
    drainSeconds: 4,
    onLoseLeadership: async () => {
      // Longer than the ttl: it is renewed meanwhile.
      await pause(2200);
      stopped = true;
    },
  });
  await first.election.start();
  const second = stands(t, { server, id: 'second', onBecomeLeader: () => assert.ok(stopped) });
  await second.election.start();
  await first.election.stop();
  assert.ok(stopped);
  await leads(second);
  assert.deepEqual(second.errors, []);
});

test('a server that is killed: trust ends by itself, and the next term has a higher token', async (t) => {
  const serve = await Serve.start(t);
  const { election, told, errors } = stands(t, { server: serve.url });
  await election.start();
  const token = election.token;
  await serve.kill();
  const remaining = election.remaining();
  const { signal } = election;
  const from = performance.now();
  await until('the loss', () => signal.aborted);
  assert.ok(performance.now() - from < remaining + 1000, 'by a timer, not by an answer');
  assert.equal(election.isLeader(), false);
  assert.deepEqual(told.slice(1), [`lost ${token}: trust has ended`]);
  await serve.up();
  await leads({ election });
  assert.ok(election.token > token, 'never the same token again');
  assert.ok(errors.length > 0 && errors.every((error) => error.code !== 'failed'), inspect(errors));
});

test('a server that was started again does not know the session: it is lost at once', async (t) => {
  const serve = await Serve.start(t);
  const { election, told } = stands(t, { server: serve.url, ttlSeconds: 20, heartbeatIntervalMs: 500 });
  await election.start();
  const token = election.token;
  await serve.kill();
  await serve.up();
  await until('the loss', () => told.some((line) => line.startsWith(`lost ${token}: the session`)));
  assert.equal(election.isLeader(), false);
});

test('a server that is stopped: its clients lose in time, with requests in flight', async (t) => {
  const serve = await Serve.start(t);
  const { election, told } = stands(t, { server: serve.url });
  await election.start();
  const token = election.token;
  serve.child.kill('SIGSTOP');
  const { signal } = election;
  const remaining = election.remaining();
  const from = performance.now();
  await until('the loss', () => signal.aborted);
  assert.ok(performance.now() - from < remaining + 1000);
  await pause(2000);
  serve.child.kill('SIGCONT');
  await leads({ election });
  assert.ok(election.token > token);
  assert.equal(told[1], `lost ${token}: trust has ended`);
});

test('an event loop that is starved past its trust is right at once, and does not go on', async (t) => {
  const { url: server } = await Serve.start(t);
  const first = stands(t, { server, id: 'first' });
  await first.election.start();
  const token = first.election.token;
  const { signal } = first.election;
  for (const began = performance.now(); performance.now() - began < 1900; );
  assert.equal(first.election.isLeader(), false, 'before any timer or answer');
  assert.equal(first.election.remaining(), 0);
  await until('the loss', () => signal.aborted);
  assert.equal(first.told[1], `lost ${token}: trust has ended`);
  await leads(first);
  assert.ok(first.election.token > token);
});

test('an operator asks for a step-down: the work ends, then another leads', async (t) => {
  const serve = await Serve.start(t);
  const first = stands(t, { server: serve.url, id: 'first' });
  await first.election.start();
  const second = stands(t, { server: serve.url, id: 'second' });
  await second.election.start();
  const token = first.election.token;
  const work = first.election.runIfLeader(({ stopping }) => until('stopping', () => stopping.aborted));
  await serve.post('/v1/elections/jobs/step-down', { reason: 'deploying' });
  await work;
  await leads(second);
  assert.equal(first.election.isLeader(), false);
  assert.match(first.told[1], new RegExp(`^stopping ${token}: .*deploying`));
  assert.match(first.told[2], new RegExp(`^lost ${token}`));
});

test('a callback that fails gives the term up', async (t) => {
  const { url: server } = await Serve.start(t);
  const onBecomeLeader = () => { throw new Error('no database'); };
  const first = stands(t, { server, id: 'first', onBecomeLeader });
  await first.election.start();
  await until('the end', () => first.told.some((line) => line.startsWith('lost')));
  assert.match(first.told[0], /stopping 1: onBecomeLeader failed/);
  assert.equal(first.errors[0].message, 'no database');
});

test('a wrong access token is told, is never shown, and may be put right', async (t) => {
  const serve = await Serve.start(t);
  const tokens = join(serve.dir, 'tokens');
  writeFileSync(tokens, 'right-secret\n');
  serve.args = ['--candidate-tokens', tokens];
  await serve.kill();
  await serve.up();
  let secret = 'wrong-secret';
  const { election, errors } = stands(t, { server: serve.url, accessToken: () => secret });
  await election.start();
  await until('the refusal', () => errors.length > 0);
  assert.equal(errors[0].code, 'unauthorized');
  assert.equal(errors[0].mayHaveApplied, false);
  assert.equal(election.isLeader(), false);
  assert.doesNotMatch(inspect([election, errors], { depth: 9, showHidden: true }), /wrong-secret/);
  secret = 'right-secret';
  await leads({ election });
});

test('over a Unix socket', async (t) => {
  const path = join(process.env.TMPDIR ?? '/tmp', `tenure-ts-${process.pid}.sock`);
  const serve = await Serve.start(t, [], `unix:${path}`);
  const { election, errors } = stands(t, { server: serve.url });
  await election.start();
  await leads({ election });
  await pause(1500);
  assert.ok(election.isLeader());
  await election.stop();
  assert.deepEqual(errors, []);
});

test('what cannot be is refused when it is made', () => {
  const refused = (config, why) => assert.throws(() => new LeaderElection(config), why);
  refused({}, /election \(or serviceName\)/);
  refused({ election: 'x'.repeat(181) }, /180 bytes/);
  refused({ election: 'jobs', ttlSeconds: 0.01 }, /ttl must be/);
  refused({ election: 'jobs', ttlSeconds: NaN }, /ttl must be/);
  refused({ election: 'jobs', ttlSeconds: 9, heartbeatIntervalMs: 3001 }, /a third of the ttl/);
  new LeaderElection({ election: 'jobs', heartbeatTimeoutSeconds: 15, heartbeatIntervalMs: 5000 });
  for (const server of ['ftp://x', 'nothing', 'http://user:secret-word@x']) {
    assert.throws(() => new LeaderElection({ election: 'jobs', server }), (error) => {
      return /server must be/.test(error.message) && !/secret-word/.test(inspect(error));
    });
  }
  assert.throws(() => new LeaderElection({}, { election: 'jobs' }), /first argument must be/);
});
