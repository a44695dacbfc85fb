/** Sessions of `tenure serve`, over TCP, TLS or a Unix socket. */

import { request } from 'node:http';
import { now } from './clock.js';
import type { Campaign } from './election.js';
import { problem, TenureError } from './errors.js';
import type { Settings } from './settings.js';
import type { Told } from './trust.js';

interface Answer {
  status: number;
  body: string;
  retryAfter?: string | null;
}
interface Asked {
  path: string;
  body: string;
  headers: Record<string, string>;
  signal: AbortSignal;
}
type Ask = (asked: Asked) => Promise<Answer>;

const DEFAULT = 'http://127.0.0.1:7117';

/** Over a Unix socket, which `fetch` cannot open. */
function unix(socketPath: string): Ask {
  return ({ path, body, headers, signal }) =>
    new Promise((resolve, reject) => {
      const length = String(Buffer.byteLength(body));
      const all = { host: 'localhost', ...headers, 'content-length': length };
      const sent = request({ socketPath, path, method: 'POST', headers: all, signal }, (answer) => {
        const parts: Buffer[] = [];
        answer.on('data', (part: Buffer) => parts.push(part));
        answer.on('error', reject);
        answer.on('end', () => {
          const text = Buffer.concat(parts).toString();
          const retryAfter = answer.headers['retry-after'] ?? null;
          resolve({ status: answer.statusCode ?? 0, body: text, retryAfter });
        });
      });
      sent.on('error', reject);
      sent.end(body);
    });
}

function http(base: URL, fetching: typeof fetch): Ask {
  const prefix = base.href.replace(/\/+$/, '');
  return async ({ path, body, headers, signal }) => {
    // A redirect would take the access token elsewhere.
    const init = { method: 'POST', body, headers, signal, redirect: 'error' } as const;
    const answer = await fetching(prefix + path, init);
    const retryAfter = answer.headers.get('retry-after');
    return { status: answer.status, body: await answer.text(), retryAfter };
  };
}

/** An address is never shown: it may hold a password. */
function opened({ server: address = DEFAULT, fetch: fetching }: Settings): Ask {
  if (address.startsWith('unix:')) return unix(address.slice('unix:'.length));
  const base = URL.canParse(address) ? new URL(address) : undefined;
  if (base === undefined || !/^https?:$/.test(base.protocol) || base.username || base.password) {
    throw new RangeError(
      'server must be http://host:port, https://host:port or unix:/path, without user and ' +
        'password: give a token as accessToken',
    );
  }
  return http(base, fetching ?? ((...asked) => fetch(...asked)));
}

/** Each campaign is a session. */
export function server(settings: Settings): () => Campaign {
  const ask = opened(settings);
  const { election, id, ttl, drain, beat, accessToken: access } = settings;
  const begin = `/v1/elections/${encodeURIComponent(election)}/sessions`;
  const asked = {
    id,
    ttl_ms: Math.round(ttl),
    drain_ms: Math.round(drain),
    priority: settings.priority,
    endpoints: settings.endpoints ?? [],
    metadata: settings.metadata ?? '',
  };

  async function post(path: string, body: object, signal: AbortSignal, key?: string) {
    const headers: Record<string, string> = { 'content-type': 'application/json' };
    if (key !== undefined) headers['idempotency-key'] = key;
    const token = (typeof access === 'function' ? access() : access)?.trim();
    // fetch would repeat it in its error.
    if (token !== undefined && !/^[\x20-\x7e]*$/.test(token)) {
      throw new TenureError('the access token must be one line of printable ASCII', 'failed');
    }
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    let answer: Answer;
    try {
      answer = await ask({ path, body: JSON.stringify(body), headers, signal });
    } catch (error) {
      const cause = (error as { cause?: unknown }).cause ?? error;
      const why = (cause as { code?: string }).code ?? (cause as Error).message;
      throw new TenureError(`the server cannot be reached: ${why}`, 'unreachable', { cause });
    }
    let json: Record<string, unknown> | undefined;
    try {
      json = JSON.parse(answer.body);
    } catch {
      // Below: an answer that is no JSON is no answer of the server's.
    }
    if (answer.status < 200 || answer.status > 299 || typeof json?.state !== 'string') {
      throw problem(answer.status, json, answer.retryAfter);
    }
    return json;
  }

  return () => {
    // Begun again under the same key, it is the same session.
    const key = crypto.randomUUID();
    let session: string | undefined;
    let seen: unknown = 0;
    return {
      async beat(signal, quick): Promise<Told> {
        const from = now();
        const path = session && `/v1/sessions/${encodeURIComponent(session)}/beat`;
        const wait = quick ? 0 : Math.floor(beat);
        const told =
          path === undefined
            ? await post(begin, asked, signal, key)
            : await post(path, { seen, wait_ms: wait }, signal);
        // Nothing new, and it did not wait: then we do.
        const idle = path !== undefined && told.seen === seen && now() - from < wait / 4;
        session = String(told.session);
        seen = told.seen;
        return {
          state: told.state as Told['state'],
          term: told.term as number | null,
          remaining: told.remaining_ms as number,
          ttl: told.ttl_ms as number,
          drain: told.drain_ms as number | null,
          reason: told.reason as string | null,
          next: idle ? beat / 4 : 0,
        };
      },
      async resign(signal) {
        if (session === undefined) return;
        const path = `/v1/sessions/${encodeURIComponent(session)}/resign`;
        await post(path, {}, signal).catch((error) => {
          // Forgotten already, which is as good.
          if ((error as TenureError).code !== 'no_session') throw error;
        });
      },
    };
  };
}
