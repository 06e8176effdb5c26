/** Proves that the report of a host is written even if an API server that has just started refuses it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type MemoryCluster, startMemoryCluster } from '../../../../test/agent/memory-cluster.ts';
import { FakeClock } from '../../../../test/support/clock/fake-clock.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { nodes, type Pod, pods } from '../../../kube/resources.ts';
import { StatusError } from '../../../kube/status-error.ts';
import { silentLogger } from '../../../util/log.ts';
import { hostUpgrades, type ProcedureParts } from './host-procedure.ts';
import { type HostUpgrade, type Report, reportOn } from './kubeadm-signal.ts';
import { parseManifest } from './manifest.ts';
import { expectedOutages } from './outages.ts';

let cluster: MemoryCluster;
let name = '';
let count = 0;
beforeAll(async () => {
  cluster = await startMemoryCluster();
});
afterAll(async () => await cluster.stop());

const clock = new FakeClock();
const warnings: string[] = [];
const VERSION = 'v1.36.3';
const COMPONENTS = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'];
/** The output of every script. */
const FOUND = [
  `kubeadm=${VERSION}`,
  ...COMPONENTS.map((each) => `image.${each}=r/${each}:${VERSION}`),
].join('\n');
const reported = async (): Promise<Report | undefined> =>
  reportOn(await cluster.admin.get(nodes, name));

const namespace = 'kube-system';
function staticPod(component: string): Pod {
  return {
    metadata: {
      name: `${component}-${name}`,
      namespace,
      labels: { component, tier: 'control-plane' },
    },
    spec: { nodeName: name, containers: [{ name: component, image: `r/${component}:${VERSION}` }] },
  };
}

async function setReady(component: string, status: 'True' | 'False'): Promise<void> {
  const patch = { status: { conditions: [{ type: 'Ready', status }] } };
  const options = { namespace, type: 'merge', subresource: 'status' } as const;
  await cluster.admin.patch(pods, `${component}-${name}`, patch, options);
}

/** Runs a script on a host. Returns its output, or undefined for the usual output. */
type Shell = (script: string, host: string) => Promise<string | void>;

/**
 * Sets up a host. `refuses` is called at each write and returns true if the API server refuses it. Scripts succeed at
 * once, unless `shell` delays them.
 */
async function hostWith(
  refuses: (report: string) => boolean,
  shell: Shell = async () => await Promise.resolve(),
  others: readonly string[] = [],
  parts: HostUpgrade['parts'] = ['kubeadm'],
  more = '',
  own = '',
) {
  name = `host-${++count}`;
  warnings.length = 0;
  await cluster.admin.create(nodes, { metadata: { name } });
  for (const component of COMPONENTS) {
    await cluster.admin.create(pods, staticPod(component), { namespace });
    await setReady(component, 'True');
  }
  const patch: KubeClient['patch'] = async (resource, of, body, options) => {
    if (refuses(JSON.stringify(body)))
      throw new StatusError({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'not yet' });
    return await cluster.admin.patch(resource, of, body, options);
  };
  const hosts = [name, ...others].map(
    (each, at) => `{name: ${each}, role: controlPlane, address: 127.0.0.${at + 1}${own}}`,
  );
  const binaries = '{kubeadm: {path: /a}, kubelet: {path: /b}}';
  const upgrades = hostUpgrades({
    manifest: parseManifest(
      `{version: v1.36.3, hosts: [${hosts.join()}], binaries: ${binaries}${more}}`,
      'm.yaml',
    ),
    shells: {
      run: async (host, script) => ({
        code: 0,
        stdout: (await shell(script, host.name)) ?? FOUND,
        stderr: '',
      }),
    },
    writer: { ...boundTo(cluster.admin), patch },
    drains: { onChange: () => () => undefined } as unknown as ProcedureParts['drains'],
    outages: expectedOutages(clock),
    approveServing: async () => await Promise.resolve(),
    clock,
    log: { ...silentLogger, warn: (message) => warnings.push(message) },
    abort: new AbortController().signal,
  });
  const target = {
    key: `leader/${name}`,
    name,
    state: 'intended',
    since: '2026-11-21T08:00:00Z',
  } as const;
  const work: HostUpgrade = { rollout: 'r', target, version: 'v1.36.3', verb: 'apply', parts };
  await upgrades.begin(work);
  return { upgrades, target, work };
}

