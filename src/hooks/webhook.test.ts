/** Tests the request of a hook: what a server gets, and what its answer means. */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Script, type StubServer, startStubServer } from '../../test/faults/stub-server.ts';
import { FakeClock } from '../../test/support/clock/fake-clock.ts';
import { createAuthority, issueServer, validFrom } from '../../tools/controlplane/certs.ts';
import type { KubeClient } from '../kube/client.ts';
import { StatusError } from '../kube/status-error.ts';
import { messageOf } from '../util/errors.ts';
import type { HookRun, WebhookAction } from './rules.ts';
import { askWebhook } from './webhook.ts';

const KEY = 'a key that nobody guesses';
const NOW = Date.UTC(2026, 0, 1);
const SUBJECT = { commonName: 'hooks' };
const VALIDITY = validFrom(Date.now());
const NEVER = new AbortController().signal;

const authority = createAuthority(SUBJECT, VALIDITY);
const own = issueServer(
  { subject: SUBJECT, key: authority.key },
  { dns: [], addresses: ['127.0.0.1'] },
  VALIDITY,
);
let script: Script;
let server: StubServer;

beforeAll(async () => {
  const tls = { cert: own.certificate, key: own.key };
  server = await startStubServer((request, response) => script(request, response), tls);
});
afterAll(async () => await server[Symbol.asyncDispose]());
beforeEach(() => {
  script = (_request, response) => void response.end();
});

type Values = Readonly<Record<string, string>>;
const GOOD: Values = { key: KEY, 'ca.crt': authority.certificate };

interface Asking {
  /** The values of the Secret, or the error with which the API server answers. */
  readonly secret?: Values | Error;
  readonly now?: number;
  readonly abort?: AbortSignal;
  /** The variables of a run for the whole plan. */
  readonly of?: HookRun['variables'];
}

/**
 * Sends the request once, as a leader does. Returns the meaning of the answer. An error counts as a run that continues.
 */
async function ask({ secret = GOOD, now = NOW, abort = NEVER, of }: Asking = {}): Promise<string> {
  const get = async () => {
    if (secret instanceof Error) throw secret;
    const entries = Object.entries(secret).map(([name, value]) => [name, btoa(value)]);
    return await Promise.resolve({ data: Object.fromEntries(entries) as object });
  };
  const tools = {
    client: { get } as unknown as KubeClient,
    namespace: 'refit-system',
    environment: {},
    clock: new FakeClock(now),
  };
  const url = `https://127.0.0.1:${server.port}/hook?x=1`;
  const action: WebhookAction = { kind: 'webhook', url, secretName: 'refit-hooks' };
  const when = of === undefined ? 'beforeDrain' : 'beforePlan';
  const hook = { name: 'tell', when, action, timeoutMs: 60_000 } as const;
  const variables = {
    REFIT_TARGET: 'worker1',
    REFIT_ROLE: 'worker',
    REFIT_FROM_VERSION: 'v1.35.0',
    REFIT_TO_VERSION: 'v1.36.0',
    REFIT_PLAN: 'autopilot',
    REFIT_PLAN_NAMESPACE: '',
    REFIT_PLAN_KIND: 'Plan',
    REFIT_ATTEMPT: '2026-01-01T00:00:00Z',
  };
  const id = 'refit-tell-1';
  const run: HookRun = of ? { id, hook, variables: of } : { id, hook, node: 'w1', variables };
  const { state, message } = await askWebhook(tools, run, action, abort).catch(
    (error: unknown) => ({ state: 'error', message: messageOf(error) }),
  );
  return `${state}: ${message.replaceAll(`127.0.0.1:${server.port}`, 'HOST')}`;
}

test('the request says what happens, and its signature covers its time and its body', async () => {
  expect(await ask()).toBe('succeeded: HOST answered 200 OK');
  const { method, url, headers, body } = server.requests.at(-1) ?? { headers: {}, body: '' };
  expect([method, url]).toEqual(['POST', '/hook?x=1']);
  const signature = createHmac('sha256', KEY)
    .update(`${NOW / 1000}.${body}`)
    .digest('hex');
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': 'refit',
    'idempotency-key': 'refit-tell-1',
    'refit-timestamp': String(NOW / 1000),
    'refit-signature': `sha256=${signature}`,
  });
  expect(JSON.parse(body)).toEqual({
    id: 'refit-tell-1',
    hook: 'tell',
    when: 'BeforeDrain',
    plan: { kind: 'Plan', namespace: '', name: 'autopilot' },
    node: 'w1',
    target: 'worker1',
    role: 'worker',
    from: 'v1.35.0',
    to: 'v1.36.0',
    attempt: '2026-01-01T00:00:00Z',
  });
});

