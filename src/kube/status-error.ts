/**
 * Defines why a request fails: the server refuses (StatusError), or no answer comes
 * (TransportError). Describes such errors in one line for people.
 */
import { type ErrorCode, messageOf, RefitError, unlessError } from '../util/errors.ts';
import { isRecord } from '../util/json.ts';
import type { Status } from './resources.ts';

export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly status: Status;
  /** The base URL of the server, if known. */
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

  /** Milliseconds that the server asked us to wait, at most 30 s; undefined if it did not ask. */
  get retryAfterMs(): number | undefined {
    const ms = Number(this.status.details?.retryAfterSeconds) * 1000;
    return Number.isNaN(ms) ? undefined : Math.min(ms, 30_000);
  }
}

/** The request got no usable answer. If `maybeApplied` is true, a write may have reached the server nevertheless. */
export class TransportError extends Error {
  override readonly name = 'TransportError';
  readonly maybeApplied: boolean;
  /** The base URL of the server, if known. */
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

/** The cause of a TransportError if an answer came, but an API server would not send such an answer. */
export class AnswerError extends Error {
  override readonly name = 'AnswerError';
}

/** The answer has more bytes than the caller allows. A list may fit if it has fewer objects. */
export class AnswerTooLarge extends AnswerError {}

/** Returns true if the answer came, but has more bytes than the caller allows. */
export function isTooLarge(thrown: unknown): boolean {
  return thrown instanceof TransportError && thrown.cause instanceof AnswerTooLarge;
}

/** Returns a test for errors that have the code or one of the reasons. */
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
/** Returns true if the server no longer has the requested resourceVersion. The caller must then list again. */
export const isGone = hasCode(410, 'Gone', 'Expired');

/**
 * Returns true if a retry would get the same answer, because the answer reports neither an overload nor a failure of
 * the server.
 */
export function isVerdict(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && thrown.code < 500 && thrown.code !== 429;
}

/**
 * Returns true if a retry helps only after a change on the server, such as a change of a permission, an admission
 * policy or a webhook.
 */
export function isRefusal(thrown: unknown): thrown is StatusError {
  return thrown instanceof StatusError && [400, 403, 422].includes(thrown.code);
}

/** Matches the message of an answer that an admission webhook has caused, because it denied the request (with any code) or failed. */
const WEBHOOK = /\bwebhook "/;

/** The rule because of which an API server answers with the code 403. */
export type Forbidding = 'right' | 'quota' | 'admission';

/** Matches the message of an authorizer, and the message for a role that grants more than its author may do. */
const NO_RIGHT =
  /\bUser "[^"]*" cannot \S+ (?:resource|path) "|\buser "[^"]*" \(.*\) is attempting to grant /s;
/** Matches the message of the admission of quotas: a limit is reached, or a request lacks a value that the quota counts. */
const QUOTA = /\bforbidden: (?:exceeded|failed) quota: /i;
/** Matches a message that gives a reason after the name of the object. */
const WITH_REASON = /\bforbidden: \S/;

/**
 * Returns which rule refuses the request; undefined if the answer does not have the code 403. The API server asks for
 * the right first. Only if the request is a write, it asks quotas and admission afterwards, so a refused read always
 * lacks the right. An answer that gives no reason, for example from a proxy, counts as a missing right.
 */
export function forbiddingOf(thrown: unknown): Forbidding | undefined {
  if (!isForbidden(thrown)) return undefined;
  const { message } = thrown;
  if (WEBHOOK.test(message)) return 'admission';
  if (QUOTA.test(message)) return 'quota';
  return NO_RIGHT.test(message) || !WITH_REASON.test(message) ? 'right' : 'admission';
}

/**
 * Returns true if a role would allow the request. False if a quota or an admission rule refuses the write, because no
 * role changes that.
 */
export function isMissingRight(thrown: unknown): thrown is StatusError {
  return forbiddingOf(thrown) === 'right';
}

/** Matches the message of an answer that a rule has caused, such as a ValidatingAdmissionPolicy, whose code may be 422. */
const BY_RULE = /\bis forbidden: /;

/**
 * Returns true if the object itself is wrong, so that only another object is accepted. False if an admission rule or a
 * webhook refuses the object with one of these codes, because somebody may change the rule.
 */
export function isInvalidObject(thrown: unknown): thrown is StatusError {
  if (!(thrown instanceof StatusError) || WEBHOOK.test(thrown.message)) return false;
  const isMalformed = thrown.code === 400 && thrown.reason !== '';
  return isMalformed || (isInvalid(thrown) && !BY_RULE.test(thrown.message));
}

/**
 * Returns true if the server refuses the write of this object, or one of its webhooks fails. Other
 * objects may still be written.
 */
