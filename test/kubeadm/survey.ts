/** What a survey of a kubeadm cluster has beside its hosts, where nothing is out of the ordinary. */
import type { Survey } from '../../src/dialects/kubeadm/preflight.ts';
import { DEFAULT_POLICY } from '../../src/engine/policy/rollout-policy.ts';

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
