/** Proves that each workload cluster is served separately, from the Secret that Cluster API keeps for it. */

import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { stringify } from 'yaml';
import { sendJson, startStubServer } from '../../../../test/faults/stub-server.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import { T0 } from '../../../../test/support/clock/times.ts';
import type { Machine } from '../../../api/capi/machine.ts';
import type { ClusterConfig } from '../../../kube/config/cluster-config.ts';
import { credentialsOf } from '../../../kube/config/credentials.ts';
import { nodes, type Secret } from '../../../kube/resources.ts';
import { createClient } from '../../../kube/transport/http-client.ts';
import { createStore, type Handler } from '../../../kube/watch/store.ts';
import { messageOf } from '../../../util/errors.ts';
import { silentLogger } from '../../../util/log.ts';
import { aborted } from '../../../util/waits.ts';
import { CLIENT_LIMITS, KUBECONFIG_SECRETS, workloadClusters } from './workload-clusters.ts';
import { MOST_CLUSTERS, type ServedCluster } from './workload-member.ts';

interface KubeconfigText {
  readonly server?: string;
  readonly cluster?: object;
  readonly user?: object;
}

function kubeconfig({
  server = 'https://prod:6443',
  cluster = {},
  user = { token: 'one' },
}: KubeconfigText): string {
  return stringify({
    'current-context': 'admin',
    contexts: [{ name: 'admin', context: { cluster: 'c', user: 'u' } }],
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user }],
  });
}

let version = 0;

function secretOf(name: string, text: string, more: Partial<Secret> = {}): Secret {
  const [namespace = '', cluster = ''] = name.split('/');
  const labels = { 'cluster.x-k8s.io/cluster-name': cluster };
  return {
    metadata: {
      name: `${cluster}-kubeconfig`,
      namespace,
      uid: name,
      resourceVersion: String(++version),
      labels,
    },
    type: 'Opaque',
    data: { value: Buffer.from(text).toString('base64') },
    ...more,
  };
}

const machineIn = (name: string): Machine => {
  const [namespace = '', clusterName = ''] = name.split('/');
  return { metadata: { name: 'm1', namespace }, spec: { clusterName } };
};

class Scene {
  readonly clock = new FakeClock(T0);
  readonly secrets = createStore<Secret>(silentLogger);
  /** The events in order, such as `start default/prod https://prod:6443 one`, and `end` with the same text. */
  readonly events: string[] = [];
  /** The configuration with which each cluster was started. */
  readonly configs: ClusterConfig[] = [];
  /** Why a cluster does not answer. An Error ends its service; a text is a temporary problem. */
  readonly faults = new Map<string, Error | string>();
  /** The promise for which the service of a cluster waits before it ends. */
  readonly ends = new Map<string, Promise<void>>();
  readonly #clusters: ReturnType<typeof workloadClusters>;

  constructor() {
    const secrets = { addHandler: (handler: Handler<Secret>) => this.secrets.addHandler(handler) };
    const tools = { clock: this.clock, log: silentLogger };
    this.#clusters = workloadClusters(secrets, (name, config) => this.#serve(name, config), tools);
    const stop = new AbortController();
    const running = this.#clusters.run(stop.signal);
    onTestFinished(async () => {
      stop.abort();
      await running;
      const [starts, ends] = ['start', 'end'].map((word) =>
        this.events.filter((event) => event.startsWith(word)),
      );
      expect(ends).toHaveLength(starts?.length ?? 0);
    });
  }