export function isOfObject(thrown: unknown): thrown is StatusError {
  return isRefusal(thrown) || (thrown instanceof StatusError && WEBHOOK.test(thrown.message));
}

// A conflict and an object that exists already both have the code 409. Only the reason distinguishes these answers.
export const isConflict = hasReason('Conflict');
export const isAlreadyExists = hasReason('AlreadyExists');

/** Resolves with undefined if the object or its kind does not exist. */
export const ifFound = unlessError(isNotFound);
/** Resolves with undefined if we have no right to read the object. */
export const ifAllowed = unlessError(isForbidden);
/** Resolves with undefined if the object exists already. */
export const ifNew = unlessError(isAlreadyExists);
/** Resolves with undefined if the object was changed or deleted since it was read. */
export const ifUnchanged = unlessError((error) => isConflict(error) || isNotFound(error));

/** Matches the codes of Node.js and OpenSSL for a certificate that is not trusted. */
const TLS_CODE = /^(CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|EPROTO$|ERR_(TLS|SSL|OSSL)_)/;

/** Matches what OpenSSL says about a server whose first bytes are no TLS. */
const PLAIN_TEXT = /wrong version number|packet length too long/i;

/**
 * Turns any thrown value into an error for people. The code of the error is REFIT_INTERNAL if the problem does not
 * concern the connection.
 */
export function describeProblem(thrown: unknown): RefitError {
  if (thrown instanceof RefitError) return thrown;
  if (thrown instanceof TransportError) return describeTransport(thrown);
  if (!(thrown instanceof StatusError))
    return new RefitError('REFIT_INTERNAL', messageOf(thrown), { cause: thrown });
  const [code, text] = judge(thrown);
  const isWebhook = code === 'REFIT_UNREACHABLE' && WEBHOOK.test(thrown.message);
  const isQuota = forbiddingOf(thrown) === 'quota';
  const options = {
    cause: thrown,
    ...(isWebhook && { hint: 'repair the webhook, or remove its configuration' }),
    ...(isQuota && { hint: 'raise the quota, or delete objects that count; no role allows more' }),
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
  if (code === 'EPROTO' && PLAIN_TEXT.test(messageOf(root)))
    return new RefitError('REFIT_TLS', `${server} answers without TLS`, {
      cause: error,
      hint: 'correct the address of the server in the kubeconfig: another program may listen at its port',
    });
  const text = `cannot reach ${server}: ${explain(code, root)}`;
  return new RefitError(TLS_CODE.test(code) ? 'REFIT_TLS' : 'REFIT_UNREACHABLE', text, {
    cause: error,
  });
}

/** Follows the causes of the error. Returns the last cause, or the nearest cause that is already described for people. */
function rootOf(error: Error): unknown {
  let root: unknown = error;
  while (root instanceof Error && root.cause !== undefined && !(root instanceof RefitError))
    root = root.cause;
  return root;
}

/**
 * Returns the code of the error, and the rest of the sentence that begins with the name of the
 * server.
 */
function judge(error: StatusError): [ErrorCode, string] {
  const { cause, code, message, status } = error;
  if (code === 401 && cause instanceof Error)
    return ['REFIT_TLS', `refused the client certificate: ${cause.message}`];
  if (code === 401) return ['REFIT_UNAUTHORIZED', `does not accept the credentials: ${message}`];
  const isInTrouble = code >= 500 || code === 429;
  const isDenied =
    (WEBHOOK.test(message) && !isInTrouble) || (code === 403 && !isMissingRight(error));
  if (code === 409 || code === 422 || isDenied) return ['REFIT_CONTROL', `refused: ${message}`];
  if (code === 403) return ['REFIT_FORBIDDEN', `refused: ${message}`];
  // If the details of the answer name no object, the kind itself is missing.
  if (code === 404 && !status.details?.name)
    return ['REFIT_NO_CRD', `does not know a kind that Refit needs: ${message}`];
  // An answer 400 without a reason does not come from an API server, because an API server always gives a reason with this code.
  if (code < 400 || (code === 400 && error.reason === ''))
    return ['REFIT_BAD_ANSWER', `does not answer as an API server: ${message}`];
  return [isInTrouble ? 'REFIT_UNREACHABLE' : 'REFIT_INTERNAL', `answered ${code}: ${message}`];
}

function explain(code: string, root: unknown): string {
  if (code === 'ECONNREFUSED') return 'connection refused: nothing listens at this address';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the host name does not resolve';
  if (code === 'CERT_HAS_EXPIRED')
    return 'its certificate has expired, or the clock of this machine is wrong';
  if (code === 'CERT_NOT_YET_VALID')
    return 'its certificate is not valid yet: the clock of this machine is probably wrong';
  return messageOf(root) || code || 'no reason given';
}
