/**
 * Tests the health checks that send requests to servers. A server on this machine answers in place of Prometheus,
 * Alertmanager or another server.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { KubeClient } from '../kube/client.ts';
import { messageOf } from '../util/errors.ts';
import { askAlerts } from './ask-alerts.ts';
import { askHttp } from './ask-http.ts';
import { askMetrics } from './ask-metrics.ts';
import { answerFrom, type CheckTools } from './ask-server.ts';
import type { AlertCheck, CheckFinding, MetricCheck } from './checks.ts';

interface Answer {
  readonly status?: number;
  readonly body?: string;
  readonly headers?: Record<string, string>;
}

let answer: Answer | 'silence' = {};
let asked: IncomingMessage | undefined;
const server = createServer((request, response) => {
  asked = request;
  if (answer === 'silence') return;
  response.writeHead(answer.status ?? 200, answer.headers).end(answer.body ?? '');
});
let host = '';

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  asked = undefined;
});

function toolsWith(secret?: Record<string, string> | Error): CheckTools {
  const get = async () => {
    if (secret instanceof Error) throw secret;
    const entries = Object.entries(secret ?? {}).map(([key, value]) => [key, btoa(value)]);
    return await Promise.resolve({ data: Object.fromEntries(entries) as object });
  };
  return { client: { get } as unknown as KubeClient, namespace: 'refit-system', environment: {} };
}

const { signal } = new AbortController();
const url = (): string => `http://${host}`;

/** Returns the state and the message; a rejection counts as unknown, as it does for the monitor. */
async function told(asking: Promise<CheckFinding>): Promise<string> {
  const { state, message } = await asking.catch((error: unknown) => ({
    state: 'unknown',
    message: messageOf(error),
  }));
  return `${state}: ${message.replaceAll(host, 'HOST')}`;
}

const success = (data: unknown, more: object = {}): Answer => ({
  body: JSON.stringify({ status: 'success', data, ...more }),
});
const vector = (...samples: readonly [labels: object, value: string][]) => ({
  resultType: 'vector',
  result: samples.map(([metric, value]) => ({ metric, value: [1, value] })),
});

const PASSES = 'passing: the value is 0, within max 0.01';