  #serve(name: string, config: ClusterConfig): ServedCluster {
    const { server, user } = config;
    this.configs.push(config);
    const title = `${name} ${server} ${user.token}`;
    this.events.push(`start ${title}`);
    const run = async (abort: AbortSignal): Promise<void> => {
      using ended = new DisposableStack();
      ended.defer(() => void this.events.push(`end ${title}`));
      const fault = this.faults.get(name);
      if (fault instanceof Error) throw fault;
      await aborted(abort);
      await this.ends.get(name);
    };
    const problem = (): string | undefined => this.faults.get(name)?.toString();
    return { title, problem, run } as unknown as ServedCluster;
  }

  put(name: string, text: string, more: Partial<Secret> = {}): void {
    this.secrets.apply('MODIFIED', KUBECONFIG_SECRETS.transform(secretOf(name, text, more)));
  }

  remove(name: string): void {
    this.secrets.apply('DELETED', KUBECONFIG_SECRETS.transform(secretOf(name, '')));
  }

  /** Returns the title of the client for a Machine, or the reason why there is no client. */
  of(name: string): string {
    try {
      return (this.#clusters.of(machineIn(name)) as unknown as { title: string }).title;
    } catch (error) {
      return (error as Error).message;
    }
  }

  async expectOf(name: string, text: string): Promise<void> {
    await vi.waitFor(() => expect(this.of(name)).toBe(text), 60_000);
  }
}

describe('a cluster', () => {
  test('is served while its Secret is there', async () => {
    const scene = new Scene();
    const missing =
      'cannot connect to cluster default/prod: no Secret default/prod-kubeconfig was found';
    expect(scene.of('default/prod')).toBe(missing);
    scene.put('default/prod', kubeconfig({}));
    await scene.expectOf('default/prod', 'default/prod https://prod:6443 one');
    scene.put('default/prod', kubeconfig({}));
    scene.remove('default/prod');
    await scene.expectOf('default/prod', missing);
    expect(scene.events).toEqual([
      'start default/prod https://prod:6443 one',
      'end default/prod https://prod:6443 one',
    ]);
  });

  test('gets another kubeconfig: the new one starts when the old one has ended', async () => {
    const scene = new Scene();
    const ended = Promise.withResolvers<void>();
    scene.ends.set('default/prod', ended.promise);
    scene.put('default/prod', kubeconfig({}));
    await scene.expectOf('default/prod', 'default/prod https://prod:6443 one');
    scene.put('default/prod', kubeconfig({ server: 'https://two:6443' }));
    scene.put('default/prod', kubeconfig({ server: 'https://three:6443' }));
    await scene.expectOf(
      'default/prod',
      'cannot connect to cluster default/prod: its Secret has just changed',
    );
    expect(scene.events).toHaveLength(1);
    ended.resolve();
    await scene.expectOf('default/prod', 'default/prod https://three:6443 one');
    expect(scene.events).toEqual([
      'start default/prod https://prod:6443 one',
      'end default/prod https://prod:6443 one',
      'start default/prod https://three:6443 one',
    ]);
  });

  test('gets other credentials for the same server: it goes on, and its next request has them', async () => {
    const scene = new Scene();
    scene.put('default/prod', kubeconfig({}));
    await scene.expectOf('default/prod', 'default/prod https://prod:6443 one');
    const [config] = scene.configs;
    if (!config) throw new Error('nothing was started');
    const credentials = credentialsOf(config, scene.clock);
    const sent = async (): Promise<unknown> => (await credentials.current()).headers.authorization;
    expect(await sent()).toBe('Bearer one');
    for (const token of ['two', 'three', 'two']) {
      scene.put('default/prod', kubeconfig({ user: { token } }));
      await vi.waitFor(async () => expect(await sent()).toBe(`Bearer ${token}`), 60_000);
    }
    expect(scene.events).toHaveLength(1);
    scene.put('default/prod', kubeconfig({ server: 'https://other:6443' }));
    await scene.expectOf('default/prod', 'default/prod https://other:6443 one');
  });

  test('gets a bad kubeconfig between two with the same server: the last one counts', async () => {
    const scene = new Scene();
    scene.put('default/prod', kubeconfig({}));
    await scene.expectOf('default/prod', 'default/prod https://prod:6443 one');
    scene.put('default/prod', '{');
    scene.put('default/prod', kubeconfig({ user: { token: 'two' } }));
    await scene.expectOf('default/prod', 'default/prod https://prod:6443 two');
  });

  test('of the same name in another namespace is another one', async () => {
    const scene = new Scene();
    scene.put('blue/prod', kubeconfig({ server: 'https://blue:6443' }));
    scene.put('green/prod', kubeconfig({ server: 'https://green:6443' }));
    await scene.expectOf('blue/prod', 'blue/prod https://blue:6443 one');
    await scene.expectOf('green/prod', 'green/prod https://green:6443 one');
    scene.secrets.replace([], '1');
    expect(scene.of('prod/blue')).toContain('cannot connect to cluster prod/blue: no Secret');
  });

  test('that fails is tried again, and says why; others go on', async () => {
    const scene = new Scene();
    scene.faults.set('default/away', new Error('a part of it failed'));
    scene.faults.set('default/slow', 'cannot reach https://slow');
    for (const name of ['away', 'slow', 'prod']) scene.put(`default/${name}`, kubeconfig({}));
    await scene.expectOf('default/prod', 'default/prod https://prod:6443 one');
    await scene.expectOf(
      'default/away',
      'cannot connect to cluster default/away: a part of it failed',
    );
    await scene.expectOf(
      'default/slow',
      'cannot connect to cluster default/slow: cannot reach https://slow',
    );
    scene.faults.clear();
    expect(scene.of('default/slow')).toBe('default/slow https://prod:6443 one');
    await scene.clock.advance(5_000);
    await scene.expectOf('default/away', 'default/away https://prod:6443 one');
  });

  test('is not served beyond the limit, until another one ends; the others go on, also with a new kubeconfig', async () => {
    const scene = new Scene();
    for (let index = 0; index < 10; index++) scene.put(`default/bad${index}`, '{');
    for (let index = 0; index < MOST_CLUSTERS; index++)
      scene.put(`default/c${index}`, kubeconfig({}));
    await vi.waitFor(() => expect(scene.events).toHaveLength(MOST_CLUSTERS), 60_000);
    scene.put('default/more', kubeconfig({}));
    const full = `cannot connect to cluster default/more: ${MOST_CLUSTERS} other clusters are served, which is the limit`;
    await scene.expectOf('default/more', full);
    scene.put('default/c1', kubeconfig({ server: 'https://two:6443' }));
    await scene.expectOf('default/c1', 'default/c1 https://two:6443 one');
    await scene.clock.advance(60_000);
    expect(scene.of('default/more')).toBe(full);
    scene.remove('default/c0');
    await scene.expectOf(
      'default/c0',
      'cannot connect to cluster default/c0: no Secret default/c0-kubeconfig was found',
    );
    await scene.clock.advance(60_000);
    await scene.expectOf('default/more', 'default/more https://prod:6443 one');
  });

  test('that gets a kubeconfig without use gives its place to another one', async () => {
    const scene = new Scene();
    for (let index = 0; index < MOST_CLUSTERS; index++)
      scene.put(`default/c${index}`, kubeconfig({}));
    await vi.waitFor(() => expect(scene.events).toHaveLength(MOST_CLUSTERS), 60_000);
    scene.put('default/c0', '{');
    await vi.waitFor(
      () => expect(scene.of('default/c0')).toContain('is neither YAML nor JSON'),
      60_000,
    );
    scene.put('default/more', kubeconfig({}));
    await scene.expectOf('default/more', 'default/more https://prod:6443 one');
  });
});

