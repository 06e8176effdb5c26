/**
 * Shows which requests the dashboard of a controller answers, and with whose rights. An API server records each token.
 */
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import {
  Agent,
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../util/clock.ts';
import { silentLogger } from '../../util/log.ts';
import { serveForViewers } from './server.ts';
import type { TrustedProxyOptions } from './trusted-proxy.ts';

/** Starts an API server that knows the tokens in `users`, and serves none of the resource kinds of Refit. */
async function startApiServer(users: Map<string, string>) {
  const tokens: (string | undefined)[] = [];
  const server = createServer((asked, answer) => {
    const { authorization } = asked.headers;
    tokens.push(authorization);
    const user = users.get(authorization ?? '');
    const isReview =
      asked.url?.startsWith('/apis/authentication.k8s.io/v1/selfsubjectreviews') === true;
    answer.setHeader('content-type', 'application/json');
    if (user === undefined)
      return answer.writeHead(401).end(statusOf(401, 'Unauthorized', 'Unauthorized'));
    if (isReview) return answer.writeHead(201).end(reviewOf(user));
    return answer.writeHead(404).end(statusOf(404, 'NotFound', 'not here'));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const folder = await mkdtemp(join(tmpdir(), 'refit-served-'));
  onTestFinished(async () => await rm(folder, { recursive: true }));
  const kubeconfig = join(folder, 'kubeconfig');
  const { port } = server.address() as AddressInfo;
  const config = {
    'current-context': 'a',
    clusters: [{ name: 'a', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'a', user: { token: 'of-the-controller' } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  return { kubeconfig, tokens, server };
}

function statusOf(code: number, reason: string, message: string): string {
  return JSON.stringify({
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    code,
    reason,
    message,
  });
}

function reviewOf(username: string): string {
  const kind = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  return JSON.stringify({ ...kind, metadata: { name: '' }, status: { userInfo: { username } } });
}

async function serve(names: readonly string[] = [], proxy: TrustedProxyOptions = {}) {
  const users = new Map([
    ['Bearer ada-token', 'ada'],
    ['Bearer none', 'system:anonymous'],
  ]);
  const api = await startApiServer(users);
  const stop = new AbortController();
  const server = await serveForViewers({
    address: '127.0.0.1:0',
    names,
    ...proxy,
    connection: { kubeconfig: api.kubeconfig },
    modules: [],
    files: { script: 'script', style: 'style' },
    clock: systemClock,
    log: silentLogger,
  });
  const running = server.run(stop.signal);
  onTestFinished(async () => {
    stop.abort(new Error('the test is over'));
    await running;
  });
  const { port } = server;
  const ask = async (asked: Asked) => await send(port, asked);
  return { ...api, users, port, ask };
}

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string;
  /** The address from which the request comes. */
  readonly from?: string;
  readonly agent?: Agent;
}

async function send(port: number, asked: Asked) {
  const { path = '/', method = 'GET', headers = {}, body, from, agent = false } = asked;
  const host = `127.0.0.1:${port}`;
  const sent = request({
    host: '127.0.0.1',
    port,
    path,
    method,
    headers: { host, ...headers },
    agent,
    ...(from !== undefined && { localAddress: from }),
  });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { code: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

const COOKIE = { cookie: 'refit-token=ada-token' };
const form = (token: string): Asked => ({
  path: '/sign-in',
  method: 'POST',
  body: new URLSearchParams({ token }).toString(),
});

test('without a token there is only the page that asks for one', async () => {
  const { ask, tokens } = await serve();
  const page = await ask({});
  expect(page).toMatchObject({ code: 401 });
  expect(page.body).toContain('<form method="post" action="sign-in">');
  expect(page.headers['content-security-policy']).toContain("form-action 'self'");
  expect(page.headers['content-security-policy']).not.toContain('script-src');
  for (const path of ['/api/state', '/api/events', '/api/why'])
    expect(await ask({ path })).toMatchObject({ code: 401, body: 'Sign in first.\n' });
  expect(tokens).toEqual([]);
});

test('a token that the API server knows becomes a strict cookie, and the page opens', async () => {
  const { ask } = await serve();
  expect(await ask(form('ada-token'))).toMatchObject({
    code: 303,
    headers: {
      location: './',
      'set-cookie': ['refit-token=ada-token; HttpOnly; SameSite=Strict; Path=/'],
    },
  });
  expect((await ask({ headers: COOKIE })).body).toContain('<div id="refit">');
  const headers = { authorization: 'Bearer ada-token' };
  expect(await ask({ headers })).toMatchObject({ code: 200 });
});

test.each([
  ['other', 'The API server does not accept this token: it is invalid or has expired.'],
  ['none', 'The API server does not say whose token this is.'],
  ['', 'This is not a token: it is empty'],
  ['a;b', 'This is not a token'],
  ['a\r\nb: c', 'This is not a token'],
  ['<b>', 'This is not a token'],
  ['a'.repeat(3801), 'The token is longer than the 3800 characters'],
  ['a'.repeat(50_000), 'The token is longer than the 3800 characters'],
])('the token %j: refused with the reason', async (token, why) => {
  const { ask } = await serve();
  const answer = await ask(form(token));
  expect({ code: answer.code, cookie: answer.headers['set-cookie'] }).toEqual({ code: 401 });
  expect(answer.body).toContain(why);
});

test('the API server gets the token of the viewer, and never that of the controller', async () => {
  const { ask, tokens } = await serve();
  const action = { 'x-refit-action': '1', ...COOKIE };
  const body = '{"action":"pause","plan":"autopilot//a"}';
  const done = await ask({ path: '/api/act', method: 'POST', headers: action, body });
  expect(done).toMatchObject({ code: 200 });
  expect(JSON.parse(done.body)).toMatchObject({ isDone: false });
  expect(tokens.length).toBeGreaterThan(1);
  expect(new Set(tokens)).toEqual(new Set(['Bearer ada-token']));
});

test('an action that another page sends, with cookie or header, reaches nothing', async () => {
  const { ask, tokens, port } = await serve();
  const bad: OutgoingHttpHeaders[] = [
    {},
    { 'x-refit-action': '0' },
    { 'x-refit-action': '1', origin: 'null' },
    { 'x-refit-action': '1', origin: 'http://evil.example' },
    { 'x-refit-action': '1', origin: `http://127.0.0.1:${port + 1}` },
    { 'x-refit-action': '1', 'sec-fetch-site': 'same-site' },
    { 'x-refit-action': '1', 'sec-fetch-site': 'cross-site' },
  ];
  for (const more of bad)
    for (const who of [COOKIE, { authorization: 'Bearer ada-token' }]) {
      const headers = { ...who, ...more };
      const asked = { path: '/api/act', method: 'POST', headers, body: '{}' };
      expect(await ask(asked), JSON.stringify(headers)).toMatchObject({ code: 403 });
    }
  expect(tokens).toEqual([]);
});

test('a preview is asked with the token of the viewer, and only by the own page', async () => {
  const { ask, tokens } = await serve();
  const asked = { path: '/api/preview', method: 'POST', body: 'kind: Plan' };
  expect(await ask({ ...asked, headers: COOKIE })).toMatchObject({ code: 403 });
  expect(await ask({ ...asked, headers: { 'x-refit-action': '1' } })).toMatchObject({ code: 401 });
  expect(tokens).toEqual([]);
  const done = await ask({ ...asked, headers: { 'x-refit-action': '1', ...COOKIE } });
  expect(done).toMatchObject({ code: 200 });
  expect(JSON.parse(done.body)).toMatchObject({
    isDone: false,
    lines: [expect.stringMatching(/^REFIT_NO_CRD: the cluster has no kind of plan /)],
  });
  const plan = JSON.stringify({
    apiVersion: 'autopilot.k0sproject.io/v1beta2',
    kind: 'Plan',
    metadata: { name: 'autopilot' },
    spec: { id: 'id1', timestamp: '2026-11-20T08:00:00Z', commands: [] },
  });
  await ask({ ...asked, body: plan, headers: { 'x-refit-action': '1', ...COOKIE } });
  expect(new Set(tokens)).toEqual(new Set(['Bearer ada-token']));
});

test.each(['//x/api/act', '//x/api/preview', '/x/../api/act'])(
  'a request to %s needs the header of the page, too',
  async (path) => {
    const { ask, tokens } = await serve();
    expect(await ask({ path, method: 'POST', headers: COOKIE, body: '{}' })).toMatchObject({
      code: 403,
    });
    expect(tokens).toEqual([]);
  },
);

test('a body that is too long gets an answer that says so', async () => {
  const { ask } = await serve();
  const headers = { 'x-refit-action': '1', ...COOKIE };
  const body = 'x'.repeat(4 * 1024 * 1024);
  const preview = await ask({ path: '/api/preview', method: 'POST', headers, body });
  expect(JSON.parse(preview.body)).toEqual({
    isDone: false,
    lines: [expect.stringMatching(/^The text is longer than \d+ KiB\.$/)],
  });
  expect(await ask({ path: '/api/act', method: 'POST', headers, body })).toMatchObject({
    code: 400,
  });
  const signIn = await ask(form(body));
  expect(signIn.body).toContain('The token is longer than the 3800 characters');
});

test('one user with many tokens leaves places for the others', async () => {
  const { users, port } = await serve();
  const open = async (token: string): Promise<number | undefined> => {
    const headers = { host: `127.0.0.1:${port}`, authorization: `Bearer ${token}` };
    const asked = { host: '127.0.0.1', port, path: '/api/events', headers, agent: false };
    const sent = request(asked).end();
    sent.on('error', () => undefined);
    onTestFinished(() => void sent.destroy());
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return answer.statusCode;
  };
  const tokens = Array.from({ length: 8 }, (_, index) => `eve-${index}`);
  for (const token of tokens) users.set(`Bearer ${token}`, 'eve');
  const codes: unknown[] = [];
  for (const token of tokens) codes.push(await open(token));
  expect(codes).toEqual([200, 200, 200, 200, 503, 503, 503, 503]);
  expect(await open('ada-token')).toBe(200);
});

test('another page cannot sign anybody in or out', async () => {
  const { ask } = await serve();
  const headers = { origin: 'http://evil.example' };
  expect(await ask({ ...form('ada-token'), headers })).toMatchObject({ code: 403 });
  expect(await ask({ path: '/sign-out', method: 'POST', headers })).toMatchObject({ code: 403 });
  expect(await ask({ path: '/sign-out', method: 'POST' })).toMatchObject({
    code: 303,
    headers: { 'set-cookie': [expect.stringContaining('Max-Age=0')] },
  });
});

test('a name that is not of this server gets nothing, even with a token', async () => {
  const { ask } = await serve(['Refit.example.com']);
  for (const host of ['evil.example', '[', 'evil.example:443'])
    expect(await ask({ headers: { ...COOKIE, host } }), host).toMatchObject({ code: 421 });
  for (const host of ['refit.example.com', 'refit.example.com:8443', 'localhost:1', '[::1]:8443'])
    expect(await ask({ headers: { ...COOKIE, host } })).toMatchObject({ code: 200 });
});

test('after ten refused tokens an address waits, and asks the API server nothing meanwhile', async () => {
  const { ask, tokens } = await serve();
  for (let index = 0; index < 11; index++)
    expect((await ask(form(`wrong-${index}`))).body).toContain('does not accept this token');
  const asked = tokens.length;
  expect((await ask(form('wrong-11'))).body).toMatch(/Too many tokens were refused: wait \d+ s\./);
  const headers = { authorization: 'Bearer wrong-12' };
  expect(await ask({ path: '/api/state', headers })).toMatchObject({ code: 503 });
  expect(tokens).toHaveLength(asked);
});

test('refused tokens of others at the same address, as behind an Ingress, do not lock out a viewer who is signed in', async () => {
  const { ask, users } = await serve();
  await ask(form('ada-token'));
  for (let index = 0; index < 12; index++) await ask(form(`wrong-${index}`));
  expect((await ask(form('wrong-12'))).body).toContain('Too many tokens were refused');
  expect(await ask({ headers: COOKIE })).toMatchObject({ code: 200 });
  expect(await ask(form('ada-token'))).toMatchObject({ code: 303 });
  // The failed attempts of the address also count for a new token, even if the token is valid.
  users.set('Bearer bob-token', 'bob');
  const headers = { authorization: 'Bearer bob-token' };
  expect(await ask({ path: '/api/state', headers })).toMatchObject({ code: 503 });
});

test('a token counts for some seconds without another question', async () => {
  const { ask, tokens } = await serve();
  for (let index = 0; index < 5; index++) await ask({ headers: COOKIE });
  expect(tokens).toHaveLength(1);
});

test('without an API server nobody is signed in, and the page says why', async () => {
  const { ask, server } = await serve();
  server.close();
  server.closeAllConnections();
  const answer = await ask(form('ada-token'));
  expect(answer).toMatchObject({ code: 401 });
  expect(answer.body).toContain('REFIT_UNREACHABLE');
  expect(await ask({ path: '/api/state', headers: COOKIE })).toMatchObject({ code: 503 });
});

test.each(['DELETE', 'PUT', 'OPTIONS', 'HEAD'])('%s is refused', async (method) => {
  const { ask } = await serve();
  expect(await ask({ method, headers: COOKIE })).toMatchObject({ code: 405 });
});

test('headers of a proxy that name a user are not believed', async () => {
  const { ask } = await serve();
  const headers = { 'x-forwarded-user': 'ada', 'x-remote-user': 'ada', 'impersonate-user': 'ada' };
  expect(await ask({ path: '/api/state', headers })).toMatchObject({ code: 401 });
});

const PROXY = '127.0.0.2';
const BEHIND_PROXY = { tokenHeader: 'X-Forwarded-Access-Token', trustedProxies: [PROXY] };
const ADA = { 'x-forwarded-access-token': 'ada-token' };

test('a header with a token is not read without the option', async () => {
  const { ask, tokens } = await serve();
  for (const from of ['127.0.0.1', PROXY])
    expect(await ask({ path: '/api/state', headers: ADA, from })).toMatchObject({ code: 401 });
  expect(tokens).toEqual([]);
});

test('the token in the header of a trusted proxy counts, and that of any other address is refused', async () => {
  const { ask, tokens } = await serve([], BEHIND_PROXY);
  const refused =
    'The header X-Forwarded-Access-Token is accepted only from the addresses of --ui-trusted-proxy, and 127.0.0.1 is not one of them.\n';
  expect(await ask({ headers: ADA })).toMatchObject({ code: 403, body: refused });
  const signIn = { ...form('ada-token'), headers: ADA };
  expect(await ask(signIn)).toMatchObject({ code: 403, body: refused });
  expect(tokens).toEqual([]);
  const page = await ask({ headers: ADA, from: PROXY });
  expect(page).toMatchObject({ code: 200 });
  expect(page.body).toContain('<div id="refit" data-proxied>');
  expect(page.headers['set-cookie']).toBeUndefined();
  expect(new Set(tokens)).toEqual(new Set(['Bearer ada-token']));
  // Without the proxy, for example with kubectl port-forward, viewers sign in themselves.
  expect(await ask(form('ada-token'))).toMatchObject({ code: 303 });
  expect((await ask({ headers: COOKIE })).body).toContain('<div id="refit">');
});

test('behind a proxy, neither a cookie nor another header says who the viewer is', async () => {
  const { ask, tokens } = await serve([], BEHIND_PROXY);
  const body = 'The proxy sent no token in the header X-Forwarded-Access-Token.\n';
  for (const headers of [COOKIE, { authorization: 'Bearer ada-token' }])
    expect(await ask({ headers, from: PROXY })).toMatchObject({ code: 401, body });
  const signIn = await ask({ ...form('ada-token'), from: PROXY });
  expect(signIn).toMatchObject({ code: 401 });
  for (const path of ['/sign-in', '/sign-out']) {
    const asked = { path, method: 'POST', headers: ADA, body: 'token=ada-token', from: PROXY };
    const answer = await ask(asked);
    expect([answer.code, answer.headers['set-cookie']]).toEqual([404, undefined]);
  }
  expect(tokens).toEqual([]);
});

test('two values of the header are refused, also if they are in two headers', async () => {
  const { ask, tokens } = await serve([], { ...BEHIND_PROXY, tokenHeader: 'Authorization' });
  // If a request had this header twice, Node.js would use the first value, which could come from the client.
  const authorization: unknown = ['Bearer eve-token', 'Bearer ada-token'];
  const headers = { authorization: authorization as string };
  const answer = await ask({ headers, from: PROXY });
  expect(answer).toMatchObject({
    code: 401,
    body: 'The proxy sent the header Authorization 2 times: it must replace the header, not add another.\n',
  });
  expect(tokens).toEqual([]);
});

test('a proxy changes nothing about host names, and about requests of other pages', async () => {
  const { ask, tokens } = await serve(['refit.example.com'], BEHIND_PROXY);
  const host = 'refit.example.com';
  const act = async (more: OutgoingHttpHeaders) =>
    await ask({
      path: '/api/act',
      method: 'POST',
      headers: { host, ...ADA, ...more },
      body: '{"action":"pause","plan":"autopilot//a"}',
      from: PROXY,
    });
  const own = { origin: `https://${host}`, 'sec-fetch-site': 'same-origin' };
  for (const bad of [
    own,
    { ...own, 'x-refit-action': '1', origin: 'https://evil.example' },
    { ...own, 'x-refit-action': '1', 'sec-fetch-site': 'cross-site' },
  ])
    expect(await act(bad), JSON.stringify(bad)).toMatchObject({ code: 403 });
  const other = { host: 'evil.example', 'x-forwarded-host': host };
  expect(await act({ ...own, ...other, 'x-refit-action': '1' })).toMatchObject({ code: 421 });
  expect(tokens).toEqual([]);
  expect(await act({ ...own, 'x-refit-action': '1' })).toMatchObject({ code: 200 });
});

test('users who share a connection of the proxy each get their own state', async () => {
  const { ask, users } = await serve([], BEHIND_PROXY);
  users.set('Bearer bob-token', 'bob');
  const agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress: PROXY });
  onTestFinished(() => agent.destroy());
  const viewerFor = async (token: string): Promise<unknown> => {
    const headers = { 'x-forwarded-access-token': token };
    const answer = await ask({ path: '/api/state', headers, agent });
    // The server answers with 503 until it has read the plans, so this request is repeated.
    return answer.code === 200 ? (JSON.parse(answer.body) as { viewer: string }).viewer : answer;
  };
  for (const [token, user] of [
    ['ada-token', 'ada'],
    ['bob-token', 'bob'],
    ['ada-token', 'ada'],
  ] as const)
    await expect.poll(async () => await viewerFor(token)).toBe(user);
  expect(await ask({ path: '/api/state', agent })).toMatchObject({ code: 401 });
  const unknown = { 'x-forwarded-access-token': 'eve-token' };
  expect(await ask({ path: '/api/state', headers: unknown, agent })).toMatchObject({ code: 401 });
  expect(Object.values(agent.freeSockets).flat()).toHaveLength(1);
});

test('behind a proxy, refused tokens do not lock out viewers with other tokens', async () => {
  const { ask } = await serve([], BEHIND_PROXY);
  const read = async (token: string) =>
    await ask({ headers: { 'x-forwarded-access-token': token }, from: PROXY });
  for (let index = 0; index < 11; index++)
    expect(await read('expired')).toMatchObject({ code: 401 });
  expect(await read('expired')).toMatchObject({
    code: 503,
    body: expect.stringContaining('Too many tokens were refused') as string,
  });
  expect(await read('ada-token')).toMatchObject({ code: 200 });
});

test.each(['0.0.0.0:0', ':8443', '[::]:0', '192.0.2.1:8443'])(
  'plain HTTP at %s is refused, because tokens would cross the network',
  async (address) => {
    const parts = { connection: {}, modules: [], clock: systemClock, log: silentLogger };
    const files = { script: '', style: '' };
    await expect(serveForViewers({ ...parts, files, address })).rejects.toMatchObject({
      code: 'REFIT_USAGE',
      line: expect.stringMatching(
        /--ui-address .* where the tokens .* need TLS .*--ui-cert-dir/,
      ) as string,
    });
  },
);
