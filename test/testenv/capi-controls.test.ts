/** Tests pause, resume, abort and retry for Machines, as the documented operator: on a real API server, through the hooks. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { driveUpdate } from '../../sandbox/cluster/machine-manager.ts';
import type { UpdateMachineResponse } from '../../src/api/capi/hooks.ts';
import { upgradePolicies } from '../../src/api/kinds.ts';
import { updateOn } from '../../src/dialects/capi/plan/machine-update.ts';
import { nodes } from '../../src/kube/resources.ts';
import { buildUpgradePolicy } from '../support/builders/policies.ts';
import {
  type MachineCluster,
  machineOf,
  openMachineCluster,
  TO,
} from '../support/capi/machine-cluster.ts';
import { kubeconfigFor } from './control-plane.ts';
import { runRefit } from './refit-process.ts';

const PATIENCE = { timeout: 150_000, interval: 200 };
const POLICY = 'capi-orders';
const PAUSED = 'worker1';
const ABORTED = 'worker2';

let scene: MachineCluster;

beforeAll(async () => {
  scene = await openMachineCluster({ workers: 2 });
  await scene.whenCallable('h2');
});
afterAll(async () => await scene[Symbol.asyncDispose]());

async function told(
  ...args: readonly string[]
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const { code, stdout, stderr } = await runRefit(
    ...args,
    '--kubeconfig',
    await kubeconfigFor('operator'),
  );
  return { code, stdout: stdout.join('\n'), stderr: stderr.join('\n') };
}

/**
 * Creates a policy that prevents the start of every update until the policy is deleted. Commands can be run meanwhile.
 */
async function shut(): Promise<void> {
  const policy = buildUpgradePolicy(POLICY, { plans: [{ dialect: 'capi' }], paused: true });
  await scene.cluster.client.create(upgradePolicies, policy);
}

async function open(): Promise<void> {
  await scene.cluster.client.delete(upgradePolicies, POLICY);
}

interface Update {
  readonly words: readonly string[];
  /** Resolves with undefined when the update has ended, or with its error. */
  readonly ended: Promise<unknown>;
}

async function begin(node: string): Promise<Update> {
  const words: string[] = [];
  const hear = (answer: UpdateMachineResponse | Error): void =>
    void words.push(answer instanceof Error ? answer.message : (answer.message ?? ''));
  const ended = scene.update(node, scene.manager('h2', hear)).then(
    () => undefined,
    (error: unknown) => error,
  );
  const held = `UpgradePolicy ${POLICY} has spec.paused: nothing new starts`;
  await vi.waitFor(() => expect(words).toContain(held), PATIENCE);
  return { words, ended };
}

test('a pause holds the update of one Machine for every caller; resume continues it', async () => {
  await shut();
  const { words, ended } = await begin(PAUSED);
  const paused = await told('pause', '--plan', `capi/${PAUSED}`);
  expect(paused).toMatchObject({ code: 0, stderr: '' });
  expect(paused.stdout).toMatch(
    /^Machine default\/machine-of-worker1 of Cluster stand-in \(\S+\) is paused\.\nNo node is in progress\./,
  );
  await open();
  await vi.waitFor(
    () => expect(words.at(-1)).toBe('the plan is paused: nothing new starts until it is resumed'),
    PATIENCE,
  );
  const { stdout } = await told('why', PAUSED);
  expect(stdout).toContain('the plan is paused: nothing new starts until it is resumed');
  expect(stdout).toContain(
    '\n  ends    when the plan is resumed (refit resume, or refit resume --plan NAME if there are several plans)',
  );
  expect(stdout).toContain('`refit capi-extension` carries it out');

  const viewer = await runRefit('status', '--kubeconfig', await kubeconfigFor('viewer'));
  expect(viewer.stdout.join('\n')).toContain(
    'Machine default/machine-of-worker1 of Cluster stand-in (',
  );

  expect((await told('resume', '--plan', `capi/${PAUSED}`)).stdout).toContain(
    `continues.\nNext: ${PAUSED}.`,
  );
  expect(await ended).toBeUndefined();
  expect((await scene.cluster.client.get(nodes, PAUSED)).status?.nodeInfo?.kubeletVersion).toBe(TO);
});

test('an abort fails the call with its reason; after the advice of why, the next call of Cluster API starts the update again', async () => {
  await shut();
  const { ended } = await begin(ABORTED);
  expect(
    (await told('abort', '--reason', 'wrong release', '--plan', `capi/${ABORTED}`)).stdout,
  ).toMatch(
    /^Machine default\/machine-of-worker2 of Cluster stand-in \(\S+\) is aborted: wrong release\./,
  );
  expect(await ended).toMatchObject({ message: 'the plan was aborted: wrong release' });
  const advice =
    'run refit retry default/machine-of-worker2: the next call of Cluster API starts the update again';
  expect((await told('why', ABORTED)).stdout).toContain(`Aborted. To start again: ${advice}.`);

  await open();
  const requestOf = async () => updateOn(await scene.cluster.client.get(nodes, ABORTED));
  const before = await requestOf();
  expect(await told('retry', machineOf(ABORTED))).toEqual({
    code: 0,
    stdout:
      'Machine default/machine-of-worker2 is updated again when Cluster API sends its next request.',
    stderr: '',
  });
  expect(await requestOf()).toBeUndefined();
  await driveUpdate(scene.manager('h2'), { machine: machineOf(ABORTED), version: TO });
  expect((await scene.cluster.client.get(nodes, ABORTED)).status?.nodeInfo?.kubeletVersion).toBe(
    TO,
  );
  expect((await requestOf())?.uid).not.toBe(before?.uid);
  expect((await told('retry', ABORTED)).stderr).toContain(
    'worker2 of Machine default/machine-of-worker2',
  );
});