test.each<[string, Answer, string, Partial<MetricCheck>?]>([
  [
    'a value within bounds',
    success(vector([{ job: 'api' }, '0.005'])),
    'passing: the value is 0.005, within max 0.01 for job=api',
  ],
  [
    'a value above its bound',
    success(vector([{ job: 'api' }, '0.07'], [{ job: 'web' }, '0'])),
    'failing: the value is 0.07, above max 0.01 for job=api',
  ],
  [
    'a value below its bound',
    success(vector([{}, '2'])),
    'failing: the value is 2, below min 3',
    { min: 3, max: 5 },
  ],
  [
    'a value at its bound',
    success(vector([{}, '3'])),
    'passing: the value is 3, within min 3 and max 5',
    { min: 3, max: 5 },
  ],
  [
    'several values',
    success(vector([{ a: '1' }, '0'], [{ a: '2' }, '0.01'])),
    'passing: all 2 values are within max 0.01',
  ],
  [
    'many bad values',
    success(vector(...['1', '2', '3', '4', '5'].map((a): [object, string] => [{ a }, '1']))),
    'failing: the value is 1, above max 0.01 for a=1; 1, above max 0.01 for a=2; 1, above max 0.01 for a=3; and 2 more',
  ],
  [
    'many labels',
    success(vector([{ a: 'x'.repeat(100), b: '2', c: '3', d: '4', e: '5' }, '1'])),
    `failing: the value is 1, above max 0.01 for a=${'x'.repeat(59)}…, b=2, c=3, d=4, …`,
  ],
  ['infinity', success(vector([{}, '+Inf'])), 'failing: the value is +Inf, above max 0.01'],
  [
    'no number',
    success(vector([{ job: 'api' }, 'NaN'])),
    'unknown: the value is NaN for job=api, which cannot be compared with min and max',
  ],
  [
    'a bad value beside no number',
    success(vector([{}, 'NaN'], [{}, '1'])),
    'failing: the value is 1, above max 0.01',
  ],
  [
    'infinity without a sign',
    success(vector([{}, 'Inf'])),
    'failing: the value is Inf, above max 0.01',
  ],
  [
    'negative infinity',
    success(vector([{}, '-Inf'])),
    'failing: the value is -Inf, below min 3',
    { min: 3 },
  ],
  [
    'a text that only begins or ends like infinity',
    success(vector([{}, 'Info'], [{}, 'xInf'])),
    'unknown: the value is Info; xInf, which cannot be compared with min and max',
  ],
  [
    'an empty text',
    success(vector([{}, ' '])),
    'unknown: the value is  , which cannot be compared with min and max',
  ],
  [
    'a value that is no text',
    success({ resultType: 'vector', result: [{ metric: {}, value: [1, 0] }] }),
    'unknown: the value is no number, which cannot be compared with min and max',
  ],
  [
    'a value without labels',
    success({ resultType: 'vector', result: [{ value: [1, '0'] }] }),
    PASSES,
  ],
  [
    'a value with a label that is no text',
    success(vector([{ a: 1, b: '2' }, '0'])),
    'passing: the value is 0, within max 0.01 for b=2',
  ],
  [
    'as many labels as fit, and a text as long as fits',
    success(vector([{ a: 'x'.repeat(60), b: '2', c: '3', d: '4' }, '0'])),
    `passing: the value is 0, within max 0.01 for a=${'x'.repeat(60)}, b=2, c=3, d=4`,
  ],
  [
    'a value with only a lower bound',
    success(vector([{}, '3'])),
    'passing: the value is 3, within min 3',
    { min: 3 },
  ],
  [
    'values of no type',
    success({}),
    'unknown: the query returns a value of no known type; it must return a vector or a scalar',
  ],
  [
    'an error with values',
    success(vector([{}, '0']), { status: 'error' }),
    'unknown: HOST did not answer like Prometheus',
  ],
  ['warnings of another form', success(vector([{}, '0']), { warnings: [5] }), PASSES],
  [
    'an error that is no text',
    { status: 500, body: '{"error":{"code":5}}' },
    'unknown: HOST answered 500 Internal Server Error',
  ],
  [
    'a long error',
    { status: 500, body: JSON.stringify({ error: 'x'.repeat(161) }) },
    `unknown: HOST answered 500 Internal Server Error: ${'x'.repeat(160)}`,
  ],
  ['no value', success(vector()), 'unknown: the query returns no value'],
  ['a scalar', success({ resultType: 'scalar', result: [1, '0'] }), PASSES],
  [
    'a matrix',
    success({ resultType: 'matrix', result: [] }),
    'unknown: the query returns a matrix; it must return a vector or a scalar',
  ],
  [
    'a histogram',
    success({ resultType: 'vector', result: [{ metric: { job: 'api' }, histogram: [] }] }),
    'unknown: the query returns a histogram for job=api; it must return numbers',
  ],
  [
    'a warning',
    success(vector([{}, '0']), { warnings: ['a store is missing'] }),
    'unknown: HOST warns that its answer may be incomplete: a store is missing',
  ],
  [
    'a bad value with a warning',
    success(vector([{}, '1']), { warnings: ['a store is missing'] }),
    'failing: the value is 1, above max 0.01',
  ],
  [
    'a query that Prometheus refuses',
    { status: 400, body: '{"status":"error","errorType":"bad_data","error":"parse error"}' },
    'unknown: HOST answered 400 Bad Request: parse error',
  ],
  ['no JSON', { body: '<html>' }, 'unknown: HOST answered something that is not JSON'],
  ['other JSON', { body: '[]' }, 'unknown: HOST did not answer like Prometheus'],
  [
    'a redirect',
    { status: 302, headers: { location: 'http://192.0.2.1/' } },
    'unknown: HOST answered 302 Found, and redirects are not followed',
  ],
  [
    'a huge answer',
    { body: ' '.repeat(5_000_000) },
    'unknown: the answer of HOST is larger than 4 MiB; ask for less',
  ],
])('a metric: %s', async (_title, given, expected, more = { max: 0.01 }) => {
  answer = given;
  const check: MetricCheck = {
    kind: 'metrics',
    name: 'rate',
    url: `${url()}/prom/?t=1`,
    query: 'a{b="c"}',
    ...more,
  };
  expect(await told(askMetrics(check, toolsWith(), signal))).toBe(expected);
  expect(asked?.url).toBe('/prom/api/v1/query?t=1&query=a%7Bb%3D%22c%22%7D');
});

