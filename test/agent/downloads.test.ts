/**
 * Tests from which source an agent downloads, with a real process and real servers. The source that the policy requests
 * counts.
 */
import { get } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { startHttpsMirror } from './https-mirror.ts';
import { startLoopbackProxy } from './loopback-proxy.ts';
import { type MemoryCluster, startMemoryCluster } from './memory-cluster.ts';
import { NEW, NEXT, Rig, type RigOptions } from './rig.ts';

let cluster: MemoryCluster;
let nodes = 0;

beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

const startRig = async (options: Partial<RigOptions> = {}): Promise<Rig> =>
  await Rig.start({
    name: `way${++nodes}`,
    admin: cluster.admin,
    kubeconfig: cluster.kubeconfig,
    ...options,
  });

test.each(['k0supdate', 'airgapupdate'])(
  'where https is required, no redirect leads a %s to plain http',
  async (kind) => {
    let plain = '';
    await using mirror = await startHttpsMirror(({ url }, response) => {
      response.writeHead(302, { location: plain + url }).end();
    });
    await using rig = await startRig({ environment: mirror.trust, policy: { requireHttps: true } });
    plain = rig.server.url;
    rig.startAgent();
    await rig.send('/new', NEW, { kind, url: `${mirror.server.config.server}/new` });
    await rig.end();
    expect(rig.statuses).toEqual(['Downloading', 'FailedDownload']);
    expect((await rig.report())?.reason).toBe(
      `a redirect of 127.0.0.1:${mirror.server.port} leads to plain http at ${new URL(plain).host}, but https is required by spec.payloads.requireHttps of the UpgradePolicy, or by --require-https of the agent: set that field to false, or start the agent without that flag`,
    );
    expect(mirror.server.requests).toHaveLength(1);
    expect(rig.server.requests).toEqual([]);
  },
);

test('without such a policy a flag lets the redirect be followed, as by the original', async () => {
  let plain = '';
  await using mirror = await startHttpsMirror(({ url }, response) => {
    response.writeHead(302, { location: plain + url }).end();
  });
  const flags = ['--allow-insecure-redirect'];
  await using rig = await startRig({ environment: mirror.trust, policy: { soakMs: 0 }, flags });
  plain = rig.server.url;
  rig.startAgent();
  await rig.send('/new', NEW, { url: `${mirror.server.config.server}/new` });
  await rig.end();
  expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
});

describe('a proxy that the environment names', () => {
  test('carries a download in a tunnel, which ends with it; the API server is reached without', async () => {
    await using mirror = await startHttpsMirror(
      ({ url }, response) => {
        if (url === '/new')
          response.writeHead(302, { location: 'https://mirror.example:8443/build' }).end();
        else get(`${rig.server.url}/new`, (answer) => answer.pipe(response));
      },
      ['mirror.example'],
    );
    const { port } = mirror.server;
    await using proxy = await startLoopbackProxy({
      names: { 'mirror.example:443': port, 'mirror.example:8443': port },
    });
    const named = { HTTPS_PROXY: `http://${proxy.host}`, HTTP_PROXY: 'http://127.0.0.1:1' };
    await using rig = await startRig({
      environment: { ...mirror.trust, ...named },
      policy: { requireHttps: true },
    });
    rig.startAgent();
    await rig.send('/new', NEW, { url: 'https://mirror.example/new' });
    await rig.end();
    expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
    expect(proxy.asked).toEqual(['CONNECT mirror.example:443', 'CONNECT mirror.example:8443']);
    await rig.until(() => expect(proxy.open()).toBe(0));
  });

  test.each(['127.0.0.1', 'localhost'])('over TLS is one by its own name, %s', async (name) => {
    await using mirror = await startHttpsMirror(
      (_request, response) =>
        response.writeHead(302, { location: 'http://plain.example/new' }).end(),
      ['mirror.example'],
    );
    const names: Record<string, number> = { 'mirror.example:443': mirror.server.port };
    const identity = mirror.identify(name);
    await using proxy = await startLoopbackProxy({ names, identity });
    const address = `https://${name}:${new URL(`https://${proxy.host}`).port}`;
    const environment = { ...mirror.trust, HTTPS_PROXY: address, HTTP_PROXY: address };
    await using rig = await startRig({ environment, flags: ['--allow-insecure-redirect'] });
    names['plain.example:80'] = Number(new URL(rig.server.url).port);
    rig.startAgent();
    await rig.send('/new', NEW, { url: 'https://mirror.example/new' });
    await rig.end();
    expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
    expect(proxy.asked).toEqual(['CONNECT mirror.example:443', 'GET http://plain.example/new']);
  });

  test('carries what goes over plain http, and is passed by for what NO_PROXY names', async () => {
    const names: Record<string, number> = {};
    await using proxy = await startLoopbackProxy({ names });
    const environment = { http_proxy: proxy.host, no_proxy: '.internal,10.0.0.0/8' };
    await using rig = await startRig({ environment });
    names['mirror.example:80'] = Number(new URL(rig.server.url).port);
    rig.startAgent();
    await rig.send('/new', NEW, { url: 'http://mirror.example/new' });
    await rig.end();
    expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
    expect(proxy.asked).toEqual(['GET http://mirror.example/new']);
    await rig.send('/next', NEXT);
    await rig.end();
    expect(proxy.asked).toHaveLength(1);
  });
});

test.each([
  ['shorter than the flag', '6h', 200, ['Downloading', 'FailedDownload']],
  ['longer than the flag', '1ms', 60_000, [...SIGNAL_STATUSES]],
])(
  "a policy's deadline of downloads, %s, counts",
  async (_name, flag, downloadTimeoutMs, statuses) => {
    const faults = [{ paceMs: 10 }];
    await using rig = await startRig({
      bytes: 64_000,
      faults,
      flags: ['--download-timeout', flag],
      policy: { downloadTimeoutMs },
    });
    rig.startAgent();
    await rig.send('/new', NEW);
    await rig.end();
    expect(rig.statuses).toEqual(statuses);
    const reason = (await rig.report())?.reason;
    expect(reason).toBe(statuses.includes('Completed') ? undefined : 'the download took too long');
  },
);
