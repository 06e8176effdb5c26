/** Tests deploy/admission-policy.yaml on the real API server: only leaders send signals, and agents only report. */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { apiVersionOf, nodes, type Resource } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import {
  controlNodes,
  SIGNAL_DATA_ANNOTATION as DATA,
  ROLLOUT_ANNOTATION,
  SIGNAL_STATUSES,
} from '../../src/signal/names.ts';
import { NEW, Rig } from '../agent/rig.ts';
import { apply, installKinds, kubeconfigFor, kubectlAs, type User } from './control-plane.ts';

/** The annotations that contain requests. The removal of such an annotation ends an update, or starts another attempt. */
const REQUESTS = ['upgrade.refit.dev/machine-update', 'upgrade.refit.dev/node-configuration'];
const POLICY = 'deploy/admission-policy.yaml';
let admin: KubeClient;
let leader: KubeClient;
let probes = 0;

const clientOf = async (user: User): Promise<KubeClient> =>
  createClient(await loadClusterConfig({ path: await kubeconfigFor(user) }));

const clients = new Map<string, KubeClient>();

/** Works like `kubectl annotate --overwrite`. Resolves with the reason of the refusal, or with an empty text. */
async function annotate(
  user: User,
  name: string,
  pairs: readonly string[],
  kind: Resource = nodes,
): Promise<string> {
  const key = JSON.stringify(user);
  const client = clients.get(key) ?? (await clientOf(user));
  clients.set(key, client);
  const annotations = Object.fromEntries(
    pairs.map((pair) => {
      const [, key = '', value] = /^([^=]+?)(?:=(.*)|-)$/.exec(pair) ?? [];
      return [key, value ?? null];
    }),
  );
  return await client
    .patch(kind, name, { metadata: { annotations } }, { type: 'merge' })
    .then(() => '', String);
}

/** Sends a signal as the leader, which may replace an object, but not patch it. */
async function signal(
  name: string,
  annotations: Record<string, string>,
  kind: Resource = nodes,
): Promise<void> {
  const object = await leader.get(kind, name);
  const { metadata } = object;
  await leader.replace(kind, {
    ...object,
    metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } },
  });
}

beforeAll(async () => {
  await installKinds();
  [admin, leader] = await Promise.all([clientOf('admin'), clientOf('controller')]);
  await admin.create(nodes, { metadata: { name: 'policy-probe' } });
  await admin.create(controlNodes, {
    apiVersion: apiVersionOf(controlNodes),
    kind: controlNodes.kind,
    metadata: { name: 'policy-probe' },
  });
  await apply(await readFile(POLICY, 'utf8'));
  // The API server enforces a policy some time after it was written.
  await vi.waitFor(
    async () =>
      expect(await annotate('admin', 'policy-probe', [`${DATA}=${++probes}`])).not.toBe(''),
    {
      timeout: 120_000,
      interval: 100,
    },
  );
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', '-f', POLICY]);
  await admin.delete(nodes, 'policy-probe');
  await admin.delete(controlNodes, 'policy-probe');
  for (const client of [admin, leader, ...clients.values()]) client.close();
});

test.each([
  ['worker', 'policy-agent', { node: 'policy-agent' }, nodes],
  ['controller', 'policy-controller', { controlNode: 'policy-controller' }, controlNodes],
] as const)(
  'on a %s an update by leader and agent passes with every write that they make',
  async (role, name, user, kind) => {
    const writeSignal = async (annotations: Record<string, string>): Promise<void> =>
      await signal(name, annotations, kind);
    await using rig = await Rig.start({
      name,
      role,
      admin,
      writeSignal,
      kubeconfig: await kubeconfigFor(user),
    });
    rig.startAgent();
    await rig.send('/new', NEW);
    await rig.end();
    expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
  },
);

