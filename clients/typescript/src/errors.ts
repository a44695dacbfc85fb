/** What went wrong: what happened, to what, what to do, and whether it may have been done. */
export class TenureError extends Error {
  override readonly name = 'TenureError';
  /** What to do. */
  remedy?: string;
  /** Whether the request may have been carried out all the same. */
  mayHaveApplied = true;
  /** The newest term that is known, where a write was refused. */
  newestTerm?: number;
  /** How many milliseconds to wait before it is tried again. */
  retryAfter?: number;

  /** `code` is that of the server, or `late`, `unreachable`, `failed`. */
  constructor(
    message: string,
    readonly code: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }
}

/** Any error as one of ours. */
export function told(error: unknown): TenureError {
  if (error instanceof TenureError) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new TenureError(text, 'failed', { cause: error });
}

/** An answer of the server that is not what was asked for (`application/problem+json`). */
export function problem(status: number, body: unknown, retryAfter?: string | null): TenureError {
  const of = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
  const what = of.detail ?? of.title ?? `the server answers with status ${status}`;
  const remedy = typeof of.remedy === 'string' ? of.remedy : undefined;
  const error = new TenureError(
    remedy === undefined ? String(what) : `${String(what)}; ${remedy}`,
    typeof of.code === 'string' ? of.code : `status_${status}`,
  );
  error.remedy = remedy;
  error.mayHaveApplied = of.may_have_applied !== false;
  if (typeof of.newest_term === 'number') error.newestTerm = of.newest_term;
  const seconds = Number(retryAfter);
  if (retryAfter && seconds > 0) error.retryAfter = seconds * 1000;
  return error;
}