test('the request of a hook for the whole plan has its run, and no node', async () => {
  const plan = { REFIT_PLAN: 'autopilot', REFIT_PLAN_NAMESPACE: '', REFIT_PLAN_KIND: 'Plan' };
  const variables = { ...plan, REFIT_RUN: 'u/1', REFIT_TO_VERSION: 'v1.36.0', REFIT_ATTEMPT: 'a' };
  expect(await ask({ of: variables })).toBe('succeeded: HOST answered 200 OK');
  expect(JSON.parse(server.requests.at(-1)?.body ?? '')).toEqual({
    id: 'refit-tell-1',
    hook: 'tell',
    when: 'BeforePlan',
    plan: { kind: 'Plan', namespace: '', name: 'autopilot' },
    to: 'v1.36.0',
    run: 'u/1',
    attempt: 'a',
  });
});

test('another leader sends the same key and body at another time', async () => {
  await ask();
  await ask({ now: NOW + 60_000 });
  const [first, second] = server.requests.slice(-2);
  expect(second?.headers['idempotency-key']).toBe(first?.headers['idempotency-key']);
  expect(second?.body).toBe(first?.body);
  expect(second?.headers['refit-timestamp']).toBe(String(NOW / 1000 + 60));
  expect(second?.headers['refit-signature']).not.toBe(first?.headers['refit-signature']);
});

test.each<[number, string, string]>([
  [200, '', 'succeeded: HOST answered 200 OK'],
  [204, '', 'succeeded: HOST answered 204 No Content'],
  [299, 'fine', 'succeeded: HOST answered 299: fine'],
  [301, '', 'running: HOST answered 301 Moved Permanently, and redirects are not followed'],
  [400, 'what is\n this?', 'failed: HOST answered 400 Bad Request: what is this?'],
  [
    422,
    '{"message":"the disk is full"}',
    'failed: HOST answered 422 Unprocessable Entity: the disk is full',
  ],
  [499, '', 'failed: HOST answered 499'],
  [599, '', 'running: HOST answered 599'],
  [400, ' \n spaces ', 'failed: HOST answered 400 Bad Request: spaces'],
  [400, '{"message":"  spaces  "}', 'failed: HOST answered 400 Bad Request: spaces'],
  [403, '{"message":7}', 'failed: HOST answered 403 Forbidden: {"message":7}'],
  [409, 'null', 'failed: HOST answered 409 Conflict: null'],
  [408, '', 'running: HOST answered 408 Request Timeout'],
  [429, 'later', 'running: HOST answered 429 Too Many Requests: later'],
  [500, 'broken', 'running: HOST answered 500 Internal Server Error: broken'],
  [503, 'it works on it', 'running: HOST answered 503 Service Unavailable: it works on it'],
])('an answer with %i and the text %j', async (status, text, expected) => {
  script = (_request, response) => {
    response.writeHead(status, { location: '/elsewhere' }).end(text);
  };
  const before = server.requests.length;
  expect(await ask()).toBe(expected);
  expect(server.requests.length - before).toBe(1);
});

test('neither the key nor the signature is in a message, if the server quotes them', async () => {
  script = ({ headers }, response) => {
    const forms = [KEY, btoa(KEY), Buffer.from(KEY).toString('hex')].join(' ');
    response.writeHead(401).end(`${forms} ${String(headers['refit-signature'])}`);
  };
  expect(await ask()).toBe('failed: HOST answered 401 Unauthorized: *** *** *** sha256=***');
  expect(await ask({ secret: { ...GOOD, key: `${KEY}\n` } })).not.toContain(KEY);
});

test('the reason phrase of a server, which may quote the key, is not shown', async () => {
  script = (_request, response) => void response.writeHead(401, `no ${KEY}`).end();
  expect(await ask()).toBe('failed: HOST answered 401 Unauthorized');
});

test.each([
  ['two blanks', 'a key  that nobody guesses'],
  ['two lines', 'a key that\nnobody guesses'],
])('a key with %s is hidden, too, though the message has one line', async (_what, key) => {
  const quoted = (said: string): void => {
    script = (_request, response) => void response.writeHead(401).end(said);
  };
  quoted(`wrong: ${key}`);
  expect(await ask({ secret: { ...GOOD, key } })).toBe(
    'failed: HOST answered 401 Unauthorized: wrong: ***',
  );
  quoted(JSON.stringify({ message: `wrong: ${key}` }));
  expect(await ask({ secret: { ...GOOD, key } })).toBe(
    'failed: HOST answered 401 Unauthorized: wrong: ***',
  );
});