function boundTo(client: KubeClient): KubeClient {
  return { ...client, get: client.get.bind(client), listAll: client.listAll.bind(client) };
}

async function untilOver(): Promise<void> {
  await expect
    .poll(
      async () => {
        await clock.advance(10_000);
        return (await reported())?.state ?? 'none';
      },
      { interval: 5, timeout: 60_000 },
    )
    .toMatch(/finished|failed/);
}

test('a report that is refused for a moment is written again', async () => {
  let refusals = 2;
  await hostWith((report) => report.includes('Verify') && refusals-- > 0);
  await untilOver();
  expect(await reported()).toMatchObject({ state: 'finished', step: 'Verify' });
});

test('one that is refused for a minute fails the host, and that is written as soon as it may be', async () => {
  const began = clock.monotonic();
  await hostWith(
    (report) =>
      report.includes('Verify') &&
      (!report.includes('failed') || clock.monotonic() - began < 180_000),
  );
  await untilOver();
  expect(await reported()).toMatchObject({ state: 'failed', step: 'Verify', message: 'not yet' });
});

test('a host that has ended is begun only by another attempt, though its Node may have been read before', async () => {
  let scripts = 0;
  const { upgrades, target, work } = await hostWith(
    () => false,
    async () => await Promise.resolve(void scripts++),
  );
  await untilOver();
  const once = scripts;
  await upgrades.begin(work);
  expect([upgrades.stateOf(target), (await reported())?.state, scripts]).toEqual([
    'ended',
    'finished',
    once,
  ]);
  const again = { ...target, since: '2026-11-21T09:00:00Z' };
  expect(upgrades.stateOf(again)).toBeUndefined();
  await upgrades.begin({ ...work, target: again });
  await expect.poll(async () => (await reported())?.attempt).toBe(again.since);
  await untilOver();
  expect(scripts).toBe(2 * once);
});

test('stopped work is not taken for gone before its Node says so', async () => {
  let stops = 0;
  const connection = Promise.withResolvers<void>();
  const { upgrades, target } = await hostWith(
    (report) => report.includes('aborted') && stops++ < 2,
    async () => await connection.promise,
  );
  expect(upgrades.stateOf(target)).toBe('open');
  const stopped = upgrades.stop(target, 'aborted');
  await expect.poll(() => stops).toBe(1);
  expect([upgrades.stateOf(target), (await reported())?.state]).toEqual(['ended', 'working']);
  connection.reject(new Error('aborted'));
  await untilOver();
  await stopped;
  expect(await reported()).toMatchObject({ state: 'failed', message: 'aborted' });
});

test('a stop whose reason cannot be written leaves the work to be begun again', async () => {
  const connection = Promise.withResolvers<void>();
  const { upgrades, target } = await hostWith(
    () => false,
    async () => await connection.promise,
  );
  await expect.poll(async () => (await reported())?.step).toBe('Stage');
  await cluster.admin.delete(nodes, name);
  connection.reject(new Error('aborted'));
  await expect(upgrades.stop(target, 'aborted')).rejects.toThrow('not found');
  await expect.poll(() => upgrades.stateOf(target)).toBeUndefined();
});

test('work that has touched the host is not stopped, though its Node does not say so yet', async () => {
  const running = Promise.withResolvers<void>();
  let scripts = 0;
  const { upgrades, target } = await hostWith(
    () => false,
    async () => await (++scripts === 3 ? running.promise : Promise.resolve()),
  );
  await expect.poll(() => scripts).toBe(3);
  await upgrades.stop(target, 'the plan was aborted');
  expect(upgrades.stateOf(target)).toBe('busy');
  running.resolve();
  await untilOver();
  expect(await reported()).toMatchObject({ state: 'finished', touched: true });
});

test('a host that refuses connections while it starts again is waited for, and that is told once', async () => {
  // An API server may be unreachable for minutes. But if it refuses requests, it refuses them at once.
  let refusals = 80;
  const shell: Shell = async (script) => {
    if (script.includes("VERB='\\''apply'") && refusals-- > 0)
      throw new Error('connect to host cp1 port 22: Connection refused');
    return await Promise.resolve();
  };
  await hostWith(() => false, shell);
  await untilOver();
  expect(await reported()).toMatchObject({ state: 'finished' });
  expect(warnings).toEqual(['lost the connection to the host, retrying']);
});

