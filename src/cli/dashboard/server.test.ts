/** Shows which requests the server of the dashboard answers, and that no request can end it. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { type DashboardServer, serveDashboard } from './server.ts';
import type { ActionRequest, ActionResult, DashboardState } from './state.ts';

const STATE: DashboardState = { at: '2026-11-20T08:10:00Z', notes: [], missing: [], plans: [] };

type Act = (request: ActionRequest) => Promise<ActionResult>;

async function serve(port = 0, act?: Act): Promise<DashboardServer> {
  const files = { script: 'script', style: 'style' };
  const server = await serveDashboard({
    port,
    files,
    explain: (plan, node) => [{ heading: plan, lines: [node] }],
    explainRun: () => undefined,
    eventsOf: async (plan, node) =>
      await Promise.resolve({ events: [], missing: `${plan} ${node}` }),
    preview: async (text) => await Promise.resolve({ isDone: true, lines: [text] }),
    act,
  });
  onTestFinished(async () => await server.close());
  server.publish(STATE);
  return server;
}

interface Asked {
  /** The path, relative to the base path of the server. */
  readonly path?: string;
  /** The whole path. It replaces `path`. */
  readonly whole?: string;
  readonly method?: string;
  readonly host?: string;
  readonly cookie?: string;
  readonly more?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Sends the path unchanged; `fetch` would normalize it. */
async function ask(server: DashboardServer, { path = '/api/state', ...asked }: Asked) {
  const { port } = server;
  const {
    whole = `${placeOf(server)}${path.slice(1)}`,
    method,
    cookie,
    host = `127.0.0.1:${port}`,
    more = {},
    body,
  } = asked;
  const headers = { host, ...more, ...(cookie === undefined ? {} : { cookie }) };
  const sent = request({ host: '127.0.0.1', port, path: whole, method, headers, agent: false });
  sent.end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { code: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

/** Returns the base path under which the server answers. */
function placeOf({ url }: DashboardServer): string {
  return new URL(url).pathname;
}

function cookieOf({ port, url }: DashboardServer): string {
  return `refit-${port}=${new URL(url).searchParams.get('token')}`;
}

test('another host name that leads to this server gets nothing, even with the token', async () => {
  const server = await serve();
  const cookie = cookieOf(server);
  for (const host of ['evil.example', `evil.example:${server.port}`, '127.0.0.1', 'localhost:1'])
    expect(await ask(server, { cookie, host })).toMatchObject({
      code: 421,
      body: `open this page as 127.0.0.1:${server.port} or localhost:${server.port}: other names of this host are refused\n`,
    });
  expect(await ask(server, { cookie })).toMatchObject({ code: 200, body: JSON.stringify(STATE) });
  const host = `localhost:${server.port}`;
  expect(await ask(server, { cookie, host })).toMatchObject({ code: 200 });
});

test('without the token, or with another one, nothing is answered', async () => {
  const server = await serve();
  const cookies = [undefined, `${cookieOf(server)}x`, cookieOf(server).slice(0, -1), 'refit=1'];
  for (const path of [
    '/',
    '/ui.js',
    '/ui.css',
    '/api/state',
    '/api/events',
    '/api/why',
    '/api/run',
    '/api/node-events',
  ])
    for (const cookie of cookies)
      expect(
        await ask(server, { path, ...(cookie === undefined ? {} : { cookie }) }),
      ).toMatchObject({
        code: 403,
        body: 'open the URL that refit dashboard has printed; it has a token\n',
      });
});

test('the printed URL sets a cookie that other sites and scripts cannot use, and leaves no token in the address', async () => {
  const server = await serve();
  const { search } = new URL(server.url);
  const { code, headers } = await ask(server, { path: `/${search}` });
  const place = placeOf(server);
  expect({ code, location: headers.location }).toEqual({ code: 303, location: place });
  expect(headers['set-cookie']).toEqual([
    `${cookieOf(server)}; HttpOnly; SameSite=Strict; Path=${place}`,
  ]);
});

test('a browser sends the cookie only below a path that other servers of this machine do not know', async () => {
  const server = await serve();
  const other = await serve();
  const places = [placeOf(server), placeOf(other)];
  for (const place of places) expect(place).toMatch(/^\/[\w-]{16}\/$/);
  expect(new Set(places).size).toBe(2);
  const cookie = cookieOf(server);
  for (const whole of ['/', '/ui.js', '/api/state', '/api/why', `${placeOf(other)}api/state`])
    expect(await ask(server, { cookie, whole })).toMatchObject({ code: 403 });
});

test('without --allow-actions, every method but GET is refused', async () => {
  const server = await serve();
  const cookie = cookieOf(server);
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
    expect(await ask(server, { cookie, method })).toMatchObject({ code: 405 });
});

test('the policy of each answer lets the page load and ask nothing but this server', async () => {
  const server = await serve();
  const cookie = cookieOf(server);
  for (const path of ['/', '/ui.js', '/ui.css', '/api/state', '/api/why', '/nosuch']) {
    const { headers } = await ask(server, { cookie, path });
    const policy = headers['content-security-policy'];
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).not.toContain('unsafe');
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    });
  }
});

