/**
 * Tests that a cluster upgrades itself from a channel: first in the scenarios of k0s's own tests, then to several
 * releases in a row while leaders are killed.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { Cluster } from '../../sandbox/cluster/cluster.ts';
import { payloadPath } from '../../sandbox/cluster/served-versions.ts';
import { type Plan, plans } from '../../src/api/autopilot/plan.ts';
import { type UpdateConfig, updateConfigs } from '../../src/api/autopilot/update-config.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { ABORT_ANNOTATION, PAUSE_ANNOTATION } from '../../src/engine/model/controls.ts';
import { events, namespaces, nodes, secrets } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { controlNodes, DOWNLOAD_CHECK_ANNOTATION } from '../../src/signal/names.ts';
import { statusOf } from '../../src/updates/status.ts';
import type { Process } from '../../tools/controlplane/process.ts';
import { type HttpsMirror, startHttpsMirror } from '../agent/https-mirror.ts';
import { pick, seededRandom } from '../faults/random.ts';
import { publishReleases, startUpdateServer } from '../support/builders/update-servers.ts';
import { apply, kubeconfigFor, kubectlAs } from './control-plane.ts';
import {
  AHEAD,
  ALWAYS,
  BETWEEN,
  EVERYTHING,
  FROM,
  headersOf,
  isInstalled,
  leaderAmong,
  NEXT,
  POLICY,
  RELEASES,
  reasonsOn,
  SERVED,
  sizesSent,
  tokenSecret,
  UNWANTED,
  until,
} from './followed-releases.ts';
import { startOwnCluster } from './own-cluster.ts';
import { runRefit } from './refit-process.ts';
import { UpdateServer } from './update-server.ts';

let cluster: Cluster;
let server: UpdateServer;
let mirror: HttpsMirror;

beforeAll(async () => {
  server = await UpdateServer.start();
  mirror = await startHttpsMirror((_, response) => response.end());
  cluster = await startOwnCluster({
    controllers: 3,
    workers: 1,
    version: FROM,
    offers: [...RELEASES, NEXT, SERVED, UNWANTED],
    restartDelayMs: 50,
    environment: {
      K0S_UPDATE_PERIOD: '500ms',
      K0S_UPDATE_CHECK_INTERVAL: '500ms',
      K0S_UPDATE_SERVER: server.url,
      ...mirror.trust,
    },
    agentFlags: ['--soak', '200ms', '--unverified-downloads', 'allow'],
  });
});

afterEach(async () => {
  for (const { metadata } of (await cluster.client.list(updateConfigs)).items)
    await cluster.client.delete(updateConfigs, metadata.name);
  await ifFound(cluster.client.delete(plans, 'autopilot'));
});

afterAll(async () => {
  await cluster.stop();
  await server[Symbol.asyncDispose]();
  await mirror[Symbol.asyncDispose]();
});

async function lead(name: string, ...flags: string[]): Promise<Process> {
  const leader = await cluster.startController(name, ['--insecure-updates', ...flags]);
  onTestFinished(async () => await leader.stop());
  return leader;
}

async function follow(
  name: string,
  spec: Partial<UpdateConfig['spec']>,
  annotations = {},
): Promise<void> {
  const apiVersion = 'autopilot.k0sproject.io/v1beta2';
  const kind = 'UpdateConfig';
  const config = {
    apiVersion,
    kind,
    metadata: { name, annotations },
    spec: { updateServer: server.url, ...spec },
  };
  await cluster.client.create(updateConfigs, config);
}

test('ap-updater-periodic (a): with no UpdateConfig, Refit reports a new version once and sends k0s headers', async () => {
  server.offer('latest', 'v5.6.7', cluster);
  await lead('probing', '--cluster-info', 'etcd,kuberouter');
  const told = async () =>
    (
      await cluster.client.listAll(events, {
        namespace: 'kube-system',
        fieldSelector: 'reason=NewVersionAvailable',
      })
    ).items;
  await until(async () => expect(await told()).toHaveLength(1));
  const asked = server.asked.length;
  await until(
    async () => await Promise.resolve(expect(server.asked.length).toBeGreaterThan(asked + 2)),
  );
  const { metadata } = await cluster.client.get(namespaces, 'kube-system');
  expect(await told()).toMatchObject([
    {
      type: 'Normal',
      message: 'New version available: v5.6.7',
      source: { component: 'k0s' },
      involvedObject: { kind: 'Namespace', name: 'kube-system', uid: metadata.uid },
      count: 1,
    },
  ]);
  // The first request may come before the controller has reported its version, so the test reads the last request.
  const { url, rawHeaders } = server.asked.at(-1) ?? { rawHeaders: [] };
  expect(url).toBe('/latest/index.yaml');
  expect(headersOf(rawHeaders)).toEqual({
    K0s_arch: 'amd64',
    K0s_clusterid: `kube-system:${metadata.uid}`,
    K0s_cniprovider: 'kuberouter',
    K0s_controlplanenodescount: '3',
    K0s_storagetype: 'etcd',
    K0s_version: FROM,
    K0s_workerdata: expect.stringMatching(/^ey/),
  });
});

test('in the lead time before its window a Plan lets nodes download and touches none; withdrawn, it ends and says so', async () => {
  server.offer('stable', NEXT, cluster);
  const starts = cluster.hosts.map((host) => host.starts);
  // The window opens soon. The downloads begin within a hundredth of the time until it opens.
  const startTime = new Date(Date.now() + 10 * 60_000).toISOString().slice(11, 16);
  await lead('early');
  const upgradeStrategy = { type: 'periodic' as const, periodic: { startTime, length: '1h' } };
  await follow('early', { upgradeStrategy }, { 'upgrade.refit.dev/lead-time': '20h' });
  const names = cluster.hosts.map(({ name }) => name);
  await until(async () => {
    const whole = cluster.downloads.requests.filter(
      ({ path, complete }) => path === payloadPath(NEXT) && complete,
    );
    await Promise.resolve(
      expect(whole.map(({ node }) => node).toSorted()).toEqual(names.toSorted()),
    );
  });
  await until(async () =>
    expect((await cluster.client.get(plans, 'autopilot')).status?.state).toBe('Schedulable'),
  );
  expect(cluster.hosts.map((host) => host.starts)).toEqual(starts);
  const { stdout } = await kubectlAs('viewer', [
    'get',
    'nodes',
    '-o',
    'jsonpath={.items[*].spec.unschedulable}',
  ]);
  expect(stdout).toBe('');
  server.offer('stable', NEXT, cluster, { withdrawn: { [NEXT]: 'loses data' } });
  await until(async () => {
    const { status } = await cluster.client.get(plans, 'autopilot');
    const said = `release ${NEXT} was withdrawn: loses data`;
    expect([status?.state, status?.commands[0]?.description]).toEqual([
      'ApplyFailed',
      expect.stringContaining(said),
    ]);
  });
  expect(cluster.hosts.map((host) => host.starts)).toEqual(starts);
});

test('before the first node starts, agents try the download: while one cannot, none starts, until the Plan is fixed', async () => {
  const starts = cluster.hosts.map((host) => host.starts);
  const { spec, ...rest } = cluster.plan({ id: 'tried', version: NEXT, concurrent: 1 });
  const before = cluster.downloads.heads.length;
  await lead('trying');
  const broken = JSON.parse(
    JSON.stringify(spec).replaceAll(payloadPath(NEXT), '/gone'),
  ) as typeof spec;
  await cluster.client.create(plans, { ...rest, spec: broken });
  const why = async (): Promise<string> =>
    (await runRefit('why', '--kubeconfig', await kubeconfigFor('viewer'))).stdout.join('\n');
  const notFound = /worker1 cannot download|gone: .*404 Not Found[^\n]*worker1/;
  await until(async () => expect(await why()).toMatch(notFound));
  await until(async () =>
    expect(await reasonsOn(cluster.client, 'autopilot')).toContain('DownloadImpossible'),
  );
  const asked = (): string[] =>
    [...new Set(cluster.downloads.heads.slice(before).map(([node]) => node))].toSorted();
  // Refit asks at most two nodes of each kind. The other nodes have reported that they have enough space.
  expect(asked()).toEqual(['controller1', 'controller2', 'worker1']);
  const change = async (metadata: object, more: object = {}): Promise<unknown> =>
    await cluster.client.patch(plans, 'autopilot', { metadata, ...more }, { type: 'merge' });
  await change({ annotations: { [PAUSE_ANNOTATION]: 'while it is fixed' } }, { spec });
  await until(async () => expect(await why()).not.toContain('cannot download'));
  expect(await why()).toContain('the plan is paused');
  // This reserve is greater than every disk of these hosts. So each node now reports its free space, and Refit asks
  // again at once when the policy is fixed.
  await cluster.client.create(upgradePolicies, {
    ...POLICY,
    spec: { payloads: { diskReserveMiB: 1_048_576 } },
  });
  onTestFinished(
    async () => await ifFound(cluster.client.delete(upgradePolicies, POLICY.metadata.name)),
  );
  await until(async () =>
    expect(await why()).toMatch(
      / cannot download [^;]* bytes free[^\n]*controller3|controller3 cannot/,
    ),
  );
  expect(asked()).toEqual(cluster.hosts.map(({ name }) => name).toSorted());
  await cluster.client.delete(upgradePolicies, POLICY.metadata.name);
  await until(async () => expect(await why()).not.toContain('cannot download'));
  expect(cluster.hosts.map((host) => host.starts)).toEqual(starts);
  await change({ annotations: { [ABORT_ANNOTATION]: 'tried' } });
  await until(async () => {
    const marked = [
      ...(await cluster.client.listAll(nodes)).items,
      ...(await cluster.client.listAll(controlNodes)).items,
    ];
    const left = marked.filter(
      ({ metadata }) => metadata.annotations?.[DOWNLOAD_CHECK_ANNOTATION] !== undefined,
    );
    expect(left.map(({ metadata }) => metadata.name)).toEqual([]);
  });
});

test('ap-updater: a cron schedule creates a Plan that completes, and Refit asks the update server as k0s does', async () => {
  const [version = ''] = RELEASES;
  server.offerWithoutHash('stable', version, cluster);
  const token = {
    metadata: { name: 'update-server-token' },
    data: { token: Buffer.from('t0k3n\n').toString('base64') },
  };
  await cluster.client.create(secrets, token, { namespace: 'kube-system' });
  onTestFinished(
    async () =>
      await cluster.client.delete(secrets, 'update-server-token', { namespace: 'kube-system' }),
  );
  await lead('scheduled');
  await follow('autopilot', {
    upgradeStrategy: { type: 'cron', cron: '* * * * * *' },
    planSpec: EVERYTHING,
  });
  await isInstalled(cluster, version);
  const { uid } = (await cluster.client.get(namespaces, 'kube-system')).metadata;
  const first = server.asked.find(({ url }) => url.startsWith('/stable?'));
  expect(Object.fromEntries(new URL(first?.url ?? '', server.url).searchParams)).toEqual({
    clusterID: uid,
    currentVersion: FROM,
    lastUpdateStatus: '',
  });
  expect(first?.headers['authorization']).toBe('Bearer t0k3n');
  // A file without a hash is installed, unless a policy or an agent forbids it. An Event reports this.
  await until(async () =>
    expect(await reasonsOn(cluster.client, 'autopilot')).toContain('Unverified'),
  );
  // Without the flag, the controller sends no other data.
  expect(headersOf(first?.rawHeaders ?? [])).toEqual({});
});

const planned = async (): Promise<Plan | undefined> =>
  await ifFound(cluster.client.get(plans, 'autopilot'));

/** The moments at which a test may kill a leader, around the release `version`. */
const MOMENTS: readonly ((version: string) => Promise<void>)[] = [
  async () => await Promise.resolve(),
  async (version) =>
    await until(async () =>
      expect((await planned())?.spec.commands[0]?.k0supdate?.version).toBe(version),
    ),
  async () =>
    await until(async () => expect((await planned())?.status?.state).toMatch(/^Schedulable/)),
  async (version) =>
    await until(async () =>
      expect(await Promise.all(cluster.hosts.map(async (host) => await host.version()))).toContain(
        version,
      ),
    ),
  async (version) => void (await isInstalled(cluster, version)),
];

