/** Tests the one-line errors that users read when the API server cannot be used. */
import { expect, test } from 'vitest';
import { RefitError } from '../util/errors.ts';
import type { Status } from './resources.ts';
import { AnswerError, describeProblem, StatusError, TransportError } from './status-error.ts';

const server = 'https://10.0.0.1:6443';

function transport(code: string, message = code): TransportError {
  return new TransportError('GET /x', {
    server,
    cause: Object.assign(new Error(message), { code }),
  });
}

function refusal(
  code: number,
  details: Status['details'] = {},
  message = 'told so',
  reason = '',
): StatusError {
  return new StatusError({ kind: 'Status', code, reason, message, details }, { server });
}

const DENIED = 'admission webhook "plans.example.com" denied the request: not today';
const FAILED =
  'Internal error occurred: failed calling webhook "plans.example.com": connection refused';

test.each<[string, unknown, string, string]>([
  [
    'nobody listens',
    transport('ECONNREFUSED'),
    'REFIT_UNREACHABLE',
    `cannot reach ${server}: connection refused`,
  ],
  [
    'no such name',
    transport('ENOTFOUND'),
    'REFIT_UNREACHABLE',
    `cannot reach ${server}: the host name does not resolve`,
  ],
  [
    'a reset',
    transport('ECONNRESET', 'socket hang up'),
    'REFIT_UNREACHABLE',
    `cannot reach ${server}: socket hang up`,
  ],
  [
    'a server without TLS',
    transport(
      'EPROTO',
      'write EPROTO 40B3:error:0A00010B:SSL routines:wrong version number:x.c:78:',
    ),
    'REFIT_TLS',
    `${server} answers without TLS`,
  ],
  [
    'expired',
    transport('CERT_HAS_EXPIRED'),
    'REFIT_TLS',
    `cannot reach ${server}: its certificate has expired, or the clock of this machine is wrong`,
  ],
  [
    'not valid yet',
    transport('CERT_NOT_YET_VALID', 'certificate is not yet valid'),
    'REFIT_TLS',
    `cannot reach ${server}: its certificate is not valid yet: the clock of this machine is probably wrong`,
  ],
  [
    'not trusted',
    transport('SELF_SIGNED_CERT_IN_CHAIN'),
    'REFIT_TLS',
    `cannot reach ${server}: SELF_SIGNED_CERT_IN_CHAIN`,
  ],
  [
    'an alert',
    transport('ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE', 'bad certificate'),
    'REFIT_TLS',
    'bad certificate',
  ],
  [
    'credentials',
    refusal(401),
    'REFIT_UNAUTHORIZED',
    `${server} does not accept the credentials: told so`,
  ],
  ['a missing right', refusal(403), 'REFIT_FORBIDDEN', `${server} refused: told so`],
  [
    'a missing kind',
    refusal(404),
    'REFIT_NO_CRD',
    `${server} does not know a kind that Refit needs: told so`,
  ],
  ['a server in trouble', refusal(503), 'REFIT_UNREACHABLE', `${server} answered 503: told so`],
  [
    'a server with too much to do',
    refusal(429),
    'REFIT_UNREACHABLE',
    `${server} answered 429: told so`,
  ],
  [
    'an odd answer',
    new TransportError('GET /x', { server, cause: new AnswerError('not JSON') }),
    'REFIT_BAD_ANSWER',
    `${server} does not answer as an API server: not JSON`,
  ],
  [
    'a redirect to a login page',
    refusal(302),
    'REFIT_BAD_ANSWER',
    `${server} does not answer as an API server: told so`,
  ],
  [
    'http, where https is spoken',
    refusal(400, {}, 'GET /api: 400 Client sent an HTTP request to an HTTPS server.'),
    'REFIT_BAD_ANSWER',
    `${server} does not answer as an API server: GET /api: 400 Client sent an HTTP request`,
  ],
  [
    'a request that is wrong',
    refusal(400, {}, 'odd', 'BadRequest'),
    'REFIT_INTERNAL',
    `${server} answered 400: odd`,
  ],
  [
    'a webhook that denies',
    refusal(403, {}, DENIED, 'Forbidden'),
    'REFIT_CONTROL',
    `${server} refused: ${DENIED}`,
  ],
  [
    'one that denies by 400',
    refusal(400, {}, DENIED),
    'REFIT_CONTROL',
    `${server} refused: ${DENIED}`,
  ],
  [
    'one that fails',
    refusal(500, {}, FAILED, 'InternalError'),
    'REFIT_UNREACHABLE',
    `${server} answered 500: ${FAILED}`,
  ],
  [
    'a missing object',
    refusal(404, { name: 'w1' }),
    'REFIT_INTERNAL',
    `${server} answered 404: told so`,
  ],
  ['anything else', new Error('odd'), 'REFIT_INTERNAL', 'odd'],
])('%s', (_name, thrown, code, message) => {
  const error = describeProblem(thrown);
  expect(error.code).toBe(code);
  expect(error.message).toContain(message);
  expect(error.cause).toBe(thrown);
});

test('a webhook that fails may be back soon, as an API server may: callers ask again, and people read what to repair', () => {
  const { line } = describeProblem(refusal(500, {}, FAILED, 'InternalError'));
  expect(line).toMatch(
    /^REFIT_UNREACHABLE: .* \(repair the webhook, or remove its configuration\)$/,
  );
});

test('what is described already stays as it is, also within a failed request', () => {
  const error = new RefitError('REFIT_KUBECONFIG', 'the plugin failed');
  expect(describeProblem(error)).toBe(error);
  expect(describeProblem(new TransportError('GET /x', { cause: error }))).toBe(error);
});
