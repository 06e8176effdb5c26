/**
 * Tests what the author of a policy learns from a server that only the controller can reach, such as the metadata
 * service of a cloud or a port of the control plane. Such an author chooses the address of each request for checks,
 * silences, receivers and hooks. docs/internals/threat-model.md says what the author can learn.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { UpgradePolicySpec } from '../../src/api/refit/upgrade-policy.ts';
import { readPolicy } from '../../src/engine/policy/read-policy.ts';
import { askAlerts } from '../../src/health/ask-alerts.ts';
import { askHttp } from '../../src/health/ask-http.ts';
import { askMetrics } from '../../src/health/ask-metrics.ts';
import type { HookRun } from '../../src/hooks/rules.ts';
import { askWebhook } from '../../src/hooks/webhook.ts';
import { secrets } from '../../src/kube/resources.ts';
import { deliverer } from '../../src/notify/deliver.ts';
import { alertmanager } from '../../src/silences/alertmanager.ts';
import { wantedFor } from '../../src/silences/silence.ts';
import { messageOf } from '../../src/util/errors.ts';
import { type Script, startStubServer } from '../faults/stub-server.ts';
import { MemoryApi } from '../support/builders/memory-api.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import { FakeClock } from '../support/clock/fake-clock.ts';

const NEVER = new AbortController().signal;
/** The text that nobody may see. */
const MARKER = 'hush-this-is-a-credential';
const LATE_MS = 300;

const api = new MemoryApi();
api.put(secrets, { metadata: { name: 's' }, data: { key: btoa('a key that nobody guesses') } });
const tools = {
  client: api.client,
  namespace: 'refit-system',
  environment: {},
  clock: new FakeClock(),
};
const RUN = {
  id: 'r',
  hook: { name: 'h', when: 'beforePlan' },
  variables: {},
} as unknown as HookRun;
const NOTE = { id: 'n', event: 'Done', plan: 'a//b', message: 'done', at: '2026-11-20T10:00:00Z' };
const MESSAGE = { id: 'm', policy: 'p', notes: [NOTE] } as const;

type Send = (url: string) => Promise<unknown>;

/** Each way in which a policy lets the controller send a request and shows what came of it. */
const SENDERS: Readonly<Record<string, Send>> = {
  'a check of a server': async (url) =>
    await askHttp({ name: 'c', kind: 'http', url } as never, tools, NEVER, LATE_MS),
  'a check of metrics': async (url) =>
    await askMetrics({ name: 'c', url, query: 'up', max: 1 } as never, tools, late()),
  'a check of alerts of Prometheus': async (url) =>
    await askAlerts({ url, source: 'prometheus', labels: {} } as never, tools, late()),
  'a check of alerts of Alertmanager': async (url) =>
    await askAlerts({ url, source: 'alertmanager', labels: {} } as never, tools, late()),
  'a silence': async (url) => {
    const matchers = [{ name: 'node', value: '{node}', isRegex: false }];
    const rule = { name: 's', url, secretName: undefined, matchers, lastsMs: 300_000 };
    return await alertmanager(tools).keep(
      wantedFor(rule, { plan: 'a//b', uid: 'uid' }, 'w1'),
      late(),
    );
  },
  'a receiver': async (url) =>
    await deliverer(tools)(
      { name: 'r', type: 'Slack', events: ['Done'], address: { url } },
      MESSAGE as never,
      late(),
    ),
  'a hook': async (url) => await askWebhook(tools, RUN, { url, secretName: 's' } as never, late()),
};

const late = (): AbortSignal => AbortSignal.timeout(LATE_MS);

/** Returns everything that Refit says about the request. */
async function told(send: Send, url: string): Promise<string> {
  const said = await send(url).catch((error: unknown) => messageOf(error));
  return JSON.stringify(said ?? '');
}

async function serve(script: Script) {
  const server = await startStubServer(script);
  onTestFinished(async () => await server[Symbol.asyncDispose]());
  return { server, url: server.config.server };
}

/** A hook shows the answer of its server, so that the server can say why it refuses. */
const SILENT = Object.entries(SENDERS).filter(([name]) => name !== 'a hook');

