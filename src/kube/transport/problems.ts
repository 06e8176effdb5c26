/** Describes in one line why the API server could not be used: which server, what happened, and an error code. */
import { type ErrorCode, messageOf, RefitError } from '../../util/errors.ts';
import { isRecord } from '../../util/json.ts';
import { AnswerError, StatusError, TransportError } from '../status-error.ts';

/** Codes of Node and OpenSSL for a certificate that is not trusted. */
const TLS_CODES = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REVOKED',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'EPROTO',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Turns any thrown value into an error for people; what is no problem of the connection becomes REFIT_INTERNAL. */
export function describeProblem(thrown: unknown): RefitError {
  if (thrown instanceof RefitError) return thrown;
  if (thrown instanceof TransportError) return describeTransport(thrown);
  if (thrown instanceof StatusError) return describeStatus(thrown);
  return new RefitError('REFIT_INTERNAL', messageOf(thrown), { cause: thrown });
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
  const isTls = TLS_CODES.has(code) || code.startsWith('ERR_TLS_') || code.startsWith('ERR_SSL_');
  const text = `cannot reach ${server}: ${explain(code, root)}`;
  return new RefitError(isTls ? 'REFIT_TLS' : 'REFIT_UNREACHABLE', text, { cause: error });
}

function describeStatus(error: StatusError): RefitError {
  const [code, text] = judge(error);
  return new RefitError(code, `${error.server ?? 'the API server'} ${text}`, { cause: error });
}

function judge(error: StatusError): [ErrorCode, string] {
  const { cause, code, message, status } = error;
  if (code === 401 && cause instanceof Error) return ['REFIT_TLS', `refused the client certificate: ${cause.message}`];
  if (code === 401) return ['REFIT_UNAUTHORIZED', `does not accept the credentials: ${message}`];
  if (code === 403) return ['REFIT_FORBIDDEN', `refused: ${message}`];
  // The answer names a missing object, but not a missing kind.
  if (code === 404 && !status.details?.name)
    return ['REFIT_NO_CRD', `does not know a kind that Refit needs: ${message}`];
  if (code < 400) return ['REFIT_BAD_ANSWER', `does not answer as an API server: ${message}`];
  const isInTrouble = code >= 500 || code === 429;
  return [isInTrouble ? 'REFIT_UNREACHABLE' : 'REFIT_INTERNAL', `answered ${code}: ${message}`];
}

function rootOf(error: Error): unknown {
  let root: unknown = error;
  while (root instanceof Error && root.cause !== undefined && !(root instanceof RefitError)) root = root.cause;
  return root;
}

function explain(code: string, root: unknown): string {
  if (code === 'ECONNREFUSED') return 'connection refused: nothing listens at this address';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return 'the host name does not resolve';
  if (code === 'CERT_HAS_EXPIRED') return 'its certificate has expired';
  return messageOf(root) || code || 'no reason given';
}