test('an address that is none is refused, and the server goes on', async () => {
  const server = await serve();
  const cookie = cookieOf(server);
  for (const whole of ['//', '//[', 'http://['])
    expect(await ask(server, { cookie, whole })).toMatchObject({ code: 400 });
  expect(await ask(server, { cookie, path: '/nosuch' })).toMatchObject({ code: 404 });
  const why = await ask(server, { cookie, path: '/api/why?plan=a&node=%3Cb%3E' });
  expect(why).toMatchObject({ code: 200, body: '[{"heading":"a","lines":["<b>"]}]' });
});

test('a port in use is one sentence', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const address = other.address();
  const port = typeof address === 'object' ? (address?.port ?? 0) : 0;
  await expect(serve(port)).rejects.toMatchObject({
    code: 'REFIT_USAGE',
    message: `cannot listen at 127.0.0.1:${port}: listen EADDRINUSE: address already in use 127.0.0.1:${port}`,
  });
});

test('a page that does not read gets only the newest state once it reads again', async () => {
  const server = await serve();
  const headers = { cookie: cookieOf(server) };
  const path = `${placeOf(server)}api/events`;
  const sent = request({ host: '127.0.0.1', port: server.port, path, headers, agent: false }).end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  answer.pause();
  const missing = ['x'.repeat(4_000_000)];
  for (let index = 0; index < 20; index++)
    server.publish({ ...STATE, notes: [`${index}`], missing });
  const seen: string[] = [];
  let rest = '';
  for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>) {
    const events = `${rest}${chunk}`.split('\n\n');
    rest = events.pop() ?? '';
    for (const event of events) {
      const { notes } = JSON.parse(event.slice('data: '.length)) as DashboardState;
      seen.push(notes[0] ?? 'first');
    }
    if (seen.includes('19')) break;
  }
  expect(seen).toEqual(['first', '0', '19']);
});

/** Starts a server that records the actions which it accepts. */
async function serveActions() {
  const seen: ActionRequest[] = [];
  const server = await serve(0, async (request) => {
    seen.push(request);
    return await Promise.resolve({ isDone: true, lines: ['done'] });
  });
  const post = async (asked: Asked) =>
    await ask(server, { path: '/api/act', method: 'POST', body: PAUSE, ...asked });
  return { server, seen, post, cookie: cookieOf(server) };
}

const PAUSE = '{"action":"pause","plan":"autopilot//a"}';
const ROLL_BACK = JSON.stringify({
  action: 'rollback',
  plan: 'autopilot//a',
  reason: 'bad',
  isConfirmed: true,
  typed: 'yes',
  seen: '0'.repeat(64),
});
const OWN = { 'x-refit-action': '1' };