describe.each([
  ['node', nodes, (name: string): User => ({ node: name })],
  ['controlnode', controlNodes, (name: string): User => ({ controlNode: name })],
] as const)('on a %s is refused', (_kind, resource, agentOf) => {
  const data = '{"planId":"id1","created":"now","command":{"id":0}}';
  const withStatus = (status: string): string => `${data.slice(0, -1)},"status":${status}}`;
  const reported = withStatus('{"status":"Completed","timestamp":"now"}');
  const own = agentOf('policy-probe');

  beforeAll(async () => {
    const requests = Object.fromEntries(REQUESTS.map((name) => [name, 'y']));
    await signal('policy-probe', { ...requests, [DATA]: data }, resource);
  });

  test.each<[string, User, string]>([
    ['a signal of an operator', 'admin', `${DATA}=${data.replace('id1', 'id2')}`],
    ['a report by an operator', 'admin', `${DATA}=${reported}`],
    ['an end of a signal by an operator', 'admin', `${DATA}-`],
    ['a hold by the agent itself', own, 'upgrade.refit.dev/hold=x'],
    ['a claim by the agent itself', own, 'upgrade.refit.dev/claimed-by=x'],
    ['a configuration by the agent itself', own, 'upgrade.refit.dev/node-configuration=x'],
    ['a configuration of an operator', 'admin', 'upgrade.refit.dev/node-configuration=x'],
    [
      'a report of a configuration by an operator',
      'admin',
      'upgrade.refit.dev/node-configuration-report=x',
    ],
    ['an end of an update by the agent itself', own, 'upgrade.refit.dev/machine-update-'],
    ['a retry by the agent itself', own, 'upgrade.refit.dev/node-configuration-'],
    ['an update of an operator', 'admin', 'upgrade.refit.dev/machine-update='],
    ['a retry by another agent', agentOf('policy-other'), 'upgrade.refit.dev/node-configuration-'],
    ['a rollout by the agent itself', own, `${ROLLOUT_ANNOTATION}=x`],
    ['another signal by the agent itself', own, `${DATA}=${reported.replace('id1', 'id2')}`],
    [
      'more than a status by the agent itself',
      own,
      `${DATA}=${withStatus('{"status":"Completed","timestamp":"now","url":"x"}')}`,
    ],
    ['a report by another agent', agentOf('policy-other'), `${DATA}=${reported}`],
  ])('%s', async (_name, user, pair) => {
    expect(await annotate(user, 'policy-probe', [pair], resource)).toContain('orbidden');
  });

  test('but not the report of the agent itself, a control, or what is of others', async () => {
    const ours = ['agent-heartbeat', 'node-configuration-report'].map(
      (name) => `upgrade.refit.dev/${name}=x`,
    );
    const reports = [`${DATA}=${reported}`, ...ours];
    expect(await annotate(own, 'policy-probe', reports, resource)).toBe('');
    const theirs = ['upgrade.refit.dev/pause=true', 'upgrade.refit.dev/hold=x', 'team=blue'];
    expect(await annotate('admin', 'policy-probe', theirs, resource)).toBe('');
  });

  test('but not the removal of a request by an operator', async () => {
    const removals = REQUESTS.map((name) => `${name}-`);
    expect(await annotate('admin', 'policy-probe', removals, resource)).toBe('');
    const { metadata } = await admin.get(resource, 'policy-probe');
    expect(
      Object.keys(metadata.annotations ?? {}).filter((name) => REQUESTS.includes(name)),
    ).toEqual([]);
  });
});

/**
 * Names that the policy does not guard: annotations of other objects, annotations that operators write, and names that
 * are not annotations.
 */
const UNGUARDED =
  'certificates definition-version dialect hold pause abort retry restart run check after-failure time-zone update update-status updater-steps pending machines skips-remediation addon minimum-release-age hook hook-node health-check policy health-check-started health-check-failed rolls-back rolls-back-to rolls-back-reason v1alpha1 drain drained-node'.split(
    ' ',
  );

test('it names every annotation of Refit', async () => {
  const policy = await readFile(POLICY, 'utf8');
  // Test files are excluded, because they also contain names that are not annotations of Refit.
  const files = globSync('src/**/*.ts', { exclude: ['**/*.test.ts'] });
  const texts = await Promise.all(files.map(async (file) => await readFile(file, 'utf8')));
  const names = texts
    .flatMap((text) => [...text.matchAll(/'upgrade\.refit\.dev\/([a-z0-9-]+)'/g)])
    .map(([, name]) => name);
  expect(names).toContain('prefetch');
  expect(
    names.filter((name) => !policy.includes(`'${name}'`) && !UNGUARDED.includes(name ?? '')),
  ).toEqual([]);
});

test('a node with thousands of annotations does not hold the API server', async () => {
  const name = 'policy-crowd';
  const annotations = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, index) => [`a${index}`, '']),
  );
  await admin.create(nodes, { metadata: { name, annotations } });
  const kubelet = await clientOf({ node: name });
  try {
    // The test sets no time limit, because a request has its own.
    const patched = kubelet.patch(
      nodes,
      name,
      { metadata: { annotations: { team: 'blue' } } },
      { type: 'merge' },
    );
    await expect(patched).resolves.toBeDefined();
  } finally {
    kubelet.close();
    await admin.delete(nodes, name);
  }
});
