/** A request fails in two ways: the server refuses (StatusError), or no answer comes (TransportError). */
import type { Status } from './types.ts';

export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly status: Status;
  /** Base URL of the server, if known. */
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

  /** Milliseconds that the server asked to wait, if any. */
  get retryAfterMs(): number | undefined {
    const seconds = this.status.details?.retryAfterSeconds;
    return seconds === undefined ? undefined : seconds * 1000;
  }
}

/** No answer came. `maybeApplied`: a write may have reached the server all the same. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly maybeApplied: boolean;
  /** Base URL of the server, if known. */
  readonly server: string | undefined;

  constructor(message: string, options: ErrorOptions & { maybeApplied?: boolean; server?: string } = {}) {
    super(message, options);
    this.maybeApplied = options.maybeApplied ?? true;
    this.server = options.server;
  }
}

/** The cause of a TransportError when an answer came, but not one that an API server gives. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError';
}

const hasCode =
  (code: number, ...reasons: string[]) =>
  (thrown: unknown): thrown is StatusError =>
    thrown instanceof StatusError && (thrown.code === code || reasons.includes(thrown.reason));

export const isNotFound = hasCode(404, 'NotFound');
/** Undefined if the object does not exist. */
export async function ifFound<T>(read: Promise<T>): Promise<T | undefined> {
  return await read.catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
}

export const isForbidden = hasCode(403, 'Forbidden');
export const isUnauthorized = hasCode(401, 'Unauthorized');
export const isInvalid = hasCode(422, 'Invalid');
/** The requested resourceVersion is gone: list again. */
export const isGone = hasCode(410, 'Gone', 'Expired');

/** A retry helps only after a change on the server: a permission, an admission policy, a webhook. */
export function isRefusal(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && [400, 403, 422].includes(thrown.code);
}

export function isConflict(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && thrown.reason === 'Conflict';
}

export function isAlreadyExists(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && thrown.reason === 'AlreadyExists';
}