test('a host fails if its kube-scheduler does not become ready, and the reason says what to do', async () => {
  await hostWith(() => false);
  await setReady('kube-scheduler', 'False');
  await untilOver();
  const message = `kube-scheduler: its pod is not ready; see kubectl -n kube-system logs kube-scheduler-${name}`;
  expect(await reported()).toMatchObject({
    state: 'failed',
    step: 'Verify',
    touched: true,
    message,
  });
});

test('static pods that do not work are rolled back, and the reason says so', async () => {
  let asked = 0;
  await hostWith(
    () => false,
    async (script) => {
      if (!script.includes('static_pods_back "$ROLLOUT"')) return undefined;
      asked++;
      await setReady('kube-scheduler', 'True');
      return 'kube-scheduler v1.36.2\n';
    },
  );
  await setReady('kube-scheduler', 'False');
  const status = { conditions: [{ type: 'Ready', status: 'True' }] };
  await cluster.admin.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
  await untilOver();
  expect(asked).toBe(1);
  expect(await reported()).toMatchObject({
    state: 'failed',
    step: 'Verify',
    message: `kube-scheduler: its pod is not ready; see kubectl -n kube-system logs kube-scheduler-${name}; static pods rolled back: kube-scheduler v1.36.2; they are ready`,
  });
});

test.each([
  [
    'that does not come up is put back',
    () => 'containerd x v2.3.2 0\n',
    'containerd x v2.3.2 0 was put back and started',
  ],
  [
    'that cannot be put back is named, too',
    () => {
      throw new Error('cut off');
    },
    'the earlier one cannot be put back: cut off',
  ],
])('containerd %s', async (_what, putBack, ending) => {
  const scripts: string[] = [];
  const shell: Shell = async (script) => {
    const [, step] = /STEP=\W+(\w+)/.exec(script) ?? [];
    scripts.push(step ?? '');
    return await Promise.resolve(script.includes('nothing was replaced') ? putBack() : undefined);
  };
  const runtime = '{containerd: {path: /c}, containerd-shim-runc-v2: {path: /s}}';
  const more = `, containerd: {version: v2.3.3, binaries: ${runtime}}`;
  const { upgrades, target } = await hostWith(() => false, shell, [], ['kubeadm', 'kubelet'], more);
  const status = { nodeInfo: { containerRuntimeVersion: 'containerd://2.3.2' } };
  await cluster.admin.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
  await expect.poll(() => upgrades.isWaiting(target)).toBe(true);
  upgrades.acknowledge(target);
  await untilOver();
  const why = 'containerd v2.3.3 did not start: see journalctl -u containerd on the host';
  const message = `${ending}; ${why}: the Node reports containerd://2.3.2`;
  expect(await reported()).toMatchObject({
    state: 'failed',
    step: 'Containerd',
    touched: true,
    message,
  });
  expect(scripts).not.toContain('kubeadm');
});

const ROLLED_BACK = 'Kubernetes v1.36.2 was put back and started; check that the Node is Ready';

describe('after its kubelet was replaced, a host', () => {
  async function upgraded(
    kubeletVersion: string | undefined,
    rollBack: () => string,
  ): Promise<Report | undefined> {
    const shell: Shell = async (script) =>
      await Promise.resolve(
        script.includes('previous/kubelet" ] || exit 0')
          ? rollBack()
          : `${FOUND}\nkubelet=${VERSION}`,
      );
    const { upgrades, target } = await hostWith(() => false, shell, [], ['kubelet']);
    const status = { nodeInfo: { kubeletVersion } };
    await cluster.admin.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
    await expect.poll(() => upgrades.isWaiting(target)).toBe(true);
    upgrades.acknowledge(target);
    await untilOver();
    return await reported();
  }
  const late = 'kubelet: the Node reports v1.36.2; see journalctl -u kubelet on the host';
  const cutOff = (): string => {
    throw new Error('cut off');
  };

  test.each([
    [
      'a host whose Node still reports the old kubelet after the upgrade gets the old kubelet back',
      () => 'Kubernetes v1.36.2\n',
      `; rolled back: ${ROLLED_BACK}`,
    ],
    ['keeps what it has if nothing was replaced', () => '', ''],
    ['has failed all the same if it cannot be reached', cutOff, '; the roll-back failed: cut off'],
  ])('%s', async (_what, rollBack, ending) => {
    expect(await upgraded('v1.36.2', rollBack)).toMatchObject({
      state: 'failed',
      message: `${late}${ending}`,
    });
  });

  test('is done if its Node reports the new one', async () => {
    expect(await upgraded(VERSION, cutOff)).toMatchObject({ state: 'finished' });
  });

  test('keeps its kubelet if nobody says what it reports', async () => {
    const message = 'kubelet: the Node reports no version; see journalctl -u kubelet on the host';
    expect(await upgraded(undefined, cutOff)).toMatchObject({ state: 'failed', message });
  });
});