test.each(SILENT)('%s shows nothing of the body of a server of another kind', async (_n, send) => {
  for (const [status, body] of [
    [200, `{"AccessKeyId":"a","Token":"${MARKER}"}`],
    [200, `{"status":"success","data":{"token":"${MARKER}"}}`],
    [200, `[{"token":"${MARKER}"}]`],
    [200, `"${MARKER}"`],
    [200, MARKER],
    [404, `<html>${MARKER}</html>`],
    [403, `{"message":"${MARKER}"}`],
    [500, MARKER],
  ] as const) {
    const { url } = await serve((_request, response) => response.writeHead(status).end(body));
    expect(await told(send, url), `${status} ${body}`).not.toContain(MARKER);
  }
});

test.each(Object.entries(SENDERS))('%s follows no redirect to another server', async (_n, send) => {
  const inner = await serve((_request, response) => response.end(MARKER));
  for (const status of [301, 302, 303, 307, 308]) {
    const { url } = await serve((_request, response) =>
      response.writeHead(status, { location: `${inner.url}/?${MARKER}` }).end(),
    );
    const said = await told(send, url);
    expect(said).toContain(String(status));
    expect(said).not.toContain(MARKER);
  }
  expect(inner.server.requests).toEqual([]);
});

/** The headers that a request may have. The metadata services of clouds demand a header that is not in this list. */
const HEADERS = [
  'accept',
  'connection',
  'content-length',
  'content-type',
  'host',
  'idempotency-key',
  'refit-signature',
  'refit-timestamp',
  'transfer-encoding',
  'user-agent',
];

test.each(Object.entries(SENDERS))(
  '%s sends only known headers, so that the metadata service of a cloud refuses it',
  async (_name, send) => {
    const { server, url } = await serve((_request, response) => response.end('[]'));
    await told(send, url);
    const [request] = server.requests;
    expect(Object.keys(request?.headers ?? {}).filter((name) => !HEADERS.includes(name))).toEqual(
      [],
    );
    expect(['GET', 'POST']).toContain(request?.method);
  },
);

/** Starts a server that is not HTTP: it sends a banner at once, or nothing at all. */
async function listen(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    onConnection(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each(Object.entries(SENDERS))(
  '%s shows nothing of the banner of a port that is not HTTP',
  async (_name, send) => {
    const url = await listen((socket) => void socket.write(`220 ${MARKER}\r\n`));
    expect(await told(send, url)).not.toContain(MARKER);
  },
);

test.each(Object.entries(SENDERS))(
  '%s tells an open, a closed and a silent port apart, as the threat model says',
  async (_name, send) => {
    const { url: open } = await serve((_request, response) => response.writeHead(418).end());
    expect(await told(send, open)).toContain('418');
    const silent = await told(send, await listen(() => undefined));
    expect(silent).toMatch(/did not answer within|timeout|cannot be reached/);
    const gone = await startStubServer((_request, response) => response.end());
    const closed = gone.config.server;
    await gone[Symbol.asyncDispose]();
    expect(await told(send, closed)).toContain('ECONNREFUSED');
  },
);

const specs = (url: string): Readonly<Record<string, UpgradePolicySpec>> => ({
  'a check of a server': { health: { http: [{ name: 'c', url }] } },
  'a check of metrics': { health: { metrics: [{ name: 'c', url, query: 'up', max: '1' }] } },
  'a silence': {
    silences: [{ name: 's', url, matchers: [{ name: 'node', value: '{node}' }] }],
  },
  'a receiver': {
    notify: [
      {
        name: 'r',
        type: 'Matrix',
        events: ['Done'],
        url,
        room: '!r:example.org',
        secretRef: { name: 's', key: 'token' },
      },
    ],
  },
  'a hook': {
    hooks: [{ name: 'h', when: 'BeforePlan', timeout: '1m', webhook: { url, secretName: 's' } }],
  },
});

test.each(
  ['file:///etc/shadow', 'gopher://127.0.0.1/', 'unix:/run/k0s/status.sock'].flatMap((url) =>
    Object.entries(specs(url)).map(([name, spec]) => [name, url, spec] as const),
  ),
)('%s cannot name %s: the policy is refused', (_name, _url, spec) => {
  const { problems } = readPolicy(buildUpgradePolicy('p', spec));
  expect(problems.map(({ message }) => message).join()).toMatch(/http/);
});

test.each(Object.entries(specs('https://127.0.0.1/')))(
  '%s can name a server of this host, because a check of a local server is usual',
  (_name, spec) => {
    expect(readPolicy(buildUpgradePolicy('p', spec)).problems).toEqual([]);
  },
);