const alert = (labels: object, state = 'firing') => ({ labels, state });
const CRITICAL = { alertname: 'EtcdSlow', severity: 'critical', job: 'etcd' };

test.each<[string, AlertCheck['source'], Answer, string]>([
  [
    'one that fires',
    'prometheus',
    success({ alerts: [alert(CRITICAL), alert({ ...CRITICAL, severity: 'warning' })] }),
    'failing: an alert fires: EtcdSlow with severity=critical, job=etcd',
  ],
  [
    'several that fire',
    'prometheus',
    success({ alerts: [alert(CRITICAL), alert({ severity: 'critical' })] }),
    'failing: 2 alerts fire: EtcdSlow with severity=critical, job=etcd; an alert without a name with severity=critical',
  ],
  [
    'one that is pending',
    'prometheus',
    success({ alerts: [alert(CRITICAL, 'pending')] }),
    'passing: no alert with severity=critical fires',
  ],
  ['other JSON', 'prometheus', success({}), 'unknown: HOST did not answer like Prometheus'],
  [
    'an error with alerts',
    'prometheus',
    success({ alerts: [alert(CRITICAL)] }, { status: 'error' }),
    'unknown: HOST did not answer like Prometheus',
  ],
  [
    'one that is active',
    'alertmanager',
    { body: JSON.stringify([{ labels: CRITICAL, status: { state: 'active' } }]) },
    'failing: an alert fires: EtcdSlow with severity=critical, job=etcd',
  ],
  [
    'one that is silenced',
    'alertmanager',
    { body: JSON.stringify([{ labels: CRITICAL, status: { state: 'suppressed' } }]) },
    'passing: no alert with severity=critical fires',
  ],
  [
    'what Alertmanager refuses',
    'alertmanager',
    { status: 400, body: '"bad matcher format"' },
    'unknown: HOST answered 400 Bad Request: bad matcher format',
  ],
  [
    'other JSON of Alertmanager',
    'alertmanager',
    success({}),
    'unknown: HOST did not answer like Alertmanager',
  ],
])('an alert: %s', async (_title, source, given, expected) => {
  answer = given;
  const labels = { severity: 'critical' };
  const check: AlertCheck = { kind: 'alerts', name: 'critical', source, url: url(), labels };
  expect(await told(askAlerts(check, toolsWith(), signal))).toBe(expected);
  const query = '?active=true&silenced=false&inhibited=false&filter=severity%3D%22critical%22';
  expect(asked?.url).toBe(source === 'prometheus' ? '/api/v1/alerts' : `/api/v2/alerts${query}`);
});

test('an alert fires only if it has all labels of the check', async () => {
  const only = (labels: object): Promise<string> => {
    answer = success({ alerts: [alert(labels)] });
    const wanted = { severity: 'critical', team: 'db' };
    const named = { kind: 'alerts', name: 'critical', source: 'prometheus' } as const;
    return told(askAlerts({ ...named, url: url(), labels: wanted }, toolsWith(), signal));
  };
  expect(await only(CRITICAL)).toMatch(/^passing: /);
  expect(await only({ ...CRITICAL, team: 'db' })).toMatch(/^failing: /);
});

const http = (more: object = {}) => ({ kind: 'http', name: 'web', url: url(), ...more }) as const;

test.each<[string, Answer | 'silence', string]>([
  ['a good status', { status: 204 }, 'passing: http://HOST/ answered 204 No Content'],
  ['the last good status', { status: 299 }, 'passing: http://HOST/ answered 299'],
  [
    'a bad status',
    { status: 503 },
    'failing: http://HOST/ answered 503 Service Unavailable; only 200 to 299 are good',
  ],
  [
    'a redirect',
    { status: 301 },
    'failing: http://HOST/ answered 301 Moved Permanently, and redirects are not followed; only 200 to 299 are good',
  ],
  ['no answer', 'silence', 'failing: http://HOST/ did not answer within 0.2 s'],
])('a server: %s', async (_title, given, expected) => {
  answer = given;
  expect(await told(askHttp(http(), toolsWith(), signal, 200))).toBe(expected);
});

