/** The parts of a survey of an ordinary kubeadm cluster, except its hosts. */
import type { Survey } from '../../../src/dialects/kubeadm/plan/preflight.ts';
import { DEFAULT_POLICY } from '../../../src/engine/policy/rollout-policy.ts';

export const ORDINARY: Omit<Survey, 'manifest' | 'hosts' | 'nodes' | 'clusterVersion'> = {
  allowsCgroupV1: false,
  configuration: [],
  plan: undefined,
  policy: DEFAULT_POLICY,
  drainPreviews: new Map(),
  webhooks: [],
  pools: undefined,
  rollsPools: false,
  addons: [],
};

/** Returns a recorded stage in which the targets have these states. */
export function stageWith(id: string, states: Readonly<Record<string, string>>): object {
  const targets = Object.entries(states).map(([name, state]) => {
    return { key: `${id}/${name}`, name, state, since: '2026-11-20T08:00:00Z' };
  });
  return {
    id,
    command: 0,
    role: 'controller',
    maxInFlight: 1,
    version: 'v1.36.3',
    forced: false,
    targets,
  };
}