test('ap-updater-periodic (b), five releases in a row: all are installed in order although leaders are killed', async () => {
  const [first = '', ...rest] = RELEASES;
  expect(rest).toHaveLength(5);
  const leaders = new Map<string, Process>();
  for (const name of ['first', 'second', 'third']) leaders.set(name, await lead(name));
  server.offer('latest', first, cluster);
  await follow('successive', { channel: 'latest', upgradeStrategy: ALWAYS });
  const ids = new Set<string>();
  const random = seededRandom(13);
  for (const [index, version] of rest.filter((each) => each !== BETWEEN).entries()) {
    server.offer('latest', version, cluster);
    if (version === AHEAD) ids.add(await offerBetween());
    await pick(random, MOMENTS)(version);
    let killed: string | undefined;
    await until(async () => {
      killed = await leaderAmong(cluster, leaders.keys());
      expect(killed).toBeDefined();
    });
    const leader = leaders.get(killed ?? '');
    process.kill(leader?.pid ?? 0, 'SIGKILL');
    await leader?.stop();
    leaders.delete(killed ?? '');
    leaders.set(`next-${index}`, await lead(`next-${index}`));
    const { spec } = await isInstalled(cluster, version);
    ids.add(spec.id ?? '');
  }
  expect(ids.size).toBe(rest.length);
  expect(new Set(cluster.hosts.map(({ starts }) => starts))).toEqual(
    new Set([RELEASES.length + 1]),
  );
  const config = await cluster.client.get(updateConfigs, 'successive');
  await until(async () =>
    expect(statusOf(await cluster.client.get(updateConfigs, 'successive'))).toMatchObject({
      reason: 'UpToDate',
      current: RELEASES.at(-1),
      available: RELEASES.at(-1),
    }),
  );
  expect(config.spec.planSpec).toBeUndefined();
  expect(await reasonsOn(cluster.client, 'successive')).toContain('UpdateStarted');
});