test('a server that cannot be reached fails, and the query of a URL is not shown', async () => {
  const nobody = await told(askHttp(http({ url: 'http://127.0.0.1:1/' }), toolsWith(), signal));
  expect(nobody).toMatch(/^failing: no answer from 127\.0\.0\.1:1: connect ECONNREFUSED/);
  answer = {};
  expect(await told(askHttp(http({ url: `${url()}/?key=abc` }), toolsWith(), signal))).toBe(
    'passing: http://HOST/?*** answered 200 OK',
  );
});

test.each<[string, Record<string, string>, string]>([
  ['a token', { token: 'abc\n' }, 'Bearer abc'],
  ['a password', { username: 'me', password: 'abc' }, `Basic ${btoa('me:abc')}`],
])('a Secret with %s', async (_title, secret, expected) => {
  answer = {};
  await askHttp(http({ secretName: 'web' }), toolsWith(secret), signal);
  expect(asked?.headers.authorization).toBe(expected);
});

test('a Secret with only certificate authorities sends no credentials', async () => {
  answer = {};
  await askHttp(http({ secretName: 'web' }), toolsWith({ 'ca.crt': 'PEM' }), signal);
  expect(asked?.headers).toMatchObject({ accept: 'application/json, */*', 'user-agent': 'refit' });
  expect(asked?.headers).not.toHaveProperty('authorization');
  expect(asked?.headers).not.toHaveProperty('content-type');
});

test('a request with a body says that the body is JSON', async () => {
  answer = { body: '{"id":7}' };
  const request = { url: new URL(url()), method: 'POST', body: '{}' } as const;
  expect(await answerFrom(request, toolsWith(), signal)).toEqual({ id: 7 });
  expect(asked?.method).toBe('POST');
  expect(asked?.headers['content-type']).toBe('application/json');
});

test('a check that is aborted has no result', async () => {
  answer = 'silence';
  const stop = new AbortController();
  server.once('request', () => stop.abort());
  await expect(askHttp(http(), toolsWith(), stop.signal)).rejects.toThrow('no answer from');
});

test('a server that never ends its answer loses the connection once it has said its status', async () => {
  answer = 'silence';
  const closed = Promise.withResolvers<void>();
  server.once('request', (_request, response) => {
    response.once('close', closed.resolve);
    response.writeHead(200).write('and');
  });
  expect(await told(askHttp(http(), toolsWith(), signal, 600_000))).toMatch(/^passing: /);
  await closed.promise;
});

const TITLE = 'Secret refit-system/web';

test.each<[string, Record<string, string> | Error, string]>([
  ['nothing', {}, `${TITLE} has neither token, nor username and password, nor ca.crt`],
  [
    'two kinds',
    { token: 'abc', username: 'me' },
    `${TITLE} has both token and username; only one of them can be sent`,
  ],
  ['a bad token', { token: 'a\nbc' }, `the token of ${TITLE} has characters that cannot be sent`],
])('a Secret with %s is no reason to fail', async (_title, secret, expected) => {
  const asking = askHttp(http({ secretName: 'web' }), toolsWith(secret), signal);
  expect(await told(asking)).toBe(`unknown: ${expected}`);
  expect(asked).toBeUndefined();
});

test('a password that begins with the name of its user is hidden completely', async () => {
  answer = { status: 401, body: JSON.stringify({ error: 'admin-very-secret is wrong' }) };
  const named = { kind: 'metrics', name: 'rate', secretName: 'web' } as const;
  const secret = { username: 'admin', password: 'admin-very-secret' };
  const check = { ...named, url: url(), query: 'up', max: 1 };
  expect(await told(askMetrics(check, toolsWith(secret), signal))).toBe(
    'unknown: HOST answered 401 Unauthorized: *** is wrong',
  );
});

test('a server that quotes the credentials does not make them known', async () => {
  answer = { status: 401, body: JSON.stringify({ error: 'the token very-secret is old' }) };
  const check = {
    kind: 'metrics',
    name: 'rate',
    url: url(),
    query: 'up',
    max: 1,
    secretName: 'web',
  } as const;
  expect(await told(askMetrics(check, toolsWith({ token: 'very-secret' }), signal))).toBe(
    'unknown: HOST answered 401 Unauthorized: the token *** is old',
  );
});