test.each([
  ['the key', KEY],
  ['the key in base64', btoa(KEY)],
])('an answer that is cut within %s shows no part of it', async (_what, form) => {
  const before = 'x'.repeat(4_096 - form.length + 1);
  script = (_request, response) => void response.writeHead(400).end(`${before}${form}`);
  expect(await ask()).toBe(`failed: HOST answered 400 Bad Request: ${before}***`);
});

test('an answer of exactly the longest length may go on, so its end shows no part of the key', async () => {
  const part = KEY.slice(0, 4);
  const before = 'x'.repeat(4_096 - part.length);
  script = (_request, response) => void response.writeHead(400).end(`${before}${part}`);
  expect(await ask()).toBe(`failed: HOST answered 400 Bad Request: ${before}***`);
});

test('an answer that is one byte shorter is whole, and keeps its end', async () => {
  const whole = `${'x'.repeat(4_095 - 4)}${KEY.slice(0, 4)}`;
  script = (_request, response) => void response.writeHead(400).end(whole);
  expect(await ask()).toBe(`failed: HOST answered 400 Bad Request: ${whole}`);
});

test('an answer that is cut within a character shows no part of the key before it', async () => {
  const key = 'ein Schl\u00FCssel, den niemand kennt';
  const cut = Buffer.from(key).indexOf(Buffer.from('\u00FC')) + 1;
  const before = 'x'.repeat(4_096 - cut);
  script = (_request, response) => void response.writeHead(400).end(`${before}${key}`);
  expect(await ask({ secret: { ...GOOD, key } })).toBe(
    `failed: HOST answered 400 Bad Request: ${before}***`,
  );
});

test.each([
  [3, KEY.slice(0, 3)],
  [4, '***'],
])(
  'of an answer that breaks off after %i characters of the key is shown %j',
  async (length, shown) => {
    script = ({ socket }, response) => {
      response.writeHead(400, { 'content-length': 100 });
      response.write(`no ${KEY.slice(0, length)}`, () => socket.end());
    };
    expect(await ask()).toBe(`failed: HOST answered 400 Bad Request: no ${shown}`);
  },
);

test('only the beginning of a long answer is read, and an answer that breaks off counts as far as it came', async () => {
  script = (_request, response) => {
    response.writeHead(400);
    const more = (): void => {
      while (response.write('x'.repeat(65_536)));
      response.once('drain', more);
    };
    more();
  };
  expect(await ask()).toBe(`failed: HOST answered 400 Bad Request: ${'x'.repeat(4096)}`);
  script = ({ socket }, response) => {
    response.writeHead(400, { 'content-length': 100 });
    response.write('half', () => socket.end());
  };
  expect(await ask()).toBe('failed: HOST answered 400 Bad Request: half');
});

test('a server that says nothing is left when the time is over', async () => {
  const late = new AbortController();
  script = () => late.abort();
  expect(await ask({ abort: late.signal })).toMatch(/^error: /);
});

const status = (code: number, reason: string): StatusError =>
  new StatusError({ kind: 'Status', code, reason, message: 'x' });

test.each<[string, Values | Error, string]>([
  ['missing', status(404, 'NotFound'), 'Secret refit-system/refit-hooks does not exist'],
  [
    'forbidden',
    status(403, 'Forbidden'),
    'the leader has no right to get Secret refit-system/refit-hooks',
  ],
  [
    'without the key',
    { token: KEY },
    'the value key of Secret refit-system/refit-hooks has 0 bytes; it must have at least 16',
  ],
  [
    'with a key that could be guessed',
    { key: '0123456789abcde' },
    'the value key of Secret refit-system/refit-hooks has 15 bytes; it must have at least 16',
  ],
])('a Secret that is %s is an error, and nothing is sent', async (_what, secret, expected) => {
  const before = server.connections();
  expect(await ask({ secret })).toBe(`error: ${expected}`);
  expect(server.connections()).toBe(before);
});

test('a server whose certificate no trusted authority signed gets no request', async () => {
  const before = server.requests.length;
  const other = createAuthority({ commonName: 'other' }, VALIDITY).certificate;
  for (const secret of [{ key: KEY }, { key: KEY, 'ca.crt': other }])
    expect(await ask({ secret })).toMatch(/^error: .*certificate/);
  expect(server.requests).toHaveLength(before);
});