/**
 * Offers the release on a channel of its own, after Refit has reported that a minor version is missing. Resolves with
 * the id of the Plan.
 */
async function offerBetween(): Promise<string> {
  await until(async () =>
    expect(await reasonsOn(cluster.client, 'successive')).toContain('SkippedMinor'),
  );
  server.offer('latest/v1.37', BETWEEN, cluster);
  const spec = async (): Promise<Plan['spec'] | undefined> => (await planned())?.spec;
  await until(async () => expect((await spec())?.commands[0]?.k0supdate?.version).toBe(BETWEEN));
  return (await spec())?.id ?? '';
}

test('Refit keeps a Plan of a person, lets a second UpdateConfig wait, and removes the finalizer of k0s', async () => {
  server.offer('stable', 'v1.38.9+k0s.0', cluster);
  const mine = cluster.plan({ id: 'mine', version: RELEASES.at(-1) ?? '', concurrent: 1 });
  const { metadata } = await cluster.client.create(plans, mine);
  await lead('careful');
  await follow('older', { upgradeStrategy: ALWAYS });
  await cluster.client.patch(
    updateConfigs,
    'older',
    { metadata: { finalizers: ['updateconfig.autopilot.k0sproject.io'] } },
    { type: 'merge' },
  );
  const reasonOf = async (name: string) =>
    statusOf(await cluster.client.get(updateConfigs, name))?.reason;
  await until(async () => expect(await reasonOf('older')).toBe('ForeignPlan'));
  await follow('younger', { upgradeStrategy: ALWAYS });
  await until(async () => expect(await reasonOf('younger')).toBe('NotOwner'));
  await cluster.client.delete(updateConfigs, 'older');
  await until(async () =>
    expect(await ifFound(cluster.client.get(updateConfigs, 'older'))).toBeUndefined(),
  );
  await until(async () => expect(await reasonOf('younger')).toBe('ForeignPlan'));
  expect((await cluster.client.get(plans, 'autopilot')).metadata.uid).toBe(metadata.uid);
});