test('without --allow-actions, an action is refused even with the token and the header', async () => {
  const server = await serve();
  const asked = { path: '/api/act', method: 'POST', cookie: cookieOf(server), more: OWN };
  expect(await ask(server, { ...asked, body: PAUSE })).toMatchObject({
    code: 405,
    body: 'this server only answers GET; to control plans, start refit dashboard with --allow-actions\n',
  });
});

test('with --allow-actions, an action of the own page is carried out', async () => {
  const { server, seen, post, cookie } = await serveActions();
  expect(await post({ cookie, more: OWN })).toMatchObject({
    code: 200,
    body: '{"isDone":true,"lines":["done"]}',
  });
  const origin = `http://127.0.0.1:${server.port}`;
  expect(await post({ cookie, more: { ...OWN, origin } })).toMatchObject({ code: 200 });
  expect(seen).toEqual([JSON.parse(PAUSE), JSON.parse(PAUSE)]);
});

test('an action without the cookie, or of another page, reaches nothing', async () => {
  const { server, seen, post, cookie } = await serveActions();
  const token = new URL(server.url).search;
  const other = { ...OWN, origin: `http://127.0.0.1:${server.port + 1}` };
  const asked: [Asked, number][] = [
    [{ more: OWN }, 403],
    [{ more: OWN, path: `/api/act${token}` }, 403],
    [{ cookie: `${cookie}x`, more: OWN }, 403],
    [{ cookie }, 403],
    [{ cookie, more: { 'x-refit-action': '0' } }, 403],
    [{ cookie, more: other }, 403],
    [{ cookie, more: { ...OWN, origin: 'null' } }, 403],
    [{ cookie, more: OWN, host: 'evil.example' }, 421],
    [{ cookie, more: OWN, method: 'GET' }, 404],
    [{ cookie, more: OWN, method: 'OPTIONS' }, 405],
    [{ cookie, more: OWN, path: '/api/state' }, 405],
    [{ cookie, more: OWN, whole: '/api/act' }, 405],
  ];
  for (const body of [PAUSE, ROLL_BACK])
    for (const [each, code] of asked)
      expect(await post({ ...each, body }), JSON.stringify(each)).toMatchObject({ code });
  expect(seen).toEqual([]);
});

test('a preview needs the page of this server, but not --allow-actions', async () => {
  const server = await serve();
  const cookie = cookieOf(server);
  const post = async (asked: Asked) =>
    await ask(server, { path: '/api/preview', method: 'POST', body: 'kind: Plan', ...asked });
  expect(await post({ cookie, more: OWN })).toMatchObject({
    code: 200,
    body: '{"isDone":true,"lines":["kind: Plan"]}',
  });
  expect(await post({ cookie })).toMatchObject({ code: 403 });
  expect(await post({ more: OWN })).toMatchObject({ code: 403 });
  const origin = `http://127.0.0.1:${server.port + 1}`;
  expect(await post({ cookie, more: { ...OWN, origin } })).toMatchObject({ code: 403 });
  expect(await post({ cookie, more: OWN, body: 'a'.repeat(256 * 1024 + 1) })).toMatchObject({
    code: 200,
    body: '{"isDone":false,"lines":["The text is longer than 256 KiB."]}',
  });
});

test('a body that is no action is refused: an abort must be confirmed, and nothing else may be in it', async () => {
  const { seen, post, cookie } = await serveActions();
  const bodies = [
    '',
    'null',
    '{',
    '{"action":"delete","plan":"a"}',
    '{"action":"pause"}',
    '{"action":"pause","plan":"a","kubeconfig":"/other"}',
    '{"action":"abort","plan":"a"}',
    '{"action":"abort","plan":"a","isConfirmed":false}',
    '{"action":"approve","plan":"a","wave":0}',
    `{"action":"pause","plan":"${'a'.repeat(10_000)}"}`,
  ];
  for (const body of bodies)
    expect(await post({ cookie, more: OWN, body }), body.slice(0, 80)).toMatchObject({ code: 400 });
  expect(seen).toEqual([]);
  expect(await post({ cookie, more: OWN })).toMatchObject({ code: 200 });
});
