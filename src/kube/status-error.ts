/** Why a request failed: the server refuses (StatusError), or no answer comes (TransportError); described in one line for people. */
import { type ErrorCode, messageOf, RefitError, unlessError } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import type { Status } from './resources.ts';

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

  /** Milliseconds that the server asked to wait, if any: at most 30 s. */
  get retryAfterMs(): number | undefined {
    const ms = Number(this.status.details?.retryAfterSeconds) * 1000;
    return Number.isNaN(ms) ? undefined : Math.min(ms, 30_000);
  }
}

/** No answer came. `maybeApplied`: a write may have reached the server all the same. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly maybeApplied: boolean;
  /** Base URL of the server, if known. */
  readonly server: string | undefined;

  constructor(
    message: string,
    options: ErrorOptions & { maybeApplied?: boolean; server?: string } = {},
  ) {
    super(message, options);
    this.maybeApplied = options.maybeApplied ?? true;
    this.server = options.server;
  }
}

/** The cause of a TransportError when an answer came, but not one that an API server gives. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError';
}

/** Accepts the code, or one of the reasons. */
function hasCode(code: number, ...reasons: string[]) {
  return (thrown: unknown): thrown is StatusError =>
    thrown instanceof StatusError && (thrown.code === code || reasons.includes(thrown.reason));
}

function hasReason(reason: string) {
  return (thrown: unknown): thrown is StatusError =>
    thrown instanceof StatusError && thrown.reason === reason;
}

export const isNotFound = hasCode(404, 'NotFound');
export const isForbidden = hasCode(403, 'Forbidden');
export const isUnauthorized = hasCode(401, 'Unauthorized');
export const isInvalid = hasCode(422, 'Invalid');
/** The requested resourceVersion is gone: list again. */
export const isGone = hasCode(410, 'Gone', 'Expired');

/** The server's last word: neither overload nor a fault of its own, so a retry changes nothing. */
export function isVerdict(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && thrown.code < 500 && thrown.code !== 429;
}

/** A retry helps only after a change on the server: a permission, an admission policy, a webhook. */
export function isRefusal(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && [400, 403, 422].includes(thrown.code);
}

/** Says that an admission webhook denies the request, with any code, or fails. */
const WEBHOOK = /\bwebhook "/;

/** The server refuses the write of this object, or one of its webhooks fails: other objects may still be written. */
export function isOfObject(thrown: unknown): thrown is StatusError {
  return isRefusal(thrown) || (thrown instanceof StatusError && WEBHOOK.test(thrown.message));
}

// Both have the code 409: only the reason tells them apart.
export const isConflict = hasReason('Conflict');
export const isAlreadyExists = hasReason('AlreadyExists');

/** Undefined if the object or its kind does not exist. */
export const ifFound = unlessError(isNotFound);
/** Undefined without the right to read it. */
export const ifAllowed = unlessError(isForbidden);
/** Undefined if what is written is there already. */
export const ifNew = unlessError(isAlreadyExists);
/** Undefined if the object has changed since, or is gone. */
export const ifUnchanged = unlessError((error) => isConflict(error) || isNotFound(error));

/** Codes of Node and OpenSSL for a certificate that is not trusted. */
const TLS_CODE = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO$|ERR_(TLS|SSL|OSSL)_)/;

/** Turns any thrown value into an error for people; what is no problem of the connection becomes REFIT_INTERNAL. */
export function describeProblem(thrown: unknown): RefitError {
  if (thrown instanceof RefitError) return thrown;
  if (thrown instanceof TransportError) return describeTransport(thrown);
  if (!(thrown instanceof StatusError))
    return new RefitError('REFIT_INTERNAL', messageOf(thrown), { cause: thrown });
  const [code, text] = judge(thrown);
  const isWebhook = code === 'REFIT_UNREACHABLE' && WEBHOOK.test(thrown.message);
  const options = {
    cause: thrown,
    ...(isWebhook && { hint: 'repair the webhook, or remove its configuration' }),
  };
  return new RefitError(code, `${thrown.server ?? 'the API server'} ${text}`, options);
}

function describeTransport(error: TransportError): RefitError {
  const root = rootOf(error);
  if (root instanceof RefitError) return root;
  if (error.cause instanceof AnswerError) {
    const text = `${error.server ?? 'the API server'} does not answer as an API server: ${error.cause.message}`;
    return new RefitError('REFIT_BAD_ANSWER', text, { cause: error });
  }
  const code = isRecord(root) && typeof root['code'] === 'string' ? root['code'] : '';
  const server = error.server ?? 'the API server';
  const text = `cannot reach ${server}: ${explain(code, root)}`;
  return new RefitError(TLS_CODE.test(code) ? 'REFIT_TLS' : 'REFIT_UNREACHABLE', text, {
    cause: error,
  });
}

/** Follows the causes to the first one, or to one that is already described for people. */
function rootOf(error: Error): unknown {
  let root: unknown = error;
  while (root instanceof Error && root.cause !== undefined && !(root instanceof RefitError))
    root = root.cause;
  return root;
}

/** Returns the code of the error, and the rest of the sentence that begins with the server's name. */
function judge(error: StatusError): [ErrorCode, string] {
  const { cause, code, message, status } = error;
  if (code === 401 && cause instanceof Error)
    return ['REFIT_TLS', `refused the client certificate: ${cause.message}`];
  if (code === 401) return ['REFIT_UNAUTHORIZED', `does not accept the credentials: ${message}`];
  const isInTrouble = code >= 500 || code === 429;
  const isDenied = WEBHOOK.test(message) && !isInTrouble;
  if (code === 409 || code === 422 || isDenied) return ['REFIT_CONTROL', `refused: ${message}`];
  if (code === 403) return ['REFIT_FORBIDDEN', `refused: ${message}`];
  // The answer names a missing object, but not a missing kind.
  if (code === 404 && !status.details?.name)
    return ['REFIT_NO_CRD', `does not know a kind that Refit needs: ${message}`];
  // An API server names the reason of each 400.
  if (code < 400 || (code === 400 && error.reason === ''))
    return ['REFIT_BAD_ANSWER', `does not answer as an API server: ${message}`];
  return [isInTrouble ? 'REFIT_UNREACHABLE' : 'REFIT_INTERNAL', `answered ${code}: ${message}`];
}

function explain(code: string, root: unknown): string {
  if (code === 'ECONNREFUSED') return 'connection refused: nothing listens at this address';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the host name does not resolve';
  if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired';
  return messageOf(root) || code || 'no reason given';
}