test('a cluster whose answer would take much memory is not read to the end', async () => {
  const list = { kind: 'NodeList', metadata: {}, items: [], more: '#'.repeat(16 * 1024 * 1024) };
  await using server = await startStubServer((_request, response) => sendJson(response, 200, list));
  using client = createClient(server.config, CLIENT_LIMITS);
  const problem = await client.listAll(nodes).catch(messageOf);
  expect(problem).toContain('more than 16777216 bytes');
});

const pem = Buffer.from('-----BEGIN CERTIFICATE-----').toString('base64');
const FOREIGN: [string, KubeconfigText, string][] = [
  [
    'a command',
    { user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh' } } },
    'exec of user "u"',
  ],
  ['a file with a token', { user: { tokenFile: '/etc/shadow' } }, 'tokenFile of user "u"'],
  [
    'a file next to the token',
    { user: { token: 'x', tokenFile: '/etc/shadow' } },
    'tokenFile of user "u"',
  ],
  [
    'a certificate file',
    { user: { 'client-certificate': '/a', 'client-key-data': pem } },
    'client-certificate of user "u"',
  ],
  [
    'a key file',
    { user: { 'client-certificate-data': pem, 'client-key': '/a' } },
    'client-key of user "u"',
  ],
  [
    'a file of authorities',
    { cluster: { 'certificate-authority': '/a' } },
    'certificate-authority of cluster "c"',
  ],
  [
    'a server without proof',
    { cluster: { 'insecure-skip-tls-verify': true } },
    'insecure-skip-tls-verify of cluster "c"',
  ],
  ['a server without TLS', { server: 'http://prod:6443' }, 'server of cluster "c"'],
];

describe('a kubeconfig', () => {
  test.each(FOREIGN)('with %s is refused', async (_what, text, field) => {
    const scene = new Scene();
    scene.put('default/bad', kubeconfig(text));
    scene.put('default/prod', kubeconfig({}));
    await vi.waitFor(
      () =>
        expect(scene.of('default/bad')).toContain(
          `cannot connect to cluster default/bad: Secret default/bad-kubeconfig: ${field} `,
        ),
      60_000,
    );
    await scene.expectOf('default/prod', 'default/prod https://prod:6443 one');
    expect(scene.events).toHaveLength(1);
    // Somebody corrects the kubeconfig.
    scene.put('default/bad', kubeconfig({}));
    await scene.expectOf('default/bad', 'default/bad https://prod:6443 one');
  });

  test.each([
    ['nothing', ''],
    ['no YAML', '{'],
    ['no server', 'kind: Config'],
  ])('with %s is refused', async (_what, text) => {
    const scene = new Scene();
    scene.put('default/bad', text);
    await vi.waitFor(
      () => expect(scene.of('default/bad')).toContain('default/bad: Secret default/bad-kubeconfig'),
      60_000,
    );
  });

  test('that is much larger than any other is refused before it is parsed', async () => {
    const scene = new Scene();
    scene.put('default/bad', '#'.repeat(64 * 1024 + 1));
    const large = 'Secret default/bad-kubeconfig is larger than 64 KiB';
    await scene.expectOf('default/bad', `cannot connect to cluster default/bad: ${large}`);
    const text = kubeconfig({});
    scene.put('default/bad', text + '#'.repeat(64 * 1024 - text.length));
    await scene.expectOf('default/bad', 'default/bad https://prod:6443 one');
  });

  test('that is refused is not read again before it changes', async () => {
    const scene = new Scene();
    scene.put('default/bad', '{');
    await vi.waitFor(
      () => expect(scene.of('default/bad')).toContain('Secret default/bad-kubeconfig is neither'),
      60_000,
    );
    expect(scene.clock.pending).toBe(0);
  });
});

describe('other Secrets', () => {
  const token = kubeconfig({ user: { token: 'other' } });

  test.each<[string, Partial<Secret>]>([
    [
      'of another cluster',
      {
        metadata: {
          name: 'prod-kubeconfig',
          namespace: 'default',
          labels: { 'cluster.x-k8s.io/cluster-name': 'x' },
        },
      },
    ],
    ['without a label', { metadata: { name: 'prod-kubeconfig', namespace: 'default' } }],
    [
      'of the same cluster',
      {
        metadata: {
          name: 'prod-ca',
          namespace: 'default',
          labels: { 'cluster.x-k8s.io/cluster-name': 'prod' },
        },
      },
    ],
  ])('%s: nothing is kept of them, and no cluster is served', async (_what, more) => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': 'secret' };
    const secret = secretOf('default/prod', token, more);
    const kept = KUBECONFIG_SECRETS.transform({
      ...secret,
      metadata: { ...secret.metadata, annotations },
    });
    expect(JSON.stringify(kept)).not.toMatch(/secret|value/);
    const scene = new Scene();
    scene.put('default/other', kubeconfig({}));
    scene.put('default/prod', token, more);
    await scene.expectOf('default/other', 'default/other https://prod:6443 one');
    expect(scene.events).toHaveLength(1);
  });
});
