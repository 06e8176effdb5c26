/** The common parts of the tests of the cattle dialect on a real control plane. */
import { readFile } from 'node:fs/promises';
import { REFIT } from '../../sandbox/refit.ts';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { type Condition, leases, type Node } from '../../src/kube/resources.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { systemClock } from '../../src/util/clock.ts';
import { type Process, startProcess } from '../../tools/controlplane/process.ts';
import { simulatedNode } from '../../tools/controlplane/simulated-nodes.ts';
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import { apply, kubeconfigFor } from './control-plane.ts';

export const NAMESPACE = 'system-upgrade';

/** The documented role of the controller cannot create a definition. */
export async function installKinds(): Promise<void> {
  for (const kind of ['upgrade.cattle.io_plans', 'upgrade.refit.dev_upgradepolicies'])
    await apply(await readFile(`deploy/crds/${kind}.yaml`, 'utf8'));
}

/** Returns a Plan for the nodes of the pool `servers`. */
export function planOf(
  name: string,
  spec: Partial<CattleSpec>,
  labels: Record<string, string> = {},
): CattlePlan {
  return {
    apiVersion: 'upgrade.cattle.io/v1',
    kind: 'Plan',
    metadata: { name, namespace: NAMESPACE, labels },
    spec: {
      concurrency: 1,
      nodeSelector: { matchLabels: { pool: 'servers' } },
      serviceAccountName: 'system-upgrade',
      upgrade: { image: 'example.com/upgrade', args: ['--all'] },
      ...spec,
    },
  };
}

export function conditionOf({ status }: CattlePlan, type: string): Partial<Condition> {
  const found = status?.conditions?.find((condition) => condition.type === type);
  return found ? (found as Partial<Condition>) : {};
}

export function timeOf(text: string | undefined): number {
  return Date.parse(text ?? '');
}

export function nodeOf(name: string, labels: Record<string, string>): Node {
  const node = simulatedNode(name);
  return {
    ...node,
    metadata: { ...node.metadata, labels: { ...node.metadata.labels, ...labels } },
  };
}

/** Resolves when the controller leads. */
export async function startController(
  directory: string,
  environment: Record<string, string>,
): Promise<Process> {
  const config = await loadClusterConfig({ path: await kubeconfigFor('admin') });
  using client = createClient(config);
  return await startProcess({
    name: 'system-upgrade-controller',
    command: process.execPath,
    args: [REFIT, 'system-upgrade-controller'],
    environment: {
      SYSTEM_UPGRADE_CONTROLLER_KUBE_CONFIG: await kubeconfigFor('cattle'),
      SYSTEM_UPGRADE_CONTROLLER_NAME: 'system-upgrade-controller',
      SYSTEM_UPGRADE_CONTROLLER_NAMESPACE: NAMESPACE,
      SYSTEM_UPGRADE_CONTROLLER_LEADER_ELECT: 'true',
      // The simulated servers have the address of this machine, where the real API server listens at its own port.
      SYSTEM_UPGRADE_CONTROLLER_API_PORT: new URL(config.server).port,
      ...environment,
    },
    directory,
    ready: async () =>
      await client.get(leases, 'system-upgrade-controller', { namespace: NAMESPACE }).then(
        () => true,
        () => false,
      ),
    clock: systemClock,
  });
}
