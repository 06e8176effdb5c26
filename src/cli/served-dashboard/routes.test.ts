/** Tests the answers of the served dashboard to single requests, with viewers that need no API server. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { FakeClock } from '../../../test/support/clock/fake-clock.ts';
import type { ActionResult } from '../dashboard/state.ts';
import { createRoutes } from './routes.ts';
import { arrivals, type TrustedProxyOptions } from './trusted-proxy.ts';
import type { FoundViewer, Viewer } from './viewers.ts';

const DONE: ActionResult = { isDone: true, lines: ['done'] };

interface Scene extends TrustedProxyOptions {
  readonly isSecure?: boolean;
  readonly pages?: number;
  readonly last?: string;
  readonly canFollow?: boolean;
  readonly act?: () => Promise<ActionResult>;
  readonly preview?: () => Promise<ActionResult>;
}

/** Serves the routes to the viewer ada, whose tokens start with `ada`. */
async function serve({
  isSecure = false,
  pages = 0,
  last = '',
  canFollow = true,
  ...more
}: Scene = {}) {
  const forgotten: string[] = [];
  const explained: string[][] = [];
  const done = async (): Promise<ActionResult> => await Promise.resolve(DONE);
  const viewer = {
    user: 'ada',
    feed: {
      pages,
      last,
      subscribe: (response: { end(body: string): void }) => response.end('subscribed'),
    },
    follow: () => canFollow,
    explain: (...of: string[]) => {
      explained.push(of);
      return [{ text: 'why' }];
    },
    explainRun: (_plan: string, name: string) => (name === 'id1' ? { version: 'v1' } : undefined),
    eventsOf: async (plan: string, node: string) => {
      if (node === 'broken') throw new Error('as scripted');
      return await Promise.resolve({ events: [{ reason: `${plan} ${node}` }] });
    },
    act: more.act ?? done,
    preview: more.preview ?? done,
  } as unknown as Viewer;
  const find = async (token: string): Promise<FoundViewer> => {
    if (token === 'broken') throw new Error('as scripted');
    return await Promise.resolve(
      token.startsWith('ada')
        ? { kind: 'known', viewer }
        : { kind: 'refused', why: '<b>"no" & none</b>' },
    );
  };
  const routes = createRoutes({
    viewers: { find, knows: () => false, forget: (token) => void forgotten.push(token) },
    files: { script: 'the script', style: 'the style' },
    clock: new FakeClock(),
    isKnown: () => false,
    arrivalOf: arrivals(more),
    isSecure,
  });
  const server = createServer((asked, answer) => void routes(asked, answer)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const ask = async (line: string, headers: OutgoingHttpHeaders = {}, body?: string) => {
    const [method, path] = line.split(' ');
    const sent = request({ host: '127.0.0.1', port, path, method, headers, agent: false });
    sent.end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return { code: answer.statusCode, headers: answer.headers, body: await text(answer) };
  };
  return { ask, port, forgotten, explained };
}

const ADA = { authorization: 'Bearer ada' };
const OWN_PAGE = { ...ADA, 'x-refit-action': '1' };
const NEW_PLAN = '{"action":"pause","plan":"autopilot//a"}';

test('style and script are sent to everybody, with their types', async () => {
  const { ask } = await serve();
  const style = await ask('GET /ui.css');
  expect(style).toMatchObject({ code: 200, body: 'the style' });
  expect(style.headers['content-type']).toBe('text/css; charset=utf-8');
  const script = await ask('GET /ui.js');
  expect(script).toMatchObject({ code: 200, body: 'the script' });
  expect(script.headers['content-type']).toBe('text/javascript; charset=utf-8');
});

test('over TLS the cookie is limited to TLS and to this host, and no other cookie counts', async () => {
  const { ask } = await serve({ isSecure: true });
  const answer = await ask('POST /sign-in', {}, 'token=ada');
  expect(answer.headers['set-cookie']).toEqual([
    '__Host-refit-token=ada; HttpOnly; SameSite=Strict; Path=/; Secure',
  ]);
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(await ask('GET /', { cookie: '__Host-refit-token=ada' })).toMatchObject({ code: 200 });
  expect(await ask('GET /', { cookie: 'refit-token=ada' })).toMatchObject({ code: 401 });
});

test('signing out forgets the token of the cookie, and removes the cookie', async () => {
  const { ask, forgotten } = await serve();
  const answer = await ask('POST /sign-out', { cookie: 'refit-token=ada' });
  expect(answer).toMatchObject({ code: 303, headers: { location: './' } });
  expect(answer.headers['set-cookie']).toEqual([
    'refit-token=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0',
  ]);
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(forgotten).toEqual(['ada']);
  await ask('POST /sign-out');
  expect(forgotten).toEqual(['ada']);
});

test('spaces around a token in the form do not count, and a form without a token is refused', async () => {
  const { ask } = await serve();
  expect(await ask('POST /sign-in', {}, 'token=+ada%0A')).toMatchObject({ code: 303 });
  for (const body of ['', 'other=ada'])
    expect((await ask('POST /sign-in', {}, body)).body).toContain(
      'This is not a token: it is empty',
    );
});

test('a token of 3800 characters can sign in, and a longer one gets a sentence that says what to do', async () => {
  const { ask } = await serve();
  const token = 'ada'.padEnd(3800, 'x');
  expect(await ask('POST /sign-in', {}, `token=${token}`)).toMatchObject({ code: 303 });
  expect((await ask('POST /sign-in', {}, `token=${token}x`)).body).toContain(
    'The token is longer than the 3800 characters that a cookie can keep.',
  );
});

test('the page for signing in shows a reason as text, and no reason before the first try', async () => {
  const { ask } = await serve();
  const refused = await ask('POST /sign-in', {}, 'token=eve');
  expect(refused.body).toContain(
    '<p role="alert">&lt;b&gt;&quot;no&quot; &amp; none&lt;/b&gt;</p>',
  );
  const first = await ask('GET /');
  expect(first.headers['content-type']).toBe('text/html; charset=utf-8');
  expect(first.body).toContain('<div class="notes"></div>');
  expect(first.body).toContain('<h2>Sign in</h2><form');
});

test('only a visitor from another site gets a link to the dashboard, because the browser kept back the cookie', async () => {
  const { ask } = await serve();
  const link = '<p>If you are signed in already, <a href="./">open the dashboard</a>.</p><form';
  expect((await ask('GET /', { 'sec-fetch-site': 'cross-site' })).body).toContain(link);
  for (const site of ['same-origin', 'same-site', 'none'])
    expect((await ask('GET /', { 'sec-fetch-site': site })).body, site).not.toContain('signed in');
});

test('a request line that is no address is refused, and so is a page that does not exist', async () => {
  const { ask } = await serve();
  expect(await ask('GET http://[')).toMatchObject({ code: 400, body: 'this is not an address\n' });
  expect(await ask('GET /nowhere', ADA)).toMatchObject({ code: 404, body: 'not found\n' });
  expect(await ask('POST /', ADA)).toMatchObject({ code: 404 });
  expect(await ask('GET /api/act', ADA)).toMatchObject({ code: 404 });
});

test('refused requests get a sentence as plain text', async () => {
  const { ask } = await serve();
  const answers = [
    await ask('GET /', { host: 'evil.example' }),
    await ask('PUT /', ADA),
    await ask('POST /api/act', ADA, NEW_PLAN),
    await ask('GET http://[', ADA),
    await ask('GET /nowhere', ADA),
    await ask('GET /api/state'),
  ];
  for (const { headers } of answers)
    expect(headers['content-type']).toBe('text/plain; charset=utf-8');
  expect(answers.map(({ code, body }) => `${code} ${body}`)).toEqual([
    '421 this server does not have that name: use a name of its certificate, or add the name with --ui-host\n',
    '405 this server only answers GET and POST\n',
    '403 only the page of this server can control plans\n',
    '400 this is not an address\n',
    '404 not found\n',
    '401 Sign in first.\n',
  ]);
});

test('the question why is answered for the plan and the node in the address', async () => {
  const { ask, explained } = await serve();
  const answer = await ask('GET /api/why?plan=autopilot%2F%2Fa&node=n1', ADA);
  expect(answer).toMatchObject({ code: 200, body: '[{"text":"why"}]' });
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  await ask('GET /api/why', ADA);
  expect(explained).toEqual([
    ['autopilot//a', 'n1'],
    ['', ''],
  ]);
});

test('the Events about a node are answered only to a viewer, and a failure is told', async () => {
  const { ask } = await serve();
  const path = 'GET /api/node-events?plan=autopilot%2F%2Fa&node=';
  expect(await ask(`${path}n1`, ADA)).toMatchObject({
    code: 200,
    body: '{"events":[{"reason":"autopilot//a n1"}]}',
  });
  expect(await ask(`${path}broken`, ADA)).toMatchObject({
    code: 200,
    body: '{"events":[],"missing":"as scripted"}',
  });
  expect(await ask(`${path}n1`)).toMatchObject({ code: 401 });
});

test('an earlier run is answered only to a viewer, and an unknown run is null', async () => {
  const { ask } = await serve();
  const path = 'GET /api/run?plan=autopilot%2F%2Fa&run=';
  expect(await ask(`${path}id1`, ADA)).toMatchObject({ code: 200, body: '{"version":"v1"}' });
  expect(await ask(`${path}nosuch`, ADA)).toMatchObject({ code: 200, body: 'null' });
  expect(await ask('GET /api/run', ADA)).toMatchObject({ code: 200, body: 'null' });
  expect(await ask(`${path}id1`, {})).toMatchObject({ code: 401 });
});

test('the state is the last one that was published, and before that the viewer is asked to wait', async () => {
  const none = await serve();
  const early = await none.ask('GET /api/state', ADA);
  expect(early).toMatchObject({
    code: 503,
    body: 'the plans have not been read yet: try again in a few seconds\n',
  });
  expect(early.headers['content-type']).toBe('text/plain; charset=utf-8');
  const { ask } = await serve({ last: '{"plans":[]}' });
  const answer = await ask('GET /api/state', ADA);
  expect(answer).toMatchObject({ code: 200, body: '{"plans":[]}' });
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(await ask('GET /api/events', ADA)).toMatchObject({ code: 200, body: 'subscribed' });
});

test.each([
  ['a viewer with eight open pages', { pages: 8 }],
  ['a viewer without a place', { canFollow: false }],
])('%s gets no further page', async (_name, scene) => {
  const { ask } = await serve(scene);
  const answer = await ask('GET /api/events', ADA);
  expect(answer).toMatchObject({
    code: 503,
    body: 'too many pages are open: close one, or try again later\n',
  });
  expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
  // Questions and actions need no place.
  expect(await ask('GET /api/why', ADA)).toMatchObject({ code: 200 });
  expect(await ask('POST /api/act', OWN_PAGE, NEW_PLAN)).toMatchObject({ code: 200 });
});

test('a viewer with seven open pages gets an eighth', async () => {
  const { ask } = await serve({ pages: 7 });
  expect(await ask('GET /api/events', ADA)).toMatchObject({ body: 'subscribed' });
});

test('four actions are carried out at once, and the fifth one waits', async () => {
  const gate = Promise.withResolvers<ActionResult>();
  let started = 0;
  const act = async (): Promise<ActionResult> => {
    started++;
    return await gate.promise;
  };
  const { ask } = await serve({ act });
  const all = Array.from({ length: 5 }, async () => await ask('POST /api/act', OWN_PAGE, NEW_PLAN));
  await expect.poll(() => started).toBe(4);
  // A question and its answer give a fifth action time to start.
  await ask('GET /api/why', ADA);
  expect(started).toBe(4);
  gate.resolve(DONE);
  expect((await Promise.all(all)).map(({ code }) => code)).toEqual([200, 200, 200, 200, 200]);
});

test('a second preview of a user is refused while the first one runs', async () => {
  const gate = Promise.withResolvers<ActionResult>();
  let started = 0;
  const preview = async (): Promise<ActionResult> => {
    started++;
    return await gate.promise;
  };
  const { ask } = await serve({ preview });
  const first = ask('POST /api/preview', OWN_PAGE, 'kind: Plan');
  await expect.poll(() => started).toBe(1);
  const second = await ask('POST /api/preview', OWN_PAGE, 'kind: Plan');
  expect(JSON.parse(second.body)).toMatchObject({ isDone: false });
  gate.resolve(DONE);
  expect(JSON.parse((await first).body)).toEqual(DONE);
  expect(started).toBe(1);
});

test('behind a proxy a refused token gets a sentence, and no page that asks for a token', async () => {
  const proxy = { tokenHeader: 'X-Token', trustedProxies: ['127.0.0.1'] };
  const { ask } = await serve(proxy);
  expect(await ask('GET /', { 'x-token': 'eve' })).toMatchObject({
    code: 401,
    body: '<b>"no" & none</b>\n',
    headers: { 'content-type': 'text/plain; charset=utf-8' },
  });
  expect(await ask('GET /')).toMatchObject({
    code: 401,
    body: 'The proxy sent no token in the header X-Token.\n',
    headers: { 'content-type': 'text/plain; charset=utf-8' },
  });
  expect(await ask('POST /sign-out', { 'x-token': 'ada' })).toMatchObject({ code: 404 });
});

test('a form whose connection breaks does not end the process', async () => {
  const { ask, port } = await serve();
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(
    `POST /sign-in HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-length: 100\r\n\r\ntoken=`,
  );
  await ask('GET /ui.css');
  socket.destroy();
  await ask('GET /ui.css');
  expect(await ask('POST /sign-in', {}, 'token=ada')).toMatchObject({ code: 303 });
});