test('`refit updates` shows what is followed, and `check` asks now', async () => {
  const running = (await cluster.hosts[0]?.version()) ?? '';
  await lead('shown');
  const updateServer = server.url.replace('http://', 'http://me:secret@');
  await follow('shown', { updateServer, upgradeStrategy: { type: 'cron', cron: '@yearly' } });
  const connection = ['--kubeconfig', await kubeconfigFor('operator')];
  const missing = await runRefit('updates', 'check', 'none', ...connection);
  expect([missing.code, missing.stderr.join()]).toEqual([
    1,
    expect.stringContaining('there is no UpdateConfig none'),
  ]);
  server.offerWithoutHash('stable', running, cluster);
  // The plan of the previous test may have ended only now.
  await until(async () => {
    const checked = await runRefit('updates', 'check', ...connection);
    expect([checked.code, checked.stderr]).toEqual([0, []]);
    expect(checked.stdout[1]?.split(/ {2,}/).slice(0, 5)).toEqual([
      'shown',
      'stable',
      running,
      running,
      'UpToDate',
    ]);
  });
  await follow('unreadable', { upgradeStrategy: { type: 'cron', cron: 'daily' } });
  const both = await runRefit('updates', 'check', ...connection);
  expect([both.code, both.stderr]).toEqual([1, []]);
  const states = both.stdout.slice(1, 3).map((row) => row.split(/ +/));
  expect(states.map((cells) => [cells[0], cells.some((cell) => cell === 'InvalidConfig')])).toEqual(
    [
      ['shown', false],
      ['unreadable', true],
    ],
  );
  expect((await runRefit('updates', 'check', 'unreadable', ...connection)).code).toBe(1);
  await cluster.client.delete(updateConfigs, 'unreadable');
  const { stdout } = await runRefit(
    'updates',
    '-o',
    'json',
    '--kubeconfig',
    await kubeconfigFor('viewer'),
  );
  expect(JSON.parse(stdout.join('\n'))).toMatchObject([
    { name: 'shown', channel: 'stable', reason: 'UpToDate' },
  ]);
  expect(stdout.join()).not.toContain('secret');
});

