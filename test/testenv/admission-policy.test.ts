/** Tests deploy/admission-policy.yaml on the real API server: only leaders send signals, and agents only report. */
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { nodes } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { SIGNAL_DATA_ANNOTATION as DATA, ROLLOUT_ANNOTATION, SIGNAL_STATUSES } from '../../src/signal/names.ts';
import { NEW, Rig } from '../agent/rig.ts';
import { apply, kubeconfigFor, kubectlAs, type User } from './control-plane.ts';

const POLICY = 'deploy/admission-policy.yaml';
let admin: KubeClient;
let leader: KubeClient;
let probes = 0;

const clientOf = async (user: User): Promise<KubeClient> =>
  createClient(await loadClusterConfig({ path: await kubeconfigFor(user) }));

const annotate = async (user: User, node: string, ...pairs: string[]) =>
  await kubectlAs(user, ['annotate', '--overwrite', 'node', node, ...pairs]);

/** As the leader: it may replace a Node, not patch it. */
async function signal(name: string, annotations: Record<string, string>): Promise<void> {
  const node = await leader.get(nodes, name);
  const { metadata } = node;
  await leader.replace(nodes, {
    ...node,
    metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } },
  });
}

beforeAll(async () => {
  for (const file of globSync('deploy/crds/*.yaml')) await apply(await readFile(file, 'utf8'));
  [admin, leader] = await Promise.all([clientOf('admin'), clientOf('controller')]);
  await admin.create(nodes, { metadata: { name: 'policy-probe' } });
  await apply(await readFile(POLICY, 'utf8'));
  // The API server takes a policy up some time after it was written.
  await vi.waitFor(
    async () => expect((await annotate('admin', 'policy-probe', `${DATA}=${++probes}`)).ok).toBe(false),
    {
      timeout: 30_000,
    },
  );
});

afterAll(async () => {
  await kubectlAs('admin', ['delete', '-f', POLICY]);
  await admin.delete(nodes, 'policy-probe');
  admin.close();
  leader.close();
});

test('an update by leader and agent passes with every write that they make', async () => {
  const name = 'policy-agent';
  const writeSignal = async (annotations: Record<string, string>): Promise<void> => await signal(name, annotations);
  await using rig = await Rig.start({ name, admin, writeSignal, kubeconfig: await kubeconfigFor({ node: name }) });
  rig.startAgent();
  await rig.send('/new', NEW);
  await rig.end();
  expect(rig.statuses).toEqual([...SIGNAL_STATUSES]);
});

describe('refused', () => {
  const data = '{"planId":"id1","created":"now","command":{"id":0}}';
  const withStatus = (status: string): string => `${data.slice(0, -1)},"status":${status}}`;
  const reported = withStatus('{"status":"Completed","timestamp":"now"}');

  beforeAll(async () => {
    await signal('policy-probe', { [DATA]: data });
  });

  test.each<[string, User, string]>([
    ['a signal of an operator', 'operator', `${DATA}=${data.replace('id1', 'id2')}`],
    ['a report by an operator', 'operator', `${DATA}=${reported}`],
    ['an end of a signal by an operator', 'operator', `${DATA}-`],
    ['a rollout by the node itself', { node: 'policy-probe' }, `${ROLLOUT_ANNOTATION}=x`],
    ['another signal by the node itself', { node: 'policy-probe' }, `${DATA}=${reported.replace('id1', 'id2')}`],
    [
      'more than a status by the node itself',
      { node: 'policy-probe' },
      `${DATA}=${withStatus('{"status":"Completed","timestamp":"now","url":"x"}')}`,
    ],
    ['a report by another node', { node: 'policy-other' }, `${DATA}=${reported}`],
  ])('%s', async (_name, user, pair) => {
    const { ok, stderr } = await annotate(user, 'policy-probe', pair);
    expect({ ok, stderr }).toEqual({ ok: false, stderr: expect.stringContaining('orbidden') as string });
  });

  test('but not the report of the node itself, a control, or what is of others', async () => {
    expect((await annotate({ node: 'policy-probe' }, 'policy-probe', `${DATA}=${reported}`)).stderr).toBe('');
    expect((await annotate('admin', 'policy-probe', 'upgrade.refit.dev/pause=true', 'team=blue')).stderr).toBe('');
  });
});
