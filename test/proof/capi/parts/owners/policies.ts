/** Helpers for parts about plans of owners: the policy of an owner, further calls of the managers, and what has started. */
import { upgradePolicies } from '../../../../../src/api/kinds.ts';
import type { UpgradePolicySpec } from '../../../../../src/api/refit/upgrade-policy.ts';
import { UPDATE_ANNOTATION } from '../../../../../src/dialects/capi/plan/machine-update.ts';
import { nodes } from '../../../../../src/kube/resources.ts';
import { run } from '../../../../../tools/controlplane/run.ts';
import { buildUpgradePolicy } from '../../../../support/builders/policies.ts';
import { NAMESPACE } from '../../machines/objects.ts';
import { conditionOf } from '../../machines/settled.ts';
import type { ManagerName } from '../../managers/programs.ts';
import type { Scene } from '../../scene.ts';

/** Creates a policy for the plan of this owner, and resolves when the leader has read it. */
export async function usePolicy(
  scene: Scene,
  name: string,
  owner: string,
  spec: UpgradePolicySpec,
): Promise<void> {
  const { client } = scene.cluster;
  const plans = [{ dialect: 'capi' as const, namespace: NAMESPACE, name: owner }];
  await client.create(upgradePolicies, buildUpgradePolicy(name, { plans, ...spec }));
  await scene.until(`the leader has read UpgradePolicy ${name}`, async () => {
    const accepted = conditionOf(await client.get(upgradePolicies, name), 'Accepted');
    return accepted?.status === 'True';
  });
}

/** Waits until this manager has called `hook` this many times more. A call that was already sent counts, too. */
export async function moreCalls(
  scene: Scene,
  manager: ManagerName,
  hook: string,
  times: number,
): Promise<void> {
  const { all } = await scene.managers.calls(manager, hook);
  await scene.until(`${times} more calls of ${hook}`, async () => {
    const calls = await scene.managers.calls(manager, hook);
    return calls.all >= all + times;
  });
}

/** Returns the Machines whose service was started more often than in `before`, sorted by name. */
export function startedSince(scene: Scene, before: Readonly<Record<string, number>>): string[] {
  const now = scene.starts(Object.keys(before));
  return Object.keys(before)
    .filter((name) => now[name] !== before[name])
    .toSorted();
}

/** Returns the Nodes of these Machines that have a request of Refit for this version. */
export async function requested(
  { cluster }: Scene,
  machines: Iterable<string>,
  version: string,
): Promise<string[]> {
  const found = [...machines].map(async (name) => {
    const { metadata } = await cluster.client.get(nodes, name);
    const request = metadata.annotations?.[UPDATE_ANNOTATION];
    return request?.includes(`"version":"${version}"`) === true ? [name] : [];
  });
  return (await Promise.all(found)).flat();
}

/** Runs a command of `refit` as an administrator, and returns what is wrong. */
export async function refit(
  { options, kubeconfig }: Scene,
  ...args: readonly string[]
): Promise<string[]> {
  const told = await run(options.refit, [...args, '--kubeconfig', kubeconfig]);
  return told.ok ? [] : [`refit ${args[0]}: ${told.stderr.trim() || told.stdout.trim()}`];
}