test('from `refit serve`, over TLS and with a token: a Secret that may not be read, or is wrong, is told; fixed, it works without a restart', async () => {
  const at = join(cluster.directory, 'served');
  const { cert, key } = mirror.identify();
  const certificate = {
    certificate: join(cluster.directory, 'tls.crt'),
    key: join(cluster.directory, 'tls.key'),
  };
  const tokenFile = join(cluster.directory, 'tokens');
  const url = cluster.downloads.url + payloadPath(SERVED);
  const bytes = Buffer.from(await (await fetch(url)).arrayBuffer());
  await publishReleases(at, [{ version: SERVED, bytes }]);
  for (const [path, text] of [
    [certificate.certificate, cert],
    [certificate.key, key],
    [tokenFile, 'right\n'],
  ] as const)
    await writeFile(path, text);
  await using served = await startUpdateServer(at, { certificate, tokenFile });
  const where = { namespace: 'kube-system' };
  await cluster.client.create(secrets, tokenSecret('wrong'), where);
  onTestFinished(async () => await cluster.client.delete(secrets, 'update-server-token', where));
  onTestFinished(async () => await apply(await readFile('deploy/rbac-updates.yaml', 'utf8')));
  await kubectlAs('admin', ['delete', 'rolebinding', 'refit-updates', '-n', 'kube-system']);
  const leader = await cluster.startController('tls');
  onTestFinished(async () => await leader.stop());
  await follow('tls', { updateServer: served.url, upgradeStrategy: ALWAYS });
  const said = async (): Promise<string> =>
    (await runRefit('updates', '--kubeconfig', await kubeconfigFor('viewer'))).stdout.join('\n');
  const refused = /CheckFailed[^]*tls: the leader has no right to get Secret \S+-server-token/;
  await until(async () => expect(await said()).toMatch(refused));
  await until(async () => expect(await reasonsOn(cluster.client, 'tls')).toContain('CheckFailed'));
  await apply(await readFile('deploy/rbac-updates.yaml', 'utf8'));
  await until(async () => expect(await said()).toMatch(/tls: 127\.0\.0\.1:\d+ answered 401/));
  expect(await planned()).toBeUndefined();
  await cluster.client.patch(secrets, 'update-server-token', tokenSecret('right'), {
    ...where,
    type: 'merge',
  });
  const { spec } = await isInstalled(cluster, SERVED);
  expect(JSON.stringify(spec)).toContain(`"${served.url}/files/`);
  const sent = sizesSent(served.requests);
  expect(sent.length).toBeGreaterThanOrEqual(cluster.hosts.length);
  expect(new Set(sent)).toEqual(new Set([bytes.length]));
});

test('withdrawn in mid-run: the node in progress ends, the next one is not started, and the Plan says so', async () => {
  const [controller, ...others] = cluster.hosts;
  const starts = others.map((host) => host.starts);
  server.offer('stable', UNWANTED, cluster);
  await lead('withdrawing');
  const agent = cluster.agents.get(controller?.name ?? '');
  await follow('withdrawn', { upgradeStrategy: ALWAYS });
  // The agent of this controller stops in the middle of its work, so the controller remains in progress.
  await until(async () => {
    const { metadata } = await cluster.client.get(controlNodes, controller?.name ?? '');
    expect(metadata.annotations?.['k0sproject.io/autopilot-signal-data']).toContain(UNWANTED);
  });
  process.kill(agent?.pid ?? 0, 'SIGSTOP');
  server.offer('stable', UNWANTED, cluster, { withdrawn: { [UNWANTED]: 'loses data' } });
  const said = `release ${UNWANTED} was withdrawn: loses data`;
  await until(async () =>
    expect((await planned())?.metadata.annotations?.[ABORT_ANNOTATION]).toBe(said),
  );
  process.kill(agent?.pid ?? 0, 'SIGCONT');
  await until(async () => {
    const { status } = await cluster.client.get(plans, 'autopilot');
    expect([status?.state, status?.commands[0]?.description]).toEqual([
      'ApplyFailed',
      expect.stringContaining(said),
    ]);
  });
  expect(others.map((host) => host.starts)).toEqual(starts);
  for (const other of others) expect(await other.version()).toBe(SERVED);
  await until(async () =>
    expect(await reasonsOn(cluster.client, 'withdrawn')).toContain('Withdrawn'),
  );
});