test('a kubelet that crashes is told in the report while the host still works', async () => {
  const crashes = `${FOUND}\nkubelet=${VERSION}\nkubeletCrashes=3 E1 command failed`;
  const shell: Shell = async () => await Promise.resolve(crashes);
  const { upgrades, target } = await hostWith(() => false, shell, [], ['kubelet']);
  await expect.poll(() => upgrades.isWaiting(target)).toBe(true);
  upgrades.acknowledge(target);
  const message = 'the new kubelet crashed 3 times; last line of its log: E1 command failed';
  await expect.poll(reported).toMatchObject({ state: 'working', step: 'Verify', message });
  const status = { nodeInfo: { kubeletVersion: VERSION } };
  await cluster.admin.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
  await untilOver();
  const end = await reported();
  expect(end).toMatchObject({ state: 'finished' });
  expect(end?.message).toBeUndefined();
});

test('a host with binaries of its own stages them, and has its kubectl replaced', async () => {
  const scripts = new Map<string, string>();
  const shell: Shell = async (script) => {
    const [, step] = /STEP=\W+(\w+)/.exec(script) ?? [];
    if (step !== undefined) scripts.set(step, script);
    return await Promise.resolve(`${FOUND}\nkubelet=${VERSION}`);
  };
  const own = ', binaries: {kubelet: {path: /own/kubelet}, kubectl: {path: /own/kubectl}}';
  const { upgrades, target } = await hostWith(() => false, shell, [], ['kubelet'], '', own);
  const status = { nodeInfo: { kubeletVersion: VERSION } };
  await cluster.admin.patch(nodes, name, { status }, { type: 'merge', subresource: 'status' });
  await expect.poll(() => upgrades.isWaiting(target)).toBe(true);
  upgrades.acknowledge(target);
  await untilOver();
  expect(await reported()).toMatchObject({ state: 'finished' });
  const sources = [
    'kubeadm source /a',
    'kubelet source /own/kubelet',
    `kubelet field hosts[${name}].binaries`,
    'kubectl source /own/kubectl',
  ];
  for (const line of sources) expect(scripts.get('stage')).toContain(`\n${line}\n`);
  expect(scripts.get('kubelet')).toContain("KUBECTL='\\''yes'\\''");
});

/** Returns the answer of the member on one of two hosts. The first member is the leader. */
function etcdOf(id: '10' | '11'): string {
  const header = `"header":{"cluster_id":"1","member_id":"${id}"}`;
  const members = '"members":[{"ID":"10","name":"a"},{"ID":"11","name":"b"}]';
  const answers = [
    `{${header}}`,
    `{${header},"leader":"10"}`,
    `{${header},${members}}`,
    `{${header}}`,
  ];
  return answers.map((answer) => `etcd=${answer}`).join('\n');
}

test('a connection that is cut while etcd moves its leader away does not fail the host', async () => {
  let moves = 0;
  const shell: Shell = async (script, host) => {
    if (script.includes('transfer-leadership') && ++moves > 0)
      throw new Error('the connection was cut');
    return await Promise.resolve(`${FOUND}\n${etcdOf(host === name ? '10' : '11')}`);
  };
  await hostWith(() => false, shell, ['other']);
  await untilOver();
  expect(moves).toBe(1);
  expect(await reported()).toMatchObject({ state: 'finished', step: 'Verify' });
});

test('a failed host is tried again in the same run, and its report still says what the first attempt changed', async () => {
  const { upgrades, target, work } = await hostWith(() => false);
  await setReady('kube-scheduler', 'False');
  await untilOver();
  expect(await reported()).toMatchObject({ state: 'failed', touched: true });
  await setReady('kube-scheduler', 'True');
  const since = '2026-11-21T09:00:00Z';
  await upgrades.begin({ ...work, target: { ...target, since } });
  await expect.poll(async () => (await reported())?.attempt).toBe(since);
  await untilOver();
  expect(await reported()).toMatchObject({ state: 'finished', attempt: since, touched: true });
});
