// What the tests share: a real `tenure serve`, processes, and waiting for something that happens.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LeaderElection } from 'tenure-client';

export const TENURE = process.env.TENURE_BIN ?? new URL('../../../target/debug/tenure', import.meta.url).pathname;

/** Waits until `look` answers something; the limit only ends a test that has failed. */
export async function until(what, look) {
  for (const began = performance.now(); performance.now() - began < 60_000; ) {
    const seen = await look();
    if (seen) return seen;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.fail(`waited 60 seconds in vain for ${what}`);
}

/** Of the tests: long enough for a machine that has other things to do. */
export const TTL = 1.5;
export const pause = (millis) => new Promise((resolve) => setTimeout(resolve, millis));

function freePort() {
  return new Promise((resolve) => {
    const socket = createServer().listen(0, '127.0.0.1', () => {
      const { port } = socket.address();
      socket.close(() => resolve(port));
    });
  });
}

/** A server on a store of its own, which can be killed and started again. */
export class Serve {
  static async start(t, args = [], listen) {
    const serve = new Serve();
    serve.dir = mkdtempSync(join(tmpdir(), 'tenure-ts-'));
    serve.listen = listen ?? `127.0.0.1:${await freePort()}`;
    serve.url = serve.listen.startsWith('unix:') ? serve.listen : `http://${serve.listen}`;
    serve.args = args;
    t.after(() => {
      serve.child?.kill('SIGKILL');
      rmSync(serve.dir, { recursive: true, force: true });
    });
    await serve.up();
    return serve;
  }

  async up() {
    const env = { PATH: process.env.PATH, HOME: this.dir };
    const store = `sqlite:${join(this.dir, 't.db')}`;
    const line = ['serve', '--store', store, '--ttl', '1500ms', '--listen', this.listen, ...this.args];
    this.child = spawn(TENURE, line, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((resolve, reject) => {
      this.child.stdout.once('data', resolve);
      this.child.once('error', reject);
      this.child.once('exit', (code) => reject(new Error(`tenure serve ended: ${code}`)));
    });
  }

  async kill() {
    const gone = new Promise((resolve) => this.child.once('exit', resolve));
    this.child.kill('SIGKILL');
    await gone;
  }

  async post(path, body, headers = {}) {
    const all = { 'content-type': 'application/json', ...headers };
    const answer = await fetch(this.url + path, { method: 'POST', body: JSON.stringify(body), headers: all });
    assert.ok(answer.ok, `${path}: ${answer.status}`);
  }
}

/** An election whose callbacks are written down, and which ends with its test. */
export function stands(t, config, client) {
  const told = [];
  const errors = [];
  const all = {
    election: 'jobs',
    ttlSeconds: TTL,
    onBecomeLeader: (l) => told.push(`became ${l.token}`),
    onStopping: (l, why) => told.push(`stopping ${l.token}: ${why}`),
    onLoseLeadership: (l, why) => told.push(`lost ${l.token}: ${why}`),
    onError: (error) => errors.push(error),
    ...config,
  };
  const election = client === undefined ? new LeaderElection(all) : new LeaderElection(client, all);
  t.after(() => election.stop());
  return { election, told, errors };
}
