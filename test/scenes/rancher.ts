/** The parts of a K3s cluster in a scene: its Nodes, the controller for Plans of Rancher, and Jobs that do what the scene says. */
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import { cattle } from '../../src/dialects/cattle/plan/cattle-dialect.ts';
import { DEFAULT_JOB_SETTINGS } from '../../src/dialects/cattle/plan/config.ts';
import { PULL_LABEL } from '../../src/drain/own-pods.ts';
import { apiVersionOf, type Job, jobs, namespaces, nodes } from '../../src/kube/resources.ts';
import { rfc3339 } from '../../src/util/clock.ts';
import type { CattleSpec } from '../support/builders/cattle-plans.ts';
import { controllerOf } from './controller.ts';
import { endedJob } from './ended-job.ts';
import type { Actor, Stage } from './stage.ts';

export const NAMESPACE = 'system-upgrade';
const NAME = 'system-upgrade-controller';
export const FROM = 'v1.36.2+k3s1';
const TO = 'v1.36.3+k3s1';
const SERVER = 'node-role.kubernetes.io/control-plane';

/** Creates servers s1, s2, … and agents a1, a2, …. All of them run `FROM`. */
export async function createRancherCluster(
  stage: Stage,
  servers: number,
  agents: number,
): Promise<void> {
  await stage.create(namespaces, { metadata: { name: NAMESPACE } });
  const names = [
    ...Array.from({ length: servers }, (_, index) => `s${index + 1}`),
    ...Array.from({ length: agents }, (_, index) => `a${index + 1}`),
  ];
  for (const name of names) await createRancherNode(stage, name, name.startsWith('s'));
}

/** Creates a Node that runs `FROM`. */
export async function createRancherNode(
  stage: Stage,
  name: string,
  isServer = false,
): Promise<void> {
  const role = isServer ? { [SERVER]: 'true' } : {};
  const platform = { operatingSystem: 'linux', architecture: 'amd64' };
  const labels = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
  await stage.create(nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { ...labels, 'kubernetes.io/hostname': name, ...role } },
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      nodeInfo: { kubeletVersion: FROM, ...platform },
    },
  });
}

/** Returns the Plan for servers or for agents, as the documentation of K3s writes it. */
export function k3sPlan(role: 'server' | 'agent', spec: Partial<CattleSpec> = {}): CattlePlan {
  const operator = role === 'server' ? 'In' : 'DoesNotExist';
  const values = role === 'server' ? { values: ['true'] } : {};
  const prepare = { image: 'rancher/k3s-upgrade', args: ['prepare', 'k3s-server'] };
  return {
    apiVersion: apiVersionOf(cattlePlans),
    kind: cattlePlans.kind,
    metadata: { name: `k3s-${role}`, namespace: NAMESPACE },
    spec: {
      concurrency: 1,
      cordon: true,
      version: TO,
      serviceAccountName: 'system-upgrade',
      nodeSelector: { matchExpressions: [{ key: SERVER, operator, ...values }] },
      ...(role === 'agent' ? { prepare } : {}),
      upgrade: { image: 'rancher/k3s-upgrade' },
      ...spec,
    },
  };
}

/** The controller as `refit system-upgrade-controller` starts it, with the settings of the original. Each scene has its own process. */
export const rancherController: Actor = async (parts) => {
  const job = DEFAULT_JOB_SETTINGS;
  const start = controllerOf({
    component: NAME,
    dialects: [cattle({ name: NAME, namespace: NAMESPACE, job, apiServerVersion: () => FROM })],
    lease: { namespace: NAMESPACE, name: NAME },
    policies: 'if-allowed',
  });
  return await start(parts);
};

/** How the Job of a node ends: after how many seconds, and with what result. `forever` means that it never ends. */
export type JobEnd = (
  node: string,
) => { readonly seconds: number; readonly result: 'installed' | 'nothing' | 'failed' } | 'forever';

const inTenSeconds: JobEnd = () => ({ seconds: 10, result: 'installed' });

/**
 * The Job controller and the images of the Plans. `installed` means that the kubelet reports the version of the Plan.
 * `runs` gets the version that each node runs since its Job. If `canPull` is false, the registry does not answer.
 */
export function jobRunner(
  endOf: JobEnd = inTenSeconds,
  runs: Map<string, string> = new Map<string, string>(),
  canPull = true,
): Actor {
  return async ({ client, clock }) => {
    const end = async (job: Job, result: 'Complete' | 'Failed'): Promise<void> => {
      const { name, namespace } = job.metadata;
      const status = endedJob(job, result, rfc3339(clock.now()));
      const options = { namespace, type: 'merge', subresource: 'status' } as const;
      await client.patch(jobs, name, { status }, options);
    };
    /** A kubelet pulls the image of a Plan within a second. */
    const completePull = async (job: Job): Promise<void> => {
      if (!canPull || (job.status?.conditions ?? []).length > 0) return;
      await end(job, 'Complete');
    };
    const look = async (job: Job): Promise<void> => {
      const { labels = {}, creationTimestamp = '' } = job.metadata;
      if (PULL_LABEL in labels) return await completePull(job);
      const node = labels['upgrade.cattle.io/node'];
      if (node === undefined || (job.status?.conditions ?? []).length > 0) return;
      // Kubernetes creates no pods for a Job that is suspended or paused, such as one that waits for the leader's drain.
      if (job.spec?.['suspend'] === true || job.spec?.['parallelism'] === 0) return;
      const planned = endOf(node);
      const age = (clock.now() - Date.parse(creationTimestamp)) / 1000;
      if (planned === 'forever' || age < planned.seconds) return;
      await end(job, planned.result === 'failed' ? 'Failed' : 'Complete');
      if (planned.result !== 'installed') return;
      const version = labels['upgrade.cattle.io/version'] ?? TO;
      const nodeInfo = { kubeletVersion: version.replace('-k3s', '+k3s') };
      runs.set(node, nodeInfo.kubeletVersion);
      const options = { type: 'merge', subresource: 'status' } as const;
      await client.patch(nodes, node, { status: { nodeInfo } }, options);
    };
    return await Promise.resolve({
      tick: async () => {
        for (const job of (await client.list(jobs)).items) await look(job);
      },
    });
  };
}
