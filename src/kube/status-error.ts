/** Owns the two ways a request can fail: the server said no (StatusError), or no answer came (TransportError). */
import type { Status } from './types.ts';

export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly status: Status;
  /** Base URL of the server that refused, where it is known. */
  readonly server: string | undefined;

  constructor(status: Status, options: ErrorOptions & { server?: string } = {}) {
    super(status.message ?? `API server answered ${status.code ?? 'without a code'}`, options);
    this.status = status;
    this.server = options.server;
  }

  get code(): number {
    return this.status.code ?? 0;
  }

  get reason(): string {
    return this.status.reason ?? '';
  }

  /** Milliseconds the server asked to wait, undefined where it did not say. */
  get retryAfterMs(): number | undefined {
    const seconds = this.status.details?.retryAfterSeconds;
    return seconds === undefined ? undefined : seconds * 1000;
  }
}

/** Why no answer came; `maybeApplied` says that a write may have reached the server all the same. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly maybeApplied: boolean;
  /** Base URL of the server that was asked, where it is known. */
  readonly server: string | undefined;

  constructor(message: string, options: ErrorOptions & { maybeApplied?: boolean; server?: string } = {}) {
    super(message, options);
    this.maybeApplied = options.maybeApplied ?? true;
    this.server = options.server;
  }
}

const hasCode =
  (code: number, ...reasons: string[]) =>
  (thrown: unknown): thrown is StatusError =>
    thrown instanceof StatusError && (thrown.code === code || reasons.includes(thrown.reason));

export const isNotFound = hasCode(404, 'NotFound');
export const isForbidden = hasCode(403, 'Forbidden');
export const isUnauthorized = hasCode(401, 'Unauthorized');
export const isInvalid = hasCode(422, 'Invalid');
/** The resourceVersion asked for is gone: list anew. */
export const isGone = hasCode(410, 'Gone', 'Expired');

/** Asking again helps only once somebody has changed what the server goes by: a right, an admission policy, a webhook. */
export function isRefusal(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && [400, 403, 422].includes(thrown.code);
}

export function isConflict(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && thrown.reason === 'Conflict';
}

export function isAlreadyExists(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && thrown.reason === 'AlreadyExists';
}
